//===- Trials.cpp - Which settings suit a peer best -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Peers.h"

#include <algorithm>
#include <cstdio>

using namespace trc;
using namespace trc::bench;

Result<Trial> trc::bench::bestTrial(const Workload &workload, bool withAsync,
                                    std::unique_ptr<Team> &team,
                                    const TrialRead &read, std::string &note) {
  constexpr uint32_t turns = 3;
  uint64_t batch = uint64_t(1) << 40; // far from those that are measured
  std::vector<Trial> trials;
  for (uint32_t threads : {1, 8, 32})
    for (bool async : {false, true})
      if (!async || withAsync)
        trials.push_back({threads, async, 0});
  for (uint32_t turn = 0; turn < turns; ++turn)
    for (Trial &t : trials) {
      team = std::make_unique<Team>(t.threads);
      double start = wallSeconds();
      TRC_RETURN_IF_ERROR(read(batch++, t));
      t.best = std::max(t.best, workload.batchRows / (wallSeconds() - start));
    }
  Trial best = *std::max_element(
      trials.begin(), trials.end(),
      [](const Trial &a, const Trial &b) { return a.best < b.best; });
  team = std::make_unique<Team>(best.threads);
  auto name = [](const Trial &t) {
    return std::to_string(t.threads) + (t.async ? "+async" : "");
  };
  note = name(best) + " threads (best rows/s";
  for (const Trial &t : trials) {
    char text[64];
    std::snprintf(text, sizeof text, " %s: %.0f", name(t).c_str(), t.best);
    note += text;
  }
  note += ")";
  return best;
}
