//===- Session.cpp - RAII over the public C ABI
//----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Session.h"

namespace trc::model {

static trc_error freshError() {
  trc_error e = {};
  e.struct_size = sizeof(e);
  e.sample = e.position = e.value = -1;
  return e;
}

Status statusOf(trc_status code, const trc_error &error) {
  if (code == TRC_OK)
    return Status();
  std::string message = error.message;
  if (message.empty())
    message = trc_status_name(code);
  if (code != TRC_BAD_INPUT)
    return Status(code, std::move(message));
  return Status::badInput(std::move(message), error.feature, error.sample,
                          error.position, error.value);
}

/// Calls the C function with an error struct at its end.
#define TRC_CALL(call)                                                         \
  trc_error error = freshError();                                              \
  trc_status code = (call);                                                    \
  return statusOf(code, error)

static const char *orNull(const std::string &s) {
  return s.empty() ? nullptr : s.c_str();
}

Result<std::unique_ptr<Session>> Session::open(const Open &how) {
  trc_open_options o = {};
  o.struct_size = sizeof(o);
  o.mode = how.mode;
  o.artifact = how.artifact;
  o.state_dir = orNull(how.stateDir);
  o.flags = (how.fresh ? TRC_OPEN_FRESH : 0) | (how.warm ? TRC_OPEN_WARM : 0);
  o.threads = how.options->threads;
  o.from = orNull(how.options->from);
  o.init_from = orNull(how.options->initFrom);
  o.cpu = orNull(how.options->cpu);
  o.log = how.log;
  o.log_user = how.logUser;
  trc_error error = freshError();
  trc_session *session = nullptr;
  trc_status code = trc_open(&o, &session, &error);
  if (code != TRC_OK)
    return statusOf(code, error);
  return std::unique_ptr<Session>(new Session(session));
}

Session::~Session() {
  if (session && !close().ok())
    (void)trc_discard(session, nullptr);
}

Status Session::close() {
  trc_error error = freshError();
  trc_status code = trc_close(session, &error);
  if (code != TRC_NO_SPACE && code != TRC_IO && code != TRC_NO_MEMORY)
    session = nullptr;
  return statusOf(code, error);
}

trc_model_info Session::info() {
  trc_error error = freshError();
  trc_model_info i = {};
  i.struct_size = sizeof(i);
  // Only a null argument can fail here; the zeros are then shown as they are.
  (void)trc_describe(session, &i, &error);
  return i;
}

Result<bool> Session::submit(const trc_batch &batch, trc_ticket &ticket) {
  trc_error error = freshError();
  trc_status code = trc_submit(session, &batch, &ticket, &error);
  if (code == TRC_WOULD_BLOCK)
    return false;
  if (code != TRC_OK)
    return statusOf(code, error);
  return true;
}

static DLTensor tensorOf(float *data, int64_t *shape, int32_t dims) {
  DLTensor t = {};
  t.data = data;
  t.device = {kDLCPU, 0};
  t.ndim = dims;
  t.dtype = {kDLFloat, 32, 1};
  t.shape = shape;
  return t;
}

Status Session::forward(trc_ticket ticket, float *probabilities,
                        int64_t samples) {
  DLTensor t = tensorOf(probabilities, &samples, 1);
  DLTensor *outputs[1] = {&t};
  TRC_CALL(trc_forward(session, ticket, outputs, 1, &error));
}

namespace {
/// Buffers as an array of tensors.
struct Tensors {
  explicit Tensors(const std::vector<Session::Buffer> &buffers)
      : shapes(buffers.size() * 2), tensors(buffers.size()),
        pointers(buffers.size()) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      shapes[2 * i] = buffers[i].rows;
      shapes[2 * i + 1] = buffers[i].dim;
      tensors[i] = tensorOf(buffers[i].data, &shapes[2 * i], 2);
      pointers[i] = &tensors[i];
    }
  }
  std::vector<int64_t> shapes;
  std::vector<DLTensor> tensors;
  std::vector<DLTensor *> pointers;
};
} // namespace

Status Session::forward(trc_ticket ticket, const std::vector<Buffer> &outputs) {
  Tensors t(outputs);
  TRC_CALL(trc_forward(session, ticket, t.pointers.data(),
                       static_cast<uint32_t>(t.pointers.size()), &error));
}

Status Session::backward(trc_ticket ticket,
                         const std::vector<Buffer> &gradients, float scale,
                         float *const *weightGradients) {
  Tensors t(gradients);
  std::vector<const DLTensor *> pointers(t.pointers.begin(), t.pointers.end());
  trc_backward_options o = {};
  o.struct_size = sizeof(o);
  o.grad_scale = scale;
  o.weight_gradients = weightGradients;
  TRC_CALL(trc_backward(session, ticket,
                        pointers.empty() ? nullptr : pointers.data(),
                        static_cast<uint32_t>(pointers.size()), &o, &error));
}

Status Session::release(trc_ticket ticket) {
  TRC_CALL(trc_release(session, ticket, &error));
}

Status Session::setLr(double scale) {
  TRC_CALL(trc_set_lr(session, scale, &error));
}

Status Session::beginCheckpoint(uint32_t keep) {
  TRC_CALL(trc_checkpoint_begin(session, nullptr, 0, keep, &error));
}

Status Session::checkpointOutcome(bool block) {
  TRC_CALL(trc_checkpoint_wait(session, block, &error));
}

Status Session::readRows(const std::string &table,
                         const std::vector<int64_t> &rows, float *out) {
  TRC_CALL(trc_read_rows(session, table.c_str(), rows.data(),
                         static_cast<int64_t>(rows.size()), out, &error));
}

Status Session::readState(const std::string &table, int slot,
                          const std::vector<int64_t> &rows, float *out) {
  TRC_CALL(trc_read_state(session, table.c_str(), slot, rows.data(),
                          static_cast<int64_t>(rows.size()), out, &error));
}

nlohmann::json Session::stats() {
  trc_error error = freshError();
  const char *text = nullptr;
  if (trc_stats(session, &text, &error) != TRC_OK || !text)
    return nullptr;
  return nlohmann::json::parse(text, nullptr, false);
}

} // namespace trc::model
