//===- CrashStory.cpp - What a session goes through -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/session/CrashStory.h"
#include "runtime/checkpoint/FileUtil.h"
#include "runtime/checkpoint/StateDir.h"

#include <algorithm>
#include <cstdlib>
#include <deque>

using namespace crash;
using namespace toy;
using trc::SplitMix;

namespace {

/// The model is the same in all plans; where rows lie is not.
Model model() {
  Model m;
  m.tables = {{"a", 260, 33, adagrad()},
              {"b", 90, 33, adagrad()},
              {"c", 150, 33, rowwiseAdagrad()},
              {"d", 70, 16, adam()}};
  m.features = {{"x", 0, "sum", 3},
                {"y", 1, "mean", 2},
                {"z", 2, "max", 2},
                {"w", 3, "sqrtn", 2}};
  m.head = "logistic";
  m.batch = 20;
  m.onFull = "drop_oldest";
  return m;
}

bool writesRowsBefore(int step) { return step % 9 == 5; }
bool evaluatesBefore(int step) { return step % 7 == 3; }
double lrBefore(int step) { return 1.0 / (1 + step / 6); }

Batch batchOf(const Model &m, int step) {
  SplitMix random(9000 + static_cast<uint64_t>(step));
  return randomBatch(m, random, step % 5 == 4 ? m.batch - 3 : m.batch);
}

/// Rows that a caller sets before a step: some that were written, some not.
trc_status setRows(Session &s, const Model &m, int step) {
  SplitMix random(77 + static_cast<uint64_t>(step));
  for (const Table &t : m.tables) {
    std::vector<int64_t> rows;
    std::vector<float> values;
    for (int i = 0; i < 5; ++i) {
      rows.push_back(static_cast<int64_t>(random.below(t.rows)));
      for (int64_t c = 0; c < t.dim; ++c)
        values.push_back(static_cast<float>(random.unit()) - 0.5f);
    }
    if (trc_status status = trc_write_rows(s.get(), t.name.c_str(), rows.data(),
                                           static_cast<int64_t>(rows.size()),
                                           values.data(), &s.error);
        status != TRC_OK)
      return status;
  }
  return TRC_OK;
}

std::vector<int64_t> widths(const Table &t) {
  std::string kind = t.optimizer["kind"];
  if (kind == "rowwise_adagrad")
    return {1};
  if (kind == "adam")
    return {t.dim, t.dim};
  return {t.dim};
}

/// False where a row cannot be read; s.error says why.
bool momentOf(Session &s, Moment &m) {
  for (const Table &t : model().tables) {
    std::vector<int64_t> all(static_cast<size_t>(t.rows));
    for (int64_t i = 0; i < t.rows; ++i)
      all[static_cast<size_t>(i)] = i;
    std::vector<std::vector<float>> out;
    out.emplace_back(static_cast<size_t>(t.rows * t.dim));
    if (trc_read_rows(s.get(), t.name.c_str(), all.data(), t.rows,
                      out[0].data(), &s.error) != TRC_OK)
      return false;
    for (int64_t width : widths(t)) {
      int32_t slot = static_cast<int32_t>(out.size()) - 1;
      out.emplace_back(static_cast<size_t>(t.rows * width));
      if (trc_read_state(s.get(), t.name.c_str(), slot, all.data(), t.rows,
                         out.back().data(), &s.error) != TRC_OK)
        return false;
    }
    m.tables.push_back(std::move(out));
  }
  json stats = s.stats();
  m.head = stats["head"].dump();
  m.lrScale = stats["lr_scale"];
  m.samples = s.info().samples;
  return true;
}

std::string blobOf(Session &s) {
  std::string blob(256, 0);
  uint64_t bytes = blob.size();
  if (trc_get_blob(s.get(), blob.data(), &bytes, &s.error) != TRC_OK)
    return std::string("no blob: ") + s.error.message;
  blob.resize(bytes);
  return blob;
}

} // namespace

const std::vector<Moment> &crash::reference() {
  static const std::vector<Moment> all = [] {
    Folder folder;
    Model m = model();
    m.space = 4;
    Artifact artifact(m);
    Session s;
    std::vector<Moment> moments(1);
    if (s.open(artifact, folder / "s") != TRC_OK || !momentOf(s, moments[0]))
      std::abort(); // without it, nothing can be said
    for (int step = 0; step < lastStep; ++step) {
      trc_ticket ticket = 0;
      Batch b = batchOf(m, step);
      if ((writesRowsBefore(step) && setRows(s, m, step) != TRC_OK) ||
          trc_set_lr(s.get(), lrBefore(step), nullptr) != TRC_OK ||
          s.submit(b, ticket) != TRC_OK || s.forward(ticket) != TRC_OK ||
          s.backwardHead(ticket) != TRC_OK)
        std::abort();
      moments.emplace_back();
      if (!momentOf(s, moments.back()))
        std::abort();
    }
    return moments;
  }();
  return all;
}

/// The steps that have this value, to see what went wrong.
static std::string whenItWas(size_t table, size_t k, size_t i, float value) {
  std::string steps;
  for (size_t step = 0; step < reference().size(); ++step)
    if (reference()[step].tables[table][k][i] == value)
      steps +=
          (steps.empty() ? "; it is so at step " : ", ") + std::to_string(step);
  return steps;
}

std::string crash::compare(Session &s, int64_t step) {
  std::string at = "step " + std::to_string(step) + ": ";
  if (step < 0 || step > lastStep)
    return at + "no such step";
  const Moment &want = reference()[static_cast<size_t>(step)];
  Moment have;
  if (!momentOf(s, have))
    return at + "a row cannot be read: " + s.error.message;
  Model m = model();
  for (size_t t = 0; t < m.tables.size(); ++t)
    for (size_t k = 0; k < want.tables[t].size(); ++k)
      for (size_t i = 0; i < want.tables[t][k].size(); ++i)
        if (want.tables[t][k][i] != have.tables[t][k][i]) {
          size_t width =
              want.tables[t][k].size() / static_cast<size_t>(m.tables[t].rows);
          return at + "table '" + m.tables[t].name + "' row " +
                 std::to_string(i / width) +
                 (k ? " state " + std::to_string(k - 1) : std::string()) +
                 " column " + std::to_string(i % width) + " is " +
                 std::to_string(have.tables[t][k][i]) + ", not " +
                 std::to_string(want.tables[t][k][i]) +
                 whenItWas(t, k, i, have.tables[t][k][i]);
        }
  if (have.head != want.head)
    return at + "the head is " + have.head + ", not " + want.head;
  if (have.lrScale != want.lrScale)
    return at + "lr is " + std::to_string(have.lrScale) + ", not " +
           std::to_string(want.lrScale);
  if (have.samples != want.samples)
    return at + std::to_string(have.samples) + " samples, not " +
           std::to_string(want.samples);
  return "";
}

/// 0 and 1 differ in where rows lie, 2 only in caches.
Model Story::plan(int which) const {
  SplitMix random(seed + static_cast<uint64_t>(which));
  Model m = model();
  m.lookahead = static_cast<int64_t>(random.below(4));
  m.spareSlots = static_cast<int64_t>(random.below(20));
  m.retained = static_cast<int64_t>(random.below(10));
  m.space = 1.45 + 0.1 * static_cast<double>(random.below(3));
  m.policy = random.below(2) ? "lru" : "clock";
  static const std::vector<std::vector<bool>> homes = {
      {true, true, false, true}, {true, false, true, false}, {true}};
  m.cached = homes[(seed + static_cast<uint64_t>(which)) % homes.size()];
  if (which == 0)
    m.paths = {"one.store", "two.store"};
  else
    m.paths = {tier + "/far.store"};
  return m;
}

bool Story::failed(Session &session, const char *call) {
  ++counters.failures;
  // Its end may yet write a root.
  if (session.get()) {
    trc_error error = session.error;
    book.start(session.info().step, blobOf(session));
    session.error = error;
  }
  if (failure.empty())
    failure = std::string(call) + ": " + session.error.message;
  return false;
}

bool Story::open(Session &s, int which, uint32_t flags) {
  layout = which;
  Artifact artifact(plan(which));
  if (flags & TRC_OPEN_FRESH)
    book.start(0, "");
  if (onSession)
    onSession();
  if (s.open(artifact, state, TRC_TRAIN, flags) != TRC_OK)
    return failed(s, "open");
  if (flags & TRC_OPEN_FRESH)
    book.end();
  return true;
}

bool Story::train(Session &s, const Model &m, int end, int checkpointEvery,
                  uint32_t keep) {
  struct Open {
    trc_ticket ticket;
    int step; // -1: evaluated
  };
  std::deque<Open> open;
  int next = static_cast<int>(s.info().step); // to be submitted
  bool evaluated = false, pending = false;
  auto submit = [&](int of) {
    // Which batch is evaluated does not matter.
    Batch b = batchOf(m, of < 0 ? 3 * next + 1 : of);
    trc_ticket ticket = 0;
    if (s.submit(b, ticket) != TRC_OK)
      return false;
    open.push_back({ticket, of});
    return true;
  };
  auto wait = [&] {
    if (!pending)
      return true;
    pending = false;
    if (trc_checkpoint_wait(s.get(), 1, &s.error) == TRC_OK) {
      book.end();
      return true;
    }
    failed(s, "checkpoint");
    return patient;
  };
  for (int step = next; step < end;) {
    if (open.empty() && writesRowsBefore(step) && next == step) {
      if (!wait())
        return false;
      // A read that fails leaves the rows be, so that it can be tried again.
      if (setRows(s, m, step) != TRC_OK) {
        failed(s, "write_rows");
        if (setRows(s, m, step) != TRC_OK)
          return false;
      }
      ++counters.rowsWritten;
    }
    while (next < end && static_cast<int64_t>(open.size()) <= m.lookahead &&
           (next == step || !writesRowsBefore(next))) {
      if (evaluatesBefore(next) && !evaluated) {
        evaluated = true;
        if (!submit(-1))
          return failed(s, "submit");
        continue;
      }
      evaluated = false;
      if (!submit(next))
        return failed(s, "submit");
      ++next;
    }
    Open now = open.front();
    open.pop_front();
    if (now.step < 0) {
      if (s.forward(now.ticket) != TRC_OK || s.release(now.ticket) != TRC_OK)
        return failed(s, "evaluation");
      ++counters.evaluations;
      continue;
    }
    if (trc_set_lr(s.get(), lrBefore(step), &s.error) != TRC_OK ||
        s.forward(now.ticket) != TRC_OK || s.backwardHead(now.ticket) != TRC_OK)
      return failed(s, "step");
    ++step;
    if (pending && step % checkpointEvery == 2 && !wait())
      return false;
    if (step % checkpointEvery == 0) {
      if (!wait())
        return false;
      std::string blob = "step " + std::to_string(step) + ", root " +
                         std::to_string(book.roots.size());
      book.start(step, blob);
      if (trc_checkpoint_begin(s.get(), blob.data(), blob.size(), keep,
                               &s.error) != TRC_OK) {
        failed(s, "checkpoint_begin");
        if (!patient)
          return false;
      } else {
        pending = true;
      }
    }
  }
  return wait();
}

bool Story::close(Session &s) {
  json stats = s.stats();
  if (stats.contains("groups"))
    for (const json &g : stats["groups"])
      if (g.contains("store"))
        counters.segmentsCleaned +=
            g["store"].value("segments_cleaned", uint64_t(0));
  for (const std::string &line : s.logs)
    if (line.find("a store is full") != std::string::npos)
      ++counters.checkpointsDropped;
  s.logs.clear();
  std::string blob = blobOf(s);
  book.start(s.info().step, blob);
  if (onSession)
    onSession();
  if (s.close() != TRC_OK)
    return failed(s, "close");
  book.end();
  return true;
}

bool Story::play() {
  SplitMix random(seed);
  int first = 9 + static_cast<int>(random.below(6));
  // A part of the story, each a session of its own.
  auto part = [&](int which, int end, int every, uint32_t keep,
                  uint32_t flags = 0) {
    Session s;
    return open(s, which, flags) && train(s, plan(which), end, every, keep) &&
           close(s);
  };
  // Also over tier files that stay where a state is given up.
  bool fresh = random.below(2);
  if (fresh && !(part(1, 6, 3, 2) && part(1, 7, 4, 0, TRC_OPEN_FRESH)))
    return false;
  if (!part(0, first, 4, 4) || !part(0, first + 12, 3, 0))
    return false;
  ++counters.layouts;
  return part(1, first + 26, 3, 0) && part(1, first + 32, 3, 2);
}

bool Story::goOn() {
  Session s;
  if (!open(s, layout))
    return false;
  int step = static_cast<int>(s.info().step);
  return train(s, plan(layout), std::min(step + 8, lastStep), 3, 2) && close(s);
}

/// Each checkpoint whose root is there is whole.
std::string Story::checkCheckpoints() const {
  {
    // Those of a state that was given up do not count.
    auto dir = trc::StateDir::open(state, false, false);
    if (!dir.ok())
      return "";
    auto identity = (*dir)->identity();
    if (identity.ok() && *identity && (*identity)->removing)
      return "";
  }
  for (const std::string &name : trc::listFolder(state + "/checkpoints")) {
    if (name.rfind("ckpt-", 0) != 0 ||
        !trc::pathExists(state + "/checkpoints/" + name + "/manifest.json"))
      continue;
    Artifact artifact(plan(layout));
    Session s;
    if (s.open(artifact, state, TRC_EVAL, 0, name.c_str()) != TRC_OK)
      return name + " cannot be opened: " + s.error.message;
    std::string wrong = compare(s, std::atoll(name.c_str() + 5));
    if (!wrong.empty())
      return name + ": " + wrong;
  }
  return "";
}

/// The session holds one of the roots that may be there.
std::string Story::checkState(Session &s) {
  int64_t step = s.info().step;
  std::string blob = blobOf(s), may;
  bool found = false;
  for (size_t i = book.returned; i < book.roots.size(); ++i) {
    const Root &root = book.roots[i];
    found = found || (root.step == step && root.blob == blob);
    may += " [" + std::to_string(root.step) + " '" + root.blob + "']";
  }
  if (!found)
    return "step " + std::to_string(step) + " with blob '" + blob +
           "', but it may be" + may;
  return compare(s, step);
}

std::string Story::check() {
  if (std::string wrong = checkCheckpoints(); !wrong.empty())
    return wrong;
  Artifact artifact(plan(layout));
  Session s;
  trc_status status = s.open(artifact, state, TRC_EVAL);
  if (status == TRC_OK)
    return checkState(s);
  bool none = false; // there may be no root at all
  for (size_t i = book.returned; i < book.roots.size(); ++i)
    none = none || book.roots[i].step == 0;
  return status == TRC_NOT_FOUND && none
             ? ""
             : std::string("cannot be opened: ") + s.error.message;
}

std::string Story::recover() {
  {
    Session s;
    if (!open(s, layout))
      return "cannot be opened: " + failure;
    if (std::string wrong = checkState(s); !wrong.empty())
      return wrong;
    if (!train(s, plan(layout), lastStep, 3, 2))
      return "going on: " + failure;
    if (std::string wrong = compare(s, lastStep); !wrong.empty())
      return "at the end: " + wrong;
    if (!close(s))
      return "going on: " + failure;
  }
  std::string wrong = check();
  return wrong.empty() ? wrong : "opened at the end: " + wrong;
}
