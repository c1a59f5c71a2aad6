//===- Stores.cpp - The stores of a state's groups ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Locks first, then devices, then stores; undone in the other order.
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Stores.h"

#include "runtime/core/OpenFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;

/// Holds a tier file for as long as the stores live: two states, or two tiers,
/// that name one file would write over each other. Made where the stores are
/// new; where they are not, an empty one would only hide what is missing.
static Status lockTierFile(const std::string &path, bool write, bool create,
                           HomeStores &homes) {
  for (const auto &known : homes.locked)
    if (known == path)
      return Status();
  if (create)
    TRC_RETURN_IF_ERROR(makeFolders(folderOf(path)));
  Result<int> opened =
      openFile(path, write ? O_RDWR | (create ? O_CREAT : 0) : O_RDONLY,
               FileKind::OrDevice);
  if (!opened.ok()) {
    Status s = opened.takeStatus();
    if (create || s.code() != TRC_NOT_FOUND)
      return s;
    return Status(TRC_NOT_FOUND,
                  "the tier file '" + path +
                      "' is missing, and with it the rows of this state and "
                      "of its checkpoints: put it back (was it moved, or is "
                      "its drive not mounted?), or start anew in another "
                      "folder, from a portable checkpoint (terrace checkpoint "
                      "import) if there is one");
  }
  Fd fd(*opened);
  if (::flock(fd.get(), (write ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0)
    return errno == EWOULDBLOCK
               ? Status(TRC_LOCKED, "the tier file '" + path +
                                        "' is in use by another state, tier or "
                                        "process; every state and tier needs a "
                                        "file of its own")
               : Status::ioError("cannot lock the tier file", path, errno);
  homes.locked.push_back(path);
  homes.locks.push_back(std::move(fd));
  return Status();
}

HomeStores &HomeStores::operator=(HomeStores &&other) noexcept {
  stores = std::move(other.stores); // before the devices under them
  devices = std::move(other.devices);
  locks = std::move(other.locks);
  locked = std::move(other.locked);
  return *this;
}

namespace {

/// One device per set of files: the groups of a tier share it.
class Devices {
public:
  Devices(HomeStores &homes, const DeviceOptions &options)
      : homes(homes), options(options) {}

  Result<Device *> of(const ManifestGroup &group, bool pmem) {
    std::string key = pmem ? "pmem\n" : "";
    for (const auto &e : group.extents)
      key += e.path + '\n';
    auto known = std::find(keys.begin(), keys.end(), key);
    if (known != keys.end())
      return homes.devices[static_cast<size_t>(known - keys.begin())].get();
    DeviceOptions own = options;
    own.backend =
        pmem ? DeviceOptions::Backend::Pmem : DeviceOptions::Backend::Auto;
    // Rows of memory tiers are written at checkpoints only.
    constexpr uint32_t few = 16;
    if (group.extents.front().path.rfind(memoryStoreFile, 0) == 0)
      own.depth = std::min(own.depth, few);
    Result<std::unique_ptr<Device>> device = openDevice(own);
    if (!device.ok())
      return device.takeStatus();
    keys.push_back(key);
    homes.devices.push_back(std::move(*device));
    return homes.devices.back().get();
  }

private:
  HomeStores &homes;
  const DeviceOptions options;
  std::vector<std::string> keys;
};

/// Makes the names of tier files durable, wherever they lie: a flush does so
/// for their bytes only.
Status syncNames(const std::vector<std::string> &files) {
  std::vector<std::string> folders;
  for (const std::string &file : files) {
    struct stat info;
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      folders.push_back(folderOf(file));
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  for (const std::string &folder : folders)
    TRC_RETURN_IF_ERROR(syncFolder(folder));
  return Status();
}

/// Files that lose their name when all stores have them open: they go when
/// their last user does, also after a crash.
struct Scratch {
  std::vector<std::string> files;
  ~Scratch() {
    for (const std::string &file : files)
      ::unlink(file.c_str());
  }

  std::string fileFor(const std::string &path) {
    for (size_t i = 0; i < paths.size(); ++i)
      if (paths[i] == path)
        return files[i];
    std::string pid = std::to_string(::getpid());
    std::string name = path + ".read-" + pid;
    if (::access(folderOf(path).c_str(), W_OK) != 0) {
      const char *tmp = std::getenv("TMPDIR");
      name = std::string(tmp && *tmp ? tmp : "/tmp") + "/terrace-read-" + pid +
             "-" + std::to_string(files.size());
    }
    paths.push_back(path);
    files.push_back(name);
    return name;
  }

private:
  std::vector<std::string> paths;
};

} // namespace

Result<HomeStores> trc::openStores(const std::vector<ManifestGroup> &groups,
                                   const StoresOptions &o) {
  HomeStores homes;
  if (!o.scratch)
    for (const ManifestGroup &group : groups)
      for (const auto &e : group.extents)
        TRC_RETURN_IF_ERROR(lockTierFile(inFolder(o.folder, e.path),
                                         !o.readOnly, o.create, homes));
  uint64_t largest = 0;
  for (const ManifestGroup &group : groups)
    largest = std::max(largest, static_cast<uint64_t>(group.storeBytes));
  DeviceOptions deviceOptions;
  deviceOptions.depth = o.depth;
  deviceOptions.bufferBytes = static_cast<uint32_t>(deviceBufferBytes(largest));
  Devices devices(homes, deviceOptions);
  Scratch scratch;
  for (size_t g = 0; g < groups.size(); ++g) {
    const ManifestGroup &group = groups[g];
    Result<Device *> device = devices.of(group, g < o.pmem.size() && o.pmem[g]);
    if (!device.ok())
      return device.takeStatus();
    RowStoreOptions options;
    for (const auto &e : group.extents) {
      std::string path = inFolder(o.folder, e.path);
      options.extents.push_back(
          {o.scratch ? scratch.fileFor(path) : path, e.base});
    }
    options.group = std::to_string(g) + " of " + o.folder;
    options.rows = static_cast<uint32_t>(group.rows);
    options.payloadBytes = static_cast<uint32_t>(group.payloadBytes);
    options.storeBytes = static_cast<uint32_t>(group.storeBytes);
    options.geometry = group.geometry;
    options.depth = o.depth;
    options.retained = o.retained;
    options.key = o.key;
    options.create = o.create;
    options.holder = o.holder;
    if (!o.scratch)
      options.holders = o.holders;
    options.replaces = o.replaces;
    options.readOnly = o.readOnly;
    options.folder = o.folder;
    options.prefix = generationPrefix(o.generation) + std::to_string(g) + "-";
    options.onFull = o.onFull;
    if (o.rowName)
      options.rowName = [named = o.rowName, g](uint32_t row) {
        return named(g, row);
      };
    if (g < o.writers.size()) {
      options.group = o.writers[g].name;
      options.writeSlots = o.writers[g].writeSlots;
      options.maxWrites = o.writers[g].maxWrites;
      options.onlyCuts = o.writers[g].onlyCuts;
    }
    Result<std::unique_ptr<RowStore>> store = RowStore::open(**device, options);
    if (!store.ok())
      return store.takeStatus();
    homes.stores.push_back(std::move(*store));
  }
  if (o.create && !o.scratch)
    TRC_RETURN_IF_ERROR(syncNames(homes.locked));
  return Result<HomeStores>(std::move(homes));
}
