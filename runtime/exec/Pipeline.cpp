//===- Pipeline.cpp - The ops of a plan over its memory -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Set-up, dispatch of instances to op bodies, and the addresses of arrays in
// ring slots.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Pipeline.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

using namespace trc;

Mapping::~Mapping() {
  if (base)
    ::munmap(base, bytes);
}

Status Mapping::map(uint64_t size, const std::string &what) {
  bytes = std::max<uint64_t>(size, 4096);
  void *p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    Status s = Status::ioError("cannot map " + std::to_string(bytes) +
                                   " bytes of memory for",
                               what, errno);
    bytes = 0;
    return s;
  }
  base = static_cast<char *>(p);
  return Status();
}

uint64_t RowBits::next(uint64_t row, uint64_t rows) const {
  if (row >= rows)
    return rows;
  uint64_t w = row / 64;
  uint64_t bits = words[w] & (~0ull << (row % 64));
  while (!bits) {
    if (++w >= words.size())
      return rows;
    bits = words[w];
  }
  return w * 64 + static_cast<uint64_t>(__builtin_ctzll(bits));
}

uint64_t RowBits::count() const {
  uint64_t n = 0;
  for (uint64_t w : words)
    n += static_cast<uint64_t>(__builtin_popcountll(w));
  return n;
}

size_t GroupRuntime::tableOf(const Plan &model, uint64_t groupRow) const {
  // Tables lie in rising order of row_base (checked by parsePlan).
  size_t low = 0, high = plan->tables.size();
  while (high - low > 1) {
    size_t mid = (low + high) / 2;
    if (static_cast<uint64_t>(model.tables[plan->tables[mid]].rowBase) <=
        groupRow)
      low = mid;
    else
      high = mid;
  }
  return low;
}

void GroupRuntime::initRow(const Plan &model, size_t tablePosition,
                           uint64_t groupRow, char *out) const {
  const TablePlan &table = model.tables[plan->tables[tablePosition]];
  const RowInit &init = inits[tablePosition];
  int64_t row = static_cast<int64_t>(groupRow) - table.rowBase;
  if (plan->element == Element::f32) {
    init.fill(row, plan->dim, reinterpret_cast<float *>(out));
  } else if (isQuantized(plan->element)) { // the scale is of all columns
    float some[mostQuantizedColumns];
    init.fill(row, plan->dim, some);
    encodeWeights(plan->element, some, plan->dim, out);
  } else {
    float some[256];
    for (int64_t c = 0; c < plan->dim; c += 256) {
      int64_t end = std::min<int64_t>(plan->dim, c + 256);
      init.fill(row, c, end, some);
      encodeWeights(plan->element, some, end - c,
                    out + weightsBytes(plan->element, c));
    }
  }
  std::memset(out + plan->weightsBytes, 0,
              static_cast<size_t>(plan->slotBytes - plan->weightsBytes));
}

Pipeline::Pipeline(const Plan &plan, unsigned threads, bool training)
    : plan(plan), training(training), pool(threads), executor(plan, *this),
      batches(64), inLayout(plan.shape), dedupLayout(plan.shape),
      expandedLayout(plan.shape), gradsLayout(plan.shape) {
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    int index = static_cast<int>(g);
    uniqueLayouts.emplace_back(plan.shape, index);
    probeLayouts.emplace_back(plan.shape, index);
    pooledLayouts.emplace_back(plan.shape, index);
  }
  for (Batch &b : batches) {
    b.probes.resize(plan.groups.size());
    b.reads.resize(plan.groups.size());
  }
}

Pipeline::~Pipeline() {
  executor.stop();
  // Reads that were abandoned still write into staging: let them end first.
  for (auto &g : groups)
    g->store.reset();
}

static const void *findKernel(const trc_artifact &artifact, int cpu,
                              const std::string &name) {
  for (uint64_t k = 0; k < artifact.kernel_count; ++k)
    if (name == artifact.kernels[k].name)
      return artifact.kernels[k].image[cpu];
  return nullptr;
}

Status Pipeline::prepare(const trc_artifact &artifact, int cpu) {
  TRC_RETURN_IF_ERROR(
      arena.map(static_cast<uint64_t>(plan.arena), "the rings"));
  inRing = plan.findRing(RingRole::ingest, -1);
  dedupRing = plan.findRing(RingRole::dedup, -1);
  expandedRing = plan.findRing(RingRole::expanded, -1);
  gradsRing = plan.findRing(RingRole::grads, -1);
  auto kernel = [&](const std::string &name, const void *&out) {
    out = findKernel(artifact, cpu, name);
    return out ? Status()
               : Status(TRC_MISMATCH,
                        "the artifact has no kernel '" + name + "' for " +
                            (cpu == TRC_CPU_V4 ? "x86-64-v4" : "x86-64-v3") +
                            "; compile the model again or name another cpu");
  };
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    auto g = std::make_unique<GroupRuntime>();
    int index = static_cast<int>(i);
    g->plan = &plan.groups[i];
    g->index = index;
    g->uniqueRing = plan.findRing(RingRole::unique, index);
    g->probeRing = plan.findRing(RingRole::probe, index);
    g->stagingRing = plan.findRing(RingRole::staging, index);
    g->writeRing = plan.findRing(RingRole::writebuf, index);
    g->pooledRing = plan.findRing(RingRole::pooled, index);
    g->fetchOp = plan.findOp(OpKind::fetch, index);
    g->storeOp = plan.findOp(OpKind::store, index);
    for (int t : g->plan->tables)
      g->inits.push_back(plan.tables[t].init.make());
    const void *address = nullptr;
    for (int f : g->plan->features) {
      g->featureTable.push_back(g->tableOf(
          plan,
          static_cast<uint64_t>(plan.tables[plan.features[f].table].rowBase)));
      TRC_RETURN_IF_ERROR(kernel(plan.features[f].gather, address));
      void *code = const_cast<void *>(address);
      if (g->plan->direct)
        g->directGathers.push_back(reinterpret_cast<trc_gather_rows_fn>(code));
      else
        g->gathers.push_back(reinterpret_cast<trc_gather_pool_fn>(code));
    }
    if (!g->plan->features.empty() && !plan.serve) {
      TRC_RETURN_IF_ERROR(kernel(g->plan->update, address));
      g->update =
          reinterpret_cast<trc_segment_update_fn>(const_cast<void *>(address));
    }
    uint64_t count = static_cast<uint64_t>(g->plan->cached() ? g->plan->slots
                                                             : g->plan->rows);
    TRC_RETURN_IF_ERROR(
        g->memory.map(count * static_cast<uint64_t>(g->plan->slotBytes),
                      "group '" + g->plan->name + "'"));
    if (g->plan->cached()) {
      GroupCacheOptions options;
      options.group = g->plan->name;
      options.rows = static_cast<uint32_t>(g->plan->rows);
      options.slots = static_cast<uint32_t>(g->plan->slots);
      options.retained = static_cast<uint32_t>(g->plan->retained);
      options.maxUnique = static_cast<uint32_t>(g->plan->maxUnique);
      options.maxMiss = static_cast<uint32_t>(g->plan->maxMiss);
      options.writeSlots =
          g->writeRing < 0
              ? 1
              : static_cast<uint32_t>(plan.rings[g->writeRing].depth);
      if (!g->plan->policy.empty())
        options.policy = g->plan->policy;
      Result<std::unique_ptr<GroupCache>> cache = GroupCache::create(options);
      if (!cache.ok())
        return cache.takeStatus();
      g->cache = std::move(*cache);
      g->storedSlots = std::make_unique<bool[]>(options.writeSlots);
      std::fill_n(g->storedSlots.get(), options.writeSlots, true);
    } else {
      g->present.resize(count);
      g->dirty.resize(count);
      g->cutRows.resize(count);
    }
    groups.push_back(std::move(g));
  }
  return Status();
}

void Pipeline::poison(Status status) {
  {
    std::lock_guard<std::mutex> lock(poisonMutex);
    if (!poisonedFlag.load()) {
      poisonReason = std::move(status);
      poisonedFlag.store(true);
    }
  }
  executor.interrupt();
  // The lanes store nothing any more, so a checkpoint must not wait for them.
  for (auto &g : groups)
    if (g->store)
      g->store->interruptCut();
}

Status Pipeline::poisonStatus() const {
  std::lock_guard<std::mutex> lock(poisonMutex);
  return poisonReason.clone();
}

int64_t *Pipeline::idsOf(int64_t t, size_t f) const {
  return at<int64_t>(inRing, t, inLayout.ids) +
         at<int64_t>(inRing, t, inLayout.base)[f];
}

float *Pipeline::weightsOf(int64_t t, size_t f) const {
  return at<float>(inRing, t, inLayout.weights) +
         at<int64_t>(inRing, t, inLayout.base)[f];
}

const int32_t *Pipeline::inverseOf(int64_t t, size_t f) const {
  int d = plan.features[f].dedup;
  return d < 0 ? nullptr
               : at<int32_t>(dedupRing, t, dedupLayout.groups[d].inverse);
}

Pipeline::Bags Pipeline::forwardBags(int64_t t, size_t f) const {
  const FeaturePlan &feature = plan.features[f];
  Bags bags;
  if (feature.dedup < 0) {
    bags.count = batches[t % batches.size()].samples;
    bags.offsets = offsetsOf(t, f);
    bags.weights = feature.weighted() ? weightsOf(t, f) : nullptr;
  } else {
    const DedupLayout::Group &d = dedupLayout.groups[feature.dedup];
    bags.count = *at<int64_t>(dedupRing, t, d.count);
    bags.offsets = at<int32_t>(dedupRing, t, dedupLayout.offsetsAt[f]);
    bags.weights = feature.weighted()
                       ? at<float>(dedupRing, t, dedupLayout.weightsAt[f])
                       : nullptr;
  }
  return bags;
}

const uint32_t *Pipeline::forwardX(int64_t t, size_t f) const {
  const GroupRuntime &g = *groups[plan.shape.features[f].group];
  const UniqueLayout &layout = uniqueLayouts[g.index];
  return at<uint32_t>(g.uniqueRing, t, layout.x) +
         at<int64_t>(g.uniqueRing, t, layout.xBase)[f];
}

const uint32_t *Pipeline::slotsOf(int64_t t, const GroupRuntime &g) const {
  return g.cache ? at<uint32_t>(g.probeRing, t, probeLayouts[g.index].slots)
                 : at<uint32_t>(g.uniqueRing, t, uniqueLayouts[g.index].rows);
}

/// The feature's output per sample, or per id for pooling none.
const float *Pipeline::outputOf(int64_t t, size_t f) const {
  if (plan.features[f].dedup >= 0)
    return at<float>(expandedRing, t, expandedLayout.outAt[f]);
  const GroupRuntime &g = *groups[plan.shape.features[f].group];
  return at<float>(g.pooledRing, t, pooledLayouts[g.index].outAt[f]);
}

int64_t Pipeline::outputRows(int64_t t, size_t f) const {
  int64_t samples = batches[t % batches.size()].samples;
  return plan.features[f].pooling == Pooling::none ? offsetsOf(t, f)[samples]
                                                   : samples;
}

uint64_t Pipeline::memoryBytes() const {
  uint64_t n = arena.size();
  for (const auto &g : groups)
    n += g->memory.size();
  return n;
}

bool Pipeline::run(int opIndex, int64_t t) {
  const OpPlan &op = plan.ops[opIndex];
  Batch &b = batch(t);
  if (poisoned() || b.failed)
    return true;
  auto group = [&]() -> GroupRuntime & { return *groups[op.group]; };
  try {
    switch (op.kind) {
    case OpKind::ingest: // copied by submit
      break;
    case OpKind::check:
      check(b);
      break;
    case OpKind::translate:
      translate(b);
      break;
    case OpKind::dedup:
      dedup(b);
      break;
    case OpKind::unique:
      // Look-ups by id leave unique rows to the updates.
      if (b.forwardOnly && group().plan->direct)
        touch(b, group());
      else
        unique(b, group());
      break;
    case OpKind::touch:
      touch(b, group());
      break;
    case OpKind::probe:
      probe(b, group());
      break;
    case OpKind::spill:
      spill(b, group());
      break;
    case OpKind::store:
      storeVictims(b, group());
      break;
    case OpKind::fetch:
      return fetch(opIndex, b, group());
    case OpKind::fill:
      fill(b, group());
      break;
    case OpKind::gatherPool:
      gatherPool(b, group());
      break;
    case OpKind::expand:
      expand(b);
      break;
    case OpKind::call:
      call(b);
      break;
    case OpKind::preserve:
      preserve(b, group());
      break;
    case OpKind::segmentUpdate:
      segmentUpdate(b, group());
      break;
    case OpKind::unpin:
      unpin(b, group());
      break;
    case OpKind::handoff:
    case OpKind::resume:
      break; // in the caller's threads
    }
  } catch (const std::exception &e) {
    poison(Status(TRC_NO_MEMORY, std::string(opName(op.kind)) + " of batch " +
                                     std::to_string(t) + ": " + e.what()));
  }
  return true;
}
