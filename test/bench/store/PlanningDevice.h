//===- PlanningDevice.h - Which requests a batch makes ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device that passes everything on, but for while it is planning: then it
// notes the reads that are submitted and answers each with zeros, without any
// I/O. So the bare loop can make the very requests that the store makes, and
// no cache below has been warmed by finding them out.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_PLANNINGDEVICE_H
#define TERRACE_TEST_BENCH_STORE_PLANNINGDEVICE_H

#include "runtime/io/Device.h"

#include <memory>
#include <vector>

namespace trc::bench {

struct PlannedRead {
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

class PlanningDevice final : public Device {
public:
  explicit PlanningDevice(std::unique_ptr<Device> inner)
      : inner(std::move(inner)) {}

  /// Nothing may be in flight at either call.
  void beginPlanning() {
    planned.clear();
    zeros.assign(inner->bufferBytes(), 0);
    planning = true;
  }
  std::vector<PlannedRead> endPlanning() {
    planning = false;
    return std::move(planned);
  }

  Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                            bool create) override {
    return inner->openFile(path, bytes, create);
  }
  FileInfo fileInfo(uint32_t file) const override {
    return inner->fileInfo(file);
  }
  void submit(IoRequest &request) override {
    if (!planning) {
      inner->submit(request);
      return;
    }
    // The store copes with an answer inside submit(): it holds no lock here.
    do
      planned.push_back({request.offset, request.bytes});
    while (request.complete(static_cast<int32_t>(request.bytes), zeros.data()));
  }
  Status flush(uint32_t file) override { return inner->flush(file); }
  const char *mapped(uint32_t file, uint64_t offset,
                     uint64_t bytes) const override {
    return inner->mapped(file, offset, bytes);
  }
  uint32_t depth() const override { return inner->depth(); }
  uint32_t bufferBytes() const override { return inner->bufferBytes(); }
  std::string describe() const override { return inner->describe(); }

private:
  std::unique_ptr<Device> inner;
  bool planning = false;
  std::vector<PlannedRead> planned;
  std::vector<char> zeros;
};

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_PLANNINGDEVICE_H
