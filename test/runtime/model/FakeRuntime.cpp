//===- FakeRuntime.cpp - The C ABI over the reference, as a double
//---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FakeRuntime.h"

#include "runtime/data/BatchReader.h"
#include "runtime/reference/Interpreter.h"
#include "terrace-rt/session.h"

#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

using namespace trc;

namespace trc::fake {
Control &control() {
  static Control c;
  return c;
}

struct State {
  std::unique_ptr<reference::Interpreter> model;
  int64_t samples = 0;
};
static std::map<std::string, State> &states() {
  static std::map<std::string, State> s;
  return s;
}
void forgetStates() { states().clear(); }
} // namespace trc::fake

using namespace trc::fake;

struct trc_session {
  State *state = nullptr;
  nlohmann::json plan;
  trc_mode mode = TRC_TRAIN;
  struct Queued {
    trc_ticket ticket;
    data::BatchData batch;
  };
  std::deque<Queued> queue;
  trc_ticket next = 1;
  int64_t forwards = 0;
  double lrScale = 1;
  std::string stats, model;
};

trc_status trc_open(const trc_open_options *o, trc_session **out,
                    trc_error *error) {
  auto s = std::make_unique<trc_session>();
  s->plan = nlohmann::json::parse(o->artifact->plan);
  s->model = s->plan.at("model");
  s->mode = static_cast<trc_mode>(o->mode);
  std::string dir = o->state_dir ? o->state_dir : s->model + ".state";
  if (o->flags & TRC_OPEN_FRESH)
    states().erase(dir);
  if (!states().count(dir)) {
    if (o->mode != TRC_TRAIN)
      return Status(TRC_NOT_FOUND, "no state at " + dir).fill(error);
    std::filesystem::create_directories(dir);
    auto model = reference::Interpreter::create(
        std::string_view(o->artifact->plan, o->artifact->plan_bytes));
    if (!model.ok())
      return model.takeStatus().fill(error);
    states()[dir].model = std::move(*model);
  }
  s->state = &states()[dir];
  *out = s.release();
  return TRC_OK;
}

trc_status trc_close(trc_session *s, trc_error *error) {
  if (control().failCloses > 0) {
    --control().failCloses;
    return Status(TRC_NO_SPACE, "the disk is full").fill(error);
  }
  delete s;
  return TRC_OK;
}

trc_status trc_discard(trc_session *s, trc_error *) {
  delete s;
  return TRC_OK;
}

trc_status trc_describe(trc_session *s, trc_model_info *info, trc_error *) {
  info->model = s->model.c_str();
  info->hash = "0123456789abcdef";
  info->batch = s->plan.at("batch");
  info->lookahead = s->plan.at("lookahead");
  info->step = s->state->model->step();
  info->samples = s->state->samples;
  return TRC_OK;
}

trc_status trc_submit(trc_session *s, const trc_batch *b, trc_ticket *ticket,
                      trc_error *) {
  if (s->queue.size() > s->plan.at("lookahead").get<size_t>())
    return TRC_WOULD_BLOCK;
  s->queue.emplace_back();
  trc_session::Queued &q = s->queue.back();
  q.ticket = *ticket = s->next++;
  q.batch.samples = b->samples;
  for (uint32_t f = 0; f < b->feature_count; ++f) {
    const trc_bags &in = b->features[f];
    data::BatchData::Bags bags;
    const int64_t *ids = static_cast<const int64_t *>(in.values);
    const int64_t *offsets = static_cast<const int64_t *>(in.offsets);
    bags.ids.assign(ids, ids + in.value_count);
    bags.offsets.assign(offsets, offsets + b->samples + 1);
    bags.weighted = in.weights != nullptr;
    if (in.weights)
      bags.weights.assign(in.weights, in.weights + in.value_count);
    q.batch.features.push_back(std::move(bags));
  }
  if (b->labels)
    q.batch.labels.assign(b->labels, b->labels + b->samples);
  return TRC_OK;
}

static void flip(float &x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits ^= 1;
  std::memcpy(&x, &bits, 4);
}

trc_status trc_forward(trc_session *s, trc_ticket ticket,
                       DLTensor *const *outputs, uint32_t count,
                       trc_error *error) {
  if (s->queue.empty() || s->queue.front().ticket != ticket)
    return TRC_OUT_OF_ORDER;
  Status status = s->state->model->forward(s->queue.front().batch.view(true));
  if (!status.ok()) {
    s->queue.pop_front();
    return status.fill(error);
  }
  ++s->forwards;
  for (uint32_t o = 0; o < count; ++o) {
    const std::vector<float> &from = s->state->model->hasHead()
                                         ? s->state->model->probabilities()
                                         : s->state->model->output(o).values;
    float *to = static_cast<float *>(outputs[o]->data);
    std::copy(from.begin(), from.end(), to);
    if (control().fault == Fault::Output && o + 1 == count &&
        s->forwards == control().faultAtForward && !from.empty())
      flip(to[from.size() - 1]);
  }
  return TRC_OK;
}

trc_status trc_backward(trc_session *s, trc_ticket ticket,
                        const DLTensor *const *gradients, uint32_t count,
                        const trc_backward_options *o, trc_error *error) {
  if (s->queue.empty() || s->queue.front().ticket != ticket)
    return TRC_OUT_OF_ORDER;
  std::vector<reference::Matrix> grads(count);
  for (uint32_t g = 0; g < count; ++g) {
    int64_t rows = gradients[g]->shape[0], dim = gradients[g]->shape[1];
    const float *from = static_cast<const float *>(gradients[g]->data);
    grads[g].dim = dim;
    grads[g].values.assign(from, from + rows * dim);
  }
  control().lrScales.push_back(s->lrScale);
  Status status = s->state->model->backward(count ? &grads : nullptr,
                                            o->grad_scale, s->lrScale);
  for (uint32_t f = 0; o->weight_gradients && f < count; ++f)
    if (float *to = o->weight_gradients[f]) {
      const std::vector<float> &from = s->state->model->weightGradients(f);
      std::copy(from.begin(), from.end(), to);
    }
  s->state->samples += s->queue.front().batch.samples;
  s->queue.pop_front();
  if (s->state->model->step() == control().raiseAtStep)
    ::raise(SIGINT);
  return status.fill(error);
}

trc_status trc_release(trc_session *s, trc_ticket ticket, trc_error *) {
  if (s->queue.empty() || s->queue.front().ticket != ticket)
    return TRC_OUT_OF_ORDER;
  s->queue.pop_front();
  ++control().releases;
  return TRC_OK;
}

trc_status trc_set_lr(trc_session *s, double scale, trc_error *) {
  s->lrScale = scale;
  return TRC_OK;
}

static const reference::Table *find(trc_session *s, const char *name) {
  size_t n = s->state->model->definition().tables.size();
  for (size_t t = 0; t < n; ++t)
    if (s->state->model->table(t).definition().name == name)
      return &s->state->model->table(t);
  return nullptr;
}

trc_status trc_read_rows(trc_session *s, const char *table, const int64_t *rows,
                         int64_t count, float *out, trc_error *) {
  const reference::Table *t = find(s, table);
  size_t dim = static_cast<size_t>(t->definition().dim);
  // One row of a table is wrong: the last that a step touched, or the last that
  // none did.
  std::vector<int64_t> touched = t->touched();
  int64_t wrong = -1;
  if (control().fault == Fault::Weight && !touched.empty())
    wrong = touched.back();
  if (control().fault == Fault::UntouchedRow)
    for (wrong = t->definition().rows - 1;
         std::binary_search(touched.begin(), touched.end(), wrong);)
      --wrong;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> r = t->record(rows[i]);
    std::copy(r.begin(), r.begin() + static_cast<int64_t>(dim),
              out + static_cast<size_t>(i) * dim);
    if (rows[i] == wrong)
      flip(out[static_cast<size_t>(i) * dim + dim - 1]);
  }
  return TRC_OK;
}

trc_status trc_read_state(trc_session *s, const char *table, int32_t slot,
                          const int64_t *rows, int64_t count, float *out,
                          trc_error *) {
  const reference::Table *t = find(s, table);
  std::vector<int64_t> widths = t->definition().stateWidths();
  int64_t offset = t->definition().dim;
  for (int32_t w = 0; w < slot; ++w)
    offset += widths[static_cast<size_t>(w)];
  int64_t width = widths[static_cast<size_t>(slot)];
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> r = t->record(rows[i]);
    std::copy(r.begin() + offset, r.begin() + offset + width, out + i * width);
  }
  if (control().fault == Fault::State && count > 0)
    flip(out[0]);
  return TRC_OK;
}

trc_status trc_checkpoint_begin(trc_session *s, const void *, uint64_t,
                                uint32_t, trc_error *) {
  control().checkpoints.push_back(s->state->model->step());
  return TRC_OK;
}

trc_status trc_checkpoint_wait(trc_session *, int32_t, trc_error *error) {
  return control().failCheckpoints
             ? Status(TRC_NO_SPACE, "cannot write 'index'").fill(error)
             : TRC_OK;
}

trc_status trc_stats(trc_session *s, const char **json, trc_error *) {
  HeadState head = s->state->model->head();
  if (control().fault == Fault::Bias)
    flip(head.bias);
  s->stats =
      nlohmann::json{
          {"head", {{"bias", head.bias}, {"bias_squares", head.biasSquares}}}}
          .dump();
  *json = s->stats.c_str();
  return TRC_OK;
}
