"""The verbs of `terrace`: exit codes, texts, JSON, files. What the models compute is tested elsewhere."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("TERRACE_BUILD", ROOT / "build"))
TERRACE = BUILD / "bin" / "terrace"
OPT = BUILD / "bin" / "terrace-opt"
DATA = pathlib.Path(os.environ.get("TERRACE_SHARED_DATA", ROOT.parent / "shared" / "data"))
SPECS = DATA.parent / "specs"
RETAIL = ROOT / "examples" / "02-retail" / "model.yaml"

SMALL = """terrace: 1
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
"""


class Cli(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="terrace-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "small.yaml").write_text(SMALL)

    def terrace(self, *args, code=0, stdin=None):
        done = subprocess.run([str(TERRACE), *map(str, args)], cwd=self.folder, text=True, capture_output=True,
                              input=stdin, timeout=300)
        self.assertEqual(done.returncode, code, f"terrace {' '.join(map(str, args))}\n{done.stdout}\n{done.stderr}")
        for word in ("Stack dump", "Assertion", "terminate called"):
            self.assertNotIn(word, done.stderr)
        return done

    def error(self, *args, code=1, stdin=None):
        """A refusal: nothing on stdout, and on stderr only lines that name the fault."""
        done = self.terrace(*args, code=code, stdin=stdin)
        self.assertEqual(done.stdout, "")
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"(error|warning|note): ")
        return done.stderr


class Help(Cli):
    def test_every_verb_has_help_and_exit_codes(self):
        self.assertIn("terrace 0.", self.terrace("--version").stdout)
        text = self.terrace("--help").stdout
        for verb in ("init", "compile", "explain", "diff", "data", "checkpoint", "export", "rows", "doctor"):
            self.assertIn(verb, text)
            self.assertIn("Exit codes: 0 done; 1", self.terrace(verb, "--help").stdout)
        for verb in ("generate", "profile", "head"):
            self.assertIn("--json", self.terrace("data", verb, "--help").stdout)
        for verb in ("ls", "verify", "scrub", "diff", "compact", "import"):
            self.assertIn("--json", self.terrace("checkpoint", verb, "--help").stdout)

    def test_usage_errors_are_2(self):
        self.assertIn("'compil' is not a verb; did you mean 'compile'?", self.error("compil", code=2))
        self.assertIn("MODEL is required", self.error("compile", code=2))
        self.assertIn("did you mean 'spec'?", self.error("compile", "small.yaml", "--emit=spek", code=2))
        self.assertIn("--lookahed", self.error("explain", "small.yaml", "--lookahed", code=2))
        self.assertIn("did you mean 'x86-64-v3'?", self.error("compile", "small.yaml", "--cpu", "x86-64v3", code=2))
        self.assertIn("two files, or one with --set", self.error("diff", "small.yaml", code=2))

    def test_a_full_disk_behind_stdout_is_3(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(TERRACE), "compile", "small.yaml", "--emit=spec"], cwd=self.folder, text=True,
                                  stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)
        self.assertIn("error: cannot write the output: No space left", done.stderr)


class Errors(Cli):
    def test_all_errors_of_a_spec_with_places(self):
        (self.folder / "bad.yaml").write_text(
            "terrace: 1\nfeatures:\n- {name: a, table: {rows: 10, dmi: 4}}\n- {name: b, pooling: avg}\n")
        text = self.error("compile", "bad.yaml")
        self.assertIn("bad.yaml:3:31: error: features.a.table: unknown key 'dmi'; did you mean 'dim'?", text)
        self.assertIn("bad.yaml:4:22: error: features.b.pooling: 'avg' is not known; did you mean 'mean'?", text)
        self.assertGreaterEqual(len(text.splitlines()), 3)

    def test_as_json(self):
        (self.folder / "bad.yaml").write_text("terrace: 1\nfeatures:\n- {name: a, table: {rows: ten, dim: 4}}\n")
        answer = json.loads(self.terrace("explain", "bad.yaml", "--json", code=1).stdout)
        self.assertEqual(answer["ok"], False)
        self.assertEqual(answer["exit_code"], 1)
        self.assertEqual([(d["file"], d["line"], d["column"]) for d in answer["diagnostics"]], [("bad.yaml", 3, 27)])

    def test_files_that_are_not_there_are_3(self):
        self.assertIn("nowhere.yaml: error: cannot read the file", self.error("compile", "nowhere.yaml", code=3))
        self.assertIn("gone.yaml", self.error("explain", "small.yaml", "--node", "gone.yaml", code=3))
        self.assertIn("gone.json", self.error("explain", "small.yaml", "--profile", "gone.json", code=3))
        self.assertIn("'gone.yaml'", self.error("explain", "small.yaml", "--plan", "gone.yaml", code=3))
        self.assertIn("expected a profile", self.error("explain", "small.yaml", "--profile", "small.yaml"))
        self.assertIn("no/such", self.error("compile", "small.yaml", "--emit=spec", "-o", "no/such/file", code=3))

    def test_what_cannot_run_yet_is_located(self):
        for edit, part in (("workers=4", "distributed exchange"), ("features.user.table.dtype=int8", "dtype 'int8'"),
                           ("features.user.table.ids=dynamic", "ids 'dynamic'")):
            text = self.error("compile", "small.yaml", "--set", edit)
            self.assertIn(part, text)
            self.assertTrue(text.startswith(f"--set {edit}: error:"), text)
            self.terrace("compile", "small.yaml", "--emit=spec", "--set", edit)
            self.terrace("explain", "small.yaml", "--set", edit)

    def test_a_model_without_head_says_what_it_can_do(self):
        done = self.terrace("compile", "small.yaml", "--set", "head=", "-o", "headless")
        self.assertIn("warning: the model has no head", done.stderr)
        self.assertIn("--emit=lib", done.stderr)
        self.assertEqual(self.terrace("compile", "small.yaml", "--set", "head=", "--emit=lib").stderr, "")

    def test_a_budget_that_does_not_fit(self):
        text = self.error("explain", "small.yaml", "--set", "memory.tiers.dram.capacity=1KiB")
        self.assertRegex(text, r"error: .*dram")


class Init(Cli):
    def test_writes_a_spec_that_parses(self):
        self.assertIn("wrote shop.yaml", self.terrace("init", "shop").stdout)
        self.assertIn("is there already", self.error("init", "shop"))
        self.terrace("init", "shop", "--force")
        printed = self.terrace("compile", "shop.yaml", "--emit=spec").stdout
        self.assertIn("model: shop\n", printed)
        self.terrace("explain", "shop.yaml")
        self.assertIn("terrace: 1", self.terrace("init", "shop", "-o", "-").stdout)
        self.assertEqual(json.loads(self.terrace("init", "other", "--json").stdout)["file"], "other.yaml")
        self.assertIn("cannot name a model", self.error("init", "a/b", code=2))


class Spec(Cli):
    def test_print_is_a_fixpoint(self):
        files = [RETAIL, self.folder / "small.yaml"]
        if SPECS.exists():
            files += sorted(SPECS.glob("*.yaml"))
        for file in files:
            once = self.terrace("compile", file, "--emit=spec").stdout
            again = self.terrace("compile", "-", "--emit=spec", stdin=once).stdout
            self.assertEqual(once, again, file)

    def test_set_and_node(self):
        (self.folder / "node.yaml").write_text(
            "terrace: 1\nmemory: {tiers: [{name: disk, kind: nvme, capacity: 2GiB, path: x}, "
            "{name: dram, kind: dram, capacity: 9MiB}]}\n")
        text = self.terrace("compile", "small.yaml", "--node", "node.yaml", "--set", "seed=9", "--set",
                            "data={path: [a.tsv, b.tsv], list_sep: ';'}", "--emit=spec").stdout
        for part in ("seed: 9\n", "capacity: 9MiB", "path: [a.tsv, b.tsv]", 'list_sep: ";"'):
            self.assertIn(part, text)
        self.assertIn("workers: 1", self.terrace("compile", "node.yaml", "--emit=spec").stdout)
        self.assertIn("--node FILE", self.error("explain", "node.yaml"))


class Explain(Cli):
    def test_set_equals_the_edited_file(self):
        for new in ("4MiB", "64MiB"):
            edited = self.folder / f"edited-{new}"
            edited.mkdir()
            (edited / "small.yaml").write_text(SMALL.replace("16MiB", new))
            for form in ([], ["--json"]):
                what_if = self.terrace("explain", "small.yaml", "--set", f"memory.tiers.dram.capacity={new}", *form)
                fresh = self.terrace("explain", edited / "small.yaml", *form)
                self.assertEqual(what_if.stdout, fresh.stdout)

    def test_names_every_table_and_the_bound(self):
        text = self.terrace("explain", "small.yaml").stdout
        for part in ("user", "item", "disk", "dram", "lookahead 2", "bound"):
            self.assertIn(part, text)
        answer = json.loads(self.terrace("explain", "small.yaml", "--json").stdout)
        self.assertEqual(answer["batch"], 32)

    def test_follows_a_decision(self):
        self.terrace("compile", "small.yaml", "--emit=decision", "-o", "d.yaml", "--set", "plan.lookahead=3")
        self.assertIn("lookahead 3", self.terrace("explain", "small.yaml", "--plan", "d.yaml", "--set",
                                                  "plan.lookahead=auto").stdout)
        text = (self.folder / "d.yaml").read_text().replace('"item"', '"itme"')
        (self.folder / "d.yaml").write_text(text)
        self.assertIn("itme", self.error("explain", "small.yaml", "--plan", "d.yaml"))


class Diff(Cli):
    def test_in_the_users_terms(self):
        text = self.terrace("diff", "small.yaml", "--set", "plan.place.item.home=dram", "--set",
                            "plan.place.item.cache=", "--set", "batch.size=64").stdout
        self.assertIn("~ batch.size: 32 -> 64", text)
        self.assertRegex(text, r"table item: disk behind \d+ rows in dram -> dram")
        self.assertRegex(text, r"step: .* -> ")
        answer = json.loads(self.terrace("diff", "small.yaml", "--set", "plan.lookahead=1", "--json").stdout)
        self.assertEqual(answer["lookahead"], [2, 1])
        self.assertEqual(answer["spec"], [{"key": "plan.lookahead", "before": "2", "after": "1"}])

    def test_two_files_and_equal_files(self):
        (self.folder / "b.yaml").write_text(SMALL.replace("- {name: user, table: {rows: 1000, dim: 8}}\n", ""))
        text = self.terrace("diff", "small.yaml", "b.yaml").stdout
        self.assertIn("- tables.user: {rows: 1000", text)
        self.assertIn("- features.user: {", text)
        self.assertIn("the specs are equal", self.terrace("diff", "small.yaml", "small.yaml").stdout)

    def test_decisions(self):
        self.terrace("compile", "small.yaml", "--emit=decision", "-o", "a.yaml")
        self.terrace("compile", "small.yaml", "--emit=decision", "-o", "b.yaml", "--set", "plan.lookahead=4")
        self.assertIn("~ lookahead: 2 -> 4", self.terrace("diff", "a.yaml", "b.yaml").stdout)
        self.assertIn("the decisions are equal", self.terrace("diff", "a.yaml", "a.yaml").stdout)
        self.assertIn("with a decision only", self.error("diff", "a.yaml", "small.yaml"))

    def test_a_side_without_plan_says_why(self):
        text = self.terrace("diff", "small.yaml", "--set", "memory.tiers.dram.capacity=1KiB").stdout
        self.assertIn("~ memory.tiers.dram.capacity: 16MiB -> 1KiB", text)
        self.assertIn("after: no plan: ", text)


class Data(Cli):
    def test_generate_head_profile_explain(self):
        names = [entry["name"] for entry in json.loads(self.terrace("data", "generate", "list", "--json").stdout)]
        self.assertIn("clicks", names)
        self.assertIn("no workload 'clics'; did you mean 'clicks'?", self.error("data", "generate", "clics", code=2))
        self.error("data", "generate", "clicks", "--scale", "0", code=2)
        made = json.loads(self.terrace("data", "generate", "clicks", "--scale", "0.01", "--seed", "1", "-o", "gen",
                                       "--json").stdout)
        again = json.loads(self.terrace("data", "generate", "clicks", "--scale", "0.01", "--seed", "1", "-o", "gen2",
                                        "--json").stdout)
        self.assertEqual((self.folder / made["data"]).read_bytes(), (self.folder / again["data"]).read_bytes())
        head = json.loads(self.terrace("data", "head", made["data"], "-n", 3, "--json").stdout)
        self.assertEqual(len(head[0]["rows"]), 3)
        lines = self.terrace("data", "head", made["data"], "-n", 3).stdout.splitlines()
        self.assertEqual(len(lines), 4)
        self.terrace("data", "profile", made["spec"], "--data", made["data"], "-o", "p.json")
        self.assertGreater(json.loads((self.folder / "p.json").read_text())["batches"], 0)
        self.assertIn("p.json", self.terrace("explain", made["spec"], "--profile", "p.json").stdout)

    def test_bad_data(self):
        self.assertIn("nowhere.tsv", self.error("data", "head", "nowhere.tsv", code=3))
        (self.folder / "clicks.tsv").write_text("user\titem\tclick\n1\t2\t0\n1\tx\t0\n")
        self.assertIn("clicks.tsv:3", self.error("data", "profile", "small.yaml"))


class Doctor(Cli):
    def test_names_every_check(self):
        answer = json.loads(self.terrace("doctor", "--json").stdout)
        checks = {c["check"]: c for c in answer["checks"]}
        for name in ("kernel", "cpu", "memory", "huge pages", "io_uring", "direct I/O", "linking", "persistent memory",
                     "cuda"):
            self.assertIn(name, checks)
        for check in checks.values():
            self.assertIn(check["level"], ("ok", "note", "warn", "fail"))
            self.assertTrue(check["advice"] or check["level"] in ("ok", "note"), check)
        self.assertEqual(list(self.folder.glob(".terrace-doctor*")), [])
        self.assertIn("is not a folder", self.error("doctor", "nowhere", code=3))


class Compile(Cli):
    def test_text_kinds(self):
        self.assertIn("emb.table @user", self.terrace("compile", "small.yaml", "--emit=mlir").stdout)
        self.assertIn("terrace_decision: 1", self.terrace("compile", "small.yaml", "--emit=decision").stdout)
        self.assertIn("plan.program", self.terrace("compile", "small.yaml", "--emit=plan").stdout)
        plan = json.loads(self.terrace("compile", "small.yaml", "--emit=artifact").stdout)
        self.assertEqual((plan["model"], plan["lookahead"]), ("small", 2))
        llvm = self.terrace("compile", "small.yaml", "--emit=llvm", "--cpu", "x86-64-v3").stdout
        self.assertIn("define ", llvm)
        self.assertNotIn("x86-64-v4.ll", llvm)
        self.assertIn(";--- x86-64-v4.ll", self.terrace("compile", "small.yaml", "--emit=llvm").stdout)

    def test_binaries(self):
        answer = json.loads(self.terrace("compile", "small.yaml", "-o", "small", "--json").stdout)
        self.assertEqual(answer["files"], ["small"])
        self.assertGreater(answer["kernels"], 0)
        info = subprocess.run(["./small", "info"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(info.returncode, 0, info.stderr)
        self.terrace("compile", "small.yaml", "--emit=lib", "-o", "small.so")
        self.terrace("compile", "small.yaml", "--emit=obj", "-o", "small.o")
        self.assertIn("terrace_artifact", subprocess.run(["nm", "-D", "small.so"], cwd=self.folder, text=True,
                                                         capture_output=True).stdout)
        (self.folder / "use.c").write_text(
            '#include "small.h"\nconst int dims[SMALL_FEATURES] = SMALL_DIMS;\n'
            "_Static_assert(SMALL_FEATURE_USER == 0 && SMALL_FEATURE_ITEM == 1 && SMALL_BATCH == 32, \"\");\n")
        subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-c", "use.c", "-o", "use.o"], cwd=self.folder,
                       check=True)

    def test_default_output_is_the_models_name(self):
        self.terrace("compile", "small.yaml")
        self.assertTrue(os.access(self.folder / "small", os.X_OK))

    def test_dumps_are_numbered_and_parse(self):
        (self.folder / "ir").mkdir()
        (self.folder / "ir" / "99-old.mlir").write_text("stale")
        (self.folder / "ir" / "notes.txt").write_text("kept")
        self.terrace("compile", "small.yaml", "--dump-dir", "ir", "-o", "small")
        names = sorted(f.name for f in (self.folder / "ir").glob("*.mlir"))
        self.assertEqual(names[0], "00-import.mlir")
        self.assertEqual([int(re.match(r"\d+", n).group()) for n in names], list(range(len(names))))
        for part in ("emb-dedup", "emb-decide", "emb-place", "emb-to-plan", "plan-group", "plan-direct-lookup", "plan-schedule-prefetch",
                     "plan-allocate", "kernels-x86-64-v3"):
            self.assertTrue(any(part in n for n in names), (part, names))
        self.assertTrue((self.folder / "ir" / "notes.txt").exists())
        for name in names:
            done = subprocess.run([str(OPT), f"ir/{name}", "-o", "/dev/null"], cwd=self.folder, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, f"{name}: {done.stderr[:500]}")

    def test_a_decision_is_followed(self):
        self.terrace("compile", "small.yaml", "--emit=decision", "-o", "d.yaml")
        text = (self.folder / "d.yaml").read_text().replace("lookahead: 2", "lookahead: 5")
        (self.folder / "d.yaml").write_text(text)
        plan = json.loads(self.terrace("compile", "small.yaml", "--emit=artifact", "--plan", "d.yaml", "--set",
                                       "plan.lookahead=auto").stdout)
        self.assertEqual(plan["lookahead"], 5)

    def test_same_bytes_twice(self):
        for folder in ("one", "two"):
            (self.folder / folder).mkdir()
            shutil.copy(self.folder / "small.yaml", self.folder / folder / "small.yaml")
            subprocess.run([str(TERRACE), "compile", "small.yaml"], cwd=self.folder / folder, check=True)
        self.assertEqual((self.folder / "one" / "small").read_bytes(), (self.folder / "two" / "small").read_bytes())


if __name__ == "__main__":
    unittest.main()
