//===- Session.h - A compiled model over a state ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C ABI drives: the artifact, the state's folder and the pipeline, and
// the rules about who may call what when. SessionOpen.cpp finds a
// state, SessionLoad.cpp opens stores and takes rows, SessionWarm.cpp fills
// caches, SessionSave.cpp writes roots, SessionRows.cpp looks at rows,
// Session.cpp runs batches.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_SESSION_SESSION_H
#define TERRACE_RUNTIME_SESSION_SESSION_H

#include "runtime/exec/Pipeline.h"
#include "runtime/session/Artifact.h"
#include "runtime/session/StateReader.h"
#include "runtime/stats/ChromeTrace.h"
#include "terrace-rt/session.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace trc {

uint64_t randomKey();

class Session {
public:
  static Result<std::unique_ptr<Session>> open(const trc_open_options &options);
  ~Session();
  /// Drains and saves (train mode). The session takes no more calls but, where
  /// it is not over() then, another close().
  Status close();
  /// Whether nothing is left to store, or nothing can be.
  bool over() const { return isOver; }
  /// Ends without saving.
  void discard();

  Status describe(trc_model_info &info);
  Status submit(const trc_batch &batch, trc_ticket &ticket);
  Status submitKeyed(const trc_keyed_batch &batch, trc_ticket &ticket);
  Status forward(trc_ticket ticket, DLTensor *const *outputs, uint32_t count);
  Status backward(trc_ticket ticket, const DLTensor *const *gradients,
                  uint32_t count, const trc_backward_options *options);
  Status release(trc_ticket ticket);
  Status setLr(double lrScale);
  Status readRows(const char *table, const int64_t *rows, int64_t count,
                  float *out);
  Status writeRows(const char *table, const int64_t *rows, int64_t count,
                   const float *values);
  Status readState(const char *table, int32_t slot, const int64_t *rows,
                   int64_t count, float *out);
  Status writeState(const char *table, int32_t slot, const int64_t *rows,
                    int64_t count, const float *values);
  Status checkpoint(const void *blob, uint64_t bytes, uint32_t keep);
  Status checkpointBegin(const void *blob, uint64_t bytes, uint32_t keep);
  Status checkpointWait(bool block);
  Status getBlob(void *data, uint64_t *bytes);
  Status stats(const char **json);
  void cancel();

  /// Whether this process opened the session.
  bool ownProcess() const;

private:
  Session() = default;

  // SessionOpen.cpp
  Status openArtifact(const trc_open_options &options);
  Status openState(const trc_open_options &options);
  Status giveUpState();
  Status removeGivenUp();
  Status identify(const Manifest *source);
  Status findSource(const trc_open_options &options,
                    std::optional<StateSource> &source);
  StoresOptions storesOptions();
  Status announceHolder(const std::vector<uint64_t> &before);
  Status claimStores();
  Status setUp(std::optional<StateSource> &source);
  Status findInitSource(const char *folder, std::unique_ptr<StateDir> &otherDir,
                        std::optional<StateSource> &other,
                        std::vector<int> &otherMap);
  Result<std::vector<int>> matchForInit(const StateSource &other,
                                        const std::string &folder);
  void adoptInit(const Manifest &manifest, const std::vector<int> &tableMap);
  void describeModel();

  // SessionLoad.cpp
  /// Of each table of the manifest: which of ours has its name, or -1.
  std::vector<int> tableMapOf(const Manifest &manifest) const;
  /// The stores of our groups in a generation of files.
  std::vector<ManifestGroup> layout(uint32_t generation) const;
  bool sameLayout(const Manifest &manifest) const;
  std::vector<std::string> tierFiles() const;
  /// Those, and the store of the memory tiers.
  std::vector<std::string> storeFiles() const;
  Status adoptRoots(const StateSource &source);
  Status loadMemory(GroupRuntime &group);
  /// Rows of the source's tables into ours by tableMap (-1: not taken).
  Status loadRows(const StateSource &source, const std::vector<int> &tableMap);

  // SessionSave.cpp
  /// A root on its way to disk.
  struct Commit {
    Manifest manifest;
    std::vector<char> blob;
    bool closed = false; // of a close; else a checkpoint
    uint32_t keep = 0;
    bool durable = false; // the root is there, whatever came after
  };
  Status save();
  Status notStored(const Status &why) const;
  std::string unstored(const char *how) const;
  std::string stands() const;
  Status beginCommit(Commit &c);
  Status finishCommit(Commit &c);
  Status joinCheckpoint();
  Status forgetRoots(const std::vector<uint64_t> &sequences);
  Status makeRoom();
  Status writeBlob(const std::string &folder, const std::string &name,
                   const std::vector<char> &data, Manifest &manifest);

  // SessionWarm.cpp
  /// Names the file with the rows that are in the caches now, where it could be
  /// written.
  void saveResidents(Manifest &manifest);
  /// Fills the caches with the rows that they held when `source` was closed.
  void warmUp(const StateSource &source, bool sameRows);
  Status warmFrom(const std::string &path, const Manifest &manifest);

  // SessionRows.cpp
  Status quiet();
  Status findRows(const char *table, const int64_t *rows, int64_t count,
                  const TablePlan *&found) const;
  Status
  forRows(const TablePlan &table, const int64_t *rows, int64_t count,
          const std::function<void(int64_t i, const char *record)> &take);
  Status findState(const TablePlan &table, int32_t slot, int64_t &begin,
                   int64_t &width) const;
  Status forWriting(const char *call, const char *name, const int64_t *rows,
                    int64_t count, const float *values,
                    const TablePlan *&table);
  Status changeRows(const TablePlan &table, const int64_t *rows, int64_t count,
                    const std::function<void(int64_t i, char *record)> &change);

  // Session.cpp
  Status usable() const;
  /// By the producer; slices: offsets need not start at 0.
  Status enqueue(const trc_batch &batch, bool slices, trc_ticket &ticket);
  Status interruptedStatus() const;
  Status ticketError(trc_ticket ticket, const char *call) const;
  void endTicket(int64_t t);

  void log(int level, const std::string &line) const {
    if (logger)
      logger(logUser, level, line.c_str());
  }

  pid_t process = 0;
  int mode = TRC_TRAIN;
  bool warm = false; // TRC_OPEN_WARM
  void (*logger)(void *, int32_t, const char *) = nullptr;
  void *logUser = nullptr;
  std::unique_ptr<LoadedArtifact> artifact;
  int cpu = 0;
  Plan plan;
  std::unique_ptr<StateDir> state;
  HomeStores homes; // devices only: the stores move into the pipeline's groups
  std::unique_ptr<ChromeTrace> trace;
  std::unique_ptr<Pipeline> pipeline;
  std::vector<ManifestGroup> stored;   // per group: its store, without an index
  uint64_t key = 0;                    // of the state
  const uint64_t holder = randomKey(); // this session, in its stores' claims
  std::vector<uint64_t> replaced;      // keys of states that were here before
  uint32_t generation = 0;             // of the files of the stores
  uint64_t sequence = 0;               // of the last root written
  int64_t savedStep = -1;              // of the newest root; -1: there is none
  std::string savedName;               // what messages call it
  bool savedIsCurrent = false;         // the closed state on disk is this one
  std::mutex rootsMutex;               // roots and what they retain
  std::thread committer;               // writes a checkpoint
  std::shared_ptr<Commit> committed;   // which one; until it is joined
  Status commitStatus;                 // its outcome, once it is joined
  std::atomic<bool> committing{false};
  std::vector<char> blob;

  int handoffOp = 0, resumeOp = 0;
  // One producer and one trainer; a second thread in a role is an error.
  std::mutex producer, trainer;
  std::vector<trc_bags> keyedBags; // the producer's, for submitKeyed
  std::mutex headMutex;            // backward writes the head, stats reads it
  std::atomic<int64_t> submitted{0}, ended{0};
  bool forwarded = false;
  std::atomic<int64_t> step{0}, samples{0};
  std::atomic<double> lrScale{1};
  std::atomic<double> cutMs{0};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> closing{false}; // close() was called
  bool isOver = false;

  std::vector<trc_feature_info> featureInfos;
  int64_t parameters = 0, maxAhead = 0;
  std::mutex statsMutex;
  std::string statsText;
};

} // namespace trc

#endif // TERRACE_RUNTIME_SESSION_SESSION_H
