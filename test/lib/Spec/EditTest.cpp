//===- EditTest.cpp - --set and --node ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "SpecTesting.h"

using namespace terrace::spec;

namespace {

const char model[] = R"(terrace: 1
defaults: {table: {dim: 4}}
tables:
- {name: shared, rows: 20}
features:
- {name: a, table: {rows: 10, optimizer: adagrad}}
- {name: b, table: shared}
- {name: "c{i}", count: 2, table: {rows: 7}}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 1MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: x}
plan: {lookahead: 2, place: [{tables: "*", home: disk}]}
)";

Spec edited(std::vector<std::string> edits) {
  Parsed parsed = parse(model, std::move(edits));
  EXPECT_TRUE(parsed.spec) << parsed.errors();
  return parsed.spec.value_or(Spec());
}

std::string failed(std::vector<std::string> edits) {
  Parsed parsed = parse(model, std::move(edits));
  EXPECT_FALSE(parsed.spec);
  return parsed.errors();
}

TEST(SpecSet, AddressesItemsByName) {
  Spec spec =
      edited({"memory.tiers.dram.capacity=4MiB", "features.a.table.rows=11",
              "tables.shared.dim=9", "features.b.pooling=mean",
              "features.c{i}.max_ids=3", "seed=5", "plan.lookahead=auto"});
  EXPECT_EQ(spec.tier("dram")->capacity, 4 << 20);
  EXPECT_EQ(spec.tables[spec.tableIndex("a")].rows, 11);
  EXPECT_EQ(spec.tables[spec.tableIndex("shared")].dim, 9);
  EXPECT_EQ(spec.features[1].pooling, Pooling::Mean);
  EXPECT_EQ(spec.features[3].maxIds, 3);
  EXPECT_EQ(spec.seed, 5u);
  EXPECT_FALSE(spec.plan.lookahead);
}

TEST(SpecSet, EqualsTheEditedFile) {
  std::string text = model;
  text.replace(text.find("1MiB"), 4, "3MiB");
  Parsed fresh = parse(text);
  ASSERT_TRUE(fresh.spec);
  EXPECT_EQ(printSpec(edited({"memory.tiers.dram.capacity=3MiB"})),
            printSpec(*fresh.spec));
}

TEST(SpecSet, MakesWhatIsNotThere) {
  Spec spec =
      edited({"train.lr_schedule.warmup_steps=9", "data={path: [x.tsv, y.tsv]}",
              "data.session=s", "head.kind=logistic", "head.label=y"});
  EXPECT_EQ(spec.train.lrSchedule.warmupSteps, 9);
  EXPECT_EQ(spec.data->paths.size(), 2u);
  EXPECT_EQ(**spec.data->session, "s");
  EXPECT_EQ(spec.head->kind, HeadKind::Logistic);
}

TEST(SpecSet, ShortFormsGrow) {
  Spec spec = edited({"features.a.table.optimizer.lr=0.5"});
  EXPECT_EQ(spec.tables[spec.tableIndex("a")].optimizer.kind,
            OptimizerKind::Adagrad);
  EXPECT_EQ(spec.tables[spec.tableIndex("a")].optimizer.lr, 0.5);
}

TEST(SpecSet, InlineTablesHaveTheirNames) {
  Spec spec = edited({"tables.a.rows=12"});
  EXPECT_EQ(spec.tables[spec.tableIndex("a")].rows, 12);
}

TEST(SpecSet, PinsATable) {
  Spec spec =
      edited({"plan.place.a.home=dram", "plan.place.*.cache.dram=64KiB"});
  EXPECT_EQ(**spec.pinOf("a")->home, "dram");
  EXPECT_EQ(spec.pinOf("shared")->cache[0].bytes, 65536);
}

TEST(SpecSet, NullGivesTheDefaultBack) {
  Spec spec = edited({"plan.lookahead="});
  EXPECT_FALSE(spec.plan.lookahead);
}

TEST(SpecSet, Errors) {
  EXPECT_EQ(failed({"seed"}), "--set seed: error: expected KEY=VALUE, as in "
                              "memory.tiers.dram.capacity=4GiB\n");
  EXPECT_NE(failed({"memory.tiers.drma.capacity=1MiB"})
                .find("--set memory.tiers.drma.capacity=1MiB: error: 'tiers' "
                      "has no item 'drma'; did you mean 'dram'? (items: dram, "
                      "disk)"),
            std::string::npos);
  EXPECT_NE(failed({"plan.lokahead=1"}).find("did you mean 'lookahead'?"),
            std::string::npos);
  EXPECT_NE(failed({"features.b.table.dim=1"})
                .find("address it as tables.shared.dim"),
            std::string::npos);
  EXPECT_NE(failed({"memory.tiers.dram.capacity=lots"}).find("found 'lots'"),
            std::string::npos);
  EXPECT_NE(failed({"seed.x=1"}).find("did you mean"), 0u);
  EXPECT_NE(failed({"train.metrics=[auc"}).find("--set train.metrics=[auc:"),
            std::string::npos);
  // As in the file.
  EXPECT_NE(failed({"terrace=2"})
                .find("--set terrace=2: error: terrace: this "
                      "compiler reads version 1"),
            std::string::npos);
  EXPECT_NE(failed({"terrace="}).find("missing key 'terrace'"),
            std::string::npos);
  EXPECT_NE(failed({"train.stop.auc=2"}).find("at least 0 and at most 1,"),
            std::string::npos);
  // All edits at once.
  std::string both = failed({"seed=-1", "workers=0"});
  EXPECT_NE(both.find("--set seed=-1"), std::string::npos);
  EXPECT_NE(both.find("--set workers=0"), std::string::npos);
}

TEST(SpecNode, ReplacesItsKeys) {
  Parsed parsed = parse(model, {"plan.lookahead=5"}, R"(terrace: 1
memory: {tiers: [{name: disk, kind: nvme, capacity: 2GiB, path: y}, {name: d2, kind: dram, capacity: 9MiB}]}
plan: {together: [[a, shared]]}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  const Spec &spec = *parsed.spec;
  EXPECT_EQ(spec.tiers.size(), 2u);
  EXPECT_EQ(spec.tier("disk")->capacity, int64_t(2) << 30);
  EXPECT_FALSE(spec.tier("dram"));
  EXPECT_EQ(spec.plan.place.size(), 1u); // plan is merged key by key
  EXPECT_EQ(spec.plan.together.size(), 1u);
  EXPECT_EQ(*spec.plan.lookahead, 5); // --set is last
}

TEST(SpecNode, Errors) {
  Parsed parsed =
      parse(model, {}, "terrace: 1\nbatch: {size: 4}\nworkers: 0\n");
  EXPECT_EQ(parsed.errors(),
            "node.yaml:2:1: error: 'batch' is not a key of a node file "
            "(allowed: terrace, memory, workers, target, machine, plan)\n"
            "node.yaml:3:10: error: workers: expected a whole number, 1 to "
            "65536, found '0'\n");
  // A pin that names a tier of the replaced memory is located in the model.
  parsed = parse(model, {},
                 "terrace: 1\nmemory: {tiers: [{name: d, kind: dram, "
                 "capacity: 1MiB}]}\n");
  EXPECT_EQ(parsed.errors(),
            "m.yaml:13:50: error: plan.place '*'.home: no tier "
            "'disk' (tiers: d)\n");
}

TEST(SpecNode, AloneParsesButHasNoPlan) {
  Parsed parsed = parse("terrace: 1\nworkers: 2\n");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_TRUE(parsed.spec->nodeOnly);
  EXPECT_FALSE(checkPlannable(*parsed.spec, parsed.diagnostics));
  EXPECT_NE(parsed.errors().find("--node FILE"), std::string::npos);
}

} // namespace
