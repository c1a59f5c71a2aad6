"""What is handed out: the runtime and emitted files pull no LLVM, export only the C ABI, and are reproducible."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json

from harness import BUILD, Folder, ROOT, TERRACE, expect, run

SPEC = {
    "terrace": 1, "model": "artefacts", "batch": {"size": 8},
    "features": [{"name": "a", "table": {"rows": 100, "dim": 4}}], "head": {"kind": "fm", "label": "y"},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "8MiB"}]}}


def no_llvm(file):
    libraries = run("ldd", file).stdout
    symbols = run("nm", "-C", "--defined-only", "-D", file).stdout + run("nm", "-C", file, ok=False).stdout
    for word in ("libLLVM", "libMLIR", "llvm::", "mlir::"):
        expect(word not in libraries + symbols, f"{file} pulls {word}")


def main():
    with Folder() as folder:
        (folder / "one").mkdir()
        (folder / "two").mkdir()
        for place in ("one", "two"):
            (folder / place / "model.yaml").write_text(json.dumps(SPEC))
            run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder / place)
            run(TERRACE, "compile", "model.yaml", "--emit=lib", "-o", "model.so", cwd=folder / place)
        for name in ("model", "model.so"):
            expect((folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(),
                   f"{name}: two folders, two results")
            no_llvm(folder / "one" / name)
        runtime = BUILD / "lib" / "libterrace-rt.so"
        no_llvm(runtime)
        exported = [line.split()[-1] for line in run("nm", "-D", "--defined-only", runtime).stdout.splitlines()]
        foreign = [name for name in exported if not name.split("@")[0].startswith(("trc_", "TERRACE_"))]
        expect(not foreign, f"the runtime exports {foreign[:5]}")
        print(f"no LLVM in the executable, the library and the runtime; {len(exported)} symbols exported")
        for header in ("terrace-rt", "artifact", "session", "status", "tensor"):
            for compiler, standard, suffix in (("cc", "c11", "c"), ("c++", "c++17", "cpp")):
                source = folder / f"use.{suffix}"
                source.write_text(f"#include <terrace-rt/{header}.h>\nint main(void) {{ return 0; }}\n")
                run(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", ROOT / "include",
                    "-fsyntax-only", source)
        print("each public header stands alone in C11 and C++17")


if __name__ == "__main__":
    main()
