//===- main.cpp - The command line of `terrace` ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the verbs and their options, parses, and calls one of Verbs.h. The
// only file with exceptions in it: CLI11 throws, and throws end here.
//
//===----------------------------------------------------------------------===//
#include "Spec/Words.h"
#include "Verbs.h"

#include "runtime/core/Output.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/InitLLVM.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <iostream>

using namespace terrace;
using namespace terrace::tool;

namespace {

const char exitCodes[] =
    "Exit codes: 0 done; 1 an error in the input, or no plan fits; 2 usage; "
    "3 the machine: files, devices, libraries.";

std::string versionText() {
  return std::string("terrace ") + TERRACE_VERSION + " (LLVM " +
         LLVM_VERSION_STRING + ", spec 1, artifact 1)";
}

/// A text option that takes exactly one argument each time it is given, so
/// that what follows it is not swallowed.
CLI::Option *repeated(CLI::App *app, const std::string &name,
                      std::vector<std::string> &values,
                      const std::string &help) {
  return app->add_option(name, values, help)
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

void addSpecOptions(CLI::App *app, SpecOptions &options) {
  app->add_option("MODEL", options.model, "the spec, a YAML file; - is stdin")
      ->required()
      ->type_name("FILE");
  app->add_option("--node", options.node,
                  "a second file: memory, workers, target, machine, plan")
      ->type_name("FILE");
  app->add_option("--machine", options.machine,
                  "what the machine can do (terrace calibrate), instead of the "
                  "spec's file")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  repeated(app, "--set", options.edits,
           "changes one key of the spec; list items go by name, as in "
           "memory.tiers.dram.capacity=4GiB");
}

/// A name that is empty would stand for the default, or for a file without a
/// name in some folder.
CLI::Option *notEmpty(CLI::Option *option) {
  return option->check([](const std::string &given) {
    return given.empty() ? "no name is given" : "";
  });
}

/// LLVM has handlers for some of these, with a stack dump or without an eye on
/// nohup. Beyond the limit of file sizes, a write shall fail and be reported.
class Signals {
public:
  Signals() {
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
      if (struct sigaction old;
          ::sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
        ignored.push_back(number);
  }
  void install() {
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
      ::signal(number, llvm::is_contained(ignored, number) ? SIG_IGN
                                                           : trc::endBySignal);
    ::signal(SIGXFSZ, SIG_IGN);
  }

private:
  std::vector<int> ignored; // by who started us
};

/// `code`, or that stdout did not take what was said: a full disk. LLVM would
/// abort at exit.
int finishOutput(int code) {
  std::cout.flush(); // help
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  if (!std::cout && !error)
    error = std::error_code(errno ? errno : EIO, std::generic_category());
  llvm::outs().clear_error();
  if (!error)
    return code;
  llvm::errs() << "terrace: error: cannot write the output: " << error.message()
               << "\n";
  return code ? code : int(driver::Outcome::Environment);
}

/// CLI11's message on one line, with what is close to it.
int usageError(const CLI::App &app, const CLI::ParseError &error) {
  const CLI::App *at = &app;
  std::string path = "terrace";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  std::string message = error.what();
  for (char &c : message)
    if (c == '\n')
      c = ' ';
  llvm::errs() << path << ": error: " << message << "; see " << path
               << " --help\n";
  return int(driver::Outcome::Usage);
}

/// Options of the verbs over states, for as long as the parser.
struct StateVerbs {
  StateVerb ls, compact;
  VerifyVerb verify, scrub;
  CheckpointDiffVerb diff;
  ImportVerb import;
  ExportVerb export_;
  RowsVerb rows;
};

using WithJson = std::function<CLI::App *(CLI::App *)>;

void addCheckpointVerbs(CLI::App &app, const WithJson &withJson,
                        StateVerbs &verbs, const bool &json, int &code) {
  CLI::App *group =
      app.add_subcommand("checkpoint", "looks at a state and looks after it");
  group->require_subcommand(1);
  group->footer(exitCodes);
  auto state = [](CLI::App *verb, std::string &path) {
    verb->add_option("STATE", path, "the state's folder")
        ->required()
        ->type_name("FOLDER");
  };
  auto limit = [](CLI::App *verb, int64_t &most) {
    verb->add_option("--limit", most, "problems to list (0: all)")
        ->capture_default_str();
  };
  CLI::App *verb = withJson(group->add_subcommand(
      "ls", "checkpoints and the closed state, damaged ones with the reason"));
  state(verb, verbs.ls.state);
  verb->callback([&] { code = runCheckpointLs(verbs.ls, json); });

  verb = withJson(group->add_subcommand(
      "verify", "reads every record, index and blob of one checkpoint"));
  state(verb, verbs.verify.state);
  verb->add_option("CKPT", verbs.verify.at,
                   "ckpt-N, N or 'closed' (default: the newest)");
  limit(verb, verbs.verify.limit);
  verb->callback([&] { code = runCheckpointVerify(verbs.verify, json); });

  verb = withJson(group->add_subcommand(
      "scrub", "the same of all that is retained, and which rows are lost"));
  state(verb, verbs.scrub.state);
  limit(verb, verbs.scrub.limit);
  verb->callback([&] { code = runCheckpointScrub(verbs.scrub, json); });

  verb = withJson(group->add_subcommand(
      "diff", "what differs between two checkpoints, or two states"));
  state(verb, verbs.diff.state);
  verb->add_option("A", verbs.diff.before,
                   "a checkpoint of it; or, without B, another state's folder")
      ->required();
  verb->add_option("B", verbs.diff.after, "a later checkpoint of it");
  verb->add_option("--at", verbs.diff.at,
                   "of two states: the first one's checkpoint")
      ->type_name("CKPT");
  verb->add_option("--at-other", verbs.diff.atOther,
                   "of two states: the other one's checkpoint")
      ->type_name("CKPT");
  verb->callback([&] { code = runCheckpointDiff(verbs.diff, json); });

  verb = withJson(group->add_subcommand(
      "compact", "verifies the newest checkpoint, then removes all others"));
  state(verb, verbs.compact.state);
  verb->callback([&] { code = runCheckpointCompact(verbs.compact, json); });

  verb = withJson(group->add_subcommand(
      "import", "makes a state of what export --format rows wrote"));
  verb->add_option("FOLDER", verbs.import.folder, "the exported checkpoint")
      ->required();
  verb->add_option("STATE", verbs.import.state, "the folder of the new state")
      ->required()
      ->type_name("FOLDER");
  verb->callback([&] { code = runCheckpointImport(verbs.import, json); });
}

void addStateVerbs(CLI::App &app, const WithJson &withJson, StateVerbs &verbs,
                   const bool &json, int &code) {
  addCheckpointVerbs(app, withJson, verbs, json, code);

  ExportVerb &e = verbs.export_;
  CLI::App *verb = withJson(app.add_subcommand(
      "export", "writes a state's tables as arrays, or as one checkpoint"));
  verb->add_option("STATE", e.state, "the state's folder")
      ->required()
      ->type_name("FOLDER");
  verb->add_option("--at", e.at, "ckpt-N, N or 'closed' (default: the newest)")
      ->type_name("CKPT");
  verb->add_option("--since", e.since,
                   "only rows that have changed since this one, with their "
                   "numbers in TABLE.ids")
      ->type_name("CKPT");
  verb->add_option("--format", e.format,
                   "safetensors, npy (a file for each array) or rows (for "
                   "checkpoint import)")
      ->capture_default_str();
  notEmpty(verb->add_option("-o,--output", e.output,
                            "the file (safetensors) or the folder"))
      ->required();
  verb->add_option("--table", e.tables, "only this table; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TABLE");
  verb->add_flag("--weights-only", e.weightsOnly, "no optimizer state");
  verb->callback([&] { code = runExport(e, json); });

  RowsVerb &r = verbs.rows;
  verb = withJson(app.add_subcommand("rows", "shows rows of a table"));
  verb->add_option("STATE", r.state, "the state's folder")
      ->required()
      ->type_name("FOLDER");
  verb->add_option("TABLE", r.table, "by name")->required();
  verb->add_option("ID", r.ids, "row numbers; in tables with ids: hash, ids")
      ->required();
  verb->add_option("--at", r.at, "ckpt-N, N or 'closed' (default: the newest)")
      ->type_name("CKPT");
  verb->add_flag("--state", r.withState, "optimizer state as well");
  verb->add_flag("--strings", r.strings, "IDs are texts of a string feature");
  verb->callback([&] { code = runRows(r, json); });
}

/// The exit code. Throws what CLI11 and the standard library throw.
int runCommandLine(int argc, char **argv) {
  CLI::App app(
      "Terrace compiles embedding access plans: a YAML spec of tables, "
      "features and memory\nbecomes an executable (or a library for a "
      "trainer) that trains tables larger than DRAM.",
      "terrace");
  app.footer(exitCodes);
  app.require_subcommand(1);
  app.set_version_flag("--version", versionText());
  app.get_formatter()->column_width(32);
  bool json = false;
  auto withJson = [&](CLI::App *verb) {
    verb->add_flag("--json", json, "results and errors as JSON on stdout");
    verb->footer(exitCodes);
    verb->get_formatter()->column_width(32);
    return verb;
  };
  int code = 0;

  InitOptions init_;
  CLI::App *verb =
      withJson(app.add_subcommand("init", "writes a commented spec"));
  verb->add_option("NAME", init_.model, "of the model")->capture_default_str();
  notEmpty(verb->add_option("-o,--output", init_.output,
                            "the file; - is stdout (default: NAME.yaml)"));
  verb->add_flag("--force", init_.force, "overwrite the file");
  verb->callback([&] { code = runInit(init_, json); });

  CompileVerb compile;
  verb = withJson(app.add_subcommand(
      "compile", "makes an executable of a spec, or any stage before it"));
  addSpecOptions(verb, compile.spec);
  std::string kinds;
  for (llvm::StringRef kind : driver::emitNames())
    kinds += (kinds.empty() ? "" : ", ") + kind.str();
  verb->add_option("--emit", compile.emit, "what to make: " + kinds)
      ->type_name("KIND")
      ->capture_default_str();
  notEmpty(verb->add_option(
               "-o,--output", compile.output,
               "the file (default: stdout for text, else named after the "
               "model)"))
      ->type_name("FILE");
  verb->add_flag(
      "--serve", compile.serve,
      "a model that predicts from a trained state and does not "
      "train: no optimizer state, rows as serve.dtype says (int8 and "
      "int4 too)");
  verb->add_option("--plan", compile.plan,
                   "a decision (--emit=decision) to follow instead of deciding")
      ->type_name("FILE");
  verb->add_option("--profile", compile.profile,
                   "measured ids (terrace data profile)")
      ->type_name("FILE");
  verb->add_option("--dump-dir", compile.dumpDir,
                   "writes the IR after each pass as a numbered file")
      ->type_name("FOLDER");
  verb->add_option("--cpu", compile.cpus,
                   "images to build, separated by commas: x86-64-v3, "
                   "x86-64-v4, native (default: target.arch of the spec); or "
                   "aarch64, as object code only")
      ->type_name("LIST");
  verb->callback([&] { code = runCompile(compile, json); });

  ExplainVerb explain;
  verb = withJson(app.add_subcommand(
      "explain",
      "where each table goes and why, what a step costs, what binds"));
  addSpecOptions(verb, explain.spec);
  verb->add_flag("--serve", explain.serve,
                 "the model that --serve compiles, without training");
  verb->add_option("--plan", explain.plan, "explains this decision instead")
      ->type_name("FILE");
  verb->add_option("--profile", explain.profile,
                   "measured ids (terrace data profile)")
      ->type_name("FILE");
  verb->callback([&] { code = runExplain(explain, json); });

  DiffVerb diff;
  verb = withJson(app.add_subcommand(
      "diff", "what changes between two specs, or two decisions"));
  verb->add_option("BEFORE", diff.before, "a spec or a decision")
      ->required()
      ->type_name("FILE");
  verb->add_option("AFTER", diff.after,
                   "another one (default: BEFORE with --set and --node)")
      ->type_name("FILE");
  repeated(verb, "--set", diff.edits, "changes one key of AFTER");
  verb->add_option("--node", diff.node, "node file of AFTER")
      ->type_name("FILE");
  verb->add_option("--node-before", diff.nodeBefore, "node file of BEFORE")
      ->type_name("FILE");
  verb->add_option("--profile", diff.profile,
                   "measured ids (terrace data profile)")
      ->type_name("FILE");
  verb->callback([&] { code = runDiff(diff, json); });

  CLI::App *data = app.add_subcommand("data", "makes and looks at data");
  data->require_subcommand(1);
  data->footer(exitCodes);
  GenerateVerb generate;
  verb = withJson(data->add_subcommand(
      "generate", "makes a workload with known statistics, and its spec"));
  verb->add_option("WORKLOAD", generate.workload, "by name; 'list' names all")
      ->required();
  verb->add_option("--scale", generate.scale, "of its size")
      ->capture_default_str();
  verb->add_option("--seed", generate.seed, "same seed, same bytes")
      ->capture_default_str();
  notEmpty(verb->add_option("-o,--output", generate.output, "the folder"))
      ->capture_default_str();
  verb->callback([&] { code = runGenerate(generate, json); });

  ProfileVerb profile;
  verb = withJson(data->add_subcommand(
      "profile", "measures ids, for --profile: unique per batch, reuse, "
                 "sessions, miss ratio"));
  addSpecOptions(verb, profile.spec);
  verb->add_option("--data", profile.data, "instead of the spec's data.path")
      ->allow_extra_args(false)
      ->type_name("FILE");
  notEmpty(verb->add_option("-o,--output", profile.output,
                            "the file (default: stdout)"));
  verb->add_option("--rows", profile.rows, "reads no more than this (0: all)")
      ->capture_default_str();
  verb->callback([&] { code = runProfile(profile, json); });

  HeadVerb head;
  verb = withJson(
      data->add_subcommand("head", "shows the first rows, column by column"));
  verb->add_option("FILES", head.files, "TSV or CSV, plain or gzip")
      ->required();
  verb->add_option("-n,--rows", head.rows, "how many")->capture_default_str();
  verb->callback([&] { code = runHead(head, json); });

  StateVerbs states;
  addStateVerbs(app, withJson, states, json, code);

  ImportTorchrecVerb import;
  verb = app.add_subcommand(
      "import-torchrec", "writes the spec of a torch model's embedding tables");
  verb->footer(exitCodes);
  verb->get_formatter()->column_width(32);
  verb->add_option("FUNCTION", import.function,
                   "FILE.py:FUNCTION or MODULE:FUNCTION that makes the model")
      ->required();
  notEmpty(verb->add_option("-o,--output", import.output,
                            "the spec (default: stdout)"))
      ->type_name("FILE");
  verb->add_option("--optimizer", import.optimizer, "of the rows")
      ->capture_default_str();
  verb->add_option("--max-ids", import.maxIds, "ids of one bag, at most")
      ->capture_default_str();
  verb->add_option("--batch", import.batch, "samples of a step, at most")
      ->capture_default_str();
  verb->add_option("--model", import.model,
                   "its name (default: the function's)");
  verb->callback([&] { code = runImportTorchrec(import); });

  CalibrateVerb calibrate;
  verb = withJson(app.add_subcommand(
      "calibrate", "measures this machine, for --machine and the spec's "
                   "machine: under a minute; a third of it with --quick"));
  verb->add_option("-o,--output", calibrate.output,
                   "the machine file; - is stdout")
      ->type_name("FILE")
      ->capture_default_str();
  verb->add_option("--folder", calibrate.folder,
                   "on the disk that tables are to lie on; 0.6 GiB are "
                   "written there (quick: 0.3), and removed")
      ->type_name("FOLDER")
      ->capture_default_str();
  verb->add_option("--pmem", calibrate.pmem,
                   "on persistent memory, which is then measured, too: a file "
                   "of 256 MiB (quick: 64), removed")
      ->type_name("FOLDER");
  verb->add_flag("--quick", calibrate.quick, "fewer sizes and steps");
  verb->add_flag("--force", calibrate.force, "overwrite the file");
  verb->callback([&] { code = runCalibrate(calibrate, json); });

  DoctorVerb doctor;
  verb = withJson(app.add_subcommand(
      "doctor", "checks what this machine offers, by doing it"));
  verb->add_option("FOLDER", doctor.folder, "where states would lie")
      ->capture_default_str();
  verb->callback([&] { code = runDoctor(doctor, json); });

  // CLI11 would only say that a verb is required.
  std::vector<llvm::StringRef> verbs = {
      "init", "compile",         "explain",    "diff",
      "data", "import-torchrec", "checkpoint", "export",
      "rows", "calibrate",       "doctor"};
  if (argc > 1 && argv[1][0] != '-' && !llvm::is_contained(verbs, argv[1])) {
    llvm::errs() << "terrace: error: '" << argv[1] << "' is not a verb"
                 << spec::didYouMean(argv[1], verbs)
                 << " (verbs: " << spec::listOf(verbs) << ")\n";
    return int(driver::Outcome::Usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Help and version are thrown as well.
    if (error.get_exit_code() == 0)
      return finishOutput(app.exit(error));
    return usageError(app, error);
  }
  return finishOutput(code);
}

} // namespace

int main(int argc, char **argv) {
  Signals signals;
  llvm::InitLLVM init(argc, argv);
  signals.install();
  try {
    return runCommandLine(argc, argv);
  } catch (const std::exception &error) {
    llvm::errs() << "terrace: error: " << error.what() << "\n";
    return int(driver::Outcome::Environment);
  }
}
