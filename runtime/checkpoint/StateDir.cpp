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
#include <cstdlib>
#include <fcntl.h>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
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

bool StateDir::removing() const {
  Result<std::optional<Manifest>> now = identity();
  return now.ok() && *now && (*now)->removing;
}

bool StateDir::importing() const {
  Result<std::optional<Manifest>> now = identity();
  return now.ok() && *now && (*now)->importing &&
         !pathExists(folder + "/closed.json") &&
         listFolder(folder + "/checkpoints").empty();
}

Result<StateSource> StateDir::readCheckpoint(const std::string &name) const {
  StateSource source;
  source.folder = checkpointPath(name);
  source.name = name;
  Result<Manifest> m = readManifest(source.folder + "/manifest.json");
  if (!m.ok())
    return m.takeStatus();
  source.manifest = std::move(*m);
  return source;
}

Result<StateSource> StateDir::checkpoint(const std::string &name) const {
  bool gone = removing();
  if (name.empty() || name.find('/') != std::string::npos ||
      !pathExists(checkpointPath(name)) || gone) {
    std::string have;
    for (const std::string &other : listFolder(folder + "/checkpoints"))
      if (!gone && other.rfind("ckpt-", 0) == 0)
        have += (have.empty() ? "" : ", ") + other;
    return Status(TRC_NOT_FOUND,
                  "no checkpoint '" + name + "' in '" + folder +
                      "'; there are: " + (have.empty() ? "none" : have));
  }
  return readCheckpoint(name);
}

std::vector<StateSource> StateDir::checkpoints(
    const std::function<void(const std::string &)> &warn) const {
  std::vector<StateSource> all;
  if (removing())
    return all;
  for (const std::string &name : listFolder(folder + "/checkpoints")) {
    if (name.rfind("ckpt-", 0) != 0)
      continue;
    Result<StateSource> source = readCheckpoint(name);
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

Result<std::optional<StateSource>> StateDir::closedState() const {
  std::string path = folder + "/closed.json";
  if (!pathExists(path) || removing())
    return std::optional<StateSource>();
  Result<Manifest> m = readManifest(path);
  if (!m.ok())
    return m.takeStatus();
  StateSource source;
  source.manifest = std::move(*m);
  source.folder = folder;
  source.name = "the closed state";
  source.closed = true;
  return std::optional<StateSource>(std::move(source));
}

std::vector<StateSource>
StateDir::roots(const std::function<void(const std::string &)> &warn) const {
  std::vector<StateSource> all = checkpoints(warn);
  Result<std::optional<StateSource>> closed = closedState();
  if (!closed.ok()) {
    if (warn)
      warn("the closed state is left out: " + closed.takeStatus().message());
  } else if (*closed) {
    uint64_t sequence = (*closed)->manifest.sequence;
    auto after =
        std::find_if(all.begin(), all.end(), [&](const StateSource &s) {
          return s.manifest.sequence > sequence;
        });
    all.insert(after, std::move(**closed));
  }
  return all;
}

Result<std::optional<StateSource>>
StateDir::newest(const std::function<void(const std::string &)> &warn) const {
  std::vector<StateSource> all = roots(warn);
  if (!all.empty())
    return std::optional<StateSource>(std::move(all.back()));
  // Nothing can be read: then a damaged root is an error, not a new beginning.
  Result<std::optional<StateSource>> closed = closedState();
  if (!closed.ok())
    return closed.takeStatus();
  return std::optional<StateSource>();
}

Status StateDir::writeClosed(const Manifest &manifest, bool &inDoubt) {
  inDoubt = false;
  TRC_RETURN_IF_ERROR(syncFolder(folder));
  Status s = replaceFile(folder, "closed.json", manifest.toText());
  if (!s.ok()) {
    Result<std::optional<StateSource>> now = closedState();
    // What cannot be read may be it.
    inDoubt =
        !now.ok() || (*now && (*now)->manifest.sequence == manifest.sequence);
  }
  return s;
}

Status StateDir::removeClosed() {
  if (!pathExists(folder + "/closed.json"))
    return Status();
  TRC_RETURN_IF_ERROR(removeFile(folder + "/closed.json"));
  return syncFolder(folder);
}

uint64_t StateDir::lastSequence() const {
  std::vector<StateSource> all = roots(nullptr);
  return all.empty() ? 0 : all.back().manifest.sequence;
}

std::string trc::generationPath(const std::string &path, uint32_t generation) {
  return generation ? path + "." + std::to_string(generation) : path;
}

std::string trc::tierPath(const std::string &file, uint32_t generation) {
  std::string suffix = generationPath("", generation);
  bool ends =
      file.size() > suffix.size() &&
      file.compare(file.size() - suffix.size(), suffix.size(), suffix) == 0;
  return ends ? file.substr(0, file.size() - suffix.size()) : file;
}

std::string trc::generationPrefix(uint32_t generation) {
  return generation ? "index-" + std::to_string(generation) + "." : "index-";
}

static bool isNumber(const std::string &text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

/// Whether this is an index file, and of which generation.
static bool isIndexFile(const std::string &name, uint32_t &generation) {
  if (name.rfind("index-", 0) != 0)
    return false;
  std::string first = name.substr(6, name.find_first_of(".-", 6) - 6);
  if (!isNumber(first))
    return false;
  generation =
      name[6 + first.size()] == '.'
          ? static_cast<uint32_t>(std::strtoul(first.c_str(), nullptr, 10))
          : 0;
  return true;
}

/// Files that hold generations of a store path.
static std::vector<std::string> generationsOf(const std::string &path) {
  std::string parent = folderOf(path);
  std::string name = path.substr(path.find_last_of('/') + 1);
  std::vector<std::string> found;
  for (const std::string &file : listFolder(parent))
    if (file == name || (file.rfind(name + ".", 0) == 0 &&
                         isNumber(file.substr(name.size() + 1))))
      found.push_back(parent + "/" + file);
  return found;
}

void StateDir::removeLeftovers(const std::vector<std::string> &tierFiles) {
  std::vector<StateSource> all = roots(nullptr);
  std::set<std::string> named;
  std::set<uint32_t> generations;
  uint32_t newest = 0;
  for (const StateSource &root : all) {
    generations.insert(root.manifest.generation);
    if (!root.manifest.blobFile.empty())
      named.insert(root.manifest.blobFile);
    if (!root.manifest.residentFile.empty())
      named.insert(root.manifest.residentFile);
    newest = std::max(newest, root.manifest.generation);
    for (const ManifestGroup &g : root.manifest.groups) {
      // Imports named theirs by another generation once.
      named.insert(g.index.begin(), g.index.end());
      for (const ManifestGroup::Extent &e : g.extents)
        named.insert(inFolder(folder, e.path));
    }
  }
  for (const std::string &name : listFolder(folder)) {
    bool ours = name.rfind("closed-", 0) == 0 || name == "closed.json.tmp" ||
                name == "manifest.json.tmp" || name == "claims.json.tmp";
    uint32_t generation;
    if (isIndexFile(name, generation))
      ours = generation < newest && !generations.count(generation);
    // A file that cannot be removed only takes space.
    if (ours && !named.count(name))
      (void)removeFile(folder + "/" + name);
  }
  // Of checkpoints that were removed, as far as that went.
  for (const std::string &name : listFolder(folder + "/checkpoints"))
    if (name.rfind("ckpt-", 0) == 0 &&
        !pathExists(checkpointPath(name) + "/manifest.json"))
      (void)removeFlatFolder(checkpointPath(name));
  for (const std::string &tier : tierFiles) {
    std::string path = inFolder(folder, tier);
    struct stat info;
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      continue;
    for (const std::string &file : generationsOf(path)) {
      uint32_t generation =
          file == path ? 0
                       : static_cast<uint32_t>(std::strtoul(
                             file.c_str() + path.size() + 1, nullptr, 10));
      if (!named.count(file) && generation < newest)
        (void)removeFile(file);
    }
  }
}

Status StateDir::wipe(const std::vector<std::string> &tierFiles) {
  TRC_RETURN_IF_ERROR(removeClosed());
  for (const std::string &name : listFolder(folder + "/checkpoints"))
    if (name.rfind("ckpt-", 0) == 0 || name == ".new" || name == ".old")
      TRC_RETURN_IF_ERROR(removeFlatFolder(checkpointPath(name)));
  if (int r = fileSystem().removeFolder(folder + "/checkpoints");
      r < 0 && r != -ENOENT && r != -ENOTEMPTY)
    return Status::ioError("cannot remove", folder + "/checkpoints", -r);
  TRC_RETURN_IF_ERROR(syncFolder(folder));
  for (const std::string &name : listFolder(folder))
    if (name.rfind("closed-", 0) == 0 || name.rfind("index-", 0) == 0 ||
        name == "closed.json.tmp" || name == "manifest.json.tmp" ||
        name == "claims.json.tmp")
      TRC_RETURN_IF_ERROR(removeFile(folder + "/" + name));
  for (const std::string &tier : tierFiles)
    if (!tier.empty() && tier[0] != '/')
      for (const std::string &file : generationsOf(inFolder(folder, tier)))
        TRC_RETURN_IF_ERROR(removeFile(file));
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
                                  const Manifest &manifest, bool &inDoubt) {
  inDoubt = false;
  std::string parent = folder + "/checkpoints";
  std::string target = checkpointPath(name), old = parent + "/.old";
  TRC_RETURN_IF_ERROR(
      replaceFile(temporary(), "manifest.json", manifest.toText()));
  TRC_RETURN_IF_ERROR(syncFolder(folder));
  bool replaced = pathExists(target);
  if (replaced) {
    TRC_RETURN_IF_ERROR(removeFlatFolder(old));
    // One call where the file system can, so that at no instant neither is
    // there.
    if (fileSystem().exchange(temporary(), target) < 0) {
      inDoubt = true;
      TRC_RETURN_IF_ERROR(renameFile(target, old));
      TRC_RETURN_IF_ERROR(renameFile(temporary(), target));
    }
  } else {
    Status s = renameFile(temporary(), target);
    inDoubt = !s.ok() && pathExists(target); // done all the same
    TRC_RETURN_IF_ERROR(std::move(s));
  }
  inDoubt = true;
  TRC_RETURN_IF_ERROR(syncFolder(parent));
  inDoubt = false;
  if (replaced) {
    (void)removeFlatFolder(temporary());
    (void)removeFlatFolder(old);
  }
  return Status();
}

Status StateDir::removeCheckpoint(const std::string &name) {
  // The manifest goes first: half a checkpoint must not look like one.
  std::string path = checkpointPath(name);
  TRC_RETURN_IF_ERROR(removeFile(path + "/manifest.json"));
  TRC_RETURN_IF_ERROR(syncFolder(path));
  // It is gone. What cannot be removed only takes space.
  (void)removeFlatFolder(path);
  return Status();
}

Status StateDir::prune(uint32_t keep, std::vector<uint64_t> &removed) {
  if (keep == 0)
    return Status();
  std::vector<StateSource> all = checkpoints(nullptr);
  for (size_t i = 0; i + keep < all.size(); ++i) {
    TRC_RETURN_IF_ERROR(removeCheckpoint(all[i].name));
    removed.push_back(all[i].manifest.sequence);
  }
  return Status();
}
