//===- Environment.h - Where figures were taken -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A figure without its machine means nothing: these lines go above each table.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_ENVIRONMENT_H
#define TERRACE_TEST_BENCH_STORE_ENVIRONMENT_H

#include <string>

namespace trc::bench {

/// Date, kernel, CPU, memory, load, and the device below a folder; with line
/// ends.
std::string environment(const std::string &folder);

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_ENVIRONMENT_H
