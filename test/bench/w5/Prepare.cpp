//===- Prepare.cpp - States and data for the measured steps ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/bench/w5/Prepare.h"

#include "runtime/checkpoint/ResidentFile.h"
#include "runtime/checkpoint/StateDir.h"
#include "runtime/session/Artifact.h"
#include "terrace-rt/session.h"
#include "test/bench/w5/CacheTrace.h"
#include "test/bench/w5/Stream.h"

#include <algorithm>
#include <optional>

using namespace trc;
using namespace trc::w5;

Result<Plan> w5::planOf(const std::string &library) {
  auto artifact = LoadedArtifact::load(library.c_str(), nullptr);
  if (!artifact.ok())
    return artifact.takeStatus();
  const trc_artifact &a = (*artifact)->get();
  return parsePlan(a.plan, a.plan_bytes);
}

Status w5::fillState(const std::string &library, const std::string &state) {
  Result<Plan> plan = planOf(library);
  if (!plan.ok())
    return plan.takeStatus();
  trc_error error = {};
  error.struct_size = sizeof(error);
  auto failed = [&](trc_status code) {
    return Status(code,
                  std::string("filling '") + state + "': " + error.message);
  };
  trc_open_options o = {};
  o.struct_size = sizeof(o);
  o.mode = TRC_TRAIN;
  o.artifact_path = library.c_str();
  o.state_dir = state.c_str();
  o.flags = TRC_OPEN_FRESH;
  trc_session *session = nullptr;
  if (trc_status code = trc_open(&o, &session, &error))
    return failed(code);
  constexpr int64_t piece = 1 << 15;
  std::vector<int64_t> rows;
  std::vector<float> values;
  trc_status code = TRC_OK;
  for (const TablePlan &t : plan->tables)
    for (int64_t at = 0; code == TRC_OK && at < t.rows; at += piece) {
      rows.clear();
      for (int64_t r = at; r < std::min(t.rows, at + piece); ++r)
        rows.push_back(r);
      values.resize(rows.size() * static_cast<size_t>(t.dim));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] =
            static_cast<float>((at + static_cast<int64_t>(i)) % 1021) * 1e-5f;
      code = trc_write_rows(session, t.name.c_str(), rows.data(),
                            static_cast<int64_t>(rows.size()), values.data(),
                            &error);
    }
  if (code != TRC_OK) {
    Status s = failed(code);
    (void)trc_close(session, nullptr);
    return s;
  }
  if ((code = trc_close(session, &error)))
    return failed(code);
  return Status();
}

namespace {

/// The measured steps as the table that the program reads.
class DataFile {
public:
  DataFile(const std::string &path, int64_t modulo)
      : out(path), modulo(modulo) {}
  Status open(const Plan &plan) {
    TRC_RETURN_IF_ERROR(out.open());
    for (const FeaturePlan &f : plan.features)
      out.field(f.column);
    out.field(std::string("label"));
    out.endRow();
    return Status();
  }
  void add(const Plan &plan, const Stream &stream) {
    for (int64_t s = 0; s < plan.batch; ++s) {
      for (const auto &ids : stream.ids()) {
        auto first = ids.begin() + s * stream.bag();
        bag.assign(first, first + stream.bag());
        if (modulo)
          for (int64_t &id : bag)
            id %= modulo;
        out.list(bag, ',');
      }
      out.field(int64_t(labels.below(4) == 0));
      out.endRow();
    }
  }
  Status finish() { return out.finish(); }

private:
  data::TableWriter out;
  int64_t modulo;
  SplitMix labels{mix64(seed)};
  std::vector<int64_t> bag;
};

/// Names the caches' rows in the closed root, which begins at step 0 again so
/// that the program reads its data from the start.
Status writeResidents(const std::string &folder, const Plan &plan,
                      const std::vector<std::unique_ptr<CacheTrace>> &caches) {
  Result<std::unique_ptr<StateDir>> dir = StateDir::open(folder, true, false);
  if (!dir.ok())
    return dir.takeStatus();
  Result<std::optional<StateSource>> closed = (*dir)->closedState();
  if (!closed.ok())
    return closed.takeStatus();
  if (!*closed)
    return Status(TRC_NOT_FOUND, "'" + folder + "' is no closed state");
  Manifest m = std::move((*closed)->manifest);
  m.step = m.samples = 0;
  m.residentFile = "closed-" + std::to_string(m.sequence) + ".resident";
  auto writer = ResidentWriter::create(
      folder + "/" + m.residentFile,
      {m.key, m.sequence, static_cast<uint32_t>(caches.size())});
  if (!writer.ok())
    return writer.takeStatus();
  for (size_t g = 0; g < caches.size(); ++g)
    TRC_RETURN_IF_ERROR(
        caches[g]
            ? (*writer)->addCache(caches[g]->state())
            : (*writer)->beginGroup(
                  {"", 0, static_cast<uint64_t>(plan.groups[g].rows), 0}));
  TRC_RETURN_IF_ERROR((*writer)->finish());
  bool inDoubt = false;
  return (*dir)->writeClosed(m, inDoubt);
}

uint64_t sumOf(const std::vector<std::unique_ptr<CacheTrace>> &caches,
               uint64_t (CacheTrace::*what)() const) {
  uint64_t n = 0;
  for (const auto &c : caches)
    n += c ? (c.get()->*what)() : 0;
  return n;
}

} // namespace

Result<nlohmann::json> w5::warmState(const WarmOptions &o) {
  if (!data::TieredIds::known(o.stream))
    return Status(TRC_BAD_ARGUMENT,
                  "no stream '" + o.stream +
                      "'; there are kvcache, follower, leader, shift, uniform");
  if (o.warmup < 0 || o.steps < 1 || o.warmup + o.steps > UINT16_MAX - 1)
    return Status(TRC_BAD_ARGUMENT, "the steps must be 1 .. 65534 in all");
  Result<Plan> loaded = planOf(o.library);
  if (!loaded.ok())
    return loaded.takeStatus();
  const Plan &plan = *loaded;
  std::vector<std::unique_ptr<CacheTrace>> own(plan.groups.size()),
      lru(plan.groups.size());
  std::vector<std::vector<std::vector<uint32_t>>> history(plan.groups.size());
  std::string policy;
  int64_t capacity = 0, homeRows = 0;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (!plan.groups[g].cached())
      continue;
    for (bool plain : {false, true}) {
      auto made =
          CacheTrace::create(plan, static_cast<int>(g), plain ? "lru" : "");
      if (!made.ok())
        return made.takeStatus();
      (plain ? lru : own)[g] = std::move(*made);
    }
    policy = own[g]->state().options().policy;
    capacity += plan.groups[g].retained;
    homeRows += plan.groups[g].rows;
  }
  DataFile data(o.data, 0);
  std::optional<DataFile> memory;
  TRC_RETURN_IF_ERROR(data.open(plan));
  if (o.memoryRows) {
    memory.emplace(o.memoryData, o.memoryRows);
    TRC_RETURN_IF_ERROR(memory->open(plan));
  }
  Stream stream(plan, o.stream);
  uint64_t unique = 0, misses = 0, writes = 0, lruMisses = 0;
  for (int64_t t = 0; t < o.warmup + o.steps; ++t) {
    if (t == o.warmup) {
      // As at a stop: nothing is in flight.
      for (auto *caches : {&own, &lru})
        for (auto &c : *caches)
          if (c)
            c->drain();
      misses = sumOf(own, &CacheTrace::misses);
      writes = sumOf(own, &CacheTrace::writes);
      lruMisses = sumOf(lru, &CacheTrace::misses);
      TRC_RETURN_IF_ERROR(writeResidents(o.state, plan, own));
    }
    stream.next();
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      if (!own[g])
        continue;
      TRC_RETURN_IF_ERROR(own[g]->batch(stream.rows(g)));
      TRC_RETURN_IF_ERROR(lru[g]->batch(stream.rows(g)));
      history[g].push_back(stream.rows(g));
      if (t >= o.warmup)
        unique += stream.rows(g).size();
    }
    if (t >= o.warmup) {
      data.add(plan, stream);
      if (memory)
        memory->add(plan, stream);
    }
  }
  TRC_RETURN_IF_ERROR(data.finish());
  if (memory)
    TRC_RETURN_IF_ERROR(memory->finish());
  double belady = 0;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    if (own[g]) {
      std::vector<uint64_t> all =
          beladyMisses(history[g], static_cast<uint64_t>(plan.groups[g].rows),
                       static_cast<uint64_t>(plan.groups[g].retained));
      for (size_t t = static_cast<size_t>(o.warmup); t < all.size(); ++t)
        belady += static_cast<double>(all[t]);
    }
  double n = static_cast<double>(o.steps);
  auto perStep = [&](uint64_t count) { return static_cast<double>(count) / n; };
  return nlohmann::json{
      {"policy", policy},
      {"capacity", capacity},
      {"home_rows", homeRows},
      {"ids",
       plan.batch * stream.bag() * static_cast<int64_t>(plan.features.size())},
      {"unique", perStep(unique)},
      {"misses", perStep(sumOf(own, &CacheTrace::misses) - misses)},
      {"writes", perStep(sumOf(own, &CacheTrace::writes) - writes)},
      {"lru", perStep(sumOf(lru, &CacheTrace::misses) - lruMisses)},
      {"belady", belady / n}};
}
