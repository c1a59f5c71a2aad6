//===- LibHeader.h - The header beside a compiled library -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DRIVER_LIBHEADER_H
#define TERRACE_DRIVER_LIBHEADER_H

#include "Spec/Spec.h"

namespace terrace::driver {

/// C11 and C++: the model's sizes, and features and tables as enumerations in
/// the order of the C ABI, so that a trainer that lags behind the model fails
/// to compile instead of feeding the wrong feature.
std::string libraryHeader(const spec::Spec &spec, llvm::StringRef fileName);

} // namespace terrace::driver

#endif // TERRACE_DRIVER_LIBHEADER_H
