//===- Main.cpp - What w5.py asks of the runtime --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One JSON object on stdout per call; errors on stderr with exit code 1.
//
//===----------------------------------------------------------------------===//
#include "test/bench/w5/Prepare.h"
#include "test/bench/w5/Spans.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

using namespace trc;
using nlohmann::json;

static json jsonOf(const w5::Rates &r) {
  return {{"per_second", r.perSecond},
          {"bytes_per_second", r.bytesPerSecond},
          {"cpu_us", r.cpuUs}};
}

int main(int argc, char **argv) {
  CLI::App app("Parts of tools/dev bench w5");
  app.require_subcommand(1);
  w5::WarmOptions warm;
  std::string path;
  uint32_t bytes = 512, count = 4096;
  uint64_t total = 1 << 30;
  double seconds = 2;
  CLI::App *fill = app.add_subcommand("fill", "Write all rows of a new state");
  CLI::App *make = app.add_subcommand(
      "warm",
      "Simulate a stream; write the cache it leaves and the next steps");
  for (CLI::App *sub : {fill, make}) {
    sub->add_option("--lib", warm.library, "The model, made by --emit=lib")
        ->required();
    sub->add_option("--state", warm.state, "Its state")->required();
  }
  make->add_option("--stream", warm.stream)->required();
  make->add_option("--data", warm.data, "Gets the measured steps")->required();
  make->add_option("--memory-data", warm.memoryData, "The same, ids modulo N");
  make->add_option("--memory-rows", warm.memoryRows, "N");
  make->add_option("--warmup", warm.warmup);
  make->add_option("--steps", warm.steps);
  CLI::App *reads = app.add_subcommand("reads", "Random reads of a file");
  reads->add_option("FILE", path)->required();
  reads->add_option("--bytes", bytes);
  reads->add_option("--count", count, "Of a batch, sorted");
  reads->add_option("--seconds", seconds);
  CLI::App *writes = app.add_subcommand("writes", "Long writes over a file");
  writes->add_option("FILE", path, "Made and removed")->required();
  writes->add_option("--bytes", total);
  CLI11_PARSE(app, argc, argv);

  auto end = [](Status s, const json &result) {
    if (!s.ok()) {
      std::cerr << "error: " << s.message() << '\n';
      return 1;
    }
    std::cout << result.dump() << '\n';
    return 0;
  };
  if (fill->parsed()) {
    Status s = w5::fillState(warm.library, warm.state);
    return end(std::move(s), json::object());
  }
  if (make->parsed()) {
    Result<json> r = w5::warmState(warm);
    return r.ok() ? end(Status(), *r) : end(r.takeStatus(), {});
  }
  Result<w5::Rates> r = reads->parsed()
                            ? w5::readSpan(path, bytes, count, seconds)
                            : w5::writeSpan(path, total);
  return r.ok() ? end(Status(), jsonOf(*r)) : end(r.takeStatus(), {});
}
