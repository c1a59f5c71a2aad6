//===- MappedRows.h - Records that are read where they lie ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the device maps its files (persistent memory), a record is read through
// a transfer once: bad media is a status then, and its check is done. From then
// on it is read in place, by loads alone, until its place is written again. One
// bit per place remembers that.
//
// What damages a record between that and a later read is not noticed by the
// read: whoever reads through transfers (scans, scrubbing, cleaning, the next
// open) notices it, and those set no bits.
//
// Threads: forget() while no read of the segment is under way, the rest at any
// time. Whoever copies keeps segments from being written meanwhile (epochs),
// and a location that is seen brings what was forgotten before (release,
// acquire). A record whose bit is set is on the device: nobody needs to look
// for it among those that wait in memory.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_MAPPEDROWS_H
#define TERRACE_RUNTIME_STORE_MAPPEDROWS_H

#include "runtime/io/Device.h"
#include "runtime/store/StoreLayout.h"

#include <atomic>
#include <functional>
#include <memory>
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
  bool any() const { return words != nullptr; }

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

  /// A transfer has read the record, and it passed its check.
  void verified(uint32_t place) {
    At at = locate(place);
    words[at.word].fetch_or(at.mask, std::memory_order_release);
  }
  /// The places of the segment are about to be written.
  void forget(uint32_t segment);

private:
  struct At {
    uint32_t segment, index;
    uint64_t word, mask;
  };
  /// The record, if it may be read.
  const char *find(uint32_t place) const {
    At at = locate(place);
    const char *base = bases[at.segment];
    if (!base || !(words[at.word].load(std::memory_order_acquire) & at.mask))
      return nullptr;
    return base + uint64_t(at.index) * pitch;
  }
  At locate(uint32_t place) const {
    uint32_t segment = divide.quotient(place);
    uint32_t index = place - segment * divide.divisor();
    return {segment, index, uint64_t(segment) * wordsPerSegment + index / 64,
            uint64_t(1) << index % 64};
  }

  Divider divide;
  uint32_t pitch = 0, wordsPerSegment = 0;
  std::vector<const char *> bases; // by segment; null: not in place
  std::unique_ptr<std::atomic<uint64_t>[]> words;
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_MAPPEDROWS_H
