//===- CompiledKernels.cpp - Kernels compiled, linked and loaded *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CompiledKernels.h"

#include "Codegen/Link.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>

using namespace terrace;
using namespace terrace::test;

const std::vector<int64_t> terrace::test::testedDims = {
    1,  2,   3,   7,   8,   9,   16,  25,  31,   32,   33,   63,
    64, 100, 128, 130, 255, 256, 257, 512, 1000, 1024, 1025, 2048};

TemporaryFolder::TemporaryFolder() {
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("terrace-test", folder))
    ADD_FAILURE() << error.message();
  path = folder.str().str();
}
TemporaryFolder::~TemporaryFolder() { llvm::sys::fs::remove_directories(path); }
std::string TemporaryFolder::file(llvm::StringRef name) const {
  return (path + "/" + name).str();
}

bool terrace::test::succeeded(llvm::Error error) {
  if (!error)
    return true;
  ADD_FAILURE() << llvm::toString(std::move(error));
  return false;
}

std::unique_ptr<CompiledKernels>
CompiledKernels::compile(llvm::ArrayRef<codegen::KernelConfig> configs,
                         llvm::StringRef plan) {
  auto result = std::make_unique<CompiledKernels>();
  auto images = codegen::allImages();
  auto objects = codegen::emitKernelObjects(configs, images);
  if (!objects) {
    succeeded(objects.takeError());
    return nullptr;
  }
  auto artifact = codegen::emitArtifactObject(plan, configs, images);
  if (!artifact) {
    succeeded(artifact.takeError());
    return nullptr;
  }
  objects->push_back(std::move(*artifact));
  std::string path = result->folder.file("kernels.so");
  if (!succeeded(codegen::linkLibrary(*objects, path)))
    return nullptr;
  result->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!result->handle) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  result->loaded = static_cast<const trc_artifact *>(
      dlsym(result->handle, "terrace_artifact"));
  if (!result->loaded) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  return result;
}

CompiledKernels::~CompiledKernels() {
  if (handle)
    dlclose(handle);
}

const void *CompiledKernels::find(const codegen::KernelConfig &config,
                                  int image) const {
  for (uint64_t i = 0; i < loaded->kernel_count; ++i)
    if (config.name() == loaded->kernels[i].name)
      return loaded->kernels[i].image[image];
  return nullptr;
}

bool terrace::test::canRun(int image) {
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi2");
  if (image == TRC_CPU_V3)
    return v3;
  return v3 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

static constexpr size_t page = 4096;

static size_t wholePages(size_t bytes) {
  return (bytes + page - 1) / page * page;
}

void *terrace::test::allocateGuarded(size_t bytes) {
  const size_t data = wholePages(bytes);
  char *base =
      static_cast<char *>(mmap(nullptr, data + page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED || mprotect(base + data, page, PROT_NONE))
    llvm::report_fatal_error("no memory for a guarded array");
  return base + data - bytes;
}

void terrace::test::freeGuarded(void *data, size_t bytes) {
  const size_t whole = wholePages(bytes);
  munmap(static_cast<char *>(data) + bytes - whole, whole + page);
}

bool terrace::test::sameFloats(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b,
                               std::string &where) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() &&
        (std::memcmp(&a[i], &b[i], 4) == 0 ||
         (std::isnan(a[i]) && std::isnan(b[i]))))
      continue;
    where = llvm::formatv("element {0} of {1}: {2} and {3}", i, a.size(),
                          i < a.size() ? a[i] : NAN, i < b.size() ? b[i] : NAN)
                .str();
    return false;
  }
  return true;
}

float terrace::test::randomFloat(std::mt19937 &random) {
  switch (random() % 32) {
  case 0:
    return 0.0f;
  case 1:
    return -0.0f;
  case 2:
    return std::ldexp(float(random() % 1000), -149);
  default:
    return std::ldexp(float(int32_t(random())) * 0x1p-31f,
                      int(random() % 12) - 6);
  }
}
