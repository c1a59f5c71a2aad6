//===- YamlToJson.h - A YAML or JSON text as a JSON value -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Machine, profile and decision files are small and machine-written, but people
// edit them: YAML in, one llvm::json::Value out (plain scalars become numbers,
// booleans and null; quoted ones stay strings). Model specs do not come through
// here; they have their own parser with a location per value (lib/Spec).
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_MACHINE_YAMLTOJSON_H
#define TERRACE_LIB_MACHINE_YAMLTOJSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace terrace {

/// The only document of `text`. An error reads "name:line:column: what".
llvm::Expected<llvm::json::Value> yamlToJson(llvm::StringRef text,
                                             llvm::StringRef name);

/// The same, of a file.
llvm::Expected<llvm::json::Value> yamlFileToJson(llvm::StringRef path);

} // namespace terrace

#endif // TERRACE_LIB_MACHINE_YAMLTOJSON_H
