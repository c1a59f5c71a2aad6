//===- Session.cpp - Runs batches of a session ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tickets are batch numbers plus one. A ticket is open from submit to backward,
// release or a failed forward; they end in order.
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Session.h"

#include "runtime/exec/KeyedBatch.h"
#include "runtime/stats/Stats.h"

#include <cmath>
#include <cstring>
#include <new>
#include <unistd.h>

using namespace trc;

bool Session::ownProcess() const { return ::getpid() == process; }

Session::~Session() {
  (void)joinCheckpoint();
  // The pipeline's lanes and stores end before what they use.
  pipeline.reset();
  trace.reset();
}

Status Session::usable() const {
  if (pipeline->poisoned()) {
    Status why = pipeline->poisonStatus();
    return Status(TRC_POISONED,
                  "an earlier failure ended this session: " + why.message() +
                      "; close it and open the state again");
  }
  if (closing)
    return Status(TRC_CANCELLED, "the session was closed, but could not be "
                                 "stored; close it again, or discard it");
  if (cancelled)
    return Status(TRC_CANCELLED, "the session was cancelled; close it");
  return Status();
}

/// Why a wait came to nothing.
Status Session::interruptedStatus() const {
  if (pipeline->executor.wedged())
    return Status(TRC_INTERNAL,
                  "the plan's schedule cannot go on with the batches at hand; "
                  "compile the model again and report this");
  // The failure itself, not that there was one: this call met it.
  if (pipeline->poisoned())
    return pipeline->poisonStatus();
  return Status(TRC_CANCELLED, "the session was cancelled; close it");
}

static Status secondThread(const char *role) {
  return Status(TRC_OUT_OF_ORDER,
                std::string("another thread is in a call of the ") + role +
                    "; one thread at a time may have that role");
}

Status Session::describe(trc_model_info &info) {
  trc_model_info full = {};
  full.struct_size = info.struct_size;
  full.feature_count = static_cast<uint32_t>(featureInfos.size());
  full.features = featureInfos.data();
  full.model = plan.model.c_str();
  full.hash = plan.hash.c_str();
  full.head = plan.hasHead ? plan.headName.c_str() : nullptr;
  full.batch = plan.batch;
  full.max_ids = plan.maxIds;
  full.lookahead = maxAhead;
  full.step = step;
  full.samples = samples;
  full.parameters = parameters;
  std::memcpy(&info, &full, std::min<size_t>(info.struct_size, sizeof(full)));
  return Status();
}

Status Session::submit(const trc_batch &batch, trc_ticket &ticket) {
  std::unique_lock<std::mutex> role(producer, std::try_to_lock);
  if (!role)
    return secondThread("producer");
  return enqueue(batch, /*slices=*/false, ticket);
}

Status Session::submitKeyed(const trc_keyed_batch &batch, trc_ticket &ticket) {
  std::unique_lock<std::mutex> role(producer, std::try_to_lock);
  if (!role)
    return secondThread("producer");
  keyedBags.resize(plan.features.size());
  TRC_RETURN_IF_ERROR(slicesOf(batch, plan, keyedBags.data()));
  trc_batch parts = {};
  parts.struct_size = sizeof(parts);
  parts.feature_count = static_cast<uint32_t>(keyedBags.size());
  parts.features = keyedBags.data();
  parts.samples = batch.samples;
  parts.labels = batch.labels;
  parts.flags = batch.flags;
  parts.reserved = batch.reserved;
  return enqueue(parts, /*slices=*/true, ticket);
}

Status Session::enqueue(const trc_batch &batch, bool slices,
                        trc_ticket &ticket) {
  TRC_RETURN_IF_ERROR(usable());
  TRC_RETURN_IF_ERROR(pipeline->checkShape(batch, slices));
  // With few batches ahead, room is only a matter of the lanes' time.
  bool patient = submitted - ended <= plan.lookahead;
  bool room = pipeline->executor.mayAdmit(patient);
  if (!room && submitted == ended && !pipeline->executor.interrupted()) {
    // Nothing is open, so no call but this one will come: finish what there is.
    if (pipeline->executor.drain())
      room = pipeline->executor.mayAdmit(true);
  }
  if (!room) {
    if (cancelled || pipeline->executor.interrupted())
      return interruptedStatus();
    return Status(TRC_WOULD_BLOCK,
                  std::to_string(submitted - ended) +
                      " batches are in flight, and there is no room for one "
                      "more: run forward and backward (or release) first");
  }
  int64_t t = submitted;
  Status s = pipeline->ingest(t, batch);
  if (!s.ok()) {
    pipeline->executor.giveUpAdmission();
    return s;
  }
  ++submitted;
  pipeline->executor.admit();
  ticket = static_cast<trc_ticket>(t) + 1;
  return Status();
}

Status Session::ticketError(trc_ticket ticket, const char *call) const {
  std::string what = std::string(call) + " of ticket " + std::to_string(ticket);
  if (ticket == 0 || static_cast<int64_t>(ticket) > submitted)
    return Status(TRC_OUT_OF_ORDER, what + ", which was never handed out");
  if (static_cast<int64_t>(ticket) <= ended)
    return Status(TRC_OUT_OF_ORDER, what + ", which is over");
  if (static_cast<int64_t>(ticket) != ended + 1)
    return Status(TRC_OUT_OF_ORDER,
                  what + ", but ticket " + std::to_string(ended + 1) +
                      " comes first: end it with backward or release");
  return Status();
}

void Session::endTicket(int64_t t) {
  forwarded = false;
  // The executor first: a producer that sees no open ticket may drain.
  pipeline->executor.finishCaller(t);
  ++ended;
}

Status Session::forward(trc_ticket ticket, DLTensor *const *outputs,
                        uint32_t count) {
  std::unique_lock<std::mutex> role(trainer, std::try_to_lock);
  if (!role)
    return secondThread("trainer");
  TRC_RETURN_IF_ERROR(usable());
  TRC_RETURN_IF_ERROR(ticketError(ticket, "forward"));
  if (forwarded)
    return Status(TRC_OUT_OF_ORDER, "forward of ticket " +
                                        std::to_string(ticket) +
                                        " a second time; backward or release "
                                        "comes next");
  int64_t t = static_cast<int64_t>(ticket) - 1;
  if (!pipeline->executor.waitReady(handoffOp, t))
    return interruptedStatus();
  if (pipeline->poisoned())
    return pipeline->poisonStatus();
  Batch &b = pipeline->batch(t);
  if (b.failed) {
    Status error = b.error.clone();
    endTicket(t);
    return error;
  }
  TRC_RETURN_IF_ERROR(pipeline->copyOutputs(t, outputs, count));
  forwarded = true;
  pipeline->executor.completeCaller(handoffOp, t);
  return Status();
}

Status Session::backward(trc_ticket ticket, const DLTensor *const *gradients,
                         uint32_t count, const trc_backward_options *options) {
  std::unique_lock<std::mutex> role(trainer, std::try_to_lock);
  if (!role)
    return secondThread("trainer");
  TRC_RETURN_IF_ERROR(usable());
  if (mode != TRC_TRAIN)
    return Status(TRC_BAD_ARGUMENT, "backward in a session that was not opened "
                                    "to train; use release");
  TRC_RETURN_IF_ERROR(ticketError(ticket, "backward"));
  if (!forwarded)
    return Status(TRC_OUT_OF_ORDER, "backward of ticket " +
                                        std::to_string(ticket) +
                                        " before its forward");
  float scale = 1;
  float *const *weights = nullptr;
  if (options) {
    if (options->struct_size <
        offsetof(trc_backward_options, grad_scale) + sizeof(float))
      return Status(TRC_BAD_ARGUMENT,
                    "trc_backward_options.struct_size is not set");
    scale = options->grad_scale;
    if (options->struct_size >= sizeof(trc_backward_options))
      weights = options->weight_gradients;
    TRC_RETURN_IF_ERROR(pipeline->checkWeightGradients(weights));
    if (!std::isfinite(scale))
      return Status(TRC_BAD_ARGUMENT, "grad_scale is not finite");
  }
  int64_t t = static_cast<int64_t>(ticket) - 1;
  if (pipeline->batch(t).forwardOnly)
    return Status(TRC_BAD_ARGUMENT,
                  "backward of ticket " + std::to_string(ticket) +
                      ", whose batch was submitted to be looked up only "
                      "(TRC_BATCH_FORWARD_ONLY); use release");
  if (!pipeline->executor.waitReady(resumeOp, t))
    return interruptedStatus();
  Status s = pipeline->takeGradients(t, gradients, count, scale);
  if (s.code() == TRC_BAD_INPUT) {
    endTicket(t);
    if (!plan.skipBadGrads)
      return s;
    ++pipeline->counters.skippedGrads;
    log(TRC_LOG_WARNING, s.message());
    return Status();
  }
  TRC_RETURN_IF_ERROR(std::move(s));
  for (size_t f = 0; weights && f < plan.features.size(); ++f)
    if (weights[f])
      pipeline->weightGradients(t, f, weights[f]);
  Batch &b = pipeline->batch(t);
  b.applied = true;
  b.lrScale = lrScale;
  b.step = ++step;
  samples += b.samples;
  savedIsCurrent = false;
  if (plan.hasHead) {
    std::lock_guard<std::mutex> lock(headMutex);
    pipeline->updateHead(b);
  }
  pipeline->executor.completeCaller(resumeOp, t);
  endTicket(t);
  return Status();
}

Status Session::release(trc_ticket ticket) {
  std::unique_lock<std::mutex> role(trainer, std::try_to_lock);
  if (!role)
    return secondThread("trainer");
  TRC_RETURN_IF_ERROR(usable());
  TRC_RETURN_IF_ERROR(ticketError(ticket, "release"));
  ++pipeline->counters.released;
  endTicket(static_cast<int64_t>(ticket) - 1);
  return Status();
}

Status Session::setLr(double scale) {
  TRC_RETURN_IF_ERROR(usable());
  if (!std::isfinite(scale))
    return Status(TRC_BAD_ARGUMENT, "lr_scale is not finite");
  for (const TablePlan &t : plan.tables)
    if (!std::isfinite(static_cast<float>(t.optimizer.lr * scale)))
      return Status(TRC_BAD_ARGUMENT,
                    "lr_scale " + shortest(scale) +
                        " takes the learning rate of table '" + t.name +
                        "' out of range");
  lrScale = scale;
  return Status();
}

Status Session::stats(const char **json) {
  SessionCounters c;
  c.step = step;
  c.samples = samples;
  c.ended = ended;
  c.submitted = submitted;
  c.lrScale = lrScale;
  c.cutMs = cutMs;
  {
    std::lock_guard<std::mutex> lock(headMutex);
    c.head = pipeline->headState;
  }
  std::vector<const Device *> devices;
  for (const auto &d : homes.devices)
    devices.push_back(d.get());
  std::string text = statsJson(*pipeline, c, devices);
  std::lock_guard<std::mutex> lock(statsMutex);
  statsText = std::move(text);
  *json = statsText.c_str();
  return Status();
}

void Session::cancel() {
  cancelled = true;
  pipeline->executor.cancelCallers(true);
}

Status Session::close() {
  std::unique_lock<std::mutex> producerRole(producer, std::try_to_lock);
  std::unique_lock<std::mutex> trainerRole(trainer, std::try_to_lock);
  if (!producerRole || !trainerRole) {
    // Whoever is inside leaves soon: the executor no longer waits.
    cancel();
    if (!producerRole)
      producerRole = std::unique_lock<std::mutex>(producer);
    if (!trainerRole)
      trainerRole = std::unique_lock<std::mutex>(trainer);
  }
  closing = true;
  Executor &executor = pipeline->executor;
  Status result = joinCheckpoint();
  if (!result.ok() && !pipeline->poisoned()) {
    log(TRC_LOG_WARNING, "the last checkpoint failed: " + result.message());
    result = Status();
  }
  if (!pipeline->poisoned()) {
    executor.cancelCallers(false);
    while (ended < submitted)
      endTicket(ended);
    if (!executor.drain())
      result = interruptedStatus();
  }
  if (result.ok() && mode == TRC_TRAIN && !pipeline->poisoned()) {
    try {
      result = save();
    } catch (const std::bad_alloc &) {
      pipeline->endCut();
      for (auto &g : pipeline->groups)
        g->store->dropCut();
      result = Status(TRC_NO_MEMORY, "out of memory");
    }
    // What the spec bounds, and what cannot be, is not mended by waiting.
    if (!result.ok() && !pipeline->poisoned() && !savedIsCurrent &&
        result.code() != TRC_FULL && result.code() != TRC_INTERNAL &&
        result.code() != TRC_CANCELLED)
      return notStored(result);
  }
  if (pipeline->poisoned())
    result =
        Status(TRC_POISONED, "closed after a failure, nothing was saved: " +
                                 pipeline->poisonStatus().message() + "; " +
                                 unstored("lost") + ", the state " + stands());
  isOver = true;
  executor.stop();
  return result;
}

void Session::discard() {
  closing = isOver = true;
  pipeline->executor.stop();
}
