//===- CrashWorld.h - A disk for whole sessions that loses power -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One folder with all that a session keeps: small files through a CrashFolder,
// tier files through CrashDevices, both on one power switch. While it is
// simulated, sessions of this process use it instead of the machine's disk;
// after a loss, what is left is either simulated again, to lose power once
// more, or written out, to be opened for real.
//
// Every session is closed before lose(), simulate() or makeReal().
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_SESSION_CRASHWORLD_H
#define TERRACE_TEST_RUNTIME_SESSION_CRASHWORLD_H

#include "test/runtime/exec/ToyModel.h"
#include "test/runtime/io/CrashDevice.h"
#include "test/runtime/io/CrashFolder.h"
#include "test/runtime/io/FaultDevice.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace crash {

/// Ways in which a disk breaks the promises that the protocol stands on. Each
/// is what one forgotten step of the protocol would come to.
enum class Lie {
  None,
  DeviceFlush,    // rows are not flushed before the index names them
  IndexSync,      // index files are not synced
  MovesSync,      // files of moves are not synced
  RootEarly,      // a root is durable before what it names is synced
  RootRemoval,    // a root is removed without a sync, its space is used again
  ClosedStays,    // the closed root stays, what it names is used again
  CheckpointStays // an old checkpoint's root stays
};

class World {
public:
  World();
  ~World();
  World(const World &) = delete;

  std::string state() const { return root + "/state"; }
  /// Another folder on the same disk, for tier files outside of the state.
  std::string tier() const { return root + "/tier"; }

  /// What is there now, on a disk that loses power during operation `cutAt`.
  void simulate(uint64_t cutAt = UINT64_MAX);
  bool powerless() const { return power && power->gone(); }
  uint64_t operations() const { return power ? power->operations() : 0; }
  void cut() { power->cut(); }
  /// What the loss left is what is there. `kill`: the process died, not the
  /// machine, so all that was written is there.
  void lose(uint64_t seed, bool kill);
  /// What is there becomes real files; sessions use the machine's disk.
  void makeReal();

  void lie(Lie what) { lies = what; }
  /// Operation `n` on small files fails once.
  void failFileAt(uint64_t n, int error) { folder->failAt(n, error); }
  /// The k-th operation on small files from now fails once.
  void failFileIn(uint64_t k, int error) {
    folder->failAt(folder->operationCount() + k, error);
  }
  /// The n-th removal of a root since the world began fails once.
  void failRootRemoval(uint64_t n) { failRemoval = n; }
  uint64_t rootRemovalCount() const { return rootRemovals; }
  /// Every write to small files with `part` in their path fails until the
  /// errors end (0).
  void failWritesTo(const std::string &part, int error);
  /// What stands in front of the device opened as number `device` since
  /// simulate(), while it is open.
  trc::FaultDevice &faultsOf(unsigned device);
  /// Hits the device opened as number `device` since simulate().
  void addFault(unsigned device, const trc::FaultDevice::Fault &fault);
  void failFlush(unsigned device, uint64_t n, int error);

  /// Of the devices since simulate(), by the order in which they were opened.
  struct Traffic {
    uint64_t reads = 0, writes = 0, flushes = 0;
  };
  const std::vector<Traffic> &traffic() const { return counts; }
  /// Files of moves made since the world began.
  uint64_t movesFiles() const { return movesMade; }

private:
  class Names;
  class Tap;
  friend class Names;
  friend class Tap;

  struct Plan {
    std::vector<trc::FaultDevice::Fault> faults;
    int flushError = 0;
    uint64_t flushAt = 0;
  };

  toy::Folder base;
  const std::string root;
  std::unique_ptr<trc::PowerSwitch> power;
  std::unique_ptr<trc::CrashFolder> folder;
  std::unique_ptr<Names> names;
  std::unique_ptr<trc::CrashDevice> device;
  std::atomic<Lie> lies{Lie::None};
  std::mutex mutex;
  std::set<std::string> tierFiles; // known to the device
  std::set<std::string> unnamed;   // whose folder was not synced since
  std::vector<Plan> plans;
  std::vector<trc::FaultDevice *> taps;
  std::string badPart;
  int badError = 0;
  std::vector<Traffic> counts;
  std::atomic<uint64_t> movesMade{0};
  std::atomic<uint64_t> rootRemovals{0}, failRemoval{UINT64_MAX};
};

} // namespace crash

#endif // TERRACE_TEST_RUNTIME_SESSION_CRASHWORLD_H
