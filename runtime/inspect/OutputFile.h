//===- OutputFile.h - A file that appears whole -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written under another name (PATH.part), at any offset, and renamed at the
// end: whoever sees the file sees all of it. A failure, or the destructor,
// takes the unfinished file away, and so does removeUnfinished().
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_OUTPUTFILE_H
#define TERRACE_RUNTIME_INSPECT_OUTPUTFILE_H

#include "runtime/checkpoint/FileUtil.h"
#include "runtime/core/Output.h"

#include <cstdint>
#include <string>

namespace trc::inspect {

class OutputFile {
public:
  OutputFile() = default;
  ~OutputFile();
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;

  /// `bytes` is the size at the end: the space is taken now where the file
  /// system can, so that a full disk shows before the work is done.
  static Result<OutputFile> create(const std::string &path, uint64_t bytes);

  Status write(uint64_t offset, const void *data, uint64_t bytes);
  /// Makes the contents durable and closes; nothing may be written any more.
  Status close();
  /// After close(): puts the file in its place.
  Status publish();

  const std::string &path() const { return target; }

private:
  std::string part() const { return target + ".part"; }
  void discard();

  std::string target; // empty: nothing to take away
  Unfinished unfinished;
  Fd fd;
};

/// OK, or why `path` cannot be a folder of results: it is a state's folder.
Status refuseStateFolder(const std::string &path);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_OUTPUTFILE_H
