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
bool sameFloats(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b,
                std::string &where);

void *allocateGuarded(size_t bytes);
void freeGuarded(void *data, size_t bytes);

/// Ends at a page that must not be touched, so that a kernel that reads or
/// writes past the end of an array crashes the test.
template <typename T> struct GuardAllocator {
  using value_type = T;
  GuardAllocator() = default;
  template <typename U> GuardAllocator(const GuardAllocator<U> &) {}
  T *allocate(size_t n) {
    return static_cast<T *>(allocateGuarded(n * sizeof(T)));
  }
  void deallocate(T *p, size_t n) { freeGuarded(p, n * sizeof(T)); }
  bool operator==(const GuardAllocator &) const { return true; }
  bool operator!=(const GuardAllocator &) const { return false; }
};
/// Guarded only at its capacity: call shrink_to_fit() when it is filled.
template <typename T> using Guarded = std::vector<T, GuardAllocator<T>>;

/// Mostly ordinary values of many magnitudes, some zeros of both signs and
/// denormals.
float randomFloat(std::mt19937 &random);

/// Every dimension the kernel tests walk.
extern const std::vector<int64_t> testedDims;

} // namespace terrace::test

#endif // TERRACE_TEST_CODEGEN_COMPILEDKERNELS_H
