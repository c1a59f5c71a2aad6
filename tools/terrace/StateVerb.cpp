//===- StateVerb.cpp - What the verbs over states share -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StateVerb.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

#include <chrono>

namespace terrace::tool {

using driver::Outcome;

int fail(const trc::Status &status, bool json) {
  switch (status.code()) {
  case TRC_BAD_INPUT:
  case TRC_BAD_ARGUMENT:
  case TRC_MISMATCH:
  case TRC_CORRUPT:
  case TRC_NOT_FOUND:
    return fail(Outcome::Error, status.message(), json);
  default:
    return fail(Outcome::Environment, status.message(), json);
  }
}

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ProgressLine::ProgressLine(std::string what, bool json)
    : what(std::move(what)),
      terminal(!json && llvm::sys::Process::StandardErrIsDisplayed()),
      begin(now()) {}

ProgressLine::~ProgressLine() {
  if (shown)
    llvm::errs() << "\r\033[K";
}

trc::inspect::Progress ProgressLine::take() {
  if (!terminal)
    return {};
  return [this](uint64_t done, uint64_t total) {
    double at = now();
    if (at - last < 0.2 || total == 0)
      return;
    last = at;
    shown = true;
    double part = std::min(1.0, double(done) / double(total));
    llvm::errs() << "\r\033[K" << what << " "
                 << llvm::formatv("{0} of {1} rows, {2:P0}", done, total, part);
    if (part > 0 && at - begin > 2)
      llvm::errs() << llvm::formatv(", {0:F0} s left",
                                    (at - begin) * (1 - part) / part);
  };
}

void warn(const std::string &line) {
  llvm::errs() << "warning: " << line << "\n";
}

trc::Result<OpenRoot> openRoot(const std::string &state,
                               const std::string &name) {
  auto dir = trc::StateDir::open(state, false, false);
  if (!dir.ok())
    return dir.takeStatus();
  auto root = trc::inspect::findRoot(**dir, name, warn);
  if (!root.ok())
    return root.takeStatus();
  return trc::Result<OpenRoot>(OpenRoot{std::move(*dir), std::move(*root)});
}

llvm::json::Object okObject() { return llvm::json::Object{{"ok", true}}; }

void print(llvm::json::Object object) {
  llvm::outs() << llvm::formatv("{0:2}\n",
                                llvm::json::Value(std::move(object)));
}

std::string counted(uint64_t n, const char *what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string shownBytes(uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit ? llvm::formatv("{0:F1} {1}", value, units[unit]).str()
              : std::to_string(bytes) + " B";
}

} // namespace terrace::tool
