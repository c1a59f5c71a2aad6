//===- StateDir.cpp - The folder of a state -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names become durable by rename and fsync of the folder; contents were synced
// before. Only files that this class names are ever removed.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/StateDir.h"

#include "runtime/checkpoint/FileSystem.h"
#include "runtime/store/Crc32c.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace trc;

Status StateSource::readBlob(std::vector<char> &blob) const {
  blob.clear();
  if (manifest.blobFile.empty())
    return Status();
  std::string path = folder + "/" + manifest.blobFile;
  Result<std::string> text = readFile(path);
  if (!text.ok())
    return text.takeStatus();
  if (text->size() != manifest.blobBytes ||
      crc32c(0, text->data(), text->size()) != manifest.blobCrc)
    return Status(TRC_CORRUPT, "'" + path +
                                   "' does not match its manifest; use another "
                                   "checkpoint");
  blob.assign(text->begin(), text->end());
  return Status();
}

Result<std::unique_ptr<StateDir>> StateDir::open(const std::string &path,
                                                 bool exclusive, bool create) {
  std::unique_ptr<StateDir> dir(new StateDir());
  dir->folder = path;
  while (dir->folder.size() > 1 && dir->folder.back() == '/')
    dir->folder.pop_back();
  if (create)
    TRC_RETURN_IF_ERROR(makeFolders(dir->folder));
  dir->lock =
      Fd(::open(dir->folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir->lock.open())
    return errno == ENOENT
               ? Status(TRC_NOT_FOUND, "there is no state at '" + path +
                                           "'; train first, or name the folder")
               : Status::ioError("cannot open state folder", path, errno);
  if (::flock(dir->lock.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0)
    return errno == EWOULDBLOCK
               ? Status(TRC_LOCKED,
                        "the state at '" + path +
                            "' is open in another process or session")
               : Status::ioError("cannot lock state folder", path, errno);
  if (exclusive && ::access(dir->folder.c_str(), W_OK | X_OK) != 0)
    return Status::ioError("cannot write to state folder", path, errno);
  return Result<std::unique_ptr<StateDir>>(std::move(dir));
}

static Result<Manifest> readManifest(const std::string &path) {
  Result<std::string> text = readFile(path);
  if (!text.ok())
    return text.takeStatus();
  return Manifest::fromText(*text, path);
}

Result<std::optional<Manifest>> StateDir::identity() const {
  std::string path = folder + "/manifest.json";
  if (!pathExists(path))
    return std::optional<Manifest>();
  Result<Manifest> m = readManifest(path);
  if (!m.ok())
    return m.takeStatus();
  return std::optional<Manifest>(std::move(*m));
}

Status StateDir::writeIdentity(const Manifest &manifest) {
  return replaceFile(folder, "manifest.json", manifest.toText());
}

Result<StateSource> StateDir::checkpoint(const std::string &name) const {
  StateSource source;
  source.folder = checkpointPath(name);
  source.name = name;
  if (name.empty() || name.find('/') != std::string::npos ||
      !pathExists(source.folder)) {
    std::string have;
    for (const std::string &other : listFolder(folder + "/checkpoints"))
      if (other.rfind("ckpt-", 0) == 0)
        have += (have.empty() ? "" : ", ") + other;
    return Status(TRC_NOT_FOUND,
                  "no checkpoint '" + name + "' in '" + folder +
                      "'; there are: " + (have.empty() ? "none" : have));
  }
  Result<Manifest> m = readManifest(source.folder + "/manifest.json");
  if (!m.ok())
    return m.takeStatus();
  source.manifest = std::move(*m);
  return source;
}

std::vector<StateSource> StateDir::checkpoints(
    const std::function<void(const std::string &)> &warn) const {
  std::vector<StateSource> all;
  for (const std::string &name : listFolder(folder + "/checkpoints")) {
    if (name.rfind("ckpt-", 0) != 0)
      continue;
    Result<StateSource> source = checkpoint(name);
    if (source.ok())
      all.push_back(std::move(*source));
    else if (warn)
      warn("checkpoint '" + name +
           "' is left out: " + source.takeStatus().message());
  }
  std::sort(all.begin(), all.end(),
            [](const StateSource &a, const StateSource &b) {
              return a.manifest.sequence < b.manifest.sequence;
            });
  return all;
}

Result<std::optional<StateSource>> StateDir::cleanState() const {
  std::string path = folder + "/clean.json";
  if (!pathExists(path))
    return std::optional<StateSource>();
  Result<Manifest> m = readManifest(path);
  if (!m.ok())
    return m.takeStatus();
  StateSource source;
  source.manifest = std::move(*m);
  source.folder = folder;
  source.name = "the closed state";
  source.clean = true;
  return std::optional<StateSource>(std::move(source));
}

Result<std::optional<StateSource>>
StateDir::newest(const std::function<void(const std::string &)> &warn) const {
  Result<std::optional<StateSource>> clean = cleanState();
  std::optional<StateSource> best;
  if (clean.ok())
    best = std::move(*clean);
  std::vector<StateSource> all = checkpoints(warn);
  if (!all.empty() &&
      (!best || all.back().manifest.sequence > best->manifest.sequence))
    best = std::move(all.back());
  if (!clean.ok()) {
    if (!best)
      return clean.takeStatus();
    warn("the closed state is left out: " + clean.takeStatus().message());
  }
  return best;
}

uint64_t StateDir::lastSequence() const {
  uint64_t last = 0;
  for (const StateSource &s : checkpoints(nullptr))
    last = std::max(last, s.manifest.sequence);
  Result<std::optional<StateSource>> clean = cleanState();
  if (clean.ok() && *clean)
    last = std::max(last, (*clean)->manifest.sequence);
  return last;
}

Status StateDir::removeClean() {
  std::string path = folder + "/clean.json";
  if (!pathExists(path))
    return Status();
  TRC_RETURN_IF_ERROR(removeFile(path));
  return syncFolder(folder);
}

Status StateDir::writeClean(const Manifest &manifest) {
  TRC_RETURN_IF_ERROR(syncFolder(folder));
  return replaceFile(folder, "clean.json", manifest.toText());
}

void StateDir::removeLeftovers(uint64_t keep) {
  std::string live = "live-" + std::to_string(keep) + ".";
  std::string index = "index-" + std::to_string(keep) + "-";
  for (const std::string &name : listFolder(folder)) {
    bool ours = name.rfind("live-", 0) == 0 || name.rfind("index-", 0) == 0 ||
                name == "clean.json.tmp" || name == "manifest.json.tmp";
    bool kept = keep && (name.rfind(live, 0) == 0 || name.rfind(index, 0) == 0);
    // A file that cannot be removed only takes space.
    if (ours && !kept)
      (void)removeFile(folder + "/" + name);
  }
}

Status StateDir::wipe(const std::vector<std::string> &tierFiles) {
  TRC_RETURN_IF_ERROR(removeClean());
  for (const std::string &name : listFolder(folder + "/checkpoints"))
    if (name.rfind("ckpt-", 0) == 0 || name == ".new" || name == ".old")
      TRC_RETURN_IF_ERROR(removeFlatFolder(checkpointPath(name)));
  if (int r = fileSystem().removeFolder(folder + "/checkpoints");
      r < 0 && r != -ENOENT && r != -ENOTEMPTY)
    return Status::ioError("cannot remove", folder + "/checkpoints", -r);
  TRC_RETURN_IF_ERROR(removeFile(folder + "/manifest.json"));
  removeLeftovers(0);
  for (const std::string &file : tierFiles)
    if (!file.empty() && file[0] != '/')
      TRC_RETURN_IF_ERROR(removeFile(inFolder(folder, file)));
  return syncFolder(folder);
}

Result<std::string> StateDir::beginCheckpoint() {
  TRC_RETURN_IF_ERROR(makeFolders(folder + "/checkpoints"));
  TRC_RETURN_IF_ERROR(removeFlatFolder(temporary()));
  TRC_RETURN_IF_ERROR(makeFolders(temporary()));
  return temporary();
}

void StateDir::abandonCheckpoint() {
  // Whatever stays is removed by the next one.
  (void)removeFlatFolder(temporary());
}

Status StateDir::commitCheckpoint(const std::string &name,
                                  const Manifest &manifest) {
  std::string parent = folder + "/checkpoints";
  std::string target = checkpointPath(name), old = parent + "/.old";
  TRC_RETURN_IF_ERROR(
      replaceFile(temporary(), "manifest.json", manifest.toText()));
  bool replaced = pathExists(target);
  if (replaced) {
    TRC_RETURN_IF_ERROR(removeFlatFolder(old));
    // One call where the file system can, so that at no instant neither is
    // there.
    if (fileSystem().exchange(temporary(), target) < 0) {
      TRC_RETURN_IF_ERROR(renameFile(target, old));
      TRC_RETURN_IF_ERROR(renameFile(temporary(), target));
    }
  } else {
    TRC_RETURN_IF_ERROR(renameFile(temporary(), target));
  }
  TRC_RETURN_IF_ERROR(syncFolder(parent));
  TRC_RETURN_IF_ERROR(syncFolder(folder));
  if (replaced) {
    (void)removeFlatFolder(temporary());
    (void)removeFlatFolder(old);
  }
  return Status();
}

Status StateDir::prune(uint32_t keep) {
  if (keep == 0)
    return Status();
  std::vector<StateSource> all = checkpoints(nullptr);
  for (size_t i = 0; i + keep < all.size(); ++i) {
    // The manifest goes first: half a checkpoint must not look like one.
    // Also after a power loss, so it goes durably.
    TRC_RETURN_IF_ERROR(removeFile(all[i].folder + "/manifest.json"));
    TRC_RETURN_IF_ERROR(syncFolder(all[i].folder));
    TRC_RETURN_IF_ERROR(removeFlatFolder(all[i].folder));
  }
  return Status();
}
