//===- OpenStore.h - A row store full of rows -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device and a store on it in a folder of their own, as training would open
// them, with all rows of a workload written. Removes its files.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_OPENSTORE_H
#define TERRACE_TEST_BENCH_STORE_OPENSTORE_H

#include "runtime/store/RowStore.h"
#include "test/bench/store/PlanningDevice.h"
#include "test/bench/store/Workload.h"

namespace trc::bench {

constexpr uint32_t ioDepth = 128;
constexpr uint32_t writeSlots = 4;
/// One retained checkpoint, half of the rows written between two.
constexpr double spaceFactor = storeFill(1, 0.5);

class OpenStore {
public:
  using Backend = DeviceOptions::Backend;
  OpenStore(const Workload &workload, std::string folder,
            Backend backend = Backend::Auto)
      : work(workload), folder(std::move(folder)), backend(backend) {}
  ~OpenStore();

  /// Opens a fresh store, writes version 0 of all rows, makes them durable.
  Status open();

  RowStore &rows() { return *store; }
  PlanningDevice &io() { return *device; }
  std::string path() const { return folder + "/rows"; }
  StoreGeometry geometry() const {
    return storeGeometry(work.rows, storeBytes(), spaceFactor);
  }
  uint32_t storeBytes() const {
    return static_cast<uint32_t>(recordBytes(work.payload));
  }
  /// Memory of store and device.
  uint64_t memoryBytes() const;
  /// Waits for the cleaning that is under way.
  void settle() const;

private:
  Workload work;
  std::string folder;
  Backend backend;
  std::unique_ptr<PlanningDevice> device;
  std::unique_ptr<RowStore> store;
};

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_OPENSTORE_H
