//===- SessionRows.cpp - Looks at single rows -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With no batch in flight, every row has one current copy: in memory, in a slot
// or at home; or it was never written and is its initial value.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/FpEnv.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace trc;

/// No batch in flight, all lanes done, all writes of victims at home.
Status Session::quiet() {
  if (ended < submitted)
    return Status(TRC_OUT_OF_ORDER,
                  std::to_string(submitted - ended) +
                      " batches are in flight; end them with backward or "
                      "release first");
  if (!pipeline->executor.drain())
    return interruptedStatus();
  for (auto &g : pipeline->groups) {
    if (!g->store || g->writeRing < 0)
      continue;
    for (int64_t s = 0; s < plan.rings[g->writeRing].depth; ++s)
      if (Status written = g->store->waitWrites(static_cast<uint32_t>(s));
          !written.ok()) {
        pipeline->poison(written.clone());
        return written;
      }
    g->cache->recycleAll();
  }
  return Status();
}

Status Session::findRows(const char *name, const int64_t *rows, int64_t count,
                         const TablePlan *&found) const {
  if (!name || count < 0 || (count && !rows))
    return Status(TRC_BAD_ARGUMENT, "table or rows is null, or count negative");
  int t = plan.findTable(name);
  if (t < 0)
    return Status(TRC_NOT_FOUND, std::string("no table '") + name +
                                     "' in model '" + plan.model + "'");
  found = &plan.tables[t];
  for (int64_t i = 0; i < count; ++i)
    if (rows[i] < 0 || rows[i] >= found->rows)
      return Status(TRC_NOT_FOUND, std::string("table '") + name +
                                       "' has rows 0 .. " +
                                       std::to_string(found->rows - 1) +
                                       ", not " + std::to_string(rows[i]));
  return Status();
}

Status Session::forRows(
    const TablePlan &table, const int64_t *rows, int64_t count,
    const std::function<void(int64_t i, const char *record)> &take) {
  ScopedStrictFp strict;
  GroupRuntime &g = *pipeline->groups[table.group];
  std::vector<char> record(static_cast<size_t>(g.plan->slotBytes));
  auto initial = [&](int64_t i, uint64_t row) {
    g.initRow(plan, g.tableOf(plan, row), row, record.data());
    take(i, record.data());
  };
  std::vector<std::pair<uint32_t, int64_t>> home; // row, index
  for (int64_t i = 0; i < count; ++i) {
    uint64_t row = static_cast<uint64_t>(table.rowBase + rows[i]);
    if (!g.cache) {
      if (g.present.test(row))
        take(i, g.row(row));
      else
        initial(i, row);
      continue;
    }
    GroupCache::Location at = g.cache->locate(static_cast<uint32_t>(row));
    switch (at.place) {
    case GroupCache::Place::Slot:
      take(i, g.row(at.slot));
      break;
    case GroupCache::Place::Never:
      initial(i, row);
      break;
    case GroupCache::Place::Home:
    case GroupCache::Place::Buffer:
      home.emplace_back(static_cast<uint32_t>(row), i);
      break;
    }
  }
  // A batch of reads takes each row once, and a bounded number.
  std::sort(home.begin(), home.end());
  std::vector<uint32_t> wanted;
  std::vector<char> payloads;
  size_t pitch = static_cast<size_t>(g.plan->slotBytes);
  for (size_t at = 0; at < home.size();) {
    wanted.clear();
    size_t end = at;
    for (; end < home.size(); ++end) {
      if (!wanted.empty() && wanted.back() == home[end].first)
        continue;
      if (wanted.size() == 4096)
        break;
      wanted.push_back(home[end].first);
    }
    payloads.resize(wanted.size() * pitch);
    ReadBatch batch;
    batch.rows = wanted.data();
    batch.count = static_cast<uint32_t>(wanted.size());
    batch.out = payloads.data();
    batch.pitch = pitch;
    TRC_RETURN_IF_ERROR(g.store->read(batch));
    for (size_t k = 0; at < end; ++at) {
      while (wanted[k] != home[at].first)
        ++k;
      take(home[at].second, payloads.data() + k * pitch);
    }
  }
  return Status();
}

namespace {
/// Both roles at once: the caller alone touches the session.
struct Alone {
  std::unique_lock<std::mutex> a, b;
  Alone(std::mutex &first, std::mutex &second)
      : a(first, std::try_to_lock), b(second, std::try_to_lock) {}
  Status status(const char *call) const {
    if (a && b)
      return Status();
    return Status(TRC_OUT_OF_ORDER,
                  std::string(call) + " while another thread is in a call");
  }
};
} // namespace

Status Session::readRows(const char *name, const int64_t *rows, int64_t count,
                         float *out) {
  Alone alone(producer, trainer);
  TRC_RETURN_IF_ERROR(alone.status("read_rows"));
  TRC_RETURN_IF_ERROR(usable());
  const TablePlan *table = nullptr;
  TRC_RETURN_IF_ERROR(findRows(name, rows, count, table));
  if (count && !out)
    return Status(TRC_BAD_ARGUMENT, "out is null");
  TRC_RETURN_IF_ERROR(quiet());
  return forRows(*table, rows, count, [&](int64_t i, const char *record) {
    decodeWeights(table->element, record, table->dim, out + i * table->dim);
  });
}

/// Where a state lies in a record, in bytes, and its floats.
Status Session::findState(const TablePlan &table, int32_t slot, int64_t &begin,
                          int64_t &width) const {
  if (slot < 0 || slot >= table.optimizer.stateCount())
    return Status(TRC_NOT_FOUND,
                  "table '" + table.name + "' with optimizer " +
                      table.optimizer.name + " has " +
                      std::to_string(table.optimizer.stateCount()) +
                      " states, not one with number " + std::to_string(slot));
  begin = stateOffset(table.element, table.dim);
  for (int32_t s = 0; s < slot; ++s)
    begin += 4 * table.optimizer.stateWidth(s, table.dim);
  width = table.optimizer.stateWidth(slot, table.dim);
  return Status();
}

Status Session::readState(const char *name, int32_t slot, const int64_t *rows,
                          int64_t count, float *out) {
  Alone alone(producer, trainer);
  TRC_RETURN_IF_ERROR(alone.status("read_state"));
  TRC_RETURN_IF_ERROR(usable());
  const TablePlan *table = nullptr;
  TRC_RETURN_IF_ERROR(findRows(name, rows, count, table));
  if (count && !out)
    return Status(TRC_BAD_ARGUMENT, "out is null");
  int64_t begin = 0, width = 0;
  TRC_RETURN_IF_ERROR(findState(*table, slot, begin, width));
  TRC_RETURN_IF_ERROR(quiet());
  return forRows(*table, rows, count, [&](int64_t i, const char *record) {
    std::memcpy(out + i * width, record + begin,
                static_cast<size_t>(width) * 4);
  });
}

/// What write_rows and write_state have in common; the table, or why not.
Status Session::forWriting(const char *call, const char *name,
                           const int64_t *rows, int64_t count,
                           const float *values, const TablePlan *&table) {
  TRC_RETURN_IF_ERROR(usable());
  if (mode != TRC_TRAIN)
    return Status(TRC_BAD_ARGUMENT,
                  std::string(call) +
                      " in a session that was not opened to train");
  TRC_RETURN_IF_ERROR(findRows(name, rows, count, table));
  if (count && !values)
    return Status(TRC_BAD_ARGUMENT, "values is null");
  return Status();
}

Status Session::writeRows(const char *name, const int64_t *rows, int64_t count,
                          const float *values) {
  Alone alone(producer, trainer);
  TRC_RETURN_IF_ERROR(alone.status("write_rows"));
  const TablePlan *table = nullptr;
  TRC_RETURN_IF_ERROR(
      forWriting("write_rows", name, rows, count, values, table));
  for (int64_t i = 0; i < count; ++i) {
    const float *row = values + i * table->dim;
    int64_t column = 0;
    while (column < table->dim && std::isfinite(row[column]))
      ++column;
    std::string why =
        column < table->dim
            ? "column " + std::to_string(column) + " is not finite"
            : whyNotStored(table->element, row, table->dim, &column);
    if (!why.empty())
      return Status::badInput(std::string("table '") + name + "', row " +
                                  std::to_string(rows[i]) + ", " + why,
                              "", i, column, 0);
  }
  TRC_RETURN_IF_ERROR(quiet());
  return changeRows(*table, rows, count, [&](int64_t i, char *record) {
    encodeWeights(table->element, values + i * table->dim, table->dim, record);
  });
}

/// Sums and means of squares, whose root an update takes.
static bool isOfSquares(const OptimizerPlan &optimizer, int32_t slot) {
  switch (optimizer.kind) {
  case OptimizerKind::Sgd:
  case OptimizerKind::MomentumSgd:
    return false;
  case OptimizerKind::Adagrad:
  case OptimizerKind::RowwiseAdagrad:
    return true;
  case OptimizerKind::Adam:
  case OptimizerKind::PartialRowwiseAdam:
  case OptimizerKind::Lamb:
  case OptimizerKind::Ftrl:
    return slot == 1;
  }
  return false;
}

Status Session::writeState(const char *name, int32_t slot, const int64_t *rows,
                           int64_t count, const float *values) {
  Alone alone(producer, trainer);
  TRC_RETURN_IF_ERROR(alone.status("write_state"));
  const TablePlan *table = nullptr;
  TRC_RETURN_IF_ERROR(
      forWriting("write_state", name, rows, count, values, table));
  int64_t begin = 0, width = 0;
  TRC_RETURN_IF_ERROR(findState(*table, slot, begin, width));
  const bool squares = isOfSquares(table->optimizer, slot);
  for (int64_t i = 0; i < count * width; ++i)
    if (!std::isfinite(values[i]) || (squares && values[i] < 0))
      return Status::badInput(
          std::string("table '") + name + "', row " +
              std::to_string(rows[i / width]) + ": state " +
              std::to_string(slot) + " of " + table->optimizer.name +
              ", column " + std::to_string(i % width) +
              (std::isfinite(values[i])
                   ? " is " + std::to_string(values[i]) +
                         ", but holds squares, which are not negative"
                   : " is not finite"),
          "", i / width, i % width, 0);
  TRC_RETURN_IF_ERROR(quiet());
  return changeRows(*table, rows, count, [&](int64_t i, char *record) {
    std::memcpy(record + begin, values + i * width,
                static_cast<size_t>(width) * 4);
  });
}

/// Whole records are written, so that what `change` leaves alone is kept; the
/// last change of a row that is named twice wins.
Status Session::changeRows(
    const TablePlan &table, const int64_t *rows, int64_t count,
    const std::function<void(int64_t i, char *record)> &change) {
  GroupRuntime &g = *pipeline->groups[table.group];
  size_t pitch = static_cast<size_t>(g.plan->slotBytes);
  std::vector<char> records(static_cast<size_t>(count) * pitch);
  TRC_RETURN_IF_ERROR(
      forRows(table, rows, count, [&](int64_t i, const char *record) {
        std::memcpy(records.data() + static_cast<size_t>(i) * pitch, record,
                    pitch);
      }));
  std::vector<std::pair<uint32_t, int64_t>> order;
  for (int64_t i = 0; i < count; ++i) {
    change(i, records.data() + static_cast<size_t>(i) * pitch);
    order.emplace_back(static_cast<uint32_t>(table.rowBase + rows[i]), i);
  }
  std::sort(order.begin(), order.end());
  // Rows are written in place: nothing may be pending.
  if (Status before = joinCheckpoint(); !before.ok())
    return before;
  savedIsCurrent = false;
  // Rows that go home do so in runs: one by one each would take a transfer.
  constexpr size_t mostAtOnce = 4096;
  std::vector<uint32_t> homeRows;
  std::vector<char> homeRecords;
  auto toHome = [&] {
    Status s = homeRows.empty()
                   ? Status()
                   : g.store->load(homeRows.data(),
                                   static_cast<uint32_t>(homeRows.size()),
                                   homeRecords.data());
    if (!s.ok()) {
      pipeline->poison(s.clone());
      return s;
    }
    for (uint32_t row : homeRows)
      g.cache->setHome(row);
    homeRows.clear();
    homeRecords.clear();
    return s;
  };
  for (size_t k = 0; k < order.size(); ++k) {
    if (k + 1 < order.size() && order[k + 1].first == order[k].first)
      continue;
    uint32_t row = order[k].first;
    const char *record =
        records.data() + static_cast<size_t>(order[k].second) * pitch;
    if (!g.cache) {
      std::memcpy(g.row(row), record, pitch);
      g.present.set(row);
      g.dirty.set(row);
      continue;
    }
    GroupCache::Location at = g.cache->locate(row);
    if (at.place == GroupCache::Place::Slot) {
      std::memcpy(g.row(at.slot), record, pitch);
      g.cache->markDirtyRow(row);
      continue;
    }
    homeRows.push_back(row);
    homeRecords.insert(homeRecords.end(), record, record + pitch);
    if (homeRows.size() == mostAtOnce)
      TRC_RETURN_IF_ERROR(toHome());
  }
  return toHome();
}
