//===- ToyStore.cpp - What the simulator's instances act on ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every op in a few lines. Nothing here repairs what a bad order broke: values
// just turn out stale, and the checks at the readers and at the end see it.
//
//===----------------------------------------------------------------------===//
#include "Schedule/ToyStore.h"

#include <algorithm>

namespace terrace::schedule {

ToyStore::ToyStore(const Graph &graph, int batches, std::mt19937_64 &random)
    : graph(graph), batches(batches), random(random),
      cutAt(int(random() % uint64_t(batches))) {
  for (int t = 0; t < batches; ++t)
    released.push_back(random() % 8 == 0);
  for (const Ring &ring : graph.rings)
    rings.emplace_back(size_t(std::max(1, ring.depth)));
  for (int g = 0; g < int(graph.groups.size()); ++g) {
    const Group &group = graph.groups[g];
    State s;
    size_t rows = size_t(group.rows);
    s.slots.resize(size_t(std::max<int64_t>(0, group.slots)));
    s.slotOf.assign(rows, -1);
    s.home.assign(rows, 0);
    s.leftAt.assign(rows, -1);
    s.leftIndex.assign(rows, 0);
    s.touched.assign(rows, 0);
    s.pending.assign(rows, 0);
    s.kept.assign(rows, 0);
    s.buffer.resize(size_t(graph.writeSlots(g)));
    s.probes.resize(size_t(batches));
    for (int t = 0; t < batches; ++t) {
      std::vector<int> all(rows);
      for (size_t r = 0; r < rows; ++r)
        all[r] = int(r);
      std::shuffle(all.begin(), all.end(), random);
      size_t most = std::min<size_t>(rows, size_t(group.maxUnique));
      // Mostly full batches: they strain slots most.
      size_t n = random() % 4 ? most : 1 + random() % most;
      all.resize(n);
      s.rows.push_back(std::move(all));
    }
    groups.push_back(std::move(s));
  }
}

void ToyStore::fail(int op, int batch, const std::string &what) {
  if (failure.empty())
    failure =
        graph.ops[op].name + " (batch " + std::to_string(batch) + "): " + what;
}

void ToyStore::readRing(int op, int batch, int ring) {
  const RingSlot &slot = rings[ring][size_t(batch) % rings[ring].size()];
  if (slot.batch != batch)
    return fail(op, batch,
                "ring " + graph.rings[ring].name + " holds another batch");
  for (int i = 0; i < int(graph.ops.size()); ++i)
    for (const Effect &e : graph.ops[i].effects)
      if (e.role == Role::Ring && e.target == ring && e.write && i != op &&
          slot.writers.count(i) != size_t(i < op))
        return fail(op, batch,
                    "ring " + graph.rings[ring].name + " was" +
                        (i < op ? " not yet" : " already") + " written by " +
                        graph.ops[i].name);
}

void ToyStore::writeRing(int op, int batch, int ring) {
  RingSlot &slot = rings[ring][size_t(batch) % rings[ring].size()];
  if (slot.batch != batch)
    slot.writers.clear();
  slot.batch = batch;
  slot.writers.insert(op);
}

int64_t ToyStore::expected(const State &state, int row, int batch) const {
  for (int t = batch - 1; t >= 0; --t)
    if (!released[t] &&
        std::count(state.rows[t].begin(), state.rows[t].end(), row))
      return t + 1;
  return 0;
}

void ToyStore::probe(int op, int batch, State &s) {
  Probe &p = s.probes[batch];
  p = Probe();
  p.rows = s.rows[batch];
  for (int row : p.rows)
    if (s.slotOf[row] >= 0)
      ++s.slots[s.slotOf[row]].pins;
  for (int row : p.rows) {
    if (s.slotOf[row] < 0) {
      std::vector<int> free;
      for (int i = 0; i < int(s.slots.size()); ++i)
        if (s.slots[i].pins == 0)
          free.push_back(i);
      if (free.empty())
        return fail(op, batch, "no slot left to pin");
      int slot = free[random() % free.size()];
      Slot &target = s.slots[slot];
      if (int old = target.owner; old >= 0) {
        s.slotOf[old] = -1;
        if (target.dirty) {
          s.leftAt[old] = batch;
          s.leftIndex[old] = int(p.victims.size());
          p.victims.push_back({old, slot});
        }
      }
      bool buffered =
          s.leftAt[row] >= 0 && batch - s.leftAt[row] < int(s.buffer.size());
      p.misses.push_back(
          {row, slot, buffered ? s.leftAt[row] : -1, s.leftIndex[row]});
      target.owner = row;
      target.dirty = false;
      target.pins = 1;
      s.slotOf[row] = slot;
    }
    p.slots.push_back(s.slotOf[row]);
  }
}

bool ToyStore::copiesFrom(int group, int earlier, int batch) const {
  const State &s = groups[group];
  int slots = int(s.buffer.size());
  for (const Miss &m : s.probes[earlier].misses)
    if (m.source >= 0 && m.source % slots == batch % slots)
      return true;
  return false;
}

void ToyStore::spill(int op, int batch, State &s) {
  std::vector<int64_t> &buffer = s.buffer[size_t(batch) % s.buffer.size()];
  buffer.clear();
  for (const Victim &v : s.probes[batch].victims) {
    if (s.slots[v.slot].holds != v.row)
      fail(op, batch, "a victim's slot holds another row");
    buffer.push_back(s.slots[v.slot].value);
  }
}

void ToyStore::store(int batch, State &s) {
  const std::vector<int64_t> &buffer =
      s.buffer[size_t(batch) % s.buffer.size()];
  const std::vector<Victim> &victims = s.probes[batch].victims;
  for (size_t i = 0; i < victims.size(); ++i)
    s.home[victims[i].row] = i < buffer.size() ? buffer[i] : -1;
}

void ToyStore::fetch(int batch, State &s, bool last) {
  // A read sees the row at some moment between begin and end.
  for (Miss &m : s.probes[batch].misses) {
    if (m.fetched || (!last && random() % 2))
      continue;
    m.fetched = true;
    if (m.source < 0) {
      m.value = s.home[m.row];
      continue;
    }
    // Which batch's rows lie there now shows in the values, not here.
    const std::vector<int64_t> &buffer =
        s.buffer[size_t(m.source) % s.buffer.size()];
    m.value = m.index < int(buffer.size()) ? buffer[m.index] : -1;
  }
}

void ToyStore::fill(int batch, State &s) {
  for (const Miss &m : s.probes[batch].misses) {
    s.slots[m.slot].holds = m.row;
    s.slots[m.slot].value = m.fetched ? m.value : -1;
  }
}

void ToyStore::use(int op, int batch, State &s, bool update) {
  bool cached = graph.groups[graph.ops[op].group].cached;
  const Probe &p = s.probes[batch];
  for (size_t u = 0; u < s.rows[batch].size(); ++u) {
    int row = s.rows[batch][u];
    if (cached && u >= p.slots.size())
      return fail(op, batch, "rows were not probed");
    int64_t &value = cached ? s.slots[p.slots[u]].value : s.home[row];
    if (cached && s.slots[p.slots[u]].holds != row)
      return fail(op, batch, "a slot does not hold its row");
    if (!cached && !s.touched[row])
      return fail(op, batch, "a row has no initial value");
    if (value != expected(s, row, batch))
      return fail(op, batch, "stale row");
    if (!update || released[batch])
      continue;
    value = batch + 1;
    if (cached)
      s.slots[p.slots[u]].dirty = true;
  }
}

int64_t ToyStore::valueOf(const State &s, int row) const {
  int slot = s.slotOf[row];
  return slot >= 0 ? s.slots[slot].value : s.home[row];
}

/// What beginCommit does; it awaits the updates of the batches before by
/// itself.
void ToyStore::cut(int batch) {
  for (const State &s : groups)
    if (s.updates != batch)
      return;
  wasCut = true;
  for (State &s : groups)
    std::fill(s.pending.begin(), s.pending.end(), 1);
}

void ToyStore::preserve(int batch, State &s) {
  for (int row : s.rows[batch]) {
    if (!s.pending[row] || released[batch])
      continue;
    s.pending[row] = 0;
    s.kept[row] = valueOf(s, row);
  }
}

void ToyStore::begin(int op, int batch) {
  const Op &o = graph.ops[op];
  if (o.kind == OpKind::Resume && batch == cutAt)
    cut(batch);
  for (const Effect &e : o.effects) {
    if (e.role != Role::Ring || e.rows != RowSet::All)
      continue;
    if (e.write)
      writeRing(op, batch, e.target);
    else
      readRing(op, batch, e.target);
  }
  if (o.kind == OpKind::Fetch)
    fetch(batch, groups[o.group], false);
}

void ToyStore::end(int op, int batch) {
  const Op &o = graph.ops[op];
  for (const Effect &e : o.effects) {
    if (e.role != Role::Ring || e.rows != RowSet::All)
      continue;
    const RingSlot &slot =
        rings[e.target][size_t(batch) % rings[e.target].size()];
    if (slot.batch != batch)
      fail(op, batch,
           "ring " + graph.rings[e.target].name + " was taken while in use");
  }
  if (o.group < 0) {
    if (o.kind == OpKind::Call) {
      int last = 0;
      for (int t = 0; t < batch; ++t)
        last = released[t] ? last : t + 1;
      if (head != last)
        fail(op, batch, "stale parameters of the head");
    } else if (o.kind == OpKind::Resume && !released[batch]) {
      head = batch + 1;
    }
    return;
  }
  State &s = groups[o.group];
  switch (o.kind) {
  case OpKind::Unique:
  case OpKind::Touch:
    if (!graph.groups[o.group].cached)
      for (int row : s.rows[batch])
        s.touched[row] = 1;
    break;
  case OpKind::Probe:
    probe(op, batch, s);
    break;
  case OpKind::Spill:
    spill(op, batch, s);
    break;
  case OpKind::Store:
    store(batch, s);
    break;
  case OpKind::Fetch:
    fetch(batch, s, true);
    break;
  case OpKind::Fill:
    fill(batch, s);
    break;
  case OpKind::GatherPool:
    use(op, batch, s, false);
    break;
  case OpKind::Preserve:
    use(op, batch, s, false);
    preserve(batch, s);
    break;
  case OpKind::SegmentUpdate:
    use(op, batch, s, true);
    ++s.updates;
    break;
  case OpKind::Unpin:
    for (int slot : s.probes[batch].slots)
      if (--s.slots[slot].pins < 0)
        fail(op, batch, "unpinned twice");
    break;
  default:
    break;
  }
}

void ToyStore::finish() {
  for (int g = 0; g < int(groups.size()); ++g) {
    const State &s = groups[g];
    for (int row = 0; row < int(s.home.size()); ++row) {
      int64_t value = valueOf(s, row);
      if (wasCut && failure.empty() &&
          (s.pending[row] ? value : s.kept[row]) != expected(s, row, cutAt))
        failure = "at the end: the checkpoint before batch " +
                  std::to_string(cutAt) + " holds another value of row " +
                  std::to_string(row) + " of group " + graph.groups[g].name;
      if (value != expected(s, row, batches) && failure.empty())
        failure = "at the end: group " + graph.groups[g].name +
                  " lost the "
                  "update of row " +
                  std::to_string(row);
    }
    for (const Slot &slot : s.slots)
      if (slot.pins && failure.empty())
        failure =
            "at the end: group " + graph.groups[g].name + " has pinned slots";
  }
}

} // namespace terrace::schedule
