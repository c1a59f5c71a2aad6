//===- Calibrate.cpp - What this machine can do, measured -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Calibrate/Calibrate.h"

#include "runtime/exec/ThreadPool.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <tuple>

using namespace llvm;

namespace terrace::calibrate {

static std::string cpuName() {
  auto info = MemoryBuffer::getFileAsStream("/proc/cpuinfo");
  if (info)
    for (StringRef rest = (*info)->getBuffer(); !rest.empty();) {
      auto [line, next] = rest.split('\n');
      rest = next;
      if (line.consume_front("model name"))
        return line.ltrim(" \t:").trim().str();
    }
  return "an unnamed CPU";
}

static std::string utcNow() {
  std::time_t seconds = std::time(nullptr);
  std::tm utc = {};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

int partCount(const Options &options) {
  return (options.quick ? 3 : 8) + 6 + !options.pmem.empty();
}

Expected<machine::Machine> calibrate(const Options &options) {
  SmallString<128> scratch(options.folder);
  if (std::error_code error = sys::fs::make_absolute(scratch))
    return createStringError(error, "%s: %s", options.folder.c_str(),
                             error.message().c_str());
  sys::path::append(scratch, "terrace-calibrate-%%%%%%%%");
  // Names that the runtime has to find: of this call alone.
  SmallString<128> unique;
  sys::fs::createUniquePath(scratch, unique, /*MakeAbsolute=*/false);
  if (std::error_code error = sys::fs::create_directory(
          unique, /*IgnoreExisting=*/false, sys::fs::perms::owner_all))
    return createStringError(error, "cannot make a folder in '%s': %s",
                             options.folder.c_str(), error.message().c_str());
  scope_exit cleanUp(
      [&] { std::ignore = sys::fs::remove_directories(unique); });

  Part part{options, unique.str().str(), {}, {}};
  int number = 0, parts = partCount(options);
  part.begin = [&](const Twine &what) -> Error {
    if (options.cancelled && options.cancelled())
      return createStringError(inconvertibleErrorCode(), "interrupted");
    ++number;
    if (options.progress)
      options.progress(what.str(), number, parts);
    return Error::success();
  };
  // Before our own work counts: it says how far to trust the figures.
  double load = 0;
  (void)::getloadavg(&load, 1);
  auto start = std::chrono::steady_clock::now();
  part.late = [start, quick = options.quick] {
    return std::chrono::steady_clock::now() - start >
           std::chrono::seconds(quick ? 5 : 22);
  };
  machine::CpuModel cpu = machine::Machine::conservative().cpu();
  __builtin_cpu_init();
  cpu.level = __builtin_cpu_supports("x86-64-v4") ? "x86-64-v4" : "x86-64-v3";
  cpu.cores = trc::availableCpus();
  Expected<machine::TierModel> memory = measureMemory(part, cpu.cores);
  if (!memory)
    return memory.takeError();
  std::vector<std::pair<machine::TierKind, machine::TierModel>> tiers = {
      {machine::TierKind::DRAM, *memory}};
  if (!options.pmem.empty()) {
    SmallString<128> model(options.pmem), path;
    if (std::error_code error = sys::fs::make_absolute(model))
      return createStringError(error, "%s: %s", options.pmem.c_str(),
                               error.message().c_str());
    sys::path::append(model, "terrace-calibrate-%%%%%%%%");
    sys::fs::createUniquePath(model, path, /*MakeAbsolute=*/false);
    scope_exit removeFile([&] { std::ignore = sys::fs::remove(path); });
    Expected<machine::TierModel> pmem =
        measurePmem(part, path.str().str(), cpu.cores);
    if (!pmem)
      return pmem.takeError();
    tiers.push_back({machine::TierKind::PMem, *pmem});
  }
  if (Error e = measureRows(part, cpu))
    return e;
  if (Error e = measureOptimizers(part, cpu))
    return e;
  if (Error e = measureIds(part, cpu))
    return e;
  if (Error e = measureCache(part, cpu))
    return e;
  Expected<machine::TierModel> disk = measureDisk(part, cpu);
  if (!disk)
    return disk.takeError();
  tiers.push_back({machine::TierKind::NVMe, *disk});
  machine::Measurement how;
  how.at = utcNow();
  how.by =
      options.program + (options.quick ? " calibrate --quick" : " calibrate");
  how.on = formatv("{0}, {1} CPUs, load {2:f1}", cpuName(), cpu.cores, load);
  return machine::Machine::calibrated(cpu, tiers, how);
}

} // namespace terrace::calibrate
