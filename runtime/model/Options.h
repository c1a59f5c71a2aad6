//===- Options.h - The command line of the executable -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ./model VERB [options], as plain values. Options that a verb does not know
// are refused by the parser, so none is ever ignored.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_OPTIONS_H
#define TERRACE_RUNTIME_MODEL_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace trc::model {

enum class Verb { Train, Eval, Predict, Verify, Bench, Info };

struct RunOptions {
  Verb verb = Verb::Info;
  std::vector<std::string> data; // --data, replaces data.path
  std::string state;             // empty: <model>.state
  int64_t steps = -1;            // -1: no limit, or the verb's default
  int64_t epochs = 0;            // 0: as compiled in
  bool fresh = false, warm = false;
  std::string from, initFrom, cpu, out;
  std::vector<std::string> sets;
  uint32_t threads = 0;
  bool json = false;
  bool synthetic = false; // verify: random batches
  uint64_t seed = 1;
};

/// Parses; false with the exit code set where the program should end now
/// (help, version, or a usage error that was printed).
bool parseOptions(int argc, char **argv, const std::string &model,
                  RunOptions &options, int &exitCode);

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_OPTIONS_H
