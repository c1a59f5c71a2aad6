//===- Artifact.cpp - Loading a compiled model ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dlopen for libraries; CPUID by the compiler's builtins.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Artifact.h"

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

static bool cpuRuns(int cpu) {
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi2");
  if (cpu == TRC_CPU_V3)
    return v3;
  return v3 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
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
