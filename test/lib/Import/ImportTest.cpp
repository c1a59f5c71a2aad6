//===- ImportTest.cpp - Specs to emb modules, and what they flatten to ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Import/ImportSpec.h"

#include "Planner/Explain.h"
#include "Reference/Flatten.h"
#include "Transforms/Emb/EmbPasses.h"
#include "Transforms/Emb/ModuleProblem.h"
#include "dialects/emb/Emb.h"
#include "dialects/plan/Plan.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace terrace;

namespace {

constexpr llvm::StringLiteral retail = R"(terrace: 1
model: retail
seed: 7
batch: {size: 2048}
defaults:
  table: {dim: 16, optimizer: {kind: rowwise_adagrad, lr: 0.1, eps: 1e-8}}
features:
- {name: stock, table: {rows: 4070}}
- {name: customer, table: {rows: 4373}, dedup: basket}
- {name: country, table: {rows: 38}, dedup: basket}
head: {kind: fm, label: cancel, loss: bce}
data: {path: online_retail.tsv.gz, session: invoice, eval: {last: 10%}}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 8MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: retail.store}
plan: {lookahead: 2, place: [{tables: "*", home: disk, cache: {dram: 64KiB}}]}
)";

class ImportTest : public ::testing::Test {
protected:
  ImportTest()
      : context(MLIRContext::Threading::DISABLED),
        handler(&context, [this](Diagnostic &d) {
          llvm::raw_string_ostream os(diagnostics);
          os << d.getLocation() << ": " << d.str() << "\n";
          return success();
        }) {
    context.loadDialect<emb::EmbDialect, plan::PlanDialect>();
  }

  OwningOpRef<ModuleOp> import(llvm::StringRef text,
                               const profile::Profile *profile = nullptr) {
    spec::Diagnostics d;
    std::optional<spec::Spec> s = spec::parseSpecText(text, "model.yaml", d);
    EXPECT_TRUE(s) << d.str();
    if (!s)
      return nullptr;
    ImportOptions options;
    options.profile = profile;
    return importSpec(context, *s, options);
  }

  LogicalResult run(ModuleOp module,
                    std::initializer_list<std::unique_ptr<Pass> (*)()> passes) {
    PassManager pm(&context);
    for (auto make : passes)
      pm.addPass(make());
    return pm.run(module);
  }

  MLIRContext context;
  std::string diagnostics;
  ScopedDiagnosticHandler handler;
};

std::unique_ptr<Pass> dedup() { return createEmbDedup(); }
std::unique_ptr<Pass> decide() { return createEmbDecide(); }
std::unique_ptr<Pass> place() { return createEmbPlace(); }

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo());
  return text;
}

TEST_F(ImportTest, RetailVerifiesRoundTripsAndPointsIntoTheYaml) {
  OwningOpRef<ModuleOp> module = import(retail);
  ASSERT_TRUE(module) << diagnostics;
  ASSERT_TRUE(succeeded(verify(*module))) << diagnostics;
  std::string text = print(*module);
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(again) << diagnostics << text;
  EXPECT_EQ(print(*again), text);
  auto table = module->lookupSymbol<emb::TableOp>("customer");
  ASSERT_TRUE(table);
  auto loc = dyn_cast<FileLineColLoc>(table.getLoc());
  ASSERT_TRUE(loc);
  EXPECT_EQ(loc.getFilename().getValue(), "model.yaml");
  EXPECT_EQ(loc.getLine(), 9u);
  auto eval = module->lookupSymbol<emb::StepOp>("eval");
  ASSERT_TRUE(eval);
  EXPECT_TRUE(eval.getBody().front().getOps<emb::UpdateOp>().empty());
}

TEST_F(ImportTest, RetailDecidesAsPinned) {
  OwningOpRef<ModuleOp> module = import(retail);
  ASSERT_TRUE(module);
  ASSERT_TRUE(succeeded(run(*module, {dedup, decide, place}))) << diagnostics;
  plan::DecisionAttr decision = plan::getDecision(*module);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision.getLookahead(), 2);
  int64_t retained = 0;
  for (auto table : module->getOps<emb::TableOp>()) {
    emb::PlacementAttr p = table.getPlacementAttr();
    ASSERT_TRUE(p);
    EXPECT_EQ(p.getHome().getValue(), "disk");
    EXPECT_EQ(p.getCache().getValue(), "dram");
    retained += p.getRetained();
  }
  EXPECT_EQ(retained, 65536 / 68);
}

TEST_F(ImportTest, BudgetErrorsPointAtTheTier) {
  std::string text = retail.str();
  text.replace(text.find("8MiB"), 4, "80KiB");
  OwningOpRef<ModuleOp> module = import(text);
  ASSERT_TRUE(module);
  EXPECT_TRUE(failed(run(*module, {dedup, decide})));
  EXPECT_NE(diagnostics.find("\"model.yaml\":15:"), std::string::npos)
      << diagnostics;
  EXPECT_NE(diagnostics.find("smallest capacity that fits is "),
            std::string::npos)
      << diagnostics;
}

TEST_F(ImportTest, MeasuredRepetitionDecidesDedup) {
  auto profileWith = [](double uniqueBags) {
    profile::Profile p;
    p.origin = "p.json";
    profile::Stats s;
    s.name = "basket";
    s.batch = 2048;
    s.uniqueBags = uniqueBags;
    p.groups = {s};
    return p;
  };
  profile::Profile repeats = profileWith(75), differs = profileWith(2000);
  auto dedups = [&](const profile::Profile &p) {
    OwningOpRef<ModuleOp> module = import(retail, &p);
    EXPECT_TRUE(succeeded(run(*module, {dedup}))) << diagnostics;
    int64_t n = 0;
    module->walk([&](emb::DedupOp) { ++n; });
    return n;
  };
  EXPECT_EQ(dedups(repeats), 2); // both steps
  EXPECT_EQ(dedups(differs), 0);
}

TEST_F(ImportTest, FlattensToTheReferenceProgram) {
  OwningOpRef<ModuleOp> module = import(retail);
  ASSERT_TRUE(module);
  FailureOr<llvm::json::Value> flat = flattenStep(*module, "train");
  ASSERT_TRUE(succeeded(flat)) << diagnostics;
  std::vector<std::string> ops;
  for (const llvm::json::Value &op : *flat->getAsObject()->getArray("ops"))
    ops.push_back(op.getAsObject()->getString("op")->str());
  EXPECT_EQ(ops, (std::vector<std::string>{
                     "label", "feature", "feature", "feature", "check", "state",
                     "state", "state", "lookup", "lookup", "lookup", "dense",
                     "update", "update", "update", "commit"}));
  // Nothing in it depends on printing, and dedup adds its ops.
  ASSERT_TRUE(succeeded(run(*module, {dedup})));
  FailureOr<llvm::json::Value> after = flattenStep(*module, "train");
  ASSERT_TRUE(succeeded(after)) << diagnostics;
  std::string text = llvm::formatv("{0}", *after);
  EXPECT_NE(text.find("\"dedup\""), std::string::npos);
  EXPECT_NE(text.find("\"expand\""), std::string::npos);
  EXPECT_TRUE(failed(flattenStep(*module, "serve")));
}

TEST_F(ImportTest, ProfilesTravelOnTablesAndFeatures) {
  profile::Profile p;
  p.origin = "p.json";
  profile::Stats s;
  s.name = "stock";
  s.batch = 2048;
  s.ids = 2048;
  s.uniqueIds = 1048;
  s.missCurve = {{512, 0.5}};
  p.tables = {s};
  OwningOpRef<ModuleOp> module = import(retail, &p);
  ASSERT_TRUE(module);
  FailureOr<ModuleProblem> problem = problemFromModule(*module);
  ASSERT_TRUE(succeeded(problem));
  EXPECT_EQ(problem->problem.profileOrigin, "p.json");
  EXPECT_EQ(problem->problem.tables[0].stats.uniqueIds, 1048);
  EXPECT_EQ(problem->problem.tables[0].stats.missCurve.size(), 1u);
}

TEST_F(ImportTest, AllPoolingsAndOptimizers) {
  OwningOpRef<ModuleOp> module = import(R"(terrace: 1
model: mixed
batch: {size: 8}
tables:
- {name: a, rows: 50, dim: 4, optimizer: {kind: sgd, lr: 0.1, weight_decay: 0.01}, init: {kind: normal}}
- {name: b, rows: 60, dim: 3, ids: hash, optimizer: {kind: adam}, init: {kind: constant, value: 0.5}}
features:
- {name: s, table: a, max_ids: 3, weights: w, overflow: keep_last, dedup: g}
- {name: m, table: a, pooling: max, max_ids: 2, dedup: g}
- {name: n, table: b, pooling: none, max_ids: 4, dedup: g}
- {name: q, table: b, pooling: sqrtn, max_ids: 2, type: string}
)");
  ASSERT_TRUE(module) << diagnostics;
  ASSERT_TRUE(succeeded(verify(*module))) << diagnostics;
  ASSERT_TRUE(succeeded(run(*module, {dedup, decide, place}))) << diagnostics;
  std::string text = print(*module);
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(again) << diagnostics << text;
  EXPECT_TRUE(succeeded(flattenStep(*module, "train"))) << diagnostics;
}

} // namespace
