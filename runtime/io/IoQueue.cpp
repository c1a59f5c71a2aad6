//===- IoQueue.cpp - Requests that wait for a device ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/IoQueue.h"

using namespace trc;

void IoQueue::append(IoRequest *first, IoRequest *last, bool background) {
  if (tails[background])
    tails[background]->next = first;
  else
    heads[background] = first;
  tails[background] = last;
}

void IoQueue::push(IoRequest &request) {
  request.next = nullptr;
  append(&request, &request, request.background);
}

void IoQueue::take(IoQueue &other) {
  for (int b = 0; b < 2; ++b) {
    if (!other.heads[b])
      continue;
    append(other.heads[b], other.tails[b], b);
    other.heads[b] = other.tails[b] = nullptr;
  }
}

IoRequest *IoQueue::pop() {
  if (inFlight() >= depth)
    return nullptr;
  // Random reads lose a quarter of their rate beside unpaced writes, so
  // write-back gets a quarter of the depth while anybody reads.
  bool background = !heads[0];
  if (background && flying[0] > 0 && flying[1] >= (depth + 3) / 4)
    return nullptr;
  IoRequest *request = heads[background];
  if (!request)
    return nullptr;
  heads[background] = request->next;
  if (!heads[background])
    tails[background] = nullptr;
  ++flying[background];
  return request;
}

void IoQueue::finished(bool background) { --flying[background]; }
