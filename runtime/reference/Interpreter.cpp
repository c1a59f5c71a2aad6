//===- Interpreter.cpp - The step, run naively over plain arrays
//-----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/reference/Interpreter.h"

#include "runtime/core/Hash.h"

#include <cmath>
#include <cstring>
#include <map>

namespace trc::reference {

Interpreter::Interpreter(Program given)
    : program(std::move(given)), values(program.values.size()) {
  for (const TableDef &t : program.tables)
    tables.emplace_back(t);
}

Result<std::unique_ptr<Interpreter>>
Interpreter::create(std::string_view planJson) {
  Result<Program> program = parseProgram(planJson);
  if (!program.ok())
    return program.takeStatus();
  return std::unique_ptr<Interpreter>(new Interpreter(std::move(*program)));
}

const Matrix &Interpreter::output(size_t feature) const {
  return values[static_cast<size_t>(program.denseOp().args[feature])].matrix;
}

void Interpreter::translate(const Op &op) {
  const TableDef &t = program.tables[static_cast<size_t>(op.table)];
  Bags &out = values[static_cast<size_t>(op.results[0])].bags;
  out = values[static_cast<size_t>(op.args[0])].bags;
  if (t.hash)
    for (int64_t &id : out.ids)
      id = hashRow(id, t.rows);
}

/// The divisor of a mean-like pooling over ids begin..end-1 of a bag.
static float divisor(Pool pool, const Bags &bags, size_t begin, size_t end) {
  float count = static_cast<float>(end - begin);
  if (pool == Pool::Mean || (bags.weights.empty() && pool != Pool::Sqrtn))
    return count;
  if (pool == Pool::WeightedMean) {
    float sum = 0;
    for (size_t i = begin; i < end; ++i)
      sum = sum + bags.weights[i];
    return sum;
  }
  float q = count;
  if (!bags.weights.empty()) {
    q = 0;
    for (size_t i = begin; i < end; ++i)
      q = std::fma(bags.weights[i], bags.weights[i], q);
  }
  return std::sqrt(q);
}

static bool divides(Pool pool) {
  return pool == Pool::Mean || pool == Pool::WeightedMean ||
         pool == Pool::Sqrtn;
}

void Interpreter::lookup(const Op &op) {
  const Value &state = values[static_cast<size_t>(op.state)];
  const Table &table = tables[static_cast<size_t>(state.table)];
  const Bags &bags = values[static_cast<size_t>(op.args[0])].bags;
  Matrix &out = values[static_cast<size_t>(op.results[0])].matrix;
  Pool pool = op.pools[0];
  int64_t dim = table.definition().dim;
  size_t columns = static_cast<size_t>(dim);
  std::vector<float> scratch;
  out = Matrix();
  out.dim = dim;
  if (pool == Pool::None) {
    out.offsets = bags.offsets;
    for (int64_t id : bags.ids) {
      const float *r = table.weights(id, scratch);
      out.values.insert(out.values.end(), r, r + columns);
    }
    return;
  }
  out.values.assign(static_cast<size_t>(bags.count()) * columns, 0.0f);
  std::vector<int64_t> winners(
      pool == Pool::Max ? out.values.size() : size_t(0), -1);
  for (int64_t b = 0; b < bags.count(); ++b) {
    size_t begin = static_cast<size_t>(bags.offsets[static_cast<size_t>(b)]);
    size_t end = static_cast<size_t>(bags.offsets[static_cast<size_t>(b) + 1]);
    float *o = out.row(b);
    for (size_t i = begin; i < end; ++i) {
      const float *r = table.weights(bags.ids[i], scratch);
      for (size_t c = 0; c < columns; ++c) {
        if (pool == Pool::Max) {
          if (i == begin || r[c] > o[c]) {
            o[c] = r[c];
            winners[static_cast<size_t>(b) * columns + c] =
                static_cast<int64_t>(i - begin);
          }
        } else if (bags.weights.empty()) {
          o[c] = o[c] + r[c];
        } else {
          o[c] = std::fma(bags.weights[i], r[c], o[c]);
        }
      }
    }
    if (begin != end && divides(pool)) {
      float d = divisor(pool, bags, begin, end);
      for (size_t c = 0; c < columns; ++c)
        o[c] = o[c] / d;
    }
  }
  if (op.winner >= 0)
    values[static_cast<size_t>(op.winner)].index = std::move(winners);
}

void Interpreter::dedup(const Op &op) {
  // A sample's key: its bags of all members, ids and weights bit by bit.
  std::map<std::vector<int64_t>, int64_t> seen;
  std::vector<int64_t> inverse, firsts;
  const Bags &lead = values[static_cast<size_t>(op.args[0])].bags;
  for (int64_t s = 0; s < lead.count(); ++s) {
    std::vector<int64_t> key;
    for (int arg : op.args) {
      const Bags &b = values[static_cast<size_t>(arg)].bags;
      size_t begin = static_cast<size_t>(b.offsets[static_cast<size_t>(s)]);
      size_t end = static_cast<size_t>(b.offsets[static_cast<size_t>(s) + 1]);
      key.push_back(static_cast<int64_t>(end - begin));
      key.insert(key.end(), b.ids.begin() + static_cast<int64_t>(begin),
                 b.ids.begin() + static_cast<int64_t>(end));
      for (size_t i = begin; i < end && !b.weights.empty(); ++i) {
        uint32_t bits;
        std::memcpy(&bits, &b.weights[i], sizeof(bits));
        key.push_back(bits);
      }
    }
    auto [it, fresh] =
        seen.emplace(std::move(key), static_cast<int64_t>(firsts.size()));
    if (fresh)
      firsts.push_back(s);
    inverse.push_back(it->second);
  }
  for (size_t a = 0; a < op.args.size(); ++a) {
    const Bags &in = values[static_cast<size_t>(op.args[a])].bags;
    Bags out;
    out.feature = in.feature;
    out.offsets.push_back(0);
    for (int64_t s : firsts) {
      for (int64_t i = in.offsets[static_cast<size_t>(s)];
           i < in.offsets[static_cast<size_t>(s) + 1]; ++i) {
        out.ids.push_back(in.ids[static_cast<size_t>(i)]);
        if (!in.weights.empty())
          out.weights.push_back(in.weights[static_cast<size_t>(i)]);
      }
      out.offsets.push_back(static_cast<int64_t>(out.ids.size()));
    }
    values[static_cast<size_t>(op.results[a])].bags = std::move(out);
  }
  values[static_cast<size_t>(op.inverse)].index = std::move(inverse);
}

void Interpreter::expand(const Op &op) {
  const Matrix &in = values[static_cast<size_t>(op.args[0])].matrix;
  const std::vector<int64_t> &inverse =
      values[static_cast<size_t>(op.inverse)].index;
  Matrix out;
  out.dim = in.dim;
  if (!in.offsets.empty())
    out.offsets.push_back(0);
  for (int64_t b : inverse) {
    int64_t begin = b, end = b + 1;
    if (!in.offsets.empty()) {
      begin = in.offsets[static_cast<size_t>(b)];
      end = in.offsets[static_cast<size_t>(b) + 1];
      out.offsets.push_back(out.offsets.back() + end - begin);
    }
    out.values.insert(out.values.end(), in.row(begin), in.row(end));
  }
  values[static_cast<size_t>(op.results[0])].matrix = std::move(out);
}

void Interpreter::denseForward(const trc_batch &batch) {
  const Op &op = program.denseOp();
  labelled = batch.labels != nullptr;
  if (labelled)
    labels.assign(batch.labels, batch.labels + n);
  if (op.caller)
    return;
  std::vector<HeadInput> inputs;
  for (size_t a = 0; a < op.args.size(); ++a)
    inputs.push_back({output(a).values.data(), output(a).dim, output(a).dim});
  z.assign(static_cast<size_t>(n), 0);
  p.assign(static_cast<size_t>(n), 0);
  headForward(op.head, headState.bias, inputs.data(),
              static_cast<int64_t>(inputs.size()), 0, n, z.data(), p.data());
  if (labelled)
    lastLoss = headLoss(z.data(), labels.data(), n);
}

void Interpreter::denseBackward(double lrScale) {
  const Op &op = program.denseOp();
  std::vector<HeadInput> inputs;
  std::vector<HeadGrad> grads;
  for (size_t a = 0; a < op.args.size(); ++a) {
    const Matrix &in = output(a);
    Matrix &g = values[static_cast<size_t>(op.results[a])].matrix;
    g = Matrix();
    g.dim = in.dim;
    g.values.assign(in.values.size(), 0.0f);
    inputs.push_back({in.values.data(), in.dim, in.dim});
    grads.push_back({g.values.data(), g.dim});
  }
  std::vector<float> dz(static_cast<size_t>(n));
  headBackward(op.head, inputs.data(), static_cast<int64_t>(inputs.size()),
               p.data(), labels.data(), n, 0, n, grads.data(), dz.data());
  pendingHead = headState;
  headUpdateBias(pendingHead, dz.data(), n, lrScale);
}

Status Interpreter::checkGradients() {
  const Op &op = program.denseOp();
  for (size_t a = 0; a < op.results.size(); ++a) {
    const Matrix &g = values[static_cast<size_t>(op.results[a])].matrix;
    for (size_t i = 0; i < g.values.size(); ++i)
      if (!std::isfinite(g.values[i])) {
        int64_t row = static_cast<int64_t>(i) / g.dim;
        uint32_t bits;
        std::memcpy(&bits, &g.values[i], sizeof(bits));
        return Status::badInput("output " + std::to_string(a) +
                                    ": the gradient is not finite",
                                program.features[a].name, row,
                                static_cast<int64_t>(i) % g.dim, bits);
      }
  }
  return Status();
}

static float dot(const float *x, const float *y, size_t dim) {
  float lane[32] = {};
  for (size_t c = 0; c < dim; ++c)
    lane[c % 32] = std::fma(x[c], y[c], lane[c % 32]);
  for (size_t width = 16; width >= 1; width /= 2)
    for (size_t l = 0; l < width; ++l)
      lane[l] = lane[l] + lane[l + width];
  return lane[0];
}

void Interpreter::gradWeights(const Bags &bags, int64_t sample, size_t begin,
                              size_t end, const Table &table,
                              const float *gradient) {
  size_t dim = static_cast<size_t>(table.definition().dim);
  size_t feature = static_cast<size_t>(bags.feature);
  Pool pool = program.features[feature].pooling;
  std::vector<float> g(gradient, gradient + dim), scratch;
  for (float &x : g)
    x = gradScale == 1 ? x : x * gradScale;
  float d = begin != end && divides(pool) ? divisor(pool, bags, begin, end) : 1;
  float out = dot(output(feature).row(sample), g.data(), dim);
  for (size_t i = begin; i < end; ++i) {
    float x = dot(table.weights(bags.ids[i], scratch), g.data(), dim);
    if (pool == Pool::WeightedMean)
      x = (x - out) / d;
    else if (pool == Pool::Sqrtn)
      x = std::fma(-(bags.weights[i] / d), out, x) / d;
    else if (pool == Pool::Mean)
      x = x / d;
    weightGrads[feature].push_back(x);
  }
}

void Interpreter::update(const Op &op, const StepScale &scale) {
  const Table &table = tables[static_cast<size_t>(op.table)];
  size_t dim = static_cast<size_t>(table.definition().dim);
  Rows sums;
  for (size_t a = 0; a < op.args.size(); ++a) {
    const Bags &bags = values[static_cast<size_t>(op.args[a])].bags;
    const Matrix &grads = values[static_cast<size_t>(op.grads[a])].matrix;
    const std::vector<int64_t> *inverse =
        op.inverses[a] < 0 ? nullptr
                           : &values[static_cast<size_t>(op.inverses[a])].index;
    Pool pool = op.pools[a];
    int64_t gradRow = 0; // none: one per id, in sample order
    for (int64_t s = 0; s < n; ++s) {
      size_t b =
          static_cast<size_t>(inverse ? (*inverse)[static_cast<size_t>(s)] : s);
      size_t begin = static_cast<size_t>(bags.offsets[b]);
      size_t end = static_cast<size_t>(bags.offsets[b + 1]);
      float d =
          begin != end && divides(pool) ? divisor(pool, bags, begin, end) : 1;
      if (!bags.weights.empty() && program.denseOp().caller)
        gradWeights(bags, s, begin, end, table, grads.row(s));
      for (size_t i = begin; i < end; ++i) {
        std::vector<float> &sum =
            sums.try_emplace(bags.ids[i], dim, 0.0f).first->second;
        float w = bags.weights.empty() ? 1.0f : bags.weights[i];
        float coefficient = divides(pool) ? w / d : w;
        const float *g = grads.row(pool == Pool::None ? gradRow++ : s);
        for (size_t c = 0; c < dim; ++c) {
          if (pool == Pool::Max &&
              values[static_cast<size_t>(op.winners[a])].index[b * dim + c] !=
                  static_cast<int64_t>(i - begin))
            continue;
          float scaled = gradScale == 1 ? g[c] : g[c] * gradScale;
          sum[c] = std::fma(coefficient, scaled, sum[c]);
        }
      }
    }
  }
  Value &result = values[static_cast<size_t>(op.results[0])];
  result.table = op.table;
  result.rows.clear();
  for (auto &entry : sums) {
    std::vector<float> record = table.updated(entry.first, scale, entry.second);
    result.rows.emplace(entry.first, std::move(record));
  }
}

void Interpreter::commit(const Op &op) {
  for (size_t t = 0; t < op.tables.size(); ++t)
    for (const auto &entry : values[static_cast<size_t>(op.args[t])].rows)
      tables[static_cast<size_t>(op.tables[t])].store(entry.first,
                                                      entry.second);
}

Status Interpreter::forward(const trc_batch &batch) {
  if (batch.feature_count != program.features.size())
    return Status(TRC_BAD_ARGUMENT,
                  "the batch has " + std::to_string(batch.feature_count) +
                      " features, the model " +
                      std::to_string(program.features.size()));
  if (batch.samples < 0 || batch.samples > program.batch)
    return Status(TRC_BAD_ARGUMENT, "a batch of " +
                                        std::to_string(batch.samples) +
                                        " samples; the model takes " +
                                        std::to_string(program.batch));
  n = batch.samples;
  for (int i = 0; i < program.dense; ++i) {
    const Op &op = program.ops[static_cast<size_t>(i)];
    switch (op.kind) {
    case Op::Kind::Feature:
      TRC_RETURN_IF_ERROR(takeFeature(op, batch));
      break;
    case Op::Kind::Check:
      TRC_RETURN_IF_ERROR(check(op));
      break;
    case Op::Kind::Translate:
      translate(op);
      break;
    case Op::Kind::State:
      values[static_cast<size_t>(op.results[0])].table = op.table;
      break;
    case Op::Kind::Lookup:
      lookup(op);
      break;
    case Op::Kind::Dedup:
      dedup(op);
      break;
    case Op::Kind::Expand:
      expand(op);
      break;
    case Op::Kind::Label: // the head takes the batch's labels
      break;
    case Op::Kind::Dense:
    case Op::Kind::Update:
    case Op::Kind::Commit:
      return Status(TRC_MISMATCH, "the reference program updates a table "
                                  "before its head; compile the model again");
    }
  }
  denseForward(batch);
  return Status();
}

Status Interpreter::backward(const std::vector<Matrix> *gradients, float scale,
                             double lrScale) {
  const Op &dense = program.denseOp();
  gradScale = scale;
  weightGrads.assign(program.features.size(), {});
  if (dense.caller) {
    if (!gradients || gradients->size() != dense.results.size())
      return Status(TRC_BAD_ARGUMENT, "one gradient per feature is needed");
    for (size_t a = 0; a < dense.results.size(); ++a) {
      if ((*gradients)[a].values.size() != output(a).values.size())
        return Status(TRC_BAD_ARGUMENT, "gradient " + std::to_string(a) +
                                            " is not shaped as its output");
      values[static_cast<size_t>(dense.results[a])].matrix = (*gradients)[a];
    }
  } else {
    if (!labelled)
      return Status(TRC_BAD_ARGUMENT, "a step needs labels");
    denseBackward(lrScale);
  }
  Status finite = checkGradients();
  if (!finite.ok()) {
    if (!program.skipBadGrads)
      return finite;
    ++skipped;
    return Status();
  }
  StepScale step{lrScale, steps + 1};
  for (size_t i = static_cast<size_t>(program.dense) + 1;
       i < program.ops.size(); ++i) {
    const Op &op = program.ops[i];
    if (op.kind == Op::Kind::Update)
      update(op, step);
    else if (op.kind == Op::Kind::Commit)
      commit(op);
    else if (op.kind == Op::Kind::State)
      values[static_cast<size_t>(op.results[0])].table = op.table;
    else
      return Status(TRC_MISMATCH, "the reference program looks something up "
                                  "after its head; compile the model again");
  }
  if (!dense.caller)
    headState = pendingHead;
  ++steps;
  return Status();
}

} // namespace trc::reference
