//===- Diff.cpp - What differs between two roots --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Diff.h"

#include "runtime/core/FloatBits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace trc;
using namespace trc::inspect;

Status inspect::forPairs(StateReader &before, int tableBefore,
                         StateReader &after, int tableAfter,
                         const std::function<Status(const RowPair &)> &take) {
  const ManifestTable &a = before.manifest().tables[tableBefore];
  const ManifestTable &b = after.manifest().tables[tableAfter];
  int64_t rows = std::min(a.rows, b.rows);
  size_t most = blockRows(std::max(a.recordBytes(), b.recordBytes()));
  int64_t nextA = before.nextWritten(tableBefore, 0);
  int64_t nextB = after.nextWritten(tableAfter, 0);
  RowBlock left, right;
  std::vector<std::pair<bool, bool>> in;
  while (std::min(nextA, nextB) < rows) {
    left.rows.clear();
    in.clear();
    while (left.rows.size() < most) {
      int64_t row = std::min(nextA, nextB);
      if (row >= rows)
        break;
      left.rows.push_back(row);
      in.emplace_back(nextA == row, nextB == row);
      if (nextA == row)
        nextA = before.nextWritten(tableBefore, row + 1);
      if (nextB == row)
        nextB = after.nextWritten(tableAfter, row + 1);
    }
    right.rows = left.rows;
    TRC_RETURN_IF_ERROR(readBlock(before, tableBefore, left));
    TRC_RETURN_IF_ERROR(readBlock(after, tableAfter, right));
    for (size_t i = 0; i < left.rows.size(); ++i)
      TRC_RETURN_IF_ERROR(take({left.rows[i], in[i].first, in[i].second,
                                left.record(i), right.record(i)}));
  }
  return Status();
}

/// The largest |a - b|; infinite where one of two is not a number.
static double largest(const char *a, const char *b, size_t floats) {
  double most = 0;
  for (size_t i = 0; i < floats; ++i) {
    float x, y;
    std::memcpy(&x, a + i * 4, 4);
    std::memcpy(&y, b + i * 4, 4);
    double d = std::fabs(static_cast<double>(x) - static_cast<double>(y));
    if (std::isnan(d))
      d = bitsOf(x) == bitsOf(y) ? 0 : std::numeric_limits<double>::infinity();
    most = std::max(most, d);
  }
  return most;
}

static bool sameInit(const InitPlan &a, const InitPlan &b) {
  if (a.kind != b.kind || a.first != b.first || a.second != b.second)
    return false;
  return a.kind == "constant" || a.key == b.key;
}

static void addNote(std::string &note, const std::string &text) {
  note += (note.empty() ? "" : "; ") + text;
}

static Status diffTable(StateReader &before, int from, StateReader &after,
                        int to, TableDiff &d, const Progress &progress,
                        uint64_t total, uint64_t &done) {
  const ManifestTable &a = before.manifest().tables[from];
  const ManifestTable &b = after.manifest().tables[to];
  if (a.dim != b.dim) {
    addNote(d.note, "dim " + std::to_string(a.dim) + " became " +
                        std::to_string(b.dim) + ": rows are not compared");
    return Status();
  }
  if (a.rows != b.rows)
    addNote(d.note, "rows " + std::to_string(a.rows) + " became " +
                        std::to_string(b.rows));
  if (!sameInit(a.init, b.init))
    addNote(d.note, "rows never written begin with other values");
  bool states = a.optimizer == b.optimizer && a.stateWidths == b.stateWidths;
  if (!states)
    addNote(d.note, "optimizer " + a.optimizer + " became " + b.optimizer +
                        ": its state is not compared");
  size_t weights = static_cast<size_t>(a.dim);
  size_t rest = states ? a.recordBytes() / 4 - weights : 0;
  return forPairs(before, from, after, to, [&](const RowPair &p) {
    if (progress && ++done % 65536 == 0)
      progress(done, total);
    d.written += p.inBefore && p.inAfter;
    d.onlyBefore += !p.inAfter;
    d.onlyAfter += !p.inBefore;
    if (std::memcmp(p.before, p.after, (weights + rest) * 4) == 0)
      return Status();
    d.changed += p.inBefore && p.inAfter;
    double w = largest(p.before, p.after, weights);
    if (w > d.weights) {
      d.weights = w;
      d.weightsRow = p.row;
    }
    d.state = std::max(
        d.state, largest(p.before + weights * 4, p.after + weights * 4, rest));
    return Status();
  });
}

static Status diffInto(const StateSource &before, const StateSource &after,
                       const Progress &progress, RootDiff &out) {
  Result<std::unique_ptr<StateReader>> left = StateReader::open(before, true);
  if (!left.ok())
    return left.takeStatus();
  Result<std::unique_ptr<StateReader>> right = StateReader::open(after, true);
  if (!right.ok())
    return right.takeStatus();
  const Manifest &a = before.manifest, &b = after.manifest;
  // Of rows in both, each is counted once; those of one may add to it.
  uint64_t total = std::max((*left)->writtenCount(), (*right)->writtenCount());
  uint64_t done = 0;
  for (size_t t = 0; t < a.tables.size(); ++t) {
    TableDiff d;
    d.table = a.tables[t].name;
    d.rowsBefore = a.tables[t].rows;
    int to = b.findTable(d.table);
    if (to < 0)
      addNote(d.note, "gone");
    else {
      d.rowsAfter = b.tables[to].rows;
      TRC_RETURN_IF_ERROR(diffTable(**left, static_cast<int>(t), **right, to, d,
                                    progress, total, done));
    }
    out.tables.push_back(std::move(d));
  }
  for (const ManifestTable &t : b.tables)
    if (a.findTable(t.name) < 0) {
      TableDiff d;
      d.table = t.name;
      d.rowsAfter = t.rows;
      addNote(d.note, "new");
      out.tables.push_back(std::move(d));
    }
  // Told by their checksums, without reading them.
  out.blob = a.blobBytes != b.blobBytes || a.blobCrc != b.blobCrc;
  out.same = !out.blob && a.step == b.step && a.samples == b.samples &&
             a.lrScale == b.lrScale && a.head == b.head &&
             a.headState.bias == b.headState.bias &&
             a.headState.biasSquares == b.headState.biasSquares;
  for (const TableDiff &d : out.tables)
    out.same &= d.same();
  return Status();
}

Result<RootDiff> inspect::diffRoots(const StateSource &before,
                                    const StateSource &after,
                                    const Progress &progress) {
  RootDiff out;
  TRC_RETURN_IF_ERROR(
      guarded([&] { return diffInto(before, after, progress, out); }));
  return Result<RootDiff>(std::move(out));
}
