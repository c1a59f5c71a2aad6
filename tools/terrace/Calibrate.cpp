//===- Calibrate.cpp - `terrace calibrate` --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Calibrate/Calibrate.h"
#include "Verbs.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace terrace::tool {

/// Set by SIGINT and the like: the files on the user's disk have to go.
static volatile std::sig_atomic_t interrupted = 0;

int runCalibrate(const CalibrateVerb &options, bool json) {
  auto failed = [&](const std::string &message) {
    return fail(driver::Outcome::Environment, message, json);
  };
  bool toStdout = options.output == "-";
  if (!toStdout && !options.force && llvm::sys::fs::exists(options.output))
    return fail(driver::Outcome::Usage,
                options.output + " exists; --force measures anew, -o FILE "
                                 "names another",
                json);
  if (!llvm::sys::fs::is_directory(options.folder))
    return failed(options.folder + " is not a folder");
  if (!options.pmem.empty() && !llvm::sys::fs::is_directory(options.pmem))
    return failed(options.pmem + " is not a folder");
  auto start = std::chrono::steady_clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  double load = 0, cpus = std::thread::hardware_concurrency();
  if (::getloadavg(&load, 1) == 1 && load > cpus / 2)
    llvm::errs() << llvm::formatv(
        "warning: the machine is busy (load {0:f1} on {1} CPUs): what is "
        "measured now will be too slow by as much\n",
        load, int(cpus));
  calibrate::Options how;
  how.folder = options.folder;
  how.pmem = options.pmem;
  how.quick = options.quick;
  how.program = std::string("terrace ") + TERRACE_VERSION;
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, [](int) { interrupted = 1; });
  how.cancelled = [] { return interrupted != 0; };
  how.progress = [&](llvm::StringRef what, int part, int parts) {
    llvm::errs() << llvm::formatv("calibrate: {0} of {1}, {2:f1} s: {3}\n",
                                  part, parts, seconds(), what);
  };
  llvm::Expected<machine::Machine> machine = calibrate::calibrate(how);
  if (!machine)
    return failed("calibrate: " + llvm::toString(machine.takeError()));
  std::string text = llvm::formatv("{0:2}\n", machine->toJson()).str();
  std::string error;
  if (!writeText(options.output, text, error))
    return failed(error);
  if (toStdout)
    return 0;
  if (json) {
    llvm::outs() << llvm::formatv(
        "{0:2}\n",
        llvm::json::Value(llvm::json::Object{{"ok", true},
                                             {"file", options.output},
                                             {"seconds", seconds()},
                                             {"machine", machine->toJson()}}));
    return 0;
  }
  const machine::TierModel &disk = machine->tier(machine::TierKind::NVMe);
  llvm::outs() << llvm::formatv(
      "{0}: {1} cores, memory {2:f1} GB/s and {3:f0} ns, disk {4:f0} reads/s "
      "at depth {5}, {6:f0} us, in {7:f0} s\nuse it: terrace explain MODEL "
      "--machine {0}, or machine: {0} in the spec\n",
      options.output, machine->cpu().cores,
      machine->tier(machine::TierKind::DRAM).readGBps,
      machine->tier(machine::TierKind::DRAM).latencyUs * 1e3,
      machine->iops(machine::TierKind::NVMe, false, machine->queueDepth()),
      machine->queueDepth(), disk.latencyUs, seconds());
  return 0;
}

} // namespace terrace::tool
