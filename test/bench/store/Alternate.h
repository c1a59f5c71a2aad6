//===- Alternate.h - Variants that take turns -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device changes its mind from minute to minute, so variants are compared
// only within a run in which they take turns, and by the ratio within a round.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_ALTERNATE_H
#define TERRACE_TEST_BENCH_STORE_ALTERNATE_H

#include "test/bench/store/Table.h"
#include "test/bench/store/Variant.h"

namespace trc::bench {

struct Contender {
  Contender(std::string name, Variant *variant)
      : name(std::move(name)), variant(variant) {}

  std::string name;
  Variant *variant;
  std::string note;
  Status status; // a failure ends its part
  std::vector<Measured> rounds;

  /// Prepares it; what went on is said on stderr.
  void prepare();
  /// Skipped, for a reason that is not an error.
  bool skipped() const { return status.code() == TRC_UNSUPPORTED; }
  /// Failed, or gave figures that cannot be.
  bool bad() const;
  /// By round: rows per second, or any other figure.
  Spread over(const std::function<double(const Measured &)> &figure) const;
  Spread rate() const;
  Spread cpuPerRow() const; // microseconds
};

/// Where turns end.
enum class Turns { Batch, Round };
void alternate(std::vector<Contender> &contenders, uint32_t rounds,
               uint32_t batches, Turns turns);

/// Of the figure of `a` over that of `b`, by round.
Spread ratio(const Contender &a, const Contender &b,
             const std::function<double(const Measured &)> &figure);

double rateOf(const Measured &m);
double cpuOf(const Measured &m);

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_ALTERNATE_H
