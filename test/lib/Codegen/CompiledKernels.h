//===- CompiledKernels.h - Kernels compiled, linked and loaded --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What --emit=lib does, in a temporary folder: objects of both images, the
// artifact, one shared library, dlopen. Also the helpers of all kernel tests.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_CODEGEN_COMPILEDKERNELS_H
#define TERRACE_TEST_CODEGEN_COMPILEDKERNELS_H

#include "Codegen/Codegen.h"

#include "terrace-rt/artifact.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace terrace::test {

/// A folder that is removed with its files.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string file(llvm::StringRef name) const;

private:
  std::string path;
};

class CompiledKernels {
public:
  /// Fails the test and returns null where anything goes wrong.
  static std::unique_ptr<CompiledKernels>
  compile(llvm::ArrayRef<codegen::KernelConfig> configs,
          llvm::StringRef plan = "{}");
  ~CompiledKernels();

  const trc_artifact &artifact() const { return *loaded; }
  /// Null where the artifact has no such kernel.
  const void *find(const codegen::KernelConfig &config, int image) const;

private:
  TemporaryFolder folder;
  void *handle = nullptr;
  const trc_artifact *loaded = nullptr;
};

/// Whether this machine can execute an image (enum trc_cpu).
bool canRun(int image);

/// Fails the test with the error's text if there is one.
bool succeeded(llvm::Error error);

/// The same bits, or NaN on both sides.
bool sameFloats(const std::vector<float> &a, const std::vector<float> &b,
                std::string &where);

/// Mostly ordinary values of many magnitudes, some zeros of both signs and
/// denormals.
float randomFloat(std::mt19937 &random);

/// Every dimension the kernel tests walk.
extern const std::vector<int64_t> testedDims;

} // namespace terrace::test

#endif // TERRACE_TEST_CODEGEN_COMPILEDKERNELS_H
