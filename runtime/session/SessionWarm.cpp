//===- SessionWarm.cpp - Fills caches as they were at the close -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The policy gets its rows in its own order, from a file; their values are then
// read by place, so that the device sees long reads. Changes speed, never
// results, so whatever goes wrong here ends as a note and an empty cache.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/ResidentFile.h"
#include "runtime/exec/FpEnv.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

using namespace trc;

void Session::saveResidents(Manifest &manifest) {
  auto &groups = pipeline->groups;
  if (std::none_of(groups.begin(), groups.end(),
                   [](const auto &g) { return g->cache != nullptr; }))
    return;
  std::string name =
      "closed-" + std::to_string(manifest.sequence) + ".resident";
  std::string path = state->path() + "/" + name;
  Status s = [&] {
    auto writer =
        ResidentWriter::create(path, {manifest.key, manifest.sequence,
                                      static_cast<uint32_t>(groups.size())});
    if (!writer.ok())
      return writer.takeStatus();
    for (const auto &g : groups)
      TRC_RETURN_IF_ERROR(
          g->cache ? (*writer)->addCache(*g->cache)
                   : (*writer)->beginGroup(
                         {"", 0, static_cast<uint64_t>(g->plan->rows), 0}));
    return (*writer)->finish();
  }();
  if (s.ok()) {
    manifest.residentFile = name;
    return;
  }
  // The state itself is whole without it.
  log(TRC_LOG_WARNING, "the next open cannot be a warm one: " + s.message());
  (void)removeFile(path);
}

/// Puts the rows into slots, then reads what has a copy at home.
Status Session::warmFrom(const std::string &path, const Manifest &manifest) {
  ScopedStrictFp strict; // initial values
  auto &groups = pipeline->groups;
  GroupRuntime *g = nullptr;
  uint64_t skip = 0;      // the coldest, which do not fit
  bool samePolicy = true; // else what it said of the rows means nothing
  std::vector<ResidentRow> kept;
  TRC_RETURN_IF_ERROR(readResidents(
      path,
      {manifest.key, manifest.sequence, static_cast<uint32_t>(groups.size())},
      [&](uint32_t index, const ResidentGroup &group) {
        g = groups[index].get();
        if (group.rows != static_cast<uint64_t>(g->plan->rows))
          return Status(TRC_MISMATCH,
                        "'" + path + "': group " + std::to_string(index) +
                            " has " + std::to_string(group.rows) +
                            " rows there, " + std::to_string(g->plan->rows) +
                            " in the model");
        if (!g->cache) {
          skip = group.count;
          return Status();
        }
        uint64_t room = g->cache->options().retained;
        skip = group.count > room ? group.count - room : 0;
        samePolicy = group.policy == g->cache->options().policy;
        if (samePolicy)
          g->cache->setPolicyAge(group.age);
        return Status();
      },
      [&](const ResidentRow *rows, uint32_t count) {
        uint32_t left = static_cast<uint32_t>(std::min<uint64_t>(skip, count));
        skip -= left;
        kept.assign(rows + left, rows + count);
        if (kept.empty())
          return Status();
        for (ResidentRow &row : kept)
          if (!samePolicy)
            row.heat = 1;
        uint32_t n = static_cast<uint32_t>(kept.size());
        if (uint32_t taken = g->cache->restore(kept.data(), n); taken < n)
          return Status(TRC_CORRUPT, "'" + path + "': row " +
                                         std::to_string(kept[taken].row) +
                                         " of group '" + g->plan->name +
                                         "' is not there, or twice");
        for (const ResidentRow &row : kept)
          if (auto at = g->cache->locate(row.row); !at.atHome)
            g->initRow(plan, g->tableOf(plan, row.row), row.row,
                       g->row(at.slot));
        return Status();
      }));
  for (auto &group : groups) {
    if (!group->cache || !group->cache->counters().resident)
      continue;
    GroupCache &cache = *group->cache;
    size_t bytes = static_cast<size_t>(group->plan->slotBytes);
    TRC_RETURN_IF_ERROR(group->store->scan(
        [&](uint32_t row, const char *payload) {
          std::memcpy(group->row(cache.locate(row).slot), payload, bytes);
          return Status();
        },
        [&](uint32_t row) { return cache.locate(row).atHome; }));
  }
  return Status();
}

void Session::warmUp(const StateSource &source, bool sameRows) {
  auto cold = [this](const std::string &why) {
    log(TRC_LOG_INFO, "caches start cold: " + why);
  };
  if (!source.closed)
    return cold("a checkpoint does not say which rows they held");
  if (!sameRows)
    return cold("the rows were laid out anew");
  if (source.manifest.residentFile.empty())
    return cold(source.name + " does not say which rows they held");
  auto begin = std::chrono::steady_clock::now();
  Status s = warmFrom(source.folder + "/" + source.manifest.residentFile,
                      source.manifest);
  uint64_t rows = 0, bytes = 0;
  for (auto &g : pipeline->groups) {
    if (!g->cache)
      continue;
    if (!s.ok()) {
      g->cache->clear();
      // Looks at no device, so it cannot fail where there is a cache.
      (void)loadMemory(*g);
    }
    uint64_t n = g->cache->counters().warmed;
    rows += n;
    bytes += n * static_cast<uint64_t>(g->plan->slotBytes);
  }
  if (!s.ok())
    return cold(s.message());
  char text[96];
  std::snprintf(
      text, sizeof(text), "%llu rows, %.1f MiB, in %.2f s",
      static_cast<unsigned long long>(rows),
      static_cast<double>(bytes) / (1 << 20),
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count());
  log(TRC_LOG_INFO, std::string("caches start warm: ") + text);
}
