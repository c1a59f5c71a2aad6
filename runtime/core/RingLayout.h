//===- RingLayout.h - What lies in a ring slot ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From plain integers: the bytes of one slot of every ring role of
// docs/artifact.md and the offsets of the arrays inside. The compiler sizes
// rings with it and the executor addresses them with it, so there is one truth.
// Pure and header-only. Every array starts on a cache line.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_RINGLAYOUT_H
#define TERRACE_RUNTIME_CORE_RINGLAYOUT_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace trc {

enum class Pooling { sum, mean, weightedMean, sqrtn, max, none };
enum class RingRole {
  ingest,
  dedup,
  unique,
  probe,
  staging,
  writebuf,
  pooled,
  expanded,
  grads
};

inline const char *ringRoleName(RingRole role) {
  static const char *const names[] = {"ingest", "dedup",    "unique",
                                      "probe",  "staging",  "writebuf",
                                      "pooled", "expanded", "grads"};
  return names[static_cast<int>(role)];
}
inline bool parseRingRole(const std::string &name, RingRole &role) {
  for (int i = 0; i <= static_cast<int>(RingRole::grads); ++i)
    if (name == ringRoleName(static_cast<RingRole>(i))) {
      role = static_cast<RingRole>(i);
      return true;
    }
  return false;
}

struct FeatureShape {
  int64_t maxIds = 1; // of one bag, after overflow was applied
  int64_t dim = 0;
  bool weighted = false;
  bool keepLast = false; // overflow: keep_last
  Pooling pooling = Pooling::sum;
  int group = 0;
  int dedup = -1;
};

struct GroupShape {
  int64_t maxOccurrences = 0;
  int64_t maxUnique = 0;
  int64_t maxMiss = 0;
  int64_t slotBytes = 0;
  int64_t storeBytes = 0; // pitch in the file; 0 where home is memory
  int64_t dim = 0;
  bool cached = false; // home is not memory
};

struct ModelShape {
  int64_t batch = 0;
  int64_t maxIds = 0; // ids of a batch over all features
  bool head = false;
  bool serve = false; // forward only
  int dedupGroups = 0;
  std::vector<FeatureShape> features;
  std::vector<GroupShape> groups;

  /// Ids of one feature in a batch, at most.
  int64_t featureIds(size_t f) const {
    return std::min(batch * features[f].maxIds, maxIds);
  }
  bool anyWeighted() const {
    return std::any_of(features.begin(), features.end(),
                       [](const FeatureShape &f) { return f.weighted; });
  }
};

/// Hands out cache-line aligned arrays one after the other.
class LayoutCursor {
public:
  int64_t take(int64_t bytes) {
    int64_t at = end;
    end = (end + bytes + 63) / 64 * 64;
    return at;
  }
  int64_t bytes() const { return end; }

private:
  int64_t end = 0;
};

/// Header of an ingest slot.
struct IngestHeader {
  int64_t samples;
  int64_t hasLabels;
};

/// The batch: feature f's ids are ids[base[f] .. base[f+1]), its bags
/// offsets[f][0 .. samples], relative to base[f].
struct IngestLayout {
  int64_t header, base, offsets, skipped, ids, weights, labels, bytes;
  int64_t offsetsPitch; // bytes from one feature's offsets to the next
  std::vector<int64_t> skippedAt; // per feature: ids cut off before each kept
                                  // bag (keep_last), or -1

  explicit IngestLayout(const ModelShape &m) {
    LayoutCursor c;
    int64_t n = static_cast<int64_t>(m.features.size());
    header = c.take(sizeof(IngestHeader));
    base = c.take((n + 1) * 8);
    offsetsPitch = ((m.batch + 1) * 4 + 63) / 64 * 64;
    offsets = c.take(n * offsetsPitch);
    skipped = c.take(0);
    for (const FeatureShape &f : m.features)
      skippedAt.push_back(f.keepLast ? c.take(m.batch * 4) : -1);
    ids = c.take(m.maxIds * 8);
    weights = c.take(m.anyWeighted() ? m.maxIds * 4 : 0);
    labels = c.take(m.head ? m.batch * 4 : 0);
    bytes = c.bytes();
  }
};

/// Per dedup group the unique bags (by their first sample) and the inverse;
/// per feature in it the unique bags' offsets and, if weighted, weights.
struct DedupLayout {
  struct Group {
    int64_t count = -1, inverse = -1, first = -1, table = -1, hashes = -1;
    int64_t tableEntries = 0;
  };
  std::vector<Group> groups;
  std::vector<int64_t> offsetsAt, weightsAt; // per feature, or -1
  int64_t bytes;

  explicit DedupLayout(const ModelShape &m) {
    LayoutCursor c;
    for (int g = 0; g < m.dedupGroups; ++g) {
      Group d;
      d.count = c.take(8);
      d.inverse = c.take(m.batch * 4);
      d.first = c.take(m.batch * 4);
      d.hashes = c.take(m.batch * 8);
      d.tableEntries = 2 * m.batch;
      d.table = c.take(d.tableEntries * 4);
      groups.push_back(d);
    }
    for (size_t f = 0; f < m.features.size(); ++f) {
      bool in = m.features[f].dedup >= 0;
      offsetsAt.push_back(in ? c.take((m.batch + 1) * 4) : -1);
      weightsAt.push_back(
          in && m.features[f].weighted ? c.take(m.featureIds(f) * 4) : -1);
    }
    bytes = c.bytes();
  }
};

struct UniqueHeader {
  int64_t unique;        // rows
  int64_t contributions; // seg[unique]
};

/// The unique rows of a group in order of first appearance; x: occurrence (of
/// the deduplicated bags where there are any) -> unique; the segments of
/// contributions in summation order.
struct UniqueLayout {
  int64_t header, rows, x, xBase, seg, occ, coef, bytes;
  int64_t table, tableEntries; // places of rows; overlaps occ and coef, which
                               // are written after it was last read

  UniqueLayout(const ModelShape &m, int g) {
    const GroupShape &s = m.groups[g];
    LayoutCursor c;
    header = c.take(sizeof(UniqueHeader));
    xBase = c.take((static_cast<int64_t>(m.features.size()) + 1) * 8);
    x = c.take(s.maxOccurrences * 4);
    // Rows are numbered before there are segments: one more may be written to.
    rows = c.take(s.maxUnique * 4);
    seg = c.take((s.maxUnique + 2) * 4);
    occ = c.take(s.maxOccurrences * 4);
    coef = c.take(s.maxOccurrences * 4);
    table = occ;
    tableEntries = std::max<int64_t>(1, 2 * s.maxOccurrences);
    // Both arrays are rounded up, so that the table fits in any case.
    if (table + tableEntries * 4 > c.bytes())
      c.take(table + tableEntries * 4 - c.bytes());
    bytes = c.bytes();
  }
};

struct ProbeHeader {
  int64_t pinned; // rows pinned by this batch
  int64_t misses;
  int64_t victims;
};

/// The arrays of a trc::Probe (runtime/cache/GroupCache.h): slots[u] of unique
/// row u; the misses, ordered by source; the dirty victims.
struct ProbeLayout {
  int64_t header, slots, missRow, missSlot, missPlace, victimRow, victimSlot;
  int64_t bytes;

  ProbeLayout(const ModelShape &m, int g) {
    const GroupShape &s = m.groups[g];
    LayoutCursor c;
    header = c.take(sizeof(ProbeHeader));
    slots = c.take(s.maxUnique * 4);
    missRow = c.take(s.maxMiss * 4);
    missSlot = c.take(s.maxMiss * 4);
    missPlace = c.take(s.maxMiss * 8);
    victimRow = c.take(s.maxMiss * 4);
    victimSlot = c.take(s.maxMiss * 4);
    bytes = c.bytes();
  }
};

/// The payloads of the missing rows, verified: miss k at k * slotBytes. The
/// device blocks around them pass through the device's own buffers.
struct StagingLayout {
  int64_t data, pitch, bytes;
  StagingLayout(const ModelShape &m, int g) {
    const GroupShape &s = m.groups[g];
    LayoutCursor c;
    pitch = s.slotBytes;
    data = c.take(s.maxMiss * pitch);
    bytes = c.bytes();
  }
};

/// Records on their way out: victim v at v * storeBytes, its payload behind
/// the record's header (runtime/store/RecordFormat.h).
struct WriteBufLayout {
  int64_t data, pitch, bytes;
  WriteBufLayout(const ModelShape &m, int g) {
    const GroupShape &s = m.groups[g];
    LayoutCursor c;
    pitch = s.storeBytes;
    data = c.take(s.maxMiss * pitch);
    bytes = c.bytes();
  }
};

/// Outputs per feature of the group, [bags, dim] or [occurrences, dim] for
/// pooling none; the winner's position per column for max.
struct PooledLayout {
  std::vector<int64_t> outAt, winnerAt; // per feature, or -1
  int64_t bytes;
  PooledLayout(const ModelShape &m, int g) {
    LayoutCursor c;
    for (size_t f = 0; f < m.features.size(); ++f) {
      const FeatureShape &s = m.features[f];
      bool in = s.group == g;
      int64_t rows = s.pooling == Pooling::none ? m.featureIds(f) : m.batch;
      outAt.push_back(in ? c.take(rows * s.dim * 4) : -1);
      winnerAt.push_back(
          in && s.pooling == Pooling::max ? c.take(m.batch * s.dim * 4) : -1);
    }
    bytes = c.bytes();
  }
};

/// Outputs per sample of the deduplicated features, all groups.
struct ExpandedLayout {
  std::vector<int64_t> outAt; // per feature, or -1
  int64_t bytes;
  explicit ExpandedLayout(const ModelShape &m) {
    LayoutCursor c;
    for (size_t f = 0; f < m.features.size(); ++f) {
      const FeatureShape &s = m.features[f];
      int64_t rows = s.pooling == Pooling::none ? m.featureIds(f) : m.batch;
      outAt.push_back(s.dedup >= 0 ? c.take(rows * s.dim * 4) : -1);
    }
    bytes = c.bytes();
  }
};

/// Gradients of all groups. segment_update indexes the rows of a group from
/// groupAt[g]; feature f's begin at row rowBase[f]. Rows are per sample, for
/// none and max per occurrence; max also has its bags' gradients at bagAt.
/// Where a model only serves, the head's outputs are all there is.
struct GradsLayout {
  int64_t predictions, logits, dlogits; // head models: [batch] f32 each
  std::vector<int64_t> groupAt, groupRows;
  std::vector<int64_t> rowBase; // per feature
  std::vector<int64_t> bagAt;   // per feature: max only, or -1
  int64_t bytes;

  explicit GradsLayout(const ModelShape &m) {
    LayoutCursor c;
    predictions = c.take(m.head ? m.batch * 4 : 0);
    logits = c.take(m.head ? m.batch * 4 : 0);
    dlogits = c.take(m.head && !m.serve ? m.batch * 4 : 0);
    rowBase.assign(m.features.size(), 0);
    bagAt.assign(m.features.size(), -1);
    for (size_t g = 0; g < m.groups.size(); ++g) {
      int64_t rows = 0;
      for (size_t f = 0; f < m.features.size(); ++f) {
        const FeatureShape &s = m.features[f];
        if (s.group != static_cast<int>(g))
          continue;
        rowBase[f] = rows;
        bool perId = s.pooling == Pooling::none || s.pooling == Pooling::max;
        rows += perId ? m.featureIds(f) : m.batch;
      }
      groupRows.push_back(rows);
      groupAt.push_back(c.take(m.serve ? 0 : rows * m.groups[g].dim * 4));
    }
    for (size_t f = 0; f < m.features.size() && !m.serve; ++f)
      if (m.features[f].pooling == Pooling::max)
        bagAt[f] = c.take(m.batch * m.features[f].dim * 4);
    bytes = c.bytes();
  }
};

/// Whether look-ups of a group may read its rows straight by id: they lie in
/// memory one after the other, and no feature is pooled per unique bag, whose
/// ids stand apart. A plan that serves then needs no unique rows of the group.
inline bool readsById(const ModelShape &m, int group) {
  return !m.groups[group].cached &&
         std::none_of(m.features.begin(), m.features.end(),
                      [group](const FeatureShape &f) {
                        return f.group == group && f.dedup >= 0;
                      });
}

/// Bookkeeping of a group whose home is memory: three bits a row (has a value,
/// was updated, is being stored). Part of the bound's `index`.
inline int64_t memoryHomeIndexBytes(int64_t rows) {
  return (rows + 63) / 64 * 24;
}

/// Bytes of one slot of a ring; group is -1 for the roles that have none
/// (ingest, dedup, expanded, grads).
inline int64_t ringBytes(const ModelShape &m, RingRole role, int group) {
  switch (role) {
  case RingRole::ingest:
    return IngestLayout(m).bytes;
  case RingRole::dedup:
    return DedupLayout(m).bytes;
  case RingRole::unique:
    return UniqueLayout(m, group).bytes;
  case RingRole::probe:
    return ProbeLayout(m, group).bytes;
  case RingRole::staging:
    return StagingLayout(m, group).bytes;
  case RingRole::writebuf:
    return WriteBufLayout(m, group).bytes;
  case RingRole::pooled:
    return PooledLayout(m, group).bytes;
  case RingRole::expanded:
    return ExpandedLayout(m).bytes;
  case RingRole::grads:
    return GradsLayout(m).bytes;
  }
  return 0;
}

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_RINGLAYOUT_H
