//===- OpenFile.h - Opens what must be a file -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lies in a user's folder under one of our names need not be a file. To
// open a pipe waits for its other end, for ever and deaf to signals, so
// whatever is to be a file is opened here.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_OPENFILE_H
#define TERRACE_RUNTIME_CORE_OPENFILE_H

#include "runtime/core/Status.h"

#include <string>
#include <sys/types.h>

namespace trc {

/// What may be opened beside regular files.
enum class FileKind { Regular, OrBlockDevice, OrDevice };

/// Opens a file without waiting; O_CLOEXEC is added. A descriptor, which is the
/// caller's; BAD_ARGUMENT says what there is instead.
Result<int> openFile(const std::string &path, int flags,
                     FileKind kind = FileKind::Regular);

/// The same to read and write what holds rows; `readOnly` where nothing can be
/// written there.
Result<int> openTier(const std::string &path, bool create, FileKind kind,
                     bool &readOnly);

/// "a pipe": what a path names, and is not of this kind; or null. A path that
/// cannot be asked about is for whoever opens it.
const char *otherThanFile(const std::string &path,
                          FileKind kind = FileKind::Regular);
/// The error for it.
Status notAFile(const std::string &path, const char *what, FileKind kind);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_OPENFILE_H
