//===- Main.cpp - The store beside its peers ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints tables and judges nothing, but for figures that cannot be true: then
// it exits with 1. README.md says how to read them. CLI11 throws, and what it
// throws ends here.
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Environment.h"
#include "test/bench/store/Sections.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace trc::bench;

int main(int argc, char **argv) {
  Settings s;
  std::string folder = ".", only;
  uint64_t span = 0;
  uint32_t rounds = 0, batches = 0;
  bool full = false, quick = false;
  CLI::App app("Random rows of the store against a bare io_uring loop, RocksDB "
               "and mmap; write-back, checkpoints");
  app.add_flag("--full", full, "Figures to keep: 4 GiB, all sizes everywhere");
  app.add_flag("--quick", quick, "Seconds: that every variant works")
      ->excludes("--full");
  app.add_option("--folder", folder, "On the device to measure (.)")
      ->take_last()
      ->check(CLI::ExistingDirectory);
  app.add_option("--span", span, "Bytes of records (1 GiB)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t(8) << 20, uint64_t(1) << 44));
  app.add_option("--sizes", s.sizes, "Payloads in bytes (128 ... 4096)")
      ->delimiter(',');
  app.add_option("--rounds", rounds, "Of each table (6)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batches", batches, "Of a round of reads (8)")
      ->check(CLI::Range(1, 100000));
  app.add_option("--memory", s.memory, "Of a peer, for rows (1/8 of the span)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--cgroup", s.controlGroup,
                 "Control group below which peers get theirs (version 2: ours)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--only", only, "One part")
      ->check(CLI::IsMember(
          {"reads", "mixed", "checkpoint", "reopen", "persistent"}));
  CLI11_PARSE(app, argc, argv);

  s.span = span ? span : full ? uint64_t(4) << 30 : uint64_t(1) << 30;
  if (full) {
    s.batches = 16;
    s.mixRows = 1 << 19;
    s.mixSizes = s.sizes;
  }
  if (quick) {
    s.span = span ? span : 8 << 20;
    s.rounds = s.batches = 2;
    s.reopenRows = {200000};
    if (app.count("--sizes") == 0)
      s.sizes = {128, 4096};
  }
  if (rounds)
    s.rounds = rounds;
  if (batches)
    s.batches = batches;
  if (app.count("--sizes") && !full)
    s.mixSizes = {s.sizes.front()};
  for (uint32_t payload : s.sizes)
    if (payload < 8 || payload > 16384 || payload % 8 != 0) {
      std::fprintf(stderr,
                   "error: --sizes: %u is no multiple of 8 from 8 to 16384\n",
                   payload);
      return 2;
    }

  s.folder = std::filesystem::absolute(folder).string() + "/terrace-bench-" +
             std::to_string(::getpid());
  std::error_code error;
  std::filesystem::create_directories(s.folder, error);
  if (error) {
    std::fprintf(stderr, "error: cannot make '%s': %s\n", s.folder.c_str(),
                 error.message().c_str());
    return 1;
  }
  // The files of the store and of two peers lie there at once.
  std::filesystem::space_info room = std::filesystem::space(s.folder, error);
  if (!error && room.available < 4 * s.span) {
    std::fprintf(stderr,
                 "error: '%s' has room for %s, a span of %s needs four times "
                 "as much; give a smaller --span or another --folder\n",
                 folder.c_str(),
                 size(static_cast<double>(room.available)).c_str(),
                 size(static_cast<double>(s.span)).c_str());
    std::filesystem::remove_all(s.folder, error);
    return 1;
  }
  std::printf("%s", environment(s.folder).c_str());

  bool sane = true;
  auto part = [&](const char *name, const std::vector<uint32_t> &sizes,
                  bool (*table)(const Settings &, uint32_t)) {
    if (!only.empty() && only != name)
      return;
    for (uint32_t payload : sizes)
      sane &= table(s, payload);
  };
  part("reads", s.sizes, readTable);
  part("mixed", s.mixSizes, mixTable);
  part("checkpoint", s.mixSizes, checkpointTable);
  part("reopen", s.reopenRows, reopenTable);
  part("persistent", s.mixSizes, persistentTable);
  std::filesystem::remove_all(s.folder, error);
  if (!sane)
    std::fprintf(stderr, "error: some figures above cannot be true\n");
  return sane ? 0 : 1;
}
