"""Every example's run.sh, as a reader would run it."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from harness import BUILD, Folder, ROOT, TERRACE, expect, run


def main():
    scripts = sorted((ROOT / "examples").glob("*/run.sh"))
    expect(len(scripts) >= 4, "examples are missing")
    for script in scripts:
        with Folder() as folder:
            done = run(script, folder, env={"TERRACE": str(TERRACE), "TERRACE_BIN": str(BUILD / "bin"),
                                            "TERRACE_BUILD": str(BUILD)})
            print(f"{script.parent.name}: {done.stdout.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
