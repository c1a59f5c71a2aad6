//===- Calibrate.h - What this machine can do, measured ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures every figure that the cost model reads: small models, compiled and
// run for it (Trial.h), tell what ids, rows and bags cost; the runtime's own
// devices tell what a folder's disk gives. Takes under a minute (quick: under
// 15 seconds), about 0.7 GiB of memory and 0.6 GiB (0.2) in the folder, all of
// which is removed at the end.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CALIBRATE_CALIBRATE_H
#define TERRACE_CALIBRATE_CALIBRATE_H

#include "Machine/Machine.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <string>

namespace terrace::calibrate {

struct Options {
  std::string folder = "."; ///< on the disk that tables would lie on
  std::string pmem;         ///< on persistent memory; empty: not measured
  bool quick = false;       ///< fewer sizes, fewer steps
  std::string program;      ///< for the file: who measured
  /// Called at the start of each part: what, its number, of how many.
  std::function<void(llvm::StringRef what, int part, int parts)> progress;
  /// Asked at the same times; true ends the calibration with an error. May be
  /// empty.
  std::function<bool()> cancelled;
};

llvm::Expected<machine::Machine> calibrate(const Options &options);

/// The parts; each fills what it measured.
struct Part {
  const Options &options;
  std::string scratch; ///< a folder of this calibration's own
  std::function<llvm::Error(const llvm::Twine &what)> begin;
  /// Half of the time is gone: no size and no step more than has to be.
  std::function<bool()> late;
};
/// Gather, update, gradient, bags, hand-off, step: by size of the rows.
llvm::Error measureRows(const Part &part, machine::CpuModel &cpu);
/// Optimizers other than row-wise Adagrad.
llvm::Error measureOptimizers(const Part &part, machine::CpuModel &cpu);
/// Ingest, unique, dedup, head.
llvm::Error measureIds(const Part &part, machine::CpuModel &cpu);
/// Probe and copy of rows behind a cache.
llvm::Error measureCache(const Part &part, machine::CpuModel &cpu);
/// Bandwidth and latency of memory.
llvm::Expected<machine::TierModel> measureMemory(const Part &part,
                                                 int64_t cores);
/// Operations of the folder's disk by depth and size, and their CPU time.
llvm::Expected<machine::TierModel> measureDisk(const Part &part,
                                               machine::CpuModel &cpu);
/// Persistent memory, mapped: bandwidth and latency. `path`: a new file on it.
llvm::Expected<machine::TierModel>
measurePmem(const Part &part, const std::string &path, int64_t cores);
/// How many times the parts call `begin`.
int partCount(const Options &options);

} // namespace terrace::calibrate

#endif // TERRACE_CALIBRATE_CALIBRATE_H
