//===- RocksVariants.cpp - RocksDB, read and written ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Mix.h"
#include "test/bench/store/Rocks.h"

using namespace trc;
using namespace trc::bench;

namespace {

class RocksReads final : public Variant {
public:
  RocksReads(const Workload &workload, const PeerOptions &options)
      : work(workload), db(workload, options) {}

  Status prepare(std::string &note) override {
    TRC_RETURN_IF_ERROR(db.open(Compaction::Level, /*writes=*/false));
    return db.calibrate(note);
  }

  Status run(uint64_t number, Measured &sum) override {
    std::vector<uint32_t> rows = work.batch(number);
    out.resize(rows.size() * work.payload);
    Meter meter;
    TRC_RETURN_IF_ERROR(db.get(rows, out.data()));
    meter.add(sum);
    sum.rows += rows.size();
    for (size_t i = 0; i < rows.size(); ++i)
      sum.wrong += !work.matches(rows[i], 0, &out[i * work.payload]);
    return {};
  }

private:
  Workload work;
  Rocks db;
  std::vector<char> out;
};

class RocksMix final : public MixVariant {
public:
  RocksMix(const Workload &workload, const PeerOptions &options,
           Compaction compaction)
      : MixVariant(workload), db(workload, options), compaction(compaction) {}

  Status prepare(std::string &note) override {
    TRC_RETURN_IF_ERROR(db.open(compaction, /*writes=*/true));
    TRC_RETURN_IF_ERROR(db.calibrate(note));
    return age();
  }

protected:
  Status read(const std::vector<uint32_t> &rows, char *out) override {
    return db.get(rows, out);
  }
  Status writeBack(const std::vector<uint32_t> &rows,
                   const char *contents) override {
    return db.put(rows, contents);
  }
  Status checkpoint() override { return db.flush(); }
  Status settle() override { return db.settle(); }

private:
  Rocks db;
  Compaction compaction;
};

} // namespace

std::unique_ptr<Variant> trc::bench::makeRocksReads(const Workload &workload,
                                                    const PeerOptions &o) {
  return std::make_unique<RocksReads>(workload, o);
}

std::unique_ptr<Variant> trc::bench::makeRocksMix(const Workload &workload,
                                                  const PeerOptions &o,
                                                  Compaction compaction) {
  return std::make_unique<RocksMix>(workload, o, compaction);
}
