//===- MappedRows.h - Records that are read where they lie ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the device maps its files (persistent memory), a record is read through
// a transfer once: bad media is a status then, and its check is done. From then
// on it is read in place, by loads alone, until the row is written again or
// moved. The top bit of the row's location remembers that: a bit elsewhere
// would be one more line of memory for each row of a gather. Stores of so many
// places that they need that bit are not read in place.
//
// What damages a record between that and a later read is not noticed by the
// read: whoever reads through transfers (scans, scrubbing, cleaning, the next
// open) notices it, and those set no bits.
//
// Threads: at any time. Whoever reads keeps segments from being written
// meanwhile (epochs), so a location that is still there after a transfer means
// the record that was read. One whose bit is set is on the device: nobody needs
// to look for it among those that wait in memory.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_MAPPEDROWS_H
#define TERRACE_RUNTIME_STORE_MAPPEDROWS_H

#include "runtime/io/Device.h"
#include "runtime/store/StoreLayout.h"

#include <atomic>
#include <functional>
#include <vector>

namespace trc {

class MappedRows {
public:
  MappedRows() = default;
  /// Segments of which the device maps nothing, or which have a bad block, are
  /// left out. `files` as in the layout.
  MappedRows(const Device &device, const StoreLayout &layout,
             const std::vector<uint32_t> &files);

  /// Whether any segment can be read in place; without, no memory is held.
  bool any() const { return !bases.empty(); }
  /// Of a location: place + 1.
  uint32_t placeBits() const { return any() ? ~verifiedBit : ~uint32_t(0); }

  /// Where payloads come from (the place + 1 of each row) and go to.
  struct Gather {
    const std::atomic<uint32_t> *location;
    uint32_t rows, payloadBytes;
    const uint32_t *wanted; // rows; the payload of wanted[i] goes to
    char *out;              // out + i * pitch
    uint64_t pitch;
  };
  using Left = std::function<void(const uint32_t *left, uint32_t count)>;
  /// Copies the payloads of wanted[begin, end) that may be read in place;
  /// `left` is told the positions of the others, some at a time.
  void copy(const Gather &gather, uint32_t begin, uint32_t end,
            const Left &left) const;

  /// A transfer has read the record that the location means, if it is still
  /// at that place, and it passed its check.
  static void verified(std::atomic<uint32_t> &location, uint32_t place) {
    uint32_t expected = place + 1;
    location.compare_exchange_strong(expected, expected | verifiedBit,
                                     std::memory_order_acq_rel,
                                     std::memory_order_relaxed);
  }

private:
  static constexpr uint32_t verifiedBit = uint32_t(1) << 31;

  Divider divide;
  uint32_t pitch = 0;
  std::vector<const char *> bases; // by segment; null: not in place
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_MAPPEDROWS_H
