//===- Surface.h - A measured figure over two axes --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one row or request costs is no constant: it depends on its size and on
// how much memory the rows lie in. A surface holds what was measured on a grid
// and interpolates between, linearly in the logarithms of both axes; beyond the
// grid it stays level. A plain value.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_MACHINE_SURFACE_H
#define TERRACE_LIB_MACHINE_SURFACE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace terrace::machine {

struct Surface {
  std::vector<double> x, y;   // rising, above 0
  std::vector<double> values; // x major: values[i * y.size() + j], above 0

  bool empty() const { return values.empty(); }
  double at(double px, double py) const;
};

/// The keys of a surface in a machine file.
struct SurfaceKeys {
  const char *x, *y, *value;
};

/// Reads {x: [...], y: [...], value: [[...], ...]}. Returns what is wrong, with
/// the key it is wrong in; empty where nothing is.
std::string readSurface(const llvm::json::Value &value, const SurfaceKeys &keys,
                        Surface &out);
llvm::json::Value surfaceJson(const Surface &surface, const SurfaceKeys &keys);

} // namespace terrace::machine

#endif // TERRACE_LIB_MACHINE_SURFACE_H
