//===- MachineFiguresTest.cpp - What the cost model reads -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A calibration that measures what nobody reads would be a waste of its time,
// and a file with such a figure a lie: each one, changed alone, has to change
// what some model is said to cost.
//
//===----------------------------------------------------------------------===//
#include "TestProblem.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <functional>
#include <map>

using namespace terrace;
using namespace terrace::machine;
using namespace terrace::planner;

namespace {

Surface makeSurface(std::vector<double> x, std::vector<double> y,
                    double value) {
  Surface s;
  s.x = std::move(x);
  s.y = std::move(y);
  for (size_t i = 0; i < s.x.size() * s.y.size(); ++i)
    s.values.push_back(value * (1 + double(i) / 8));
  return s;
}

Machine calibrated() {
  CpuModel cpu;
  cpu.cores = 2;
  cpu.ingestNsPerId = cpu.ingestNsPerBag = 1;
  cpu.probeNsPerRow = cpu.probeNsPerMiss = cpu.dedupNsPerId = 5;
  cpu.copyNsPerRow = cpu.bagNs = 5;
  cpu.copyGBps = cpu.bagGBps = cpu.handoffGBps = 5;
  cpu.ioNsPerOp = 3000;
  cpu.stepUs = 20;
  cpu.flopsG = 3;
  cpu.unique = makeSurface({100, 1e5}, {0.1, 1}, 10);
  cpu.gather = makeSurface({16, 1024}, {1e5, 1e8}, 10);
  cpu.gradient = makeSurface({16, 1024}, {1e3, 1e8}, 5);
  for (const char *name :
       {"sgd", "adagrad", "rowwise_adagrad", "adam", "momentum_sgd",
        "partial_rowwise_adam", "lamb", "ftrl"})
    cpu.update[name] = makeSurface({16, 4096}, {1e3, 1e5}, 30);
  TierModel dram, disk;
  dram.readGBps = dram.writeGBps = 20;
  dram.latencyUs = 0.1;
  disk.latencyUs = 90;
  disk.granule = 512;
  disk.reads = makeSurface({1, 128}, {512, 65536}, 2e4);
  disk.writes = makeSurface({1, 128}, {4096, 65536}, 2e4);
  return Machine::calibrated(
      cpu, {{TierKind::DRAM, dram}, {TierKind::NVMe, disk}}, {});
}

/// In memory and behind a cache; with and without a head, dedup and lookahead;
/// with every optimizer; with rows near and far.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  auto add = [&](std::vector<std::pair<int64_t, int64_t>> tables, bool cached,
                 int64_t lookahead, Head head) -> Problem & {
    Problem p = makeProblem(tables, 4096, int64_t(8) << 30);
    p.pins = {cached ? pinAll(p, 1, 0, 1 << 20) : pinAll(p, 0)};
    p.lookahead = lookahead;
    p.head = head;
    all.push_back(p);
    return all.back();
  };
  add({{3000, 16}, {500, 64}}, false, 0, Head::None);
  add({{4000000, 64}}, false, 0, Head::Fm);
  add({{400000, 64}}, true, 0, Head::Fm);
  add({{400000, 16}}, true, 4, Head::None);
  Problem &dedup = add({{3000, 16}}, false, 0, Head::None);
  DedupGroup group;
  group.name = "g";
  group.features = {0};
  group.factor = 2;
  dedup.dedup = {group};
  dedup.features[0].dedup = 0;
  for (Optimizer o :
       {Optimizer::Sgd, Optimizer::Adagrad, Optimizer::RowwiseAdagrad,
        Optimizer::Adam, Optimizer::MomentumSgd, Optimizer::PartialRowwiseAdam,
        Optimizer::Lamb, Optimizer::Ftrl})
    add({{3000, 16}}, false, 0, Head::None).tables[0].optimizer = o;
  return all;
}

std::string costs(const Machine &machine) {
  std::string text;
  for (Problem p : problems()) {
    p.machine = machine;
    PlanResult r = plan(p);
    const Plan *found = std::get_if<Plan>(&r);
    if (!found) {
      ADD_FAILURE() << std::get<PlanError>(r).message;
      continue;
    }
    text += llvm::formatv("{0:e9} ", found->cost.step).str();
    for (double seconds : found->cost.seconds)
      text += llvm::formatv("{0:e9} ", seconds).str();
    text += "\n";
  }
  return text;
}

/// Every number below `value`, one after the other, times `factor` while
/// `visit` is called. A list of numbers is changed as one.
void forEachFigure(llvm::json::Value &value, const std::string &path,
                   double factor,
                   const std::function<void(const std::string &)> &visit) {
  auto scale = [&](llvm::json::Value &v, double by, auto &&self) -> void {
    if (llvm::json::Array *list = v.getAsArray())
      for (llvm::json::Value &item : *list)
        self(item, by, self);
    else
      v = *v.getAsNumber() * by;
  };
  if (llvm::json::Object *o = value.getAsObject()) {
    for (auto &entry : *o)
      forEachFigure(entry.second,
                    path + "." + llvm::StringRef(entry.first).str(), factor,
                    visit);
    return;
  }
  if (!value.getAsArray() && !value.getAsNumber())
    return;
  llvm::json::Value old = value;
  scale(value, factor, scale);
  if (old.getAsInteger())
    value = std::max<int64_t>(1, int64_t(*value.getAsNumber()));
  visit(path);
  value = old;
}

TEST(MachineFigures, EachOneIsRead) {
  llvm::json::Value file = calibrated().toJson();
  std::string base = costs(calibrated());
  llvm::Expected<Machine> same =
      Machine::parse(llvm::formatv("{0}", file).str(), "m");
  ASSERT_TRUE(bool(same)) << llvm::toString(same.takeError());
  ASSERT_EQ(costs(*same), base); // what differs below is the figure's doing
  std::map<std::string, int> changed;
  for (double factor : {3000.0, 1 / 3000.0})
    forEachFigure(file, "", factor, [&](const std::string &path) {
      std::string text = llvm::formatv("{0}", file).str();
      llvm::Expected<Machine> m = Machine::parse(text, "m");
      if (!m) { // the format's number
        EXPECT_EQ(path, ".terrace_machine") << llvm::toString(m.takeError());
        ++changed[path];
        return;
      }
      changed[path] += costs(*m) != base;
    });
  EXPECT_GT(changed.size(), 50u);
  for (const auto &[path, count] : changed)
    EXPECT_GT(count, 0) << path << " is not read";
}

} // namespace
