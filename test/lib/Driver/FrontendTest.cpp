//===- FrontendTest.cpp - Stages before code, and their errors ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Explain.h"
#include "DriverTesting.h"

#include "llvm/Support/JSON.h"

using namespace terrace;
using namespace terrace::driver;

namespace {

using CompileTest = DriverTest;

TEST_F(CompileTest, EmitNamesParse) {
  for (llvm::StringRef name : emitNames())
    EXPECT_TRUE(parseEmit(name)) << name.str();
  EXPECT_EQ(parseEmit("exe"), Emit::Exe);
  EXPECT_EQ(parseEmit("spec"), Emit::Spec);
  EXPECT_FALSE(parseEmit("ptx2"));
}

TEST_F(CompileTest, TextGoesToTheResultOrTheFile) {
  CompileOptions spec = options();
  spec.emit = Emit::Spec;
  CompileResult result = compile(spec);
  ASSERT_EQ(result.outcome, Outcome::Ok) << result.diagnostics.str();
  EXPECT_NE(result.text.find("model: small"), std::string::npos);
  EXPECT_TRUE(result.files.empty());
  spec.output = path("out.yaml");
  CompileResult file = compile(spec);
  EXPECT_EQ(file.text, "");
  EXPECT_EQ(file.files, std::vector<std::string>{spec.output});
  EXPECT_EQ(read(spec.output), result.text);
  spec.output = path("no/such/folder");
  EXPECT_EQ(compile(spec).outcome, Outcome::Environment);
}

TEST_F(CompileTest, OutcomesTellWhoseFaultItIs) {
  CompileOptions missing = options();
  missing.input.modelFile = path("missing.yaml");
  EXPECT_EQ(compile(missing).outcome, Outcome::Environment);
  EXPECT_EQ(compile(options({"batch.size=x"})).outcome, Outcome::Error);
  EXPECT_EQ(compile(options({"workers=2"})).outcome, Outcome::Error);
  CompileOptions cpu = options();
  cpu.cpus = {"pentium"};
  CompileResult result = compile(cpu);
  EXPECT_EQ(result.outcome, Outcome::Usage);
  EXPECT_NE(result.diagnostics.str().find("allowed: native, x86-64-v3"),
            std::string::npos)
      << result.diagnostics.str();
}

// What the planner refuses is said at the place in the user's file.
TEST_F(CompileTest, PlannersErrorsAreLocated) {
  CompileOptions tight = options({"memory.tiers.dram.capacity=1KiB"});
  tight.emit = Emit::Decision;
  CompileResult result = compile(tight);
  EXPECT_EQ(result.outcome, Outcome::Error);
  std::string text = result.diagnostics.str();
  EXPECT_NE(text.find("error: "), std::string::npos) << text;
  EXPECT_NE(text.find("dram"), std::string::npos) << text;
  EXPECT_NE(text.find("small.yaml:"), std::string::npos) << text;
}

TEST_F(CompileTest, DecisionReadsBack) {
  CompileOptions decide = options();
  decide.emit = Emit::Decision;
  decide.output = path("decision.yaml");
  ASSERT_EQ(compile(decide).outcome, Outcome::Ok);
  CompileOptions follow = options();
  follow.emit = Emit::Decision;
  follow.planFile = decide.output;
  CompileResult again = compile(follow);
  ASSERT_EQ(again.outcome, Outcome::Ok) << again.diagnostics.str();
  EXPECT_EQ(again.text, read(decide.output));
}

TEST_F(CompileTest, ArtifactIsTheRuntimesJson) {
  CompileOptions artifact = options();
  artifact.emit = Emit::Artifact;
  std::vector<std::string> stages;
  artifact.progress = [&](llvm::StringRef stage) {
    stages.push_back(stage.str());
  };
  CompileResult result = compile(artifact);
  ASSERT_EQ(result.outcome, Outcome::Ok) << result.diagnostics.str();
  auto json = llvm::json::parse(result.text);
  ASSERT_TRUE(bool(json)) << llvm::toString(json.takeError());
  EXPECT_EQ(json->getAsObject()->getString("model"), "small");
  EXPECT_EQ(json->getAsObject()->getArray("tables")->size(), 2u);
  EXPECT_TRUE(json->getAsObject()->getObject("reference"));
  EXPECT_EQ(stages, (std::vector<std::string>{"spec", "import", "emb", "plan",
                                              "artifact"}));
  EXPECT_EQ(result.times.size(), stages.size());
  EXPECT_EQ(compile(artifact).text, result.text);
}

TEST_F(CompileTest, ExplainOfAnEditEqualsExplainOfTheEditedFile) {
  std::string text = small;
  text.replace(text.find("16MiB"), 5, "12MiB");
  CompileOptions fresh;
  fresh.input.modelFile = write("small2.yaml", text);
  ExplainResult a = explain(options({"memory.tiers.dram.capacity=12MiB"}));
  ExplainResult b = explain(fresh);
  ASSERT_EQ(a.outcome, Outcome::Ok) << a.diagnostics.str();
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.json, b.json);
  EXPECT_NE(a.text, explain(options()).text);
}

} // namespace
