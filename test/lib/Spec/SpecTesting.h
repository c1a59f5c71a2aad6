//===- SpecTesting.h - Shared by the tests of lib/Spec ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses text and keeps its diagnostics as one string.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_LIB_SPEC_SPECTESTING_H
#define TERRACE_TEST_LIB_SPEC_SPECTESTING_H

#include "Spec/Spec.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace terrace::spec {

struct Parsed {
  std::optional<Spec> spec;
  Diagnostics diagnostics;
  std::string errors() const { return diagnostics.str(); }
};

inline Parsed parse(llvm::StringRef text, std::vector<std::string> edits = {},
                    llvm::StringRef nodeText = {}) {
  Parsed parsed;
  parsed.spec = parseSpecText(text, "m.yaml", parsed.diagnostics, nodeText,
                              nodeText.empty() ? "" : "node.yaml", edits);
  return parsed;
}

/// A small model with `lines` behind it.
inline std::string withLines(llvm::StringRef lines) {
  return ("terrace: 1\nfeatures:\n- {name: a, table: {rows: 10, dim: 4}}\n" +
          lines)
      .str();
}

/// shared/specs beside the checkout, or beside TERRACE_SHARED_DATA.
inline std::string sharedSpecs() {
  if (const char *data = std::getenv("TERRACE_SHARED_DATA"))
    return std::string(data) + "/../specs/";
  return std::string(TERRACE_SOURCE_DIR) + "/../shared/specs/";
}

} // namespace terrace::spec

#endif // TERRACE_TEST_LIB_SPEC_SPECTESTING_H
