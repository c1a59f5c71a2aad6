//===- ManifestCheck.cpp - Whether a manifest can be right ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checksum says that a manifest is as it was written; this, that whoever
// wrote it was one of us. What passes may be used to size memory, to divide
// and to name files without a second look.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Manifest.h"

#include "runtime/store/RecordFormat.h"

#include <algorithm>
#include <set>

using namespace trc;

/// A name that is safe as a part of a file's.
static bool plainName(const std::string &name) {
  return !name.empty() && name[0] != '.' && name.size() <= 240 &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return c == '/' || static_cast<unsigned char>(c) < 0x20;
         });
}

static bool between(int64_t x, int64_t low, int64_t high) {
  return low <= x && x <= high;
}

static std::string checkTable(const ManifestTable &t) {
  constexpr int64_t mostRows = int64_t(1) << 48, mostDim = 65536;
  std::string where = "table '" + t.name + "': ";
  if (!plainName(t.name))
    return "a table's name is no plain name";
  if (!between(t.rows, 1, mostRows))
    return where + "rows is " + std::to_string(t.rows);
  if (!between(t.dim, 1, mostDim))
    return where + "dim is " + std::to_string(t.dim);
  if (t.stateWidths.size() > 8)
    return where + "it has " + std::to_string(t.stateWidths.size()) + " states";
  for (int64_t w : t.stateWidths)
    if (!between(w, 1, mostDim))
      return where + "a state's width is " + std::to_string(w);
  return {};
}

static std::string checkGroup(const Manifest &m, size_t number,
                              std::vector<bool> &placed) {
  const ManifestGroup &g = m.groups[number];
  std::string where = "group " + std::to_string(number) + ": ";
  constexpr int64_t mostRows = 0xffff0000;
  constexpr uint64_t mostSegment = 1 << 30;
  if (!between(g.rows, 1, mostRows))
    return where + "rows is " + std::to_string(g.rows);
  if (g.tables.empty())
    return where + "it has no table";
  int64_t end = 0;
  for (size_t k = 0; k < g.tables.size(); ++k) {
    const ManifestTable &t = m.tables[g.tables[k]];
    if (placed[g.tables[k]])
      return where + "table '" + t.name + "' lies in two places";
    placed[g.tables[k]] = true;
    if (g.rowBase[k] < end || t.rows > g.rows || g.rowBase[k] > g.rows - t.rows)
      return where + "the rows of table '" + t.name + "' begin at " +
             std::to_string(g.rowBase[k]) + " of " + std::to_string(g.rows);
    end = g.rowBase[k] + t.rows;
    if (g.payloadBytes < static_cast<int64_t>(t.recordBytes()))
      return where + "its records of " + std::to_string(g.payloadBytes) +
             " bytes do not hold those of table '" + t.name + "'";
  }
  if (!between(g.payloadBytes, 1, 1 << 22) ||
      g.storeBytes != static_cast<int64_t>(
                          recordBytes(static_cast<uint64_t>(g.payloadBytes))))
    return where + "its records take " + std::to_string(g.storeBytes) +
           " bytes for " + std::to_string(g.payloadBytes);
  const StoreGeometry &s = g.geometry;
  if (s.segmentBytes % storeSector || s.segmentBytes > mostSegment ||
      s.segmentBytes < static_cast<uint64_t>(g.storeBytes))
    return where + "its segments have " + std::to_string(s.segmentBytes) +
           " bytes";
  if (s.segments == 0 || g.extents.empty() ||
      s.segments % g.extents.size() != 0 ||
      s.segments > (uint64_t(1) << 50) / s.segmentBytes)
    return where + std::to_string(s.segments) + " segments on " +
           std::to_string(g.extents.size()) + " files";
  for (const ManifestGroup::Extent &e : g.extents)
    if (e.path.empty() || e.path.find('\0') != std::string::npos ||
        e.base % storeSector || e.base > (uint64_t(1) << 60))
      return where + "it begins at byte " + std::to_string(e.base) + " of '" +
             e.path + "'";
  for (const std::string &file : g.index)
    if (!plainName(file))
      return where + "it names no plain file as its index";
  return {};
}

std::string Manifest::fault() const {
  std::set<std::string> names;
  for (const ManifestTable &t : tables) {
    if (std::string why = checkTable(t); !why.empty())
      return why;
    if (!names.insert(t.name).second)
      return "there are two tables '" + t.name + "'";
  }
  if (!blobFile.empty() && !plainName(blobFile))
    return "it names no plain file as its blob";
  if (!residentFile.empty() && !plainName(residentFile))
    return "it names no plain file of resident rows";
  if (step < 0 || samples < 0)
    return "step is " + std::to_string(step) + ", samples " +
           std::to_string(samples);
  std::vector<bool> placed(tables.size());
  for (size_t g = 0; g < groups.size(); ++g)
    if (std::string why = checkGroup(*this, g, placed); !why.empty())
      return why;
  if (!groups.empty())
    for (size_t t = 0; t < tables.size(); ++t)
      if (!placed[t])
        return "table '" + tables[t].name + "' lies in no group";
  return {};
}
