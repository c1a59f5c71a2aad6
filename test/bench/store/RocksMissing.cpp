//===- RocksMissing.cpp - In place of RocksDB where there is none ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Peers.h"

using namespace trc;
using namespace trc::bench;

namespace {

class Missing final : public Variant {
public:
  Status prepare(std::string &) override {
    return Status(TRC_UNSUPPORTED, "no RocksDB; install librocksdb-dev, "
                                   "configure and build again");
  }
  Status run(uint64_t, Measured &) override {
    return Status(TRC_INTERNAL, "run without being prepared");
  }
};

} // namespace

std::unique_ptr<Variant> trc::bench::makeRocksReads(const Workload &,
                                                    const PeerOptions &) {
  return std::make_unique<Missing>();
}

std::unique_ptr<Variant>
trc::bench::makeRocksMix(const Workload &, const PeerOptions &, Compaction) {
  return std::make_unique<Missing>();
}
