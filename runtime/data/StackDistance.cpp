//===- StackDistance.cpp - LRU stack distances of a sampled stream
//---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/StackDistance.h"

#include "runtime/core/Hash.h"

#include <algorithm>

namespace trc::data {

// Distances below 64 have a bin each; above, 16 bins per octave.
static constexpr int64_t exactBins = 64;

static size_t binOf(int64_t distance) {
  if (distance < exactBins)
    return static_cast<size_t>(distance);
  int octave = 63 - __builtin_clzll(static_cast<uint64_t>(distance)); // >= 6
  int64_t within = (distance >> (octave - 4)) & 15;
  return static_cast<size_t>(exactBins + (octave - 6) * 16 + within);
}

/// The first distance that is in a later bin.
static int64_t binEnd(size_t bin) {
  int64_t b = static_cast<int64_t>(bin);
  if (b < exactBins)
    return b + 1;
  int64_t octave = (b - exactBins) / 16 + 6, within = (b - exactBins) % 16;
  return (17 + within) << (octave - 4);
}

void StackDistance::add(int64_t time, int delta) {
  live += delta;
  for (size_t i = static_cast<size_t>(time) + 1; i < tree.size();
       i += i & (~i + 1))
    tree[i] += delta;
}

int64_t StackDistance::after(int64_t time) const {
  int64_t upTo = 0;
  for (size_t i = static_cast<size_t>(time) + 1; i > 0; i -= i & (~i + 1))
    upTo += tree[i];
  return live - upTo;
}

/// Gives the rows new times 0, 1, ... in the same order.
void StackDistance::renumber() {
  std::vector<std::pair<int64_t, int64_t>> order; // time, row
  order.reserve(seen.size());
  for (const auto &entry : seen)
    order.push_back({entry.second.time, entry.first});
  std::sort(order.begin(), order.end());
  tree.assign(std::max<size_t>(4 * seen.size(), 4096) + 1, 0);
  live = now = 0;
  for (const auto &entry : order) {
    seen[entry.second].time = now;
    add(now++, 1);
  }
}

void StackDistance::lowerRate() {
  while (static_cast<int64_t>(seen.size()) > maxRows) {
    threshold = threshold / 8 * 7;
    for (auto it = seen.begin(); it != seen.end();) {
      if (it->second.hash < threshold) {
        ++it;
        continue;
      }
      add(it->second.time, -1);
      it = seen.erase(it);
    }
  }
}

void StackDistance::access(int64_t row, int64_t batch) {
  uint64_t hash =
      mix64(static_cast<uint64_t>(row) ^ 0x5348415244530000ull) >> 32;
  if (hash >= threshold)
    return;
  if (static_cast<size_t>(now) + 1 >= tree.size())
    renumber();
  double weight = 1 / rate();
  total += weight;
  auto [it, fresh] = seen.try_emplace(row, Seen{now, batch, hash});
  if (fresh) {
    coldWeight += weight;
  } else {
    Seen &last = it->second;
    // A sample of rows sees the same share of the distinct rows between.
    int64_t distance =
        std::llround(static_cast<double>(after(last.time)) * weight);
    size_t bin = binOf(distance);
    if (distances.size() <= bin)
      distances.resize(bin + 1, 0);
    distances[bin] += weight;
    int64_t back = batch - last.batch;
    size_t slot = back == 0
                      ? 0
                      : static_cast<size_t>(
                            64 - __builtin_clzll(static_cast<uint64_t>(back)));
    if (reuseWeights.size() <= slot)
      reuseWeights.resize(slot + 1, 0);
    reuseWeights[slot] += weight;
    add(last.time, -1);
    last.time = now;
    last.batch = batch;
  }
  add(now++, 1);
  if (fresh && static_cast<int64_t>(seen.size()) > maxRows)
    lowerRate();
}

std::vector<std::pair<int64_t, double>> StackDistance::missCurve() const {
  std::vector<std::pair<int64_t, double>> curve;
  if (total <= 0)
    return curve;
  double hits = 0;
  for (size_t bin = 0; bin < distances.size(); ++bin) {
    if (distances[bin] == 0)
      continue; // level here
    // The curve is a straight line between points: mark where the bin begins.
    int64_t begin = bin == 0 ? 0 : binEnd(bin - 1);
    double before = std::max(0.0, 1 - hits / total);
    if (begin > 0 && (curve.empty() || curve.back().first < begin))
      curve.push_back({begin, before});
    hits += distances[bin];
    curve.push_back({binEnd(bin), std::max(0.0, 1 - hits / total)});
  }
  if (curve.empty())
    curve.push_back({1, 1.0});
  return curve;
}

std::vector<int64_t> StackDistance::reuse() const {
  std::vector<int64_t> out;
  for (double w : reuseWeights)
    out.push_back(std::llround(w));
  return out;
}

} // namespace trc::data
