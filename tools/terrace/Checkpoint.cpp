//===- Checkpoint.cpp - `terrace checkpoint` ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thin: runtime/inspect does the work. Exit code 1 where damage was found or
// two roots differ in kind; a difference in values is a result, not an error.
//
//===----------------------------------------------------------------------===//
#include "StateVerb.h"

#include "runtime/inspect/Compact.h"
#include "runtime/inspect/Diff.h"
#include "runtime/inspect/Portable.h"
#include "runtime/inspect/Verify.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstdio>
#include <ctime>

namespace terrace::tool {

using driver::Outcome;
using namespace trc::inspect;

static std::string shownTime(int64_t seconds) {
  std::time_t time = seconds;
  std::tm parts;
  char text[32];
  if (seconds <= 0 || !::gmtime_r(&time, &parts) ||
      !std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts))
    return "-";
  return text;
}

int runCheckpointLs(const StateVerb &verb, bool json) {
  auto dir = trc::StateDir::open(verb.state, false, false);
  if (!dir.ok())
    return fail(dir.takeStatus(), json);
  auto roots = listRoots(**dir);
  if (!roots.ok())
    return fail(roots.takeStatus(), json);
  if (json) {
    llvm::json::Array list;
    for (const RootInfo &r : *roots) {
      llvm::json::Object item{{"name", r.name}, {"closed", r.closed}};
      if (!r.damage.empty())
        item["damaged"] = llvm::json::fixUTF8(r.damage);
      if (r.sequence) {
        item["sequence"] = int64_t(r.sequence);
        item["step"] = r.step;
        item["samples"] = r.samples;
        item["date"] = shownTime(r.time);
        item["blob_bytes"] = int64_t(r.blobBytes);
      }
      if (r.damage.empty()) {
        item["rows"] = int64_t(r.rows);
        item["new_bytes"] = int64_t(r.newBytes);
      }
      list.push_back(std::move(item));
    }
    llvm::json::Object out = okObject();
    out["state"] = verb.state;
    out["roots"] = std::move(list);
    print(std::move(out));
    return 0;
  }
  if (roots->empty()) {
    llvm::outs() << "the state at '" << verb.state
                 << "' was not closed and has no checkpoint\n";
    return 0;
  }
  llvm::outs() << llvm::formatv("{0,-14} {1,10} {2,14} {3,-20} {4,14} {5,12}\n",
                                "name", "step", "samples", "date", "rows",
                                "new to it");
  for (const RootInfo &r : *roots) {
    if (r.sequence)
      llvm::outs() << llvm::formatv("{0,-14} {1,10} {2,14} {3,-20} ", r.name,
                                    r.step, r.samples, shownTime(r.time));
    else
      llvm::outs() << llvm::formatv("{0,-14} ", r.name);
    if (r.damage.empty())
      llvm::outs() << llvm::formatv("{0,14} {1,12}\n", r.rows,
                                    shownBytes(r.newBytes));
    else
      llvm::outs() << "DAMAGED: " << r.damage << "\n";
  }
  return 0;
}

namespace {

/// Lists problems as they come, up to a limit.
class Problems {
public:
  Problems(bool json, int64_t limit) : json(json), limit(limit) {}

  std::function<void(Problem)> taker() {
    return [this](Problem p) {
      ++total;
      if (limit > 0 && total > uint64_t(limit))
        return;
      if (json) {
        llvm::json::Object item{{"root", p.root},
                                {"problem", llvm::json::fixUTF8(p.what)}};
        if (p.row >= 0) {
          item["table"] = p.table;
          item["row"] = p.row;
        }
        list.push_back(std::move(item));
        return;
      }
      llvm::outs() << p.root << ": ";
      if (p.row >= 0)
        llvm::outs() << "table '" << p.table << "', row " << p.row << ": ";
      llvm::outs() << p.what << "\n";
    };
  }

  uint64_t total = 0;
  uint64_t leftOut() const {
    return limit > 0 && total > uint64_t(limit) ? total - uint64_t(limit) : 0;
  }
  llvm::json::Array list;

private:
  bool json;
  int64_t limit;
};

} // namespace

static llvm::json::Object toJson(const Verified &v) {
  return llvm::json::Object{{"root", v.root},
                            {"step", v.step},
                            {"opened", v.opened},
                            {"rows", int64_t(v.rows)},
                            {"lost_rows", int64_t(v.lost)},
                            {"problems", int64_t(v.problems)}};
}

static std::string lineOf(const Verified &v) {
  if (!v.opened)
    return v.root + ": cannot be opened";
  return v.root + " (step " + std::to_string(v.step) +
         "): " + counted(v.rows, "row") + " read, " +
         (v.problems ? counted(v.problems, "problem") + ", " +
                           counted(v.lost, "row") + " lost"
                     : std::string("all sound"));
}

/// Roots, problems and what to do; the exit code.
static int reportVerified(const std::vector<Verified> &roots,
                          Problems &problems, bool json) {
  std::string sound; // the newest of those
  for (const Verified &v : roots)
    if (!v.problems)
      sound = v.root;
  bool ok = problems.total == 0;
  int code = int(ok ? Outcome::Ok : Outcome::Error);
  if (json) {
    llvm::json::Array list;
    for (const Verified &v : roots)
      list.push_back(toJson(v));
    llvm::json::Object out{{"ok", ok},
                           {"roots", std::move(list)},
                           {"problems", std::move(problems.list)},
                           {"problems_left_out", int64_t(problems.leftOut())}};
    out["newest_sound"] =
        sound.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(sound);
    print(std::move(out));
    return code;
  }
  if (uint64_t more = problems.leftOut())
    llvm::outs() << "... and " << more << " more (--limit 0 lists all)\n";
  for (const Verified &v : roots)
    llvm::outs() << lineOf(v) << "\n";
  if (!ok && roots.size() > 1)
    llvm::outs() << (sound.empty() ? "no root is sound: a reader of a lost row "
                                     "meets the error above\n"
                                   : "the newest sound one is " + sound +
                                         "; ./model train --from takes a "
                                         "checkpoint by name\n");
  return code;
}

int runCheckpointVerify(const VerifyVerb &verb, bool json) {
  auto root = openRoot(verb.state, verb.at);
  if (!root.ok())
    return fail(root.takeStatus(), json);
  Problems problems(json, verb.limit);
  Verified v;
  trc::Status status = [&] {
    ProgressLine line("verifying", json);
    return verifyRoot(root->source, problems.taker(), line.take(), v);
  }();
  if (!status.ok())
    return fail(status, json);
  return reportVerified({v}, problems, json);
}

int runCheckpointScrub(const VerifyVerb &verb, bool json) {
  auto dir = trc::StateDir::open(verb.state, false, false);
  if (!dir.ok())
    return fail(dir.takeStatus(), json);
  Problems problems(json, verb.limit);
  std::vector<Verified> all;
  trc::Status status = [&] {
    ProgressLine line("scrubbing", json);
    return scrubState(**dir, problems.taker(), line.take(), all);
  }();
  if (!status.ok())
    return fail(status, json);
  if (all.empty())
    return fail(Outcome::Error,
                "the state at '" + verb.state +
                    "' was not closed and has no checkpoint",
                json);
  return reportVerified(all, problems, json);
}

static llvm::json::Value shownNumber(double x) {
  // JSON has no infinity: a number and something that is none.
  return std::isfinite(x) ? llvm::json::Value(x) : llvm::json::Value("inf");
}

static void printDiff(const OpenRoot &a, const OpenRoot &b, const RootDiff &d) {
  const trc::Manifest &m = a.source.manifest, &n = b.source.manifest;
  auto was = [](const std::string &what, const std::string &x,
                const std::string &y) {
    llvm::outs() << what << " " << x << (x == y ? "" : " -> " + y) << "\n";
  };
  auto real = [](double x) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", x);
    return std::string(text);
  };
  was("step   ", std::to_string(m.step), std::to_string(n.step));
  was("samples", std::to_string(m.samples), std::to_string(n.samples));
  if (!m.head.empty() || !n.head.empty())
    was("head   ", m.head + ", bias " + real(m.headState.bias),
        n.head + ", bias " + real(n.headState.bias));
  llvm::outs() << "blob    "
               << (d.blob ? "differs"
                          : (m.blobBytes ? "the same" : "none in both"))
               << "\n";
  for (const TableDiff &t : d.tables) {
    llvm::outs() << "table '" << t.table << "': ";
    if (!t.note.empty())
      llvm::outs() << t.note << "; ";
    if (!t.rowsBefore || !t.rowsAfter) {
      llvm::outs() << counted(std::max(t.rowsBefore, t.rowsAfter), "row")
                   << "\n";
      continue;
    }
    llvm::outs() << t.changed << " of " << counted(t.written, "row")
                 << " changed, " << t.onlyBefore << " only before, "
                 << t.onlyAfter << " only after; largest difference "
                 << llvm::formatv("{0:e3} of weights, {1:e3} of state\n",
                                  t.weights, t.state);
  }
}

int runCheckpointDiff(const CheckpointDiffVerb &verb, bool json) {
  bool two = verb.after.empty();
  if (!two && (!verb.at.empty() || !verb.atOther.empty()))
    return fail(Outcome::Usage,
                "--at and --at-other go with two states: diff STATE OTHER",
                json);
  auto a = openRoot(verb.state, two ? verb.at : verb.before);
  if (!a.ok())
    return fail(a.takeStatus(), json);
  auto b =
      openRoot(two ? verb.before : verb.state, two ? verb.atOther : verb.after);
  if (!b.ok())
    return fail(b.takeStatus(), json);
  trc::Result<RootDiff> diff = [&] {
    ProgressLine line("comparing", json);
    return diffRoots(a->source, b->source, line.take());
  }();
  if (!diff.ok())
    return fail(diff.takeStatus(), json);
  if (!json) {
    printDiff(*a, *b, *diff);
    return 0;
  }
  auto rootOf = [](const trc::StateSource &s) {
    const trc::Manifest &m = s.manifest;
    return llvm::json::Object{{"name", nameOf(s)},
                              {"step", m.step},
                              {"samples", m.samples},
                              {"lr_scale", m.lrScale},
                              {"head", m.head},
                              {"bias", shownNumber(m.headState.bias)},
                              {"blob_bytes", int64_t(m.blobBytes)}};
  };
  llvm::json::Array tables;
  for (const TableDiff &t : diff->tables)
    tables.push_back(
        llvm::json::Object{{"table", t.table},
                           {"rows_before", t.rowsBefore},
                           {"rows_after", t.rowsAfter},
                           {"note", t.note},
                           {"written_in_both", int64_t(t.written)},
                           {"changed", int64_t(t.changed)},
                           {"only_before", int64_t(t.onlyBefore)},
                           {"only_after", int64_t(t.onlyAfter)},
                           {"max_abs_weights", shownNumber(t.weights)},
                           {"max_abs_weights_row", t.weightsRow},
                           {"max_abs_state", shownNumber(t.state)}});
  llvm::json::Object out = okObject();
  out["same"] = diff->same;
  out["before"] = rootOf(a->source);
  out["after"] = rootOf(b->source);
  out["blob_differs"] = diff->blob;
  out["tables"] = std::move(tables);
  print(std::move(out));
  return 0;
}

int runCheckpointCompact(const StateVerb &verb, bool json) {
  auto dir = trc::StateDir::open(verb.state, true, false);
  if (!dir.ok())
    return fail(dir.takeStatus(), json);
  trc::Result<Compacted> done = [&] {
    ProgressLine line("verifying", json);
    return compactState(**dir, line.take());
  }();
  if (!done.ok())
    return fail(done.takeStatus(), json);
  if (json) {
    llvm::json::Object out = okObject();
    out["kept"] = done->kept;
    out["removed"] = llvm::json::Array(done->removed);
    out["bytes_before"] = int64_t(done->bytesBefore);
    out["bytes_after"] = int64_t(done->bytesAfter);
    print(std::move(out));
    return 0;
  }
  llvm::outs() << "kept " << done->kept << "; removed "
               << counted(done->removed.size(), "root");
  for (const std::string &name : done->removed)
    llvm::outs() << " " << name;
  llvm::outs() << "; the folder took " << shownBytes(done->bytesBefore)
               << " and takes " << shownBytes(done->bytesAfter)
               << "; space of rows is used again by training\n";
  return 0;
}

int runCheckpointImport(const ImportVerb &verb, bool json) {
  trc::Result<Portable> made = [&] {
    ProgressLine line("importing", json);
    return importRows(verb.folder, verb.state, line.take());
  }();
  if (!made.ok())
    return fail(made.takeStatus(), json);
  if (json) {
    llvm::json::Object out = okObject();
    out["state"] = verb.state;
    out["step"] = made->step;
    out["samples"] = made->samples;
    out["rows"] = int64_t(made->rows);
    print(std::move(out));
    return 0;
  }
  llvm::outs() << "made the state '" << verb.state << "': step " << made->step
               << ", " << counted(made->rows, "row")
               << "; the first training lays them out as its plan wants\n";
  return 0;
}

} // namespace terrace::tool
