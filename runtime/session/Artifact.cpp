//===- Artifact.cpp - Loading a compiled model ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dlopen for libraries; the image by CPUID.
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Artifact.h"

#include "runtime/core/OpenFile.h"

#include <cpuid.h>
#include <dlfcn.h>

using namespace trc;

static const char *const cpuNames[TRC_CPU_COUNT] = {"x86-64-v3", "x86-64-v4"};

Result<std::unique_ptr<LoadedArtifact>>
LoadedArtifact::load(const char *path, const trc_artifact *linked) {
  if (!path == !linked)
    return Status(TRC_BAD_ARGUMENT,
                  "give either artifact_path or artifact, not both or none");
  std::unique_ptr<LoadedArtifact> loaded(new LoadedArtifact());
  std::string where = "the linked artifact";
  if (path) {
    where = std::string("'") + path + "'";
    // A bare name would be looked up in the system's library folders.
    std::string file = path;
    if (file.find('/') == std::string::npos)
      file = "./" + file;
    if (const char *what = otherThanFile(file))
      return notAFile(path, what, FileKind::Regular);
    loaded->library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded->library) {
      const char *why = ::dlerror();
      return Status(TRC_NOT_FOUND, "cannot load the artifact " + where + ": " +
                                       (why ? why : "unknown reason"));
    }
    linked = static_cast<const trc_artifact *>(
        ::dlsym(loaded->library, "terrace_artifact"));
    if (!linked)
      return Status(TRC_MISMATCH,
                    where + " is not a Terrace artifact: it has no symbol "
                            "'terrace_artifact'; make it with --emit=lib");
  }
  loaded->artifact = linked;
  if (linked->magic != TRC_ARTIFACT_MAGIC || linked->abi != TRC_ARTIFACT_ABI)
    return Status(TRC_MISMATCH,
                  where + " was made for ABI " + std::to_string(linked->abi) +
                      "; this runtime has " + std::to_string(TRC_ARTIFACT_ABI) +
                      "; compile the model again");
  if (!linked->plan || (linked->kernel_count && !linked->kernels))
    return Status(TRC_MISMATCH, where + " has no plan or no kernels");
  return Result<std::unique_ptr<LoadedArtifact>>(std::move(loaded));
}

LoadedArtifact::~LoadedArtifact() {
  if (library)
    ::dlclose(library);
}

bool LoadedArtifact::built(int cpu) const {
  for (uint64_t k = 0; k < artifact->kernel_count; ++k)
    if (!artifact->kernels[k].image[cpu])
      return false;
  return true;
}

/// CPUID by hand: the compiler's __builtin_cpu_supports needs libgcc.a, which
/// an executable linked without gcc does not have.
static bool cpuRuns(int cpu) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return false;
  constexpr unsigned fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27,
                     f16c = 1u << 29;
  constexpr unsigned wanted1 = fma | movbe | osxsave | f16c;
  if ((c & wanted1) != wanted1)
    return false;
  // Registers that the kernel saves: xmm, ymm; opmask and both halves of zmm.
  unsigned saved, high;
  __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return false;
  constexpr unsigned bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
  constexpr unsigned wanted3 = bmi1 | avx2 | bmi2;
  if ((b & wanted3) != wanted3 || (saved & 0x06) != 0x06)
    return false;
  if (cpu == TRC_CPU_V3)
    return true;
  constexpr unsigned f = 1u << 16, dq = 1u << 17, cd = 1u << 28, bw = 1u << 30,
                     vl = 1u << 31, wanted4 = f | dq | cd | bw | vl;
  return (b & wanted4) == wanted4 && (saved & 0xe6) == 0xe6;
}

Result<int> LoadedArtifact::chooseCpu(const char *forced) const {
  if (forced) {
    for (int cpu = 0; cpu < TRC_CPU_COUNT; ++cpu) {
      if (std::string(forced) != cpuNames[cpu])
        continue;
      if (!cpuRuns(cpu))
        return Status(TRC_UNSUPPORTED,
                      std::string("this CPU does not run ") + forced + " code");
      if (!built(cpu))
        return Status(TRC_UNSUPPORTED,
                      std::string("the artifact has no image for ") + forced);
      return cpu;
    }
    return Status(TRC_BAD_ARGUMENT, std::string("cpu '") + forced +
                                        "'; use x86-64-v3 or x86-64-v4");
  }
  for (int cpu = TRC_CPU_COUNT - 1; cpu >= 0; --cpu)
    if (cpuRuns(cpu) && built(cpu))
      return cpu;
  return Status(TRC_UNSUPPORTED,
                "this CPU runs none of the artifact's images; x86-64-v3 "
                "(AVX2, FMA, BMI2) is the least");
}
