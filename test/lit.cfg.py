# How lit runs the .mlir and .test files below test/. Run it through CMake's
# copy: `lit -sv build/test` (ctest's `lit`), or one folder: `lit -v build/test --filter dialects/emb`.
import os

import lit.formats

config.name = "Terrace"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.terrace_build, "test", "lit")

path = [config.terrace_bin, config.llvm_tools, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)

# The folder of real data sets; tests that need one say `REQUIRES: shared-data`.
data = os.environ.get("TERRACE_SHARED_DATA") or os.path.join(
    config.terrace_source, os.pardir, "shared", "data"
)
if os.path.isdir(data):
    config.available_features.add("shared-data")
    config.environment["TERRACE_SHARED_DATA"] = data
config.substitutions.append(("%shared_data", data))
config.substitutions.append(("%source", config.terrace_source))

# A tool that is not built is a missing feature, not a failure of every test.
for tool in ["terrace", "terrace-opt", "terrace-lsp-server"]:
    if os.access(os.path.join(config.terrace_bin, tool), os.X_OK):
        config.available_features.add(tool)

# The whole suite once more in round-trip mode: TERRACE_LIT_ROUNDTRIP=1.
opt = "terrace-opt"
if os.environ.get("TERRACE_LIT_ROUNDTRIP"):
    opt += " --verify-roundtrip"
    config.available_features.add("roundtrip")
config.substitutions.append((r"\bterrace-opt\b", opt))

if config.sanitize:
    for name in ["ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"]:
        if name in os.environ:
            config.environment[name] = os.environ[name]
