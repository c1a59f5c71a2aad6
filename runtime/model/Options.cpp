//===- Options.cpp - The command line of the executable
//--------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <limits>

namespace trc::model {

namespace {

constexpr uint64_t mostSeed = std::numeric_limits<uint64_t>::max();

class Parser {
public:
  Parser(const std::string &model, RunOptions &options)
      : app("Terrace model '" + model + "'"), model(model), o(options) {
    app.require_subcommand(1);
    app.footer("Exit codes: 0 done; 1 failed, with a line that starts with "
               "'error:'; 2 wrong usage; 129, 130, 143 ended by SIGHUP, "
               "SIGINT, SIGTERM after a finished step and a clean close; 141 "
               "the same, since nobody reads the output any more.");

    CLI::App *train = verb(Verb::Train, "train",
                           "Train; goes on from the state where there is one");
    dataOptions(train);
    stateOption(train);
    stepsOption(train, "Stop after N more steps");
    whole(train, "--epochs", o.epochs, 1, 1 << 30, "Passes over the data")
        ->type_name("N");
    CLI::Option *fresh = train->add_flag(
        "--fresh", o.fresh, "Start anew; removes an existing state");
    CLI::Option *from =
        train->add_option("--from", o.from, "Go on from this checkpoint")
            ->type_name("CKPT");
    train
        ->add_option("--init-from", o.initFrom,
                     "Take rows by table name from another state")
        ->type_name("STATE");
    fresh->excludes(from);
    train
        ->add_flag("--warm", o.warm,
                   "Fill the caches first, with the rows that they held when "
                   "the state was closed")
        ->excludes(fresh);

    CLI::App *eval =
        verb(Verb::Eval, "eval", "Loss, NE and AUC; changes no byte");
    dataOptions(eval);
    stateOption(eval);
    eval->add_option("--from", o.from, "Evaluate this checkpoint")
        ->type_name("CKPT");

    CLI::App *predict = verb(Verb::Predict, "predict",
                             "Write one probability per row; changes no byte");
    dataOptions(predict);
    stateOption(predict);
    predict->add_option("--from", o.from, "Predict with this checkpoint")
        ->type_name("CKPT");
    notEmpty(
        predict->add_option("--out", o.out, "File to write; default: stdout"))
        ->type_name("FILE");

    CLI::App *verify =
        verb(Verb::Verify, "verify",
             "Train a scratch state and the reference side by side; every bit "
             "must be equal");
    dataOptions(verify);
    stateOption(verify);
    stepsOption(verify, "Steps to compare (20)");
    whole(verify, "--synthetic", o.seed, uint64_t(0), mostSeed,
          "Random batches from this seed instead of data")
        ->type_name("SEED")
        ->each([this](const std::string &) { o.synthetic = true; });

    CLI::App *bench = verb(Verb::Bench, "bench",
                           "Time steps on random batches with every bag as "
                           "long as it may be, in a scratch state");
    stateOption(bench);
    stepsOption(bench, "Steps to time (100)");
    whole(bench, "--seed", o.seed, uint64_t(0), mostSeed,
          "Seed of the batches (1)")
        ->type_name("SEED");

    CLI::App *info = verb(Verb::Info, "info", "What this model is");
    stateOption(info);
    for (CLI::App *v : {train, eval, predict, verify, bench}) {
      v->add_option("--cpu", o.cpu, "Force a CPU image")
          ->check(CLI::IsMember({"x86-64-v3", "x86-64-v4"}));
      whole(v, "--threads", o.threads, 0, 1024, "Work threads; 0: one per CPU")
          ->type_name("N");
    }
  }

  bool parse(int argc, char **argv, int &exitCode) {
    const std::vector<CLI::App *> subs = app.get_subcommands({});
    try {
      app.parse(argc, argv);
      return true;
    } catch (const CLI::ParseError &e) {
      if (e.get_exit_code() == 0) {
        exitCode = app.exit(e);
      } else if (argc > 1 && argv[1][0] != '-' &&
                 std::none_of(subs.begin(), subs.end(), [&](CLI::App *sub) {
                   return sub->get_name() == argv[1];
                 })) {
        // CLI11 would only say that a verb is required.
        std::cerr << "error: '" << argv[1]
                  << "' is not a verb (verbs: train, eval, predict, verify, "
                     "bench, info)\n";
        exitCode = 2;
      } else {
        std::cerr << "error: " << e.what() << "\nrun with --help for more\n";
        exitCode = 2;
      }
      return false;
    }
  }

private:
  CLI::App *verb(Verb which, const char *name, const char *text) {
    CLI::App *sub = app.add_subcommand(name, text);
    sub->callback([this, which] { o.verb = which; });
    sub->add_flag("--json", o.json, "JSON lines instead of text");
    return sub;
  }
  void dataOptions(CLI::App *sub) {
    sub->add_option("--data", o.data,
                    "Data files instead of data.path; may hold globs")
        ->type_name("FILE")
        ->allow_extra_args(false);
    sub->add_option("--set", o.sets,
                    "Change a key of train or data, as key=value")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
  }
  void stateOption(CLI::App *sub) {
    notEmpty(
        sub->add_option("--state", o.state,
                        "Folder of the state (default: " + model + ".state)"))
        ->type_name("DIR");
  }
  void stepsOption(CLI::App *sub, const char *text) {
    whole(sub, "--steps", o.steps, 0, int64_t(1) << 48, text)->type_name("N");
  }
  /// CLI11's own check names its range with three hundred digits, and lets
  /// through what does not fit the type.
  template <typename T, typename L, typename H>
  static CLI::Option *whole(CLI::App *sub, const char *name, T &out, L low,
                            H high, const char *text) {
    return sub->add_option_function<std::string>(
        name,
        [&out, name, low, high](const std::string &given) {
          T value = 0;
          const char *end = given.data() + given.size();
          auto [at, error] = std::from_chars(given.data(), end, value);
          if (given.empty() || at != end || error != std::errc() ||
              value < T(low) || value > T(high))
            throw CLI::ValidationError(
                name, "'" + given + "' is no whole number from " +
                          std::to_string(low) + " to " + std::to_string(high));
          out = value;
        },
        text);
  }
  static CLI::Option *notEmpty(CLI::Option *option) {
    return option->check([](const std::string &given) {
      return given.empty() ? "no name is given" : "";
    });
  }

  CLI::App app;
  const std::string &model;
  RunOptions &o;
};

} // namespace

bool parseOptions(int argc, char **argv, const std::string &model,
                  RunOptions &options, int &exitCode) {
  Parser parser(model, options);
  return parser.parse(argc, argv, exitCode);
}

} // namespace trc::model
