//===- IoQueue.h - Requests that wait for a device --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two intrusive queues, reads that somebody waits for and write-back, and the
// rule that paces write-back while reads are under way. Not locked.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_IO_IOQUEUE_H
#define TERRACE_RUNTIME_IO_IOQUEUE_H

#include "runtime/io/Device.h"

namespace trc {

class IoQueue {
public:
  explicit IoQueue(uint32_t depth) : depth(depth) {}

  void push(IoRequest &request);
  /// Moves all of the other's requests behind ours.
  void take(IoQueue &other);
  /// The next request that may start now, counted as in flight until
  /// finished(); null if there is none.
  IoRequest *pop();
  void finished(bool background);

  bool empty() const { return !heads[0] && !heads[1]; }
  uint32_t inFlight() const { return flying[0] + flying[1]; }

private:
  uint32_t depth;
  IoRequest *heads[2] = {nullptr, nullptr}; // [background]
  IoRequest *tails[2] = {nullptr, nullptr};
  uint32_t flying[2] = {0, 0};

  void append(IoRequest *first, IoRequest *last, bool background);
};

} // namespace trc

#endif // TERRACE_RUNTIME_IO_IOQUEUE_H
