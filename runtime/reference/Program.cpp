//===- Program.cpp - The reference program, parsed
//-------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/reference/Program.h"

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace trc::reference {

using nlohmann::json;

std::vector<int64_t> TableDef::stateWidths() const {
  switch (optimizer) {
  case Optimizer::Sgd:
    return {};
  case Optimizer::Momentum:
  case Optimizer::Adagrad:
    return {dim};
  case Optimizer::RowwiseAdagrad:
    return {1};
  case Optimizer::PartialRowwiseAdam:
    return {dim, 1};
  case Optimizer::Adam:
  case Optimizer::Lamb:
  case Optimizer::Ftrl:
    return {dim, dim};
  }
  return {};
}

int64_t TableDef::recordFloats() const {
  int64_t n = dim;
  for (int64_t w : stateWidths())
    n += w;
  return n;
}

namespace {

[[noreturn]] void fail(const std::string &what) {
  throw std::runtime_error(what);
}

template <typename T>
T choose(const std::string &what, const std::string &word,
         const std::map<std::string, T> &words) {
  auto it = words.find(word);
  if (it == words.end())
    fail(what + " '" + word + "' is not known");
  return it->second;
}

Pool poolOf(const std::string &word) {
  return choose<Pool>("pooling", word,
                      {{"sum", Pool::Sum},
                       {"mean", Pool::Mean},
                       {"weighted_mean", Pool::WeightedMean},
                       {"sqrtn", Pool::Sqrtn},
                       {"max", Pool::Max},
                       {"none", Pool::None}});
}

TableDef parseTable(const json &t) {
  TableDef d;
  d.name = t.at("name");
  d.rows = t.at("rows");
  d.dim = t.at("dim");
  if (d.rows < 1 || d.dim < 1)
    fail("table '" + d.name + "' has no rows or no columns");
  d.hash = choose<bool>("ids", t.at("ids"), {{"index", false}, {"hash", true}});
  const json &init = t.at("init");
  uint64_t key = std::stoull(t.at("init_key").get<std::string>());
  d.key = key;
  d.storage = choose<Storage>("dtype", t.value("dtype", "f32"),
                              {{"f32", Storage::F32},
                               {"f16", Storage::F16},
                               {"bf16", Storage::BF16},
                               {"i8", Storage::I8},
                               {"i4", Storage::I4}});
  d.stochastic = choose<bool>("rounding", t.value("rounding", "nearest"),
                              {{"nearest", false}, {"stochastic", true}});
  std::string kind = init.at("kind");
  if (kind == "uniform")
    d.init = RowInit::uniform(key, init.at("low"), init.at("high"));
  else if (kind == "normal")
    d.init = RowInit::normal(key, init.at("mean"), init.at("std"));
  else if (kind == "constant")
    d.init = RowInit::constant(init.at("value"));
  else
    fail("init '" + kind + "' is not known");
  const json &o = t.at("optimizer");
  d.optimizer = choose<Optimizer>(
      "optimizer", o.at("kind"),
      {{"sgd", Optimizer::Sgd},
       {"adagrad", Optimizer::Adagrad},
       {"rowwise_adagrad", Optimizer::RowwiseAdagrad},
       {"adam", Optimizer::Adam},
       {"momentum_sgd", Optimizer::Momentum},
       {"partial_rowwise_adam", Optimizer::PartialRowwiseAdam},
       {"lamb", Optimizer::Lamb},
       {"ftrl", Optimizer::Ftrl}});
  d.lr = o.at("lr");
  d.weightDecay = o.value("weight_decay", 0.0);
  d.decoupledDecay = o.value("decoupled_decay", 0.0);
  d.clipNorm = o.value("clip_norm", 0.0);
  switch (d.optimizer) {
  case Optimizer::Sgd:
    break;
  case Optimizer::Momentum:
    d.momentum = o.at("momentum");
    break;
  case Optimizer::Adam:
  case Optimizer::PartialRowwiseAdam:
  case Optimizer::Lamb:
    d.beta1 = o.at("beta1");
    d.beta2 = o.at("beta2");
    [[fallthrough]];
  case Optimizer::Adagrad:
  case Optimizer::RowwiseAdagrad:
    d.eps = o.at("eps");
    break;
  case Optimizer::Ftrl:
    d.beta = o.at("beta");
    d.l1 = o.at("l1");
    d.l2 = o.at("l2");
    break;
  }
  return d;
}

FeatureDef parseFeature(const json &f, size_t tables) {
  FeatureDef d;
  d.name = f.at("name");
  d.table = f.at("table");
  if (d.table < 0 || static_cast<size_t>(d.table) >= tables)
    fail("feature '" + d.name + "' names a table that is not there");
  d.pooling = poolOf(f.at("pooling"));
  d.weighted = f.contains("weights") && f.at("weights").is_string();
  d.maxIds = f.at("max_ids");
  using Overflow = FeatureDef::Overflow;
  d.overflow = choose<Overflow>("overflow", f.at("overflow"),
                                {{"error", Overflow::Error},
                                 {"keep_first", Overflow::KeepFirst},
                                 {"keep_last", Overflow::KeepLast}});
  return d;
}

class OpParser {
public:
  OpParser(Program &p, bool serve) : program(p), serve(serve) {}

  void parse(const json &j) {
    static const std::map<std::string, Op::Kind> kinds = {
        {"feature", Op::Kind::Feature}, {"label", Op::Kind::Label},
        {"check", Op::Kind::Check},     {"translate", Op::Kind::Translate},
        {"state", Op::Kind::State},     {"lookup", Op::Kind::Lookup},
        {"dense", Op::Kind::Dense},     {"update", Op::Kind::Update},
        {"dedup", Op::Kind::Dedup},     {"expand", Op::Kind::Expand},
        {"commit", Op::Kind::Commit}};
    Op op;
    op.kind = choose<Op::Kind>("op", j.at("op"), kinds);
    switch (op.kind) {
    case Op::Kind::Feature:
      op.feature = index(j.at("feature"), program.features.size(), "feature");
      define(op, j.at("result"));
      break;
    case Op::Kind::Label:
      define(op, j.at("result"));
      break;
    case Op::Kind::Check:
      for (const json &t : j.at("tables"))
        op.tables.push_back(table(t));
      op.args = uses(j.at("args"));
      for (const json &r : j.at("results"))
        define(op, r);
      if (op.args.size() != op.tables.size() ||
          op.args.size() != op.results.size())
        fail("check: args, tables and results differ in number");
      break;
    case Op::Kind::Translate:
      op.table = table(j.at("table"));
      op.args = {use(j.at("arg"))};
      define(op, j.at("result"));
      break;
    case Op::Kind::State:
      op.table = table(j.at("table"));
      define(op, j.at("result"));
      break;
    case Op::Kind::Lookup:
      op.pools = {poolOf(j.at("pooling"))};
      op.state = use(j.at("state"));
      op.args = {use(j.at("bags"))};
      define(op, j.at("result"));
      if (j.contains("winner") && !j.at("winner").is_null())
        op.winner = define(j.at("winner"));
      break;
    case Op::Kind::Dense:
      parseDense(op, j);
      break;
    case Op::Kind::Update:
      parseUpdate(op, j);
      break;
    case Op::Kind::Dedup:
      op.args = uses(j.at("args"));
      for (const json &r : j.at("results"))
        define(op, r);
      op.inverse = define(j.at("inverse"));
      if (op.args.empty() || op.args.size() != op.results.size())
        fail("dedup: args and results differ in number");
      break;
    case Op::Kind::Expand:
      op.args = {use(j.at("arg"))};
      op.inverse = use(j.at("inverse"));
      define(op, j.at("result"));
      break;
    case Op::Kind::Commit:
      for (const json &t : j.at("tables"))
        op.tables.push_back(table(t));
      op.args = uses(j.at("states"));
      break;
    }
    program.ops.push_back(std::move(op));
  }

private:
  void parseDense(Op &op, const json &j) {
    std::string kind = j.at("kind");
    op.caller = kind == "caller";
    if (!op.caller)
      op.head = choose<HeadKind>(
          "head", kind,
          {{"fm", HeadKind::Fm}, {"logistic", HeadKind::Logistic}});
    op.args = uses(j.at("args"));
    for (const json &r : j.at("results"))
      define(op, r);
    // Gradients; or what a forward-only step hands out.
    if (!serve && op.args.size() != op.results.size())
      fail("dense: args and results differ in number");
    if (!op.caller)
      op.label = use(j.at("label"));
    if (program.dense >= 0)
      fail("a second dense op");
    program.dense = static_cast<int>(program.ops.size());
  }

  void parseUpdate(Op &op, const json &j) {
    op.table = table(j.at("table"));
    op.state = use(j.at("state"));
    for (const json &p : j.at("pool"))
      op.pools.push_back(poolOf(p));
    op.args = uses(j.at("bags"));
    op.grads = uses(j.at("grads"));
    for (const json &v : j.at("inverse"))
      op.inverses.push_back(v.is_null() ? -1 : use(v));
    for (const json &v : j.at("winners"))
      op.winners.push_back(v.is_null() ? -1 : use(v));
    size_t n = op.args.size();
    if (op.pools.size() != n || op.grads.size() != n ||
        op.inverses.size() != n || op.winners.size() != n)
      fail("update: pool, bags, inverse, grads and winners differ in number");
    define(op, j.at("result"));
  }

  int index(int64_t i, size_t size, const char *what) {
    if (i < 0 || static_cast<size_t>(i) >= size)
      fail(std::string(what) + " " + std::to_string(i) + " is not there");
    return static_cast<int>(i);
  }
  int table(const json &j) {
    return index(j.get<int64_t>(), program.tables.size(), "table");
  }
  int define(const std::string &name) {
    int id = static_cast<int>(program.values.size());
    if (!ids.emplace(name, id).second)
      fail("value " + name + " is defined twice");
    program.values.push_back(name);
    return id;
  }
  void define(Op &op, const std::string &name) {
    op.results.push_back(define(name));
  }
  int use(const std::string &name) {
    auto it = ids.find(name);
    if (it == ids.end())
      fail("value " + name + " is used before it is defined");
    return it->second;
  }
  std::vector<int> uses(const json &names) {
    std::vector<int> out;
    for (const json &n : names)
      out.push_back(use(n));
    return out;
  }

  Program &program;
  const bool serve;
  std::map<std::string, int> ids;
};

} // namespace

Result<Program> parseProgram(std::string_view planJson) {
  try {
    json plan = json::parse(planJson);
    Program p;
    p.batch = plan.at("batch");
    p.maxIds = plan.at("max_ids");
    p.dropBadIds = plan.at("on_bad_id") == "drop";
    p.skipBadGrads = plan.at("on_bad_grad") == "skip";
    for (const json &t : plan.at("tables"))
      p.tables.push_back(parseTable(t));
    for (const json &f : plan.at("features"))
      p.features.push_back(parseFeature(f, p.tables.size()));
    OpParser ops(p, plan.value("serve", false));
    for (const json &o : plan.at("reference").at("ops"))
      ops.parse(o);
    if (p.dense < 0)
      fail("it has no dense op");
    return p;
  } catch (const std::exception &e) {
    return Status(TRC_MISMATCH,
                  std::string("the artifact's reference program cannot be "
                              "read: ") +
                      e.what() + "; compile the model again");
  }
}

} // namespace trc::reference
