//===- Frontend.cpp - The stages before code, as one object ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Frontend.h"

#include "Import/ImportSpec.h"
#include "Pipelines/Pipelines.h"
#include "Reference/Flatten.h"
#include "Transforms/Emb/EmbPasses.h"
#include "dialects/plan/Plan.h"
#include "runtime/core/Output.h"

#include "mlir/Pass/PassManager.h"

#include "llvm/Support/FileSystem.h"

#include <chrono>
#include <glob.h>

namespace terrace::driver {

static double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// One thread: a module of a few thousand ops passes faster than a thread pool
// starts, and dumps need the order.
Frontend::Frontend(const CompileOptions &options, CompileResult &result)
    : options(options), result(result),
      context(mlir::MLIRContext::Threading::DISABLED),
      handler(context.getDiagEngine().registerHandler(
          [this](mlir::Diagnostic &d) { onDiagnostic(d); })),
      dumps(options.dumpDir) {
  // Messages are for users; the dumps show the ops.
  context.printOpOnDiagnostic(false);
}

Frontend::~Frontend() { context.getDiagEngine().eraseHandler(handler); }

void Frontend::stage(llvm::StringRef name) {
  endStage();
  currentStage = name.str();
  stageStart = now();
  if (options.progress)
    options.progress(name);
}

void Frontend::endStage() {
  if (!currentStage.empty())
    result.times.push_back({currentStage, now() - stageStart});
  currentStage.clear();
}

bool Frontend::fail(Outcome outcome) {
  endStage();
  result.outcome = outcome;
  return false;
}

bool Frontend::fail(Outcome outcome, const llvm::Twine &message) {
  if (outcome == Outcome::Environment)
    result.diagnostics.environmentError(message);
  else
    result.diagnostics.error(message);
  return fail(outcome);
}

bool Frontend::emitText(std::string text) {
  endStage();
  if (!options.output.empty() && options.output != "-")
    return writeFile(options.output, text);
  result.text = std::move(text);
  return true;
}

bool Frontend::writeFile(const std::string &path, llvm::StringRef text) {
  if (!checkOutput(path))
    return false;
  if (trc::Status s = trc::writeOutput(path, text); !s.ok())
    return fail(Outcome::Environment, s.message());
  result.files.push_back(path);
  return true;
}

/// The files that globs match now.
static void addMatches(llvm::ArrayRef<spec::Str> patterns,
                       std::vector<std::string> &files) {
  for (const spec::Str &pattern : patterns) {
    glob_t found = {};
    if (::glob(pattern->c_str(), 0, nullptr, &found) == 0)
      files.insert(files.end(), found.gl_pathv,
                   found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
  }
}

bool Frontend::checkOutput(const std::string &path) {
  std::vector<std::string> inputs{options.input.modelFile,
                                  options.input.nodeFile, options.planFile,
                                  options.profileFile};
  if (parsed) {
    // Relative to where the command runs, as an executable made here reads it.
    if (parsed->data) {
      addMatches(parsed->data->paths, inputs);
      if (parsed->data->eval)
        addMatches(parsed->data->eval->paths, inputs);
    }
    if (parsed->machine)
      inputs.push_back(spec::machinePath(*parsed));
  }
  trc::Status s = trc::refuseInput(path, inputs);
  return s.ok() || fail(Outcome::Usage, s.message());
}

/// The first place in a file or a `--set` that a location names.
spec::Loc Frontend::locOf(mlir::Location location) const {
  spec::Loc found{~0u, 0, 0};
  const std::vector<spec::Source> &sources = result.diagnostics.sources();
  location->walk([&](mlir::Location at) {
    llvm::StringRef name;
    spec::Loc loc{0, 1, 1};
    if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(at)) {
      name = file.getFilename();
      loc.line = file.getLine();
      loc.column = file.getColumn();
    } else if (auto named = llvm::dyn_cast<mlir::NameLoc>(at)) {
      name = named.getName();
    }
    for (size_t i = 0; i < sources.size() && !name.empty(); ++i)
      if (sources[i].name == name) {
        loc.file = i;
        found = loc;
        return mlir::WalkResult::interrupt();
      }
    return mlir::WalkResult::advance();
  });
  return found;
}

void Frontend::onDiagnostic(mlir::Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  // Ours are one line each.
  for (char &c : text)
    if (c == '\n')
      c = ' ';
  spec::Loc loc = locOf(diagnostic.getLocation());
  switch (diagnostic.getSeverity()) {
  case mlir::DiagnosticSeverity::Error:
    result.diagnostics.error(loc, text);
    break;
  case mlir::DiagnosticSeverity::Warning:
    result.diagnostics.warning(loc, text);
    break;
  case mlir::DiagnosticSeverity::Note:
    result.diagnostics.note(loc, text);
    break;
  case mlir::DiagnosticSeverity::Remark:
    return; // explain says them
  }
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    result.diagnostics.note(locOf(note.getLocation()), note.str());
}

bool Frontend::parse() {
  stage("spec");
  // Before anything is opened; files that the spec names are known later.
  if (!options.output.empty() && !checkOutput(options.output))
    return false;
  parsed = spec::parseSpec(options.input, result.diagnostics);
  if (!parsed)
    return fail(result.diagnostics.hasEnvironmentErrors() ? Outcome::Environment
                                                          : Outcome::Error);
  return options.output.empty() || checkOutput(options.output);
}

void Frontend::makeServing() { parsed = spec::forServing(*parsed); }

bool Frontend::importModule() {
  stage("import");
  if (!spec::checkPlannable(*parsed, result.diagnostics))
    return fail(Outcome::Error);
  if (dumps.enabled() && !dumps.prepare())
    return fail(Outcome::Environment, dumps.error());
  if (!options.planFile.empty())
    if (std::error_code ec = llvm::sys::fs::access(
            options.planFile, llvm::sys::fs::AccessMode::Exist))
      return fail(Outcome::Environment, "cannot read the decision '" +
                                            options.planFile +
                                            "': " + ec.message());
  if (!options.profileFile.empty()) {
    auto loaded = profile::Profile::load(options.profileFile);
    if (!loaded)
      return fail(llvm::sys::fs::exists(options.profileFile)
                      ? Outcome::Error
                      : Outcome::Environment,
                  llvm::toString(loaded.takeError()));
    profile = std::move(*loaded);
  }
  ImportOptions importOptions;
  importOptions.profile = profile ? &*profile : nullptr;
  imported = importSpec(context, *parsed, importOptions);
  if (!imported)
    return fail(Outcome::Error);
  dumps.write("import", *imported);
  return true;
}

bool Frontend::runPipeline(
    llvm::StringRef name, llvm::function_ref<void(mlir::PassManager &)> build) {
  stage(name);
  mlir::PassManager manager(&context);
  build(manager);
  dumps.attach(manager);
  bool good = mlir::succeeded(manager.run(*imported));
  if (!dumps.error().empty())
    return fail(Outcome::Environment, dumps.error());
  if (good)
    return true;
  if (!result.diagnostics.hasErrors())
    result.diagnostics.error("the passes of '" + name +
                             "' failed without a reason; please report this");
  return fail(Outcome::Error);
}

bool Frontend::runEmbPasses() {
  auto flat = flattenStep(*imported, parsed->serving ? "serve" : "train");
  if (mlir::failed(flat))
    return fail(Outcome::Error);
  flattened = std::move(*flat);
  return runPipeline("emb", [&](mlir::PassManager &manager) {
    EmbPipelineOptions embOptions;
    embOptions.planFile = options.planFile;
    buildEmbPipeline(manager, embOptions);
  });
}

bool Frontend::runPlanPasses() {
  if (parsed->workers > 1) {
    result.diagnostics.error(
        parsed->workers.loc,
        "workers: " + llvm::Twine(parsed->workers.value) +
            " makes a program for each worker (see --dump-dir), but joining "
            "them needs the distributed exchange, which cannot be compiled "
            "yet (runs today: 1)");
    return fail(Outcome::Error);
  }
  return runPipeline(
      "plan", [&](mlir::PassManager &manager) { buildPlanPipeline(manager); });
}

bool Frontend::plan(std::optional<ModuleProblem> &problem,
                    std::optional<planner::Plan> &plan) {
  if (!runPipeline("dedup", [&](mlir::PassManager &manager) {
        // As the pipeline begins.
        EmbDedupOptions dedup;
        dedup.minFactor = EmbPipelineOptions().minDedupFactor;
        manager.addPass(createEmbDedup(dedup));
      }))
    return false;
  stage("planner");
  auto found = problemFromModule(*imported);
  if (mlir::failed(found))
    return fail(Outcome::Error);
  auto planned = planModule(*found, options.planFile);
  if (mlir::failed(planned))
    return fail(Outcome::Error);
  problem = std::move(*found);
  plan = std::move(*planned);
  endStage();
  return true;
}

} // namespace terrace::driver
