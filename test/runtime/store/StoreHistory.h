//===- StoreHistory.h - Random lives of a store against a model -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plays writes, reads, checkpoints with pending rows, forgetting, reopening
// and power losses on a small store that is short of space, and compares it
// with a naive model: a version per row, and a copy of them per checkpoint. A
// root file beside the index files lists the retained checkpoints, as a
// session's manifest does. All of it is decided by the seed, but for the order
// in which threads get things done.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_STORE_STOREHISTORY_H
#define TERRACE_TEST_RUNTIME_STORE_STOREHISTORY_H

#include "test/runtime/io/CrashDevice.h"
#include "test/runtime/io/CrashFolder.h"
#include "test/runtime/store/StoreFixture.h"

#include <map>
#include <random>
#include <thread>

namespace trc {

class StoreHistory {
public:
  struct Options {
    uint64_t seed = 0;
    int steps = 60;
    /// Null: a CrashDevice with power losses; else this device, with reopening
    /// only.
    Device *device = nullptr;
  };
  /// What the histories of a test went through, to see that they are worth it.
  struct Seen {
    uint64_t crashes = 0, cleaned = 0, moved = 0, deltas = 0, full = 0,
             checkpoints = 0, stalls = 0, openedWithMoves = 0, dropped = 0,
             older = 0;
  };

  StoreHistory(const Options &options, Seen &seen);
  ~StoreHistory();
  /// Reports through GoogleTest.
  void play();

private:
  using Versions = std::vector<uint32_t>;
  struct Saved {
    uint64_t id = 0;
    std::vector<std::string> files;
  };
  struct Reading {
    ReadBatch batch;
    std::vector<uint32_t> rows, versions;
    std::vector<char> out;
    bool active = false;
  };

  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random() % n); }
  void chooseShape();
  void startDevice();
  void useDevice(std::unique_ptr<CrashDevice> next);
  void open(bool create);
  void adopt(bool older);
  void close();
  void crash();
  void step();
  /// False where the power went; other failures are the test's.
  bool good(const Status &status, const char *what);

  std::vector<uint32_t> someRows(uint32_t most);
  bool write(std::vector<uint32_t> rows);
  void startRead(Reading &reading);
  bool endRead(Reading &reading);
  void startCut();
  bool endCut();
  bool writeRoot(const std::vector<Saved> &roots);
  bool forgetOldest();
  void forgetAll();
  void verifyAll();
  void verify(RowStore &store, const Versions &versions);
  void verifyRetained();

  const Options options;
  Seen &seen;
  std::mt19937_64 random;
  TestFolder base;
  int lives = 0;

  std::unique_ptr<PowerSwitch> power;
  std::unique_ptr<CrashDevice> crashDevice;
  std::unique_ptr<FaultDevice> slowDevice; // before it
  std::unique_ptr<CrashFolder> folder;
  Device *device = nullptr;
  RowStoreOptions store_;
  std::unique_ptr<RowStore> store;

  // The model.
  Versions current;
  uint32_t nextVersion = 1;
  std::map<uint64_t, Versions> cuts; // all that were ever begun
  std::vector<Saved> roots;          // on disk, as far as we were told
  uint64_t nextId = 1, returned = 0;
  bool cutting = false;
  uint64_t cutId = 0;
  std::vector<bool> cutPending;
  uint32_t unresolved = 0;
  RowStore::Image image;
  Status finished;
  std::thread finisher;

  Reading readings[2];
  std::vector<char> slots[2];
  int turn = 0;
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_STORE_STOREHISTORY_H
