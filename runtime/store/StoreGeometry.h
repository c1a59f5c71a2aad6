//===- StoreGeometry.h - How a store divides its space ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pure and header-only: the compiler sizes tiers with it, the runtime lays
// files out with it.
//
// A store's region of an extent is one 4 KiB superblock and then segments. A
// segment holds records at multiples of the pitch from its start.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_STOREGEOMETRY_H
#define TERRACE_RUNTIME_STORE_STOREGEOMETRY_H

#include <cstdint>

namespace trc {

constexpr uint64_t storeSector = 4096; // superblock, and unit of appends
/// Transfers in flight where a plan has no I/O lane that says otherwise.
constexpr uint32_t storeDepth = 128;

struct StoreGeometry {
  uint64_t segmentBytes = 0;
  uint32_t segments = 0; // of all extents together

  /// Bytes of one extent's region, superblock included.
  constexpr uint64_t extentBytes(uint32_t extents) const {
    return storeSector + (segments + extents - 1) / extents * segmentBytes;
  }
  constexpr uint64_t totalBytes(uint32_t extents) const {
    return extentBytes(extents) * extents;
  }
  constexpr uint64_t recordsPerSegment(uint64_t storeBytes) const {
    return segmentBytes / storeBytes;
  }
};

/// Segments for `rows` records of `storeBytes`, with room for `fill` times the
/// logical bytes, and what appending and cleaning need on top. 16 MiB each,
/// fewer bytes for small stores; the number is a multiple of `extents`.
constexpr StoreGeometry storeGeometry(uint64_t rows, uint64_t storeBytes,
                                      double fill, uint32_t extents = 1) {
  constexpr uint64_t largest = 16 << 20, smallest = 16 << 10;
  constexpr uint64_t wanted = 32;  // segments of a small store
  constexpr uint64_t reserved = 3; // open, being cleaned into, spare
  uint64_t logical = rows * storeBytes;
  uint64_t room = static_cast<uint64_t>(static_cast<double>(logical) * fill);
  uint64_t bytes = smallest;
  while ((bytes < largest && bytes * wanted < room) || bytes < 8 * storeBytes)
    bytes *= 2;
  uint64_t perSegment = bytes / storeBytes * storeBytes;
  uint64_t count = (room + perSegment - 1) / perSegment + reserved;
  count = (count + extents - 1) / extents * extents;
  StoreGeometry g;
  g.segmentBytes = bytes;
  g.segments = static_cast<uint32_t>(count);
  return g;
}

/// Bytes of one mark per record place. Whole words per segment.
constexpr uint64_t storeMarkBytes(const StoreGeometry &geometry,
                                  uint64_t storeBytes) {
  uint64_t each = geometry.recordsPerSegment(storeBytes);
  return geometry.segments * ((each + 63) / 64 * 8);
}

/// A sixteenth, from 1024 (or all) to 16384.
constexpr uint64_t storeShare(uint64_t of) {
  uint64_t part = of / 16 > 16384 ? 16384 : of / 16 < 1024 ? 1024 : of / 16;
  return part < of ? part : of;
}

/// Rows whose place at a cut is remembered while its index is being written; a
/// writer that would need more writes a part of the index itself.
constexpr uint64_t storeCutRows(uint64_t rows) { return storeShare(rows); }

/// Moves of records that a file of moves gathers.
constexpr uint64_t storeMoves(uint64_t places) { return storeShare(places); }

/// What cleaning reads and writes at once, and the buffer of index files.
constexpr uint64_t storePiece = 256 << 10;

/// Pieces of append() in flight, and rows of one.
constexpr uint64_t storeAppends = 4;
constexpr uint64_t storeAppendRows(uint64_t storeBytes) {
  uint64_t rows = (64 << 10) / storeBytes;
  return rows < 16 ? 16 : rows > 256 ? 256 : rows;
}

/// Memory that a store holds, without the device's buffers: a location and
/// three marks per row, a mark per record place for the current rows and each
/// checkpoint, segments, requests of writes and of about one more batch of
/// reads than write slots, what a cut remembers, and cleaning with its moves.
/// Not in it: 8 bytes per pending row of a cut, and what adopt(), scan() and
/// load() take while they run (under 16 MiB). Where the device is mapped: where
/// each segment lies.
constexpr uint64_t storeMemory(uint64_t rows, const StoreGeometry &geometry,
                               uint64_t storeBytes, uint64_t retained,
                               uint64_t writeSlots, uint64_t maxWrites,
                               uint64_t depth, bool mapped = false) {
  constexpr uint64_t item = 12, request = 160, segment = 24, entry = 64,
                     move = 20;
  uint64_t piece =
      geometry.segmentBytes < storePiece ? geometry.segmentBytes : storePiece;
  uint64_t places = geometry.segments * geometry.recordsPerSegment(storeBytes);
  auto least = [](uint64_t a, uint64_t b) { return a < b ? a : b; };
  uint64_t marks = (rows + 63) / 64 * 8;
  return rows * 4 + marks * 3 +
         storeMarkBytes(geometry, storeBytes) * (2 + retained) +
         geometry.segments * (segment + (mapped ? 8 : 0)) + depth * request +
         (writeSlots + 1) * (maxWrites * item + depth * request) +
         storeAppends * least(rows, storeAppendRows(storeBytes)) * storeBytes +
         storeCutRows(rows) * entry + least(16 * rows, storePiece) +
         2 * (piece + storeSector + 2 * storeBytes) +
         (storeMoves(places) + piece / storeBytes) * 2 * move;
}

/// Space as a multiple of the logical bytes: the rows themselves, half as much
/// for cleaning to be cheap (write amplification at most 1.5), and for each
/// retained checkpoint the part of the rows that is written between two. At
/// least what all of these hold together with the closed state of a run that
/// goes on from there.
constexpr double storeFill(uint32_t keep, double churn) {
  uint32_t kept = keep ? keep : 1;
  double cheap = 1.5 + kept * churn, least = 1 + (kept + 1) * churn;
  return cheap > least ? cheap : least;
}

/// The same for a group whose home is memory, where `space` is what its plan
/// says of storage tiers. Its store is a file of the state's folder that
/// checkpoints alone write to. A small table is soon written as a whole between
/// two of them, whatever the plan expects, and its file is small beside others:
/// so there is room for a copy of all rows in the checkpoint that is being
/// made, in each retained one and in the closed state that a run began with.
constexpr double memoryHomeSpace(double space, uint64_t retained, uint64_t rows,
                                 uint64_t storeBytes) {
  constexpr double small = 256 << 20; // of the file
  double whole = 1.5 + static_cast<double>(retained + 1);
  bool fits = static_cast<double>(rows * storeBytes) * whole <= small;
  return fits && whole > space ? whole : space;
}

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_STOREGEOMETRY_H
