//===- Diagnostics.h - Located errors of the spec ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A location inside the files and options that make up a spec, and a list of
// diagnostics. Every stage that finds fault with a spec reports here, so that
// a user gets all errors of a file in one go, each on one line:
//   model.yaml:4:12: error: what, the value, what is allowed
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SPEC_DIAGNOSTICS_H
#define TERRACE_SPEC_DIAGNOSTICS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace terrace::spec {

/// Where a value was written. A default has no location (isValid() is false).
struct Loc {
  unsigned file = 0; ///< index into Diagnostics::sources() and Spec::sources
  unsigned line = 0; ///< from 1; 0: nowhere
  unsigned column = 0;
  bool isValid() const { return line != 0; }
};

/// A file, or one `--set key=value`, that locations point into.
struct Source {
  std::string name;
  bool isOption = false; ///< printed without line and column
};

enum class Severity { Error, Warning, Note };

struct Diagnostic {
  Severity severity;
  Loc loc;
  std::string message; ///< one line, no full stop at the end
};

class Diagnostics {
public:
  unsigned addSource(llvm::StringRef name, bool isOption = false);
  const std::vector<Source> &sources() const { return files; }

  void error(Loc loc, const llvm::Twine &message);
  /// An error of the machine, not of the user's text: a file that cannot be
  /// read or written, a missing library.
  void environmentError(Loc loc, const llvm::Twine &message) {
    environment = true;
    error(loc, message);
  }
  void environmentError(const llvm::Twine &message) {
    environmentError(nowhere, message);
  }
  /// An error without a place.
  void error(const llvm::Twine &message) { error(nowhere, message); }
  void warning(Loc loc, const llvm::Twine &message);
  void note(Loc loc, const llvm::Twine &message);

  bool hasErrors() const { return errorCount != 0; }
  bool hasEnvironmentErrors() const { return environment; }
  size_t errors() const { return errorCount; }
  const std::vector<Diagnostic> &list() const { return diagnostics; }

  /// "file:line:column", "--set a=b", or "" where there is no location.
  std::string format(Loc loc) const;
  /// "file:line:column: error: message".
  std::string format(const Diagnostic &diagnostic) const;
  /// One line each, in the order of files and lines.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
  /// [{"severity", "file", "line", "column", "message"}].
  llvm::json::Value toJson() const;

  bool hasErrorAt(Loc loc) const;

private:
  void add(Severity severity, Loc loc, const llvm::Twine &message);
  std::vector<const Diagnostic *> sorted() const;

  std::vector<Source> files;
  std::vector<Diagnostic> diagnostics;
  size_t errorCount = 0;
  bool environment = false;
  static constexpr Loc nowhere{~0u, 0, 0};
};

} // namespace terrace::spec

#endif // TERRACE_SPEC_DIAGNOSTICS_H
