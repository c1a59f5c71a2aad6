//===- SessionSave.cpp - Checkpoints and the clean close ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are the same: between two steps the stores are cut, rows that have
// changed follow, and a root names what the stores say. A checkpoint does all
// but the cut on a thread of its own. A root is removed, durably, before the
// space of what it retained is used again.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Files.h"
#include "runtime/session/Session.h"
#include "runtime/store/Crc32c.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace trc;

Status Session::writeBlob(const std::string &folder, const std::string &name,
                          const std::vector<char> &data, Manifest &manifest) {
  manifest.blobFile.clear();
  manifest.blobBytes = data.size();
  manifest.blobCrc = crc32c(0, data.data(), data.size());
  if (data.empty())
    return Status();
  manifest.blobFile = name;
  return writeFile(folder + "/" + name, data.data(), data.size());
}

/// Between two steps: everything that the root will say, but for the rows that
/// are not stored yet.
Status Session::beginCommit(Commit &c) {
  // The trainer is here, so no update can begin: let the last one end.
  if (ended > 0)
    for (size_t op = 0; op < plan.ops.size(); ++op)
      if (plan.ops[op].kind == OpKind::segmentUpdate &&
          !pipeline->executor.waitEnd(static_cast<int>(op), ended - 1))
        return interruptedStatus();
  Manifest &m = c.manifest;
  m = Manifest::of(plan);
  m.sequence = sequence + 1;
  m.key = key;
  m.generation = generation;
  m.step = step;
  m.samples = samples;
  m.lrScale = lrScale;
  m.headState = pipeline->headState;
  m.groups = stored;
  auto begin = std::chrono::steady_clock::now();
  Status s = pipeline->beginCut(m.sequence);
  cutMs = std::chrono::duration<double, std::milli>(
              std::chrono::steady_clock::now() - begin)
              .count();
  return s;
}

/// Makes the cut durable: rows, then what the stores say of them, then the
/// root. Until the root is there, the roots before it are the state.
Status Session::finishCommit(Commit &c) {
  Manifest &m = c.manifest;
  std::string folder = state->path();
  Status s = [&] {
    TRC_RETURN_IF_ERROR(pipeline->drainCut());
    for (size_t g = 0; g < m.groups.size(); ++g) {
      RowStore::Image image;
      TRC_RETURN_IF_ERROR(pipeline->groups[g]->store->finishCut(image));
      m.groups[g].index = std::move(image.files);
    }
    if (c.closed) {
      saveResidents(m);
      return writeBlob(folder, "closed-" + std::to_string(m.sequence) + ".blob",
                       c.blob, m);
    }
    Result<std::string> begun = state->beginCheckpoint();
    if (!begun.ok())
      return begun.takeStatus();
    return writeBlob(*begun, "blob.bin", c.blob, m);
  }();
  pipeline->endCut();
  // What ended the session also ended this; it has the file and the row.
  if (!s.ok() && s.code() == TRC_CANCELLED && pipeline->poisoned())
    s = pipeline->poisonStatus();
  std::lock_guard<std::mutex> lock(rootsMutex);
  std::vector<uint64_t> gone; // roots that this one takes the place of
  std::optional<uint64_t> closedBefore;
  bool inDoubt = false;
  if (s.ok()) {
    Result<std::optional<StateSource>> before = state->closedState();
    if (before.ok() && *before)
      closedBefore = (*before)->manifest.sequence;
    std::string name = "ckpt-" + std::to_string(m.step);
    if (!c.closed)
      if (Result<StateSource> same = state->checkpoint(name); same.ok())
        gone.push_back(same->manifest.sequence);
    s = c.closed ? state->writeClosed(m, inDoubt)
                 : state->commitCheckpoint(name, m, inDoubt);
  }
  if (!s.ok()) {
    if (inDoubt) {
      // It may come back after a power loss: nothing that it names may go.
      pipeline->poison(s.clone());
      return s;
    }
    // A store that failed is of no use any more. Otherwise the session goes on,
    // and so do the roots that are there.
    for (auto &g : pipeline->groups)
      if (Status failed = g->store->failure(); !failed.ok()) {
        pipeline->poison(std::move(failed));
        return s;
      }
    for (auto &g : pipeline->groups)
      g->store->dropCut();
    if (!c.closed)
      state->abandonCheckpoint();
    return s;
  }
  for (auto &g : pipeline->groups)
    g->store->keepCut();
  sequence = m.sequence;
  c.durable = true;
  savedStep = m.step;
  savedName = c.closed ? "the closed state" : "ckpt-" + std::to_string(m.step);
  if (!c.closed)
    s = state->removeClosed();
  if (s.ok() && closedBefore)
    gone.push_back(*closedBefore);
  if (!c.closed) {
    // Also where it fails, it says what went: that space is free.
    if (Status pruned = state->prune(c.keep, gone); s.ok())
      s = std::move(pruned);
  }
  if (Status forgot = forgetRoots(gone); s.ok())
    s = std::move(forgot);
  if (s.ok())
    state->removeLeftovers(storeFiles());
  return s;
}

/// What these roots retained is free again. They are gone, durably.
Status Session::forgetRoots(const std::vector<uint64_t> &sequences) {
  for (auto &g : pipeline->groups)
    for (uint64_t id : sequences)
      // Roots of another generation retain nothing here.
      if (Status s = g->store->forget(id); !s.ok() && s.code() != TRC_NOT_FOUND)
        return s;
  return Status();
}

/// A store is full and cleaning gains nothing: what the spec says.
Status Session::makeRoom() {
  std::lock_guard<std::mutex> lock(rootsMutex);
  std::vector<StateSource> all = state->roots(nullptr);
  if (!all.empty())
    all.pop_back(); // the newest stays
  // Roots of another layout hold no space of these stores.
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const StateSource &root) {
                             return root.manifest.generation != generation;
                           }),
            all.end());
  if (!plan.store.dropOldest || all.empty()) {
    // The keys are compiled in, and files keep the size that they began with.
    std::string why = plan.store.dropOldest
                          ? "there is no older checkpoint to give up"
                          : "train.checkpoint.on_full is error";
    std::string what =
        "more rows change between checkpoints than train.checkpoint.churn says";
    return Status(
        TRC_FULL,
        why + "; " + what +
            ": compile with a larger churn (1: all rows) or a smaller keep, "
            "and "
            "train into another state, from this one with --init-from" +
            (plan.store.dropOldest
                 ? ""
                 : "; or compile with on_full: drop_oldest and go on here"));
  }
  const StateSource &oldest = all.front();
  log(TRC_LOG_WARNING, "a store is full: giving " + oldest.name + " (step " +
                           std::to_string(oldest.manifest.step) + ") up");
  std::vector<uint64_t> removed = {oldest.manifest.sequence};
  TRC_RETURN_IF_ERROR(oldest.closed ? state->removeClosed()
                                    : state->removeCheckpoint(oldest.name));
  return forgetRoots(removed);
}

/// The closed state; replaces the one before.
Status Session::save() {
  if (savedIsCurrent)
    return Status(); // nothing has changed since it was closed
  Commit c;
  c.closed = true;
  c.blob = blob;
  TRC_RETURN_IF_ERROR(beginCommit(c));
  Status s = finishCommit(c);
  savedIsCurrent = c.durable;
  return s;
}

/// "steps 21 to 2520 are lost".
std::string Session::unstored(const char *how) const {
  int64_t now = step, first = std::max<int64_t>(savedStep, 0) + 1;
  if (now < first)
    return "what was written since step " + std::to_string(now) + " is " + how;
  if (now == first)
    return "step " + std::to_string(now) + " is " + how;
  return "steps " + std::to_string(first) + " to " + std::to_string(now) +
         " are " + how;
}

std::string Session::stands() const {
  return savedStep < 0 ? "has no root yet"
                       : "stands at step " + std::to_string(savedStep) + " (" +
                             savedName + ")";
}

/// What a close that came to nothing means: nothing is lost yet.
Status Session::notStored(const Status &why) const {
  trc_status code = why.code();
  if (code != TRC_NO_SPACE && code != TRC_NO_MEMORY)
    code = TRC_IO; // e.g. a folder that is gone
  return Status(code, unstored("not stored yet") + ", the state " + stands() +
                          ": " + why.message());
}

/// Ends the thread of the last checkpoint; its failure is reported once. What
/// it brought becomes the session's only now: until its root is durable, the
/// state is that of the root before.
Status Session::joinCheckpoint() {
  if (committer.joinable()) {
    if (pipeline->executor.interrupted())
      for (auto &g : pipeline->groups)
        g->store->interruptCut();
    committer.join();
    if (committed->durable) {
      blob = std::move(committed->blob);
      savedIsCurrent = false; // a closed state from before is gone
    }
    committed.reset();
  }
  Status s = std::move(commitStatus);
  commitStatus = Status();
  return s;
}

Status Session::checkpointBegin(const void *data, uint64_t bytes,
                                uint32_t keep) {
  if (mode != TRC_TRAIN)
    return Status(TRC_BAD_ARGUMENT,
                  "checkpoint in a session that was not opened to train");
  if (bytes && !data)
    return Status(TRC_BAD_ARGUMENT, "blob is null but blob_bytes is not 0");
  std::unique_lock<std::mutex> role(trainer, std::try_to_lock);
  if (!role)
    return Status(
        TRC_OUT_OF_ORDER,
        "checkpoint while another thread is in a call of the trainer");
  TRC_RETURN_IF_ERROR(usable());
  if (forwarded)
    return Status(TRC_OUT_OF_ORDER,
                  "checkpoint between forward and backward of a batch; end it "
                  "with backward or release first");
  TRC_RETURN_IF_ERROR(joinCheckpoint());
  auto c = std::make_shared<Commit>();
  c->keep = keep;
  c->blob.assign(static_cast<const char *>(data),
                 static_cast<const char *>(data) + bytes);
  TRC_RETURN_IF_ERROR(beginCommit(*c));
  committed = c;
  committing = true;
  committer = std::thread([this, c] {
    blockSignalsInThisThread();
    commitStatus = finishCommit(*c);
    committing = false;
  });
  return Status();
}

Status Session::checkpointWait(bool block) {
  std::unique_lock<std::mutex> role(trainer, std::try_to_lock);
  if (!role)
    return Status(TRC_OUT_OF_ORDER, "checkpoint_wait while another thread is "
                                    "in a call of the trainer");
  if (!block && committing)
    return Status(TRC_WOULD_BLOCK, "the checkpoint is still being written");
  return joinCheckpoint();
}

Status Session::checkpoint(const void *data, uint64_t bytes, uint32_t keep) {
  TRC_RETURN_IF_ERROR(checkpointBegin(data, bytes, keep));
  return checkpointWait(true);
}

Status Session::getBlob(void *data, uint64_t *bytes) {
  if (!bytes)
    return Status(TRC_BAD_ARGUMENT, "bytes is null");
  uint64_t room = *bytes;
  *bytes = blob.size();
  if (!data)
    return Status();
  if (room < blob.size())
    return Status(TRC_BAD_ARGUMENT,
                  "the blob has " + std::to_string(blob.size()) +
                      " bytes, the buffer " + std::to_string(room));
  std::memcpy(data, blob.data(), blob.size());
  return Status();
}
