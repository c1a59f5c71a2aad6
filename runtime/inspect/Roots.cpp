//===- Roots.cpp - What a state retains -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store tells how many bytes its retained images name together, so taking
// them over one by one tells what each adds to those before it.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Roots.h"

#include "runtime/checkpoint/Claims.h"
#include "runtime/store/Crc32c.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;
using namespace trc::inspect;

std::string inspect::nameOf(const StateSource &source) {
  return source.closed ? closedName : source.name;
}

/// Every name that a user may give.
static std::string namesIn(const StateDir &dir) {
  std::string names;
  for (const std::string &name : listFolder(dir.path() + "/checkpoints"))
    if (name.rfind("ckpt-", 0) == 0)
      names += (names.empty() ? "" : ", ") + name;
  if (pathExists(dir.path() + "/closed.json"))
    names += (names.empty() ? "" : ", ") + std::string(closedName);
  return names.empty() ? "none" : names;
}

Result<StateSource> inspect::findRoot(const StateDir &dir,
                                      const std::string &name,
                                      const Warn &warn) {
  bool number = !name.empty() &&
                name.find_first_not_of("0123456789") == std::string::npos;
  if (!name.empty() && name != closedName) {
    std::string full = number ? "ckpt-" + name : name;
    if (full.rfind("ckpt-", 0) != 0 || !pathExists(dir.checkpointPath(full)))
      return Status(TRC_NOT_FOUND, "no checkpoint '" + name + "' in '" +
                                       dir.path() +
                                       "'; there are: " + namesIn(dir));
    return dir.checkpoint(full);
  }
  Result<std::optional<StateSource>> found =
      name.empty() ? dir.newest(warn) : dir.closedState();
  if (!found.ok())
    return found.takeStatus();
  if (*found)
    return std::move(**found);
  TRC_RETURN_IF_ERROR(checkIsState(dir));
  return Status(TRC_NOT_FOUND,
                "the state at '" + dir.path() + "' holds no " +
                    (name.empty() ? "root that can be read" : "closed state") +
                    "; there are: " + namesIn(dir));
}

Result<int> inspect::findTable(const Manifest &manifest,
                               const std::string &name) {
  int table = manifest.findTable(name);
  if (table >= 0)
    return table;
  constexpr size_t most = 20;
  std::string names;
  for (size_t t = 0; t < std::min(most, manifest.tables.size()); ++t)
    names += (t ? ", " : "") + manifest.tables[t].name;
  if (manifest.tables.size() > most)
    names += ", and " + std::to_string(manifest.tables.size() - most) + " more";
  return Status(TRC_NOT_FOUND, "no table '" + name + "' in model '" +
                                   manifest.model + "'; there are: " + names);
}

static std::string stateFolderOf(const StateSource &source) {
  return source.closed ? source.folder : folderOf(folderOf(source.folder));
}

namespace {

/// The roots of one generation of files, taken over one after the other.
class Generation {
public:
  bool takes(const Manifest &m) const {
    return !homes.stores.empty() && m.key == key &&
           m.generation == generation && m.groups.size() == homes.stores.size();
  }

  Status open(const StateSource &root) {
    homes = HomeStores();
    live = 0;
    files.clear();
    StoresOptions options;
    options.key = key = root.manifest.key;
    generation = root.manifest.generation;
    options.readOnly = true;
    options.folder = stateFolderOf(root);
    options.generation = generation;
    options.holders = holdersIn(options.folder, generation);
    Result<HomeStores> opened = openStores(root.manifest.groups, options);
    if (!opened.ok())
      return opened.takeStatus();
    homes = std::move(*opened);
    return Status();
  }

  /// Bytes of records and index files that this root is the first to name.
  Status add(const StateSource &root, uint64_t &bytes) {
    bytes = 0;
    uint64_t now = 0;
    for (size_t g = 0; g < homes.stores.size(); ++g) {
      const ManifestGroup &group = root.manifest.groups[g];
      TRC_RETURN_IF_ERROR(
          homes.stores[g]->adopt({root.manifest.sequence, group.index}, false));
      RowStore::Space space = homes.stores[g]->space();
      now += space.current + space.retained;
      for (const std::string &file : group.index) {
        struct stat st;
        if (files.insert(file).second &&
            ::stat((stateFolderOf(root) + "/" + file).c_str(), &st) == 0)
          bytes += static_cast<uint64_t>(st.st_size);
      }
    }
    bytes += now - std::min(now, live);
    live = now;
    return Status();
  }

private:
  HomeStores homes;
  uint64_t key = 0, live = 0;
  uint32_t generation = 0;
  std::set<std::string> files;
};

} // namespace

static RootInfo infoOf(const StateSource &root) {
  RootInfo info;
  info.name = nameOf(root);
  info.closed = root.closed;
  const Manifest &m = root.manifest;
  info.sequence = m.sequence;
  info.step = m.step;
  info.samples = m.samples;
  info.blobBytes = m.blobBytes;
  struct stat st;
  std::string file =
      root.folder + (root.closed ? "/closed.json" : "/manifest.json");
  if (::stat(file.c_str(), &st) == 0)
    info.time = st.st_mtim.tv_sec;
  return info;
}

static void describe(const StateSource &root, Generation &stores,
                     RootInfo &info) {
  Status s = guarded([&]() -> Status {
    Result<std::unique_ptr<StateReader>> reader = StateReader::open(root);
    if (!reader.ok())
      return reader.takeStatus();
    info.rows = (*reader)->writtenCount();
    reader->reset();
    if (!stores.takes(root.manifest))
      TRC_RETURN_IF_ERROR(stores.open(root));
    TRC_RETURN_IF_ERROR(stores.add(root, info.newBytes));
    info.newBytes += info.blobBytes;
    return Status();
  });
  if (!s.ok())
    info.damage = s.message();
}

Status inspect::checkIsState(const StateDir &dir) {
  for (const char *name : {"manifest.json", "closed.json", "checkpoints"})
    if (pathExists(dir.path() + "/" + name))
      return Status();
  return Status(TRC_NOT_FOUND, "'" + dir.path() +
                                   "' is no state: it holds no manifest.json; "
                                   "name the folder that ./model train wrote");
}

Result<std::vector<RootInfo>> inspect::listRoots(const StateDir &dir) {
  TRC_RETURN_IF_ERROR(checkIsState(dir));
  std::vector<RootInfo> all;
  Generation stores;
  for (const StateSource &root : dir.roots(nullptr)) {
    all.push_back(infoOf(root));
    describe(root, stores, all.back());
  }
  auto damaged = [&](const std::string &name, bool closed, const Status &why) {
    RootInfo info;
    info.name = name;
    info.closed = closed;
    info.damage = why.message();
    all.push_back(std::move(info));
  };
  for (const std::string &name : listFolder(dir.path() + "/checkpoints"))
    if (name.rfind("ckpt-", 0) == 0)
      if (Result<StateSource> root = dir.checkpoint(name); !root.ok())
        damaged(name, false, root.takeStatus());
  if (Result<std::optional<StateSource>> root = dir.closedState(); !root.ok())
    damaged(closedName, true, root.takeStatus());
  return Result<std::vector<RootInfo>>(std::move(all));
}

Status
inspect::checkBlob(const StateSource &source,
                   const std::function<Status(const char *, uint64_t)> &take) {
  const Manifest &m = source.manifest;
  if (m.blobFile.empty())
    return Status();
  std::string path = source.folder + "/" + m.blobFile;
  Result<Fd> opened = openToRead(path);
  if (!opened.ok())
    return opened.takeStatus();
  const Fd &fd = *opened;
  std::vector<char> buffer(1 << 20);
  uint64_t bytes = 0;
  uint32_t crc = 0;
  while (true) {
    ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return Status::ioError("cannot read the blob", path, errno);
    if (n == 0)
      break;
    crc = crc32c(crc, buffer.data(), static_cast<size_t>(n));
    bytes += static_cast<uint64_t>(n);
    if (take)
      TRC_RETURN_IF_ERROR(take(buffer.data(), static_cast<uint64_t>(n)));
  }
  if (bytes == m.blobBytes && crc == m.blobCrc)
    return Status();
  return Status(TRC_CORRUPT,
                "the blob '" + path + "' does not match its manifest (" +
                    std::to_string(bytes) + " bytes of " +
                    std::to_string(m.blobBytes) + ", or other contents)");
}
