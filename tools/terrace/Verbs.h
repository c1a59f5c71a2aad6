//===- Verbs.h - The verbs of `terrace` -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per verb, from parsed options to an exit code. main.cpp parses
// the command line and is the only file that knows how.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TOOLS_TERRACE_VERBS_H
#define TERRACE_TOOLS_TERRACE_VERBS_H

#include "Driver/Compile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::tool {

struct InitOptions {
  std::string model = "model"; ///< its name
  std::string output;          ///< empty: MODEL.yaml; "-": stdout
  bool force = false;
};

/// Where a spec comes from; shared by the verbs that read one.
struct SpecOptions {
  std::string model, node;
  std::vector<std::string> edits;
  std::string machine; ///< instead of the spec's
  spec::SpecInput input() const;
};

struct CompileVerb {
  SpecOptions spec;
  std::string emit = "exe";
  std::string output, plan, profile, dumpDir, cpus;
  bool serve = false;
};

struct ExplainVerb {
  SpecOptions spec;
  std::string plan, profile;
  bool serve = false;
};

struct DiffVerb {
  std::string before, after; ///< specs or decisions; after may be empty
  std::string nodeBefore, node;
  std::vector<std::string> edits; ///< of `after`
  std::string profile;
};

struct GenerateVerb {
  std::string workload, output = ".";
  double scale = 1;
  uint64_t seed = 0;
};

struct ProfileVerb {
  SpecOptions spec;
  std::vector<std::string> data; ///< instead of the spec's
  std::string output;
  int64_t rows = 0; ///< 0: all
};

struct HeadVerb {
  std::vector<std::string> files;
  int64_t rows = 10;
};

struct ImportTorchrecVerb {
  std::string function; ///< FILE.py:FUNCTION
  std::string output, model, optimizer = "rowwise_adagrad";
  int64_t maxIds = 64, batch = 2048;
};

struct DoctorVerb {
  std::string folder = ".";
};

struct CalibrateVerb {
  std::string output = "machine.json", folder = ".", pmem;
  bool quick = false, force = false;
};

/// A state; of `ls` and `compact`.
struct StateVerb {
  std::string state;
};

struct VerifyVerb {
  std::string state, at; ///< at: of `verify`; empty: the newest
  int64_t limit = 1000;  ///< problems listed; 0: all
};

struct CheckpointDiffVerb {
  std::string state, before, after; ///< after empty: `before` is a state
  std::string at, atOther;
};

struct ImportVerb {
  std::string folder, state;
};

struct ExportVerb {
  std::string state, at, since, output;
  std::string format = "safetensors";
  std::vector<std::string> tables; ///< empty: all
  bool weightsOnly = false;
};

struct RowsVerb {
  std::string state, table, at;
  std::vector<std::string> ids;
  bool withState = false, strings = false;
};

int runInit(const InitOptions &options, bool json);
int runCompile(const CompileVerb &options, bool json);
int runExplain(const ExplainVerb &options, bool json);
int runDiff(const DiffVerb &options, bool json);
int runGenerate(const GenerateVerb &options, bool json);
int runProfile(const ProfileVerb &options, bool json);
int runHead(const HeadVerb &options, bool json);
int runImportTorchrec(const ImportTorchrecVerb &options);
int runCalibrate(const CalibrateVerb &options, bool json);
int runDoctor(const DoctorVerb &options, bool json);
int runCheckpointLs(const StateVerb &options, bool json);
int runCheckpointVerify(const VerifyVerb &options, bool json);
int runCheckpointScrub(const VerifyVerb &options, bool json);
int runCheckpointDiff(const CheckpointDiffVerb &options, bool json);
int runCheckpointCompact(const StateVerb &options, bool json);
int runCheckpointImport(const ImportVerb &options, bool json);
int runExport(const ExportVerb &options, bool json);
int runRows(const RowsVerb &options, bool json);

/// Prints diagnostics to stderr, one a line, or as one JSON object to stdout;
/// returns the exit code.
int report(driver::Outcome outcome, const spec::Diagnostics &diagnostics,
           bool json);
/// One error that has no place in a spec.
int fail(driver::Outcome outcome, const std::string &message, bool json);

/// Writes `text` through a temporary file; "-" is stdout. False, with the
/// reason, if that fails.
bool writeText(llvm::StringRef path, llvm::StringRef text, std::string &error);

} // namespace terrace::tool

#endif // TERRACE_TOOLS_TERRACE_VERBS_H
