//===- ModelMain.cpp - main() of every emitted executable
//------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/ModelMain.h"

#include "runtime/model/Verbs.h"

#include <cstdio>
#include <exception>

namespace trc::model {

static int runVerb(Run &run) {
  switch (run.options.verb) {
  case Verb::Train:
    return runTrain(run);
  case Verb::Eval:
    return runEval(run);
  case Verb::Predict:
    return runPredict(run);
  case Verb::Verify:
    return runVerify(run);
  case Verb::Bench:
    return runBench(run);
  case Verb::Info:
    return runInfo(run);
  }
  return 2;
}

static int modelMain(int argc, char **argv, const trc_artifact *artifact) {
  watchSignals();
  Result<ModelConfig> config = ModelConfig::parse(*artifact);
  if (!config.ok()) {
    std::fprintf(stderr, "error: %s\n", config.takeStatus().message().c_str());
    return 1;
  }
  RunOptions options;
  int exitCode = 0;
  bool parsed = parseOptions(argc, argv, config->model, options, exitCode);
  Report report(options.json);
  if (!parsed)
    return report.finish(exitCode); // help has gone to stdout
  if (Status s = config->setAll(options.sets); !s.ok())
    return report.failure(s);
  if (!options.data.empty())
    config->data.paths = options.data;
  Run run{artifact, std::move(*config), std::move(options), &report};
  return report.finish(runVerb(run));
}

} // namespace trc::model

int trc_model_main(int argc, char **argv, const trc_artifact *artifact) {
  // Exceptions of the libraries (no memory, JSON) end here as an error line.
  try {
    return trc::model::modelMain(argc, argv, artifact);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
