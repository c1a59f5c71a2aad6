//===- FaultDevice.cpp - A device that fails on demand --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/io/FaultDevice.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

using namespace trc;

/// Stands in for the caller's request at the inner device. A fault that moves
/// nothing is carried out as a one-block read into a corner that is restored.
class FaultDevice::Shim final : public IoRequest {
public:
  Shim(FaultDevice &owner, IoRequest &outer) : owner(owner), outer(outer) {
    background = outer.background;
    file = outer.file;
  }

  void begin(char *buffer) override {
    outer.begin(buffer);
    next(buffer);
  }

  bool complete(int32_t result, char *buffer) override {
    if (faulted) {
      switch (fault.type) {
      case Fault::Error:
      case Fault::Lost:
        std::memcpy(buffer + at, saved.data(), saved.size());
        result = fault.type == Fault::Error ? -fault.error
                                            : static_cast<int32_t>(outer.bytes);
        break;
      case Fault::Torn:
        if (result >= 0)
          result = static_cast<int32_t>(outer.bytes);
        break;
      case Fault::Flip:
        if (kind == Kind::Read && result > 0)
          flip(buffer);
        break;
      case Fault::Short:
      case Fault::Slow:
        break;
      }
    }
    // Counted out first: whoever waits for it may go on before we return.
    {
      std::lock_guard<std::mutex> lock(owner.mutex);
      --owner.flying;
    }
    if (outer.complete(result, buffer)) {
      next(buffer);
      return true;
    }
    FaultDevice &device = owner;
    delete this;
    std::lock_guard<std::mutex> lock(device.mutex);
    if (--device.shims == 0)
      device.idle.notify_all();
    return false;
  }

private:
  void next(char *buffer) {
    {
      std::lock_guard<std::mutex> lock(owner.mutex);
      ++owner.flying;
      owner.peak = std::max(owner.peak.load(), owner.flying);
    }
    kind = outer.kind;
    file = outer.file;
    offset = outer.offset;
    bytes = outer.bytes;
    at = outer.at;
    faulted = owner.find(outer.kind, fault);
    if (!faulted)
      return;
    if (fault.type == Fault::Slow) {
      std::this_thread::sleep_for(std::chrono::microseconds(fault.keep));
      return;
    }
    if (fault.type == Fault::Flip) {
      if (kind == Kind::Write)
        flip(buffer);
      return;
    }
    uint32_t block = owner.inner.fileInfo(file).blockBytes;
    if (fault.type == Fault::Error || fault.type == Fault::Lost) {
      kind = Kind::Read;
      bytes = block;
      saved.assign(buffer + at, buffer + at + bytes);
    } else {
      bytes = std::min(bytes, std::max(block, fault.keep / block * block));
    }
  }

  void flip(char *buffer) const {
    uint32_t bit = fault.keep % (bytes * 8);
    buffer[at + bit / 8] ^= static_cast<char>(1 << bit % 8);
  }

  FaultDevice &owner;
  IoRequest &outer;
  Fault fault;
  bool faulted = false;
  std::vector<char> saved;
};

FaultDevice::~FaultDevice() {
  release();
  std::unique_lock<std::mutex> lock(mutex);
  idle.wait(lock, [&] { return shims == 0; });
}

void FaultDevice::add(const Fault &fault) {
  std::lock_guard<std::mutex> lock(mutex);
  faults.push_back(fault);
}

void FaultDevice::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  faults.clear();
}

bool FaultDevice::find(IoRequest::Kind kind, Fault &fault) {
  uint64_t n = counts[kind == IoRequest::Kind::Write]++;
  std::lock_guard<std::mutex> lock(mutex);
  for (const Fault &f : faults)
    if (f.kind == kind && n >= f.first && n - f.first < f.count) {
      fault = f;
      return true;
    }
  return false;
}

void FaultDevice::submit(IoRequest &request) {
  Shim *shim = new Shim(*this, request);
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++shims;
    if (request.offset >= holdBegin && request.offset < holdEnd) {
      held.push_back(shim);
      return;
    }
  }
  inner.submit(*shim);
}

void FaultDevice::hold(uint64_t begin, uint64_t end) {
  std::lock_guard<std::mutex> lock(mutex);
  holdBegin = begin;
  holdEnd = end;
}

void FaultDevice::release() {
  std::vector<Shim *> now;
  {
    std::lock_guard<std::mutex> lock(mutex);
    holdBegin = holdEnd = 0;
    now.swap(held);
  }
  for (Shim *shim : now)
    inner.submit(*shim);
}

Status FaultDevice::flush(uint32_t file) {
  uint64_t n = flushCount++;
  if (int error = n >= firstBadFlush ? flushError.load() : 0)
    return Status::ioError("cannot flush", inner.fileInfo(file).path, error);
  return inner.flush(file);
}
