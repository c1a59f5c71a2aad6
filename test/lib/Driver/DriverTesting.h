//===- DriverTesting.h - Shared by the tests of lib/Driver ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A scratch folder with spec files in it.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_LIB_DRIVER_DRIVERTESTING_H
#define TERRACE_TEST_LIB_DRIVER_DRIVERTESTING_H

#include "Driver/Compile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace terrace::driver {

class DriverTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("terrace-drv", folder));
    write("small.yaml", small);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(const std::string &name) const {
    return (folder + "/" + name).str();
  }
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::string read(const std::string &file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  CompileOptions options(std::vector<std::string> edits = {}) const {
    CompileOptions options;
    options.input = {path("small.yaml"), "", std::move(edits)};
    return options;
  }

  static constexpr const char *small = R"(terrace: 1
model: small
batch: {size: 32}
features:
- {name: user, table: {rows: 1000, dim: 8}}
- {name: item, table: {rows: 5000, dim: 8}, pooling: mean, max_ids: 3}
head: {kind: fm, label: click}
data: {path: clicks.tsv}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 16MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: rows.store}
plan: {lookahead: 2, place: [{tables: item, home: disk, cache: {dram: 4KiB}}]}
)";
  llvm::SmallString<128> folder;
};

} // namespace terrace::driver

#endif // TERRACE_TEST_LIB_DRIVER_DRIVERTESTING_H
