//===- Output.h - Files that a user asked for -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the compiler, its verbs and the executables share where they write a
// file: it is none of the files that they read, it appears whole or not at
// all, and what is unfinished goes away with the process, also on a signal.
// Nothing here is durable: states have runtime/checkpoint/FileUtil.h.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_OUTPUT_H
#define TERRACE_RUNTIME_CORE_OUTPUT_H

#include "runtime/core/Status.h"

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace trc {

/// OK, or BAD_ARGUMENT where `output` is the same file as one of `inputs`,
/// however they are spelled: links of both kinds are seen through. Empty paths
/// and "-" are no files.
Status refuseInput(const std::string &output,
                   const std::vector<std::string> &inputs);

/// The same where `output` lies in a state's folder, or is a file of the state
/// that lies elsewhere: of tiers with absolute paths, as its manifests name
/// them. A folder that is not there, or holds no state, is fine.
Status refuseStateFile(const std::string &output, const std::string &state);

/// A file under work: the destructor takes it away, and so does
/// removeUnfinished(). Make it before the file is there.
class Unfinished {
public:
  Unfinished() = default;
  explicit Unfinished(const std::string &path);
  ~Unfinished() { discard(); }
  Unfinished(Unfinished &&other) noexcept;
  Unfinished &operator=(Unfinished &&other) noexcept;

  /// It is finished, or somebody else's.
  void keep();
  void discard();

private:
  struct Entry;
  friend void removeUnfinished();
  static std::atomic<Entry *> first;
  Entry *entry = nullptr;
};

/// Takes away every file under work. For handlers of signals that end the
/// process: only calls what is safe there.
void removeUnfinished();
/// In such a handler: takes them away, and lets the signal end the process.
void endBySignal(int number);

/// Writes a file under a name of its own beside `path`, then gives it that
/// name. What is no plain file (a device, a pipe) is written to as it is; of a
/// link, the file behind it is replaced. `mode` is subject to the umask.
Status writeOutput(const std::string &path, std::string_view bytes,
                   unsigned mode = 0666);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_OUTPUT_H
