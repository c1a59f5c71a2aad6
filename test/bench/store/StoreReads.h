//===- StoreReads.h - Reads of the store, and of a bare loop ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two variants that share a file: batches through RowStore::read, CRC and
// copy included, and the very same requests through io_uring by hand, where
// nothing is verified or copied.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_STOREREADS_H
#define TERRACE_TEST_BENCH_STORE_STOREREADS_H

#include "test/bench/store/OpenStore.h"
#include "test/bench/store/Variant.h"

namespace trc::bench {

class StoreReads final : public Variant {
public:
  StoreReads(const Workload &workload, std::string folder,
             OpenStore::Backend backend = OpenStore::Backend::Auto)
      : work(workload), opened(workload, std::move(folder), backend) {}

  Status prepare(std::string &note) override;
  Status run(uint64_t batch, Measured &sum) override;

  /// The requests that a batch makes.
  std::vector<PlannedRead> plan(uint64_t batch);
  OpenStore &target() { return opened; }

private:
  Workload work;
  OpenStore opened;
  std::vector<char> out;
};

/// Depth, buffers and files as the store's device has them; `reads` outlives
/// it and is prepared first.
std::unique_ptr<Variant> makeBareLoop(const Workload &workload,
                                      StoreReads &reads);

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_STOREREADS_H
