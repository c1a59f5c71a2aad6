//===- ToyStore.h - What the simulator's instances act on -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Homes, slots, directory, write buffer and rings of a few rows, with the
// semantics that docs/artifact.md gives to the ops and RowStore and GroupCache
// to their calls. A row's value is the number of the last batch that updated
// it, plus one. At a random step the trainer cuts for a checkpoint, as late as
// it may. The first wrong thing seen is kept as `failure`.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_TOYSTORE_H
#define TERRACE_SCHEDULE_TOYSTORE_H

#include "Schedule/Graph.h"

#include <random>
#include <set>

namespace terrace::schedule {

class ToyStore {
public:
  ToyStore(const Graph &graph, int batches, std::mt19937_64 &random);

  /// An instance begins and ends; only io instances have others in between.
  void begin(int op, int batch);
  void end(int op, int batch);
  /// Must a spill still wait for the fetch of `earlier`, which copies from the
  /// slot of the write buffer that it recycles?
  bool copiesFrom(int group, int earlier, int batch) const;
  /// After all instances: is every update there, and the checkpoint right?
  void finish();

  std::string failure;

private:
  struct Miss {
    int row, slot;
    int source; ///< batch whose write buffer holds it, or -1: home
    int index;  ///< in that buffer
    int64_t value = 0;
    bool fetched = false;
  };
  struct Victim {
    int row, slot;
  };
  struct Probe {
    std::vector<int> rows, slots;
    std::vector<Miss> misses;
    std::vector<Victim> victims;
  };
  struct Slot {
    int owner = -1; ///< row that the directory gave it to
    int holds = -1; ///< row whose value lies in it
    int64_t value = 0;
    int pins = 0;
    bool dirty = false;
  };
  struct State {
    std::vector<Slot> slots;
    std::vector<int> slotOf;            ///< by row, or -1
    std::vector<int64_t> home;          ///< by row
    std::vector<int> leftAt;            ///< by row: batch that evicted it dirty
    std::vector<int> leftIndex;         ///< place in that batch's victims
    std::vector<char> touched;          ///< memory rows: initial value is there
    std::vector<char> pending;          ///< by row: not in the checkpoint yet
    std::vector<int64_t> kept;          ///< by row: what the checkpoint holds
    int updates = 0;                    ///< batches that were through
    std::vector<std::vector<int>> rows; ///< by batch: its unique rows
    std::vector<std::vector<int64_t>> buffer; ///< write buffer by ring slot
    std::vector<Probe> probes; ///< by batch; lies in the probe ring
  };
  struct RingSlot {
    int batch = -1;
    std::set<int> writers; ///< ops that have written it for that batch
  };

  void fail(int op, int batch, const std::string &what);
  void readRing(int op, int batch, int ring);
  void writeRing(int op, int batch, int ring);
  int64_t expected(const State &state, int row, int batch) const;
  void probe(int op, int batch, State &state);
  void spill(int op, int batch, State &state);
  void store(int batch, State &state);
  void fetch(int batch, State &state, bool last);
  void fill(int batch, State &state);
  void use(int op, int batch, State &state, bool update);
  void cut(int batch);
  void preserve(int batch, State &state);
  int64_t valueOf(const State &state, int row) const;

  const Graph &graph;
  int batches;
  std::mt19937_64 &random;
  std::vector<State> groups;
  std::vector<std::vector<RingSlot>> rings;
  std::vector<char> released;
  int head = 0; ///< the head's parameters: last batch + 1
  int cutAt;    ///< the checkpoint is of the state before this batch
  bool wasCut = false;
};

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_TOYSTORE_H
