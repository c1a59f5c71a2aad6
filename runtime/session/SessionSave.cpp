//===- SessionSave.cpp - Checkpoints and the clean close ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are the same: rows that have changed go to their stores, the stores are
// cut, and a root names what they say. A root is removed, durably, before the
// space of what it retained is used again.
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Session.h"
#include "runtime/store/Crc32c.h"

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

/// Brings the rows that have changed home, in pieces.
Status Session::writeGroupBack(GroupRuntime &group) {
  constexpr uint32_t most = 1024;
  size_t pitch = static_cast<size_t>(group.plan->slotBytes);
  std::vector<uint32_t> rows(most), slots(most);
  std::vector<char> payloads(most * pitch);
  uint64_t count = static_cast<uint64_t>(group.plan->rows);
  uint64_t next = 0;   // home in memory
  uint32_t cursor = 0; // in the cache
  while (true) {
    uint32_t n = 0;
    if (group.cache) {
      n = group.cache->collectDirty(&cursor, rows.data(), slots.data(), most);
    } else {
      for (; n < most; ++n) {
        next = group.dirty.next(next, count);
        if (next >= count)
          break;
        rows[n] = slots[n] = static_cast<uint32_t>(next++);
      }
    }
    if (!n)
      return Status();
    for (uint32_t i = 0; i < n; ++i)
      std::memcpy(payloads.data() + i * pitch, group.row(slots[i]), pitch);
    TRC_RETURN_IF_ERROR(group.store->load(rows.data(), n, payloads.data()));
    if (group.cache)
      group.cache->markClean(slots.data(), n);
    else
      for (uint32_t i = 0; i < n; ++i)
        group.dirty.reset(rows[i]);
  }
}

Status Session::writeBack() {
  for (auto &g : pipeline->groups)
    if (Status s = writeGroupBack(*g); !s.ok()) {
      // A full store refuses and keeps what it has; any other failure ends it.
      if (s.code() != TRC_NO_SPACE)
        pipeline->poison(s.clone());
      return s;
    }
  return Status();
}

/// Makes this moment durable: changed rows, then what the stores say of it,
/// then the root. Until the root is there, the roots before it are the state.
Status Session::commit(
    const std::vector<char> &newBlob, const std::string &blobName,
    const std::string &folder,
    const std::function<Status(const Manifest &, bool &inDoubt)> &writeRoot) {
  TRC_RETURN_IF_ERROR(writeBack());
  Manifest m = Manifest::of(plan);
  m.sequence = sequence + 1;
  m.key = key;
  m.generation = generation;
  m.step = step;
  m.samples = samples;
  m.lrScale = lrScale;
  m.headState = pipeline->headState;
  m.groups = stored;
  size_t cut = 0; // groups whose store is cut
  Status s = [&] {
    for (; cut < m.groups.size(); ++cut)
      TRC_RETURN_IF_ERROR(pipeline->groups[cut]->store->beginCut(m.sequence));
    for (size_t g = 0; g < m.groups.size(); ++g) {
      RowStore::Image image;
      TRC_RETURN_IF_ERROR(pipeline->groups[g]->store->finishCut(image));
      m.groups[g].index = std::move(image.files);
    }
    return writeBlob(folder, blobName, newBlob, m);
  }();
  bool inDoubt = false;
  if (s.ok())
    s = writeRoot(m, inDoubt);
  if (!s.ok()) {
    if (inDoubt) {
      // It may come back after a power loss: nothing that it names may go.
      pipeline->poison(s.clone());
      return s;
    }
    for (size_t g = 0; g < cut; ++g)
      pipeline->groups[g]->store->dropCut();
    return s;
  }
  for (auto &g : pipeline->groups)
    g->store->keepCut();
  sequence = m.sequence;
  return Status();
}

/// What these roots retained is free again. They are gone, durably.
Status Session::forgetRoots(const std::vector<uint64_t> &sequences) {
  for (auto &g : pipeline->groups)
    for (uint64_t id : sequences)
      TRC_RETURN_IF_ERROR(g->store->forget(id));
  return Status();
}

/// A store is full and cleaning gains nothing: what the spec says.
Status Session::makeRoom() {
  std::lock_guard<std::mutex> lock(rootsMutex);
  std::vector<StateSource> all = state->roots(nullptr);
  if (!plan.store.dropOldest || all.size() < 2)
    return Status(TRC_NO_SPACE,
                  plan.store.dropOldest
                      ? "and there is no older checkpoint to give up"
                      : "train.checkpoint.on_full says error; keep fewer "
                        "checkpoints, write them more often, or give the tier "
                        "more capacity");
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
  Result<std::optional<StateSource>> before = state->closedState();
  TRC_RETURN_IF_ERROR(
      commit(blob, "closed-" + std::to_string(sequence + 1) + ".blob",
             state->path(), [&](const Manifest &m, bool &inDoubt) {
               return state->writeClosed(m, inDoubt);
             }));
  savedIsCurrent = true;
  std::lock_guard<std::mutex> lock(rootsMutex);
  if (before.ok() && *before)
    TRC_RETURN_IF_ERROR(forgetRoots({(*before)->manifest.sequence}));
  state->removeLeftovers(storeFiles());
  return Status();
}

Status Session::checkpoint(const void *data, uint64_t bytes, uint32_t keep) {
  if (mode != TRC_TRAIN)
    return Status(TRC_BAD_ARGUMENT,
                  "checkpoint in a session that was not opened to train");
  if (bytes && !data)
    return Status(TRC_BAD_ARGUMENT, "blob is null but blob_bytes is not 0");
  std::unique_lock<std::mutex> producerRole(producer, std::try_to_lock);
  std::unique_lock<std::mutex> trainerRole(trainer, std::try_to_lock);
  if (!producerRole || !trainerRole)
    return Status(TRC_OUT_OF_ORDER,
                  "checkpoint while another thread is in a call");
  TRC_RETURN_IF_ERROR(usable());
  TRC_RETURN_IF_ERROR(quiet());
  std::vector<char> newBlob(static_cast<const char *>(data),
                            static_cast<const char *>(data) + bytes);
  Result<std::string> folder = state->beginCheckpoint();
  if (!folder.ok())
    return folder.takeStatus();
  std::string name = "ckpt-" + std::to_string(step);
  std::vector<uint64_t> gone; // a checkpoint of the same step is replaced
  for (const StateSource &root : state->checkpoints(nullptr))
    if (root.name == name)
      gone.push_back(root.manifest.sequence);
  Status s = commit(newBlob, "blob.bin", *folder,
                    [&](const Manifest &m, bool &inDoubt) {
                      return state->commitCheckpoint(name, m, inDoubt);
                    });
  if (!s.ok()) {
    // The session goes on, and so do the checkpoints that are there.
    state->abandonCheckpoint();
    return s;
  }
  blob = std::move(newBlob);
  savedIsCurrent = false;
  std::lock_guard<std::mutex> lock(rootsMutex);
  // The closed state that the run began with is older than this one.
  Result<std::optional<StateSource>> closed = state->closedState();
  if (closed.ok() && *closed)
    gone.push_back((*closed)->manifest.sequence);
  TRC_RETURN_IF_ERROR(state->removeClosed());
  std::vector<uint64_t> pruned;
  TRC_RETURN_IF_ERROR(state->prune(keep, pruned));
  gone.insert(gone.end(), pruned.begin(), pruned.end());
  TRC_RETURN_IF_ERROR(forgetRoots(gone));
  state->removeLeftovers(storeFiles());
  return Status();
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
