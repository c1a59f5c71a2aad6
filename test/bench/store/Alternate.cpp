//===- Alternate.cpp - Variants that take turns ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Alternate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace trc;
using namespace trc::bench;

double trc::bench::rateOf(const Measured &m) {
  return static_cast<double>(m.rows) / m.seconds;
}
double trc::bench::cpuOf(const Measured &m) {
  return m.cpu * 1e6 / static_cast<double>(m.rows);
}

void Contender::prepare() {
  double start = wallSeconds();
  status = variant->prepare(note);
  std::fprintf(stderr, "  %s: ready after %.1f s\n", name.c_str(),
               wallSeconds() - start);
}

bool Contender::bad() const {
  if (skipped())
    return false;
  if (!status.ok() || rounds.empty())
    return true;
  return std::any_of(rounds.begin(), rounds.end(), [](const Measured &m) {
    bool sane = m.wrong == 0 && std::isfinite(rateOf(m)) && rateOf(m) > 0 &&
                std::isfinite(cpuOf(m)) && cpuOf(m) > 0;
    return !sane;
  });
}

Spread
Contender::over(const std::function<double(const Measured &)> &figure) const {
  std::vector<double> values;
  for (const Measured &m : rounds)
    values.push_back(figure(m));
  return spread(std::move(values));
}
Spread Contender::rate() const { return over(rateOf); }
Spread Contender::cpuPerRow() const { return over(cpuOf); }

void trc::bench::alternate(std::vector<Contender> &contenders, uint32_t rounds,
                           uint32_t batches, Turns turns) {
  for (Contender &c : contenders)
    if (c.status.ok())
      c.rounds.resize(rounds);
  uint64_t turn = 0;
  // Whoever comes first may pay for waking a cache below: each does as often.
  auto inTurn = [&](const std::function<Status(Contender &)> &what) {
    size_t n = contenders.size();
    bool backwards = turn++ % 2 != 0;
    for (size_t i = 0; i < n; ++i) {
      Contender &c = contenders[backwards ? n - 1 - i : i];
      if (c.status.ok())
        c.status = what(c);
    }
  };
  for (uint32_t r = 0; r < rounds; ++r) {
    uint64_t first = uint64_t(r) * batches;
    if (turns == Turns::Batch) {
      for (uint32_t b = 0; b < batches; ++b)
        inTurn([&](Contender &c) {
          return c.variant->run(first + b, c.rounds[r]);
        });
      continue;
    }
    inTurn([&](Contender &c) {
      for (uint32_t b = 0; b < batches; ++b)
        TRC_RETURN_IF_ERROR(c.variant->run(first + b, c.rounds[r]));
      return c.variant->endRound(c.rounds[r]);
    });
  }
}

Spread
trc::bench::ratio(const Contender &a, const Contender &b,
                  const std::function<double(const Measured &)> &figure) {
  std::vector<double> values;
  for (size_t r = 0; r < std::min(a.rounds.size(), b.rounds.size()); ++r)
    values.push_back(figure(a.rounds[r]) / figure(b.rounds[r]));
  return spread(std::move(values));
}
