"""explain --set equals explain of the edited spec; every dumped .mlir parses and verifies."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from harness import Folder, ROOT, TERRACE, TERRACE_OPT, expect, run


def main():
    source = (ROOT / "examples" / "02-retail" / "model.yaml").read_text()
    with Folder() as folder:
        (folder / "model.yaml").write_text(source)
        for old, new in (("8MiB", "6MiB"), ("8MiB", "64MiB")):
            edited = source.replace(f"capacity: {old}", f"capacity: {new}")
            expect(edited != source, "the edit did not take")
            (folder / "edited").mkdir(exist_ok=True)
            (folder / "edited" / "model.yaml").write_text(edited)
            for form in ([], ["--json"]):
                what_if = run(TERRACE, "explain", "model.yaml", "--set", f"memory.tiers.dram.capacity={new}", *form, cwd=folder)
                fresh = run(TERRACE, "explain", "model.yaml", *form, cwd=folder / "edited")
                expect(what_if.stdout == fresh.stdout, f"--set {new} differs:\n{what_if.stdout}\n{fresh.stdout}")
        print("explain --set equals a fresh explain")
        run(TERRACE, "compile", "model.yaml", "--dump-dir", "ir", "-o", "model", cwd=folder)
        files = sorted((folder / "ir").glob("*.mlir"))
        expect(len(files) >= 8, f"only {len(files)} dumps")
        for file in files:
            run(TERRACE_OPT, file, "-o", "/dev/null")
            run(TERRACE_OPT, "--verify-roundtrip", file, "-o", "/dev/null")
        print(f"{len(files)} dumps parse, verify and round-trip")


if __name__ == "__main__":
    main()
