//===- Mix.h - Reads and write-back, half of the rows dirty -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is the same whichever engine holds the rows: a batch is read and
// checked, half of its rows get their next version and are written back; a
// checkpoint (the point where writes are durable) falls due when half as many
// rows were written as there are.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_MIX_H
#define TERRACE_TEST_BENCH_STORE_MIX_H

#include "test/bench/store/Variant.h"

namespace trc::bench {

class MixVariant : public Variant {
public:
  explicit MixVariant(const Workload &workload)
      : work(workload), versions(workload.rows, 0) {}

  Status run(uint64_t batch, Measured &sum) final;
  Status endRound(Measured &sum) final;

protected:
  /// For the end of prepare(): writes as many rows as there are, so that what
  /// is measured is neither a fresh log nor an empty tree.
  Status age();

  virtual Status read(const std::vector<uint32_t> &rows, char *out) = 0;
  /// No duplicates; `contents` may be reused on return.
  virtual Status writeBack(const std::vector<uint32_t> &rows,
                           const char *contents) = 0;
  virtual Status checkpoint() = 0;
  /// Durable, and nothing goes on in the background.
  virtual Status settle() = 0;
  /// Since it was opened, where the engine tells.
  virtual uint64_t cleanedBytes() { return 0; }

  const Workload work;

private:
  /// Gives the first half of a batch its next version.
  void change(std::vector<uint32_t> &rows);
  Status write(const std::vector<uint32_t> &rows);

  std::vector<uint32_t> versions;
  std::vector<char> out, contents;
  uint64_t sinceCheckpoint = 0;
  uint64_t writtenBefore = 0, cleanedBefore = 0; // when a round ended
};

/// The store under test.
std::unique_ptr<Variant> makeStoreMix(const Workload &workload,
                                      const std::string &folder);

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_MIX_H
