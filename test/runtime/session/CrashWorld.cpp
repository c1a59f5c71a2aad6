//===- CrashWorld.cpp - A disk for whole sessions that loses power --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/session/CrashWorld.h"
#include "runtime/checkpoint/FileUtil.h"
#include "test/runtime/io/CrashRandom.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

using namespace crash;
using namespace trc;
namespace fs = std::filesystem;

static bool has(const std::string &path, const char *part) {
  return path.find(part) != std::string::npos;
}

/// The small files: knows which names of tier files are durable, and lies.
class World::Names final : public FileSystem {
public:
  explicit Names(World &w) : world(w), inner(*w.folder) {}

  int create(const std::string &path) override {
    if (has(path, "-moves-"))
      ++world.movesMade;
    int fd = inner.create(path);
    std::lock_guard<std::mutex> lock(mutex);
    if (fd >= 0)
      paths[fd] = path;
    return fd;
  }
  int64_t write(int fd, const void *data, uint64_t bytes) override {
    std::string path;
    {
      std::lock_guard<std::mutex> lock(mutex);
      path = paths[fd];
    }
    {
      std::lock_guard<std::mutex> lock(world.mutex);
      if (world.badError && has(path, world.badPart.c_str()))
        return -world.badError;
    }
    return inner.write(fd, data, bytes);
  }
  int sync(int fd) override {
    std::string path;
    {
      std::lock_guard<std::mutex> lock(mutex);
      path = paths[fd];
    }
    Lie lie = world.lies;
    bool index = has(path, "-base-") || has(path, "-delta-");
    if ((lie == Lie::IndexSync && index) ||
        (lie == Lie::MovesSync && has(path, "-moves-")))
      return 0;
    if (lie == Lie::RootEarly && index) {
      std::lock_guard<std::mutex> lock(mutex);
      late.push_back(path.substr(0, path.size() - 4)); // without ".tmp"
      return 0;
    }
    return inner.sync(fd);
  }
  int rename(const std::string &from, const std::string &to) override {
    return inner.rename(from, to);
  }
  int exchange(const std::string &a, const std::string &b) override {
    return inner.exchange(a, b);
  }
  int unlink(const std::string &path) override {
    if (isRoot(path) && world.rootRemovals++ == world.failRemoval)
      return -ENOSPC;
    Lie lie = world.lies;
    if (lie == Lie::ClosedStays && has(path, "/closed.json") &&
        !has(path, ".tmp"))
      return 0;
    if (lie == Lie::CheckpointStays && has(path, "/ckpt-"))
      return 0;
    if (lie == Lie::RootRemoval && isRoot(path)) {
      std::lock_guard<std::mutex> lock(mutex);
      skip = folderOf(path);
    }
    std::unique_lock<std::mutex> lock(world.mutex);
    bool tier = world.tierFiles.count(path);
    lock.unlock();
    // The folder does not know it: it was made around it, and is empty there.
    if (tier && world.power->operation() != PowerSwitch::Answer::Go)
      return -EIO;
    int r = inner.unlink(path);
    lock.lock();
    if (r == 0 && tier) {
      world.device->truncate(path, 0);
      world.unnamed.insert(path);
    }
    return r;
  }
  int makeFolder(const std::string &path) override {
    return inner.makeFolder(path);
  }
  int removeFolder(const std::string &path) override {
    if (world.lies == Lie::CheckpointStays && has(path, "/ckpt-"))
      return 0;
    return inner.removeFolder(path);
  }
  int syncFolder(const std::string &path) override {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (std::exchange(skip, "") == path)
        return 0;
    }
    int r = inner.syncFolder(path);
    if (r == 0) {
      if (has(path, "/checkpoints"))
        for (std::lock_guard<std::mutex> lock(mutex); !late.empty();
             late.pop_back())
          inner.persist(late.back());
      std::lock_guard<std::mutex> lock(world.mutex);
      for (auto i = world.unnamed.begin(); i != world.unnamed.end();)
        i = folderOf(*i) == path ? world.unnamed.erase(i) : std::next(i);
    }
    return r;
  }

private:
  static bool isRoot(const std::string &path) {
    return has(path, "/closed.json")
               ? !has(path, ".tmp")
               : has(path, "/ckpt-") && has(path, "/manifest.json");
  }

  World &world;
  CrashFolder &inner;
  std::mutex mutex;
  std::map<int, std::string> paths;
  std::vector<std::string> late; // to be synced after the root
  std::string skip;              // a folder whose next sync is left out
};

/// A device of a session: faults in front of the world's files.
class World::Tap final : public Device {
public:
  Tap(World &w, size_t number)
      : world(w), number(number), inner(w.device->again()), fault(*inner) {
    if (number < w.plans.size()) {
      for (const FaultDevice::Fault &f : w.plans[number].faults)
        fault.add(f);
      if (w.plans[number].flushError)
        fault.failFlush(w.plans[number].flushError, w.plans[number].flushAt);
    }
    std::lock_guard<std::mutex> lock(world.mutex);
    world.taps.resize(std::max(world.taps.size(), number + 1));
    world.taps[number] = &fault;
  }
  ~Tap() override {
    std::lock_guard<std::mutex> lock(world.mutex);
    world.counts[number] = {fault.reads(), fault.writes(), fault.flushes()};
  }

  Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                            bool create) override {
    {
      std::lock_guard<std::mutex> lock(world.mutex);
      if (world.device->size(path) == 0)
        world.unnamed.insert(path);
      world.tierFiles.insert(path);
    }
    return fault.openFile(path, bytes, create);
  }
  FileInfo fileInfo(uint32_t file) const override {
    return fault.fileInfo(file);
  }
  void submit(IoRequest &request) override { fault.submit(request); }
  Status flush(uint32_t file) override {
    if (world.lies == Lie::DeviceFlush)
      return Status();
    return fault.flush(file);
  }
  uint32_t depth() const override { return fault.depth(); }
  uint32_t bufferBytes() const override { return fault.bufferBytes(); }
  std::string describe() const override { return fault.describe(); }

private:
  World &world;
  const size_t number;
  std::unique_ptr<CrashDevice> inner;
  FaultDevice fault;
};

World::World() : root(base / "disk") {
  fs::create_directories(tier());
  device = std::make_unique<CrashDevice>();
}

World::~World() {
  setDeviceOpener(nullptr);
  setFileSystem(nullptr);
}

void World::simulate(uint64_t cutAt) {
  setFileSystem(nullptr);
  names.reset();
  folder.reset();
  auto fresh = std::make_unique<PowerSwitch>();
  fresh->cutAt(cutAt);
  CrashDevice::Options options;
  options.depth = 2;
  options.power = fresh.get();
  // Nothing is unflushed here: the same bytes, whatever the seed.
  device = device->crash(0, options);
  power = std::move(fresh);
  folder = std::make_unique<CrashFolder>(root, power.get());
  names = std::make_unique<Names>(*this);
  setFileSystem(names.get());
  counts.clear();
  plans.clear();
  taps.clear();
  badError = 0;
  setDeviceOpener([this](const DeviceOptions &) {
    size_t number;
    {
      std::lock_guard<std::mutex> lock(mutex);
      number = counts.size();
      counts.emplace_back();
    }
    return Result<std::unique_ptr<Device>>(
        std::make_unique<Tap>(*this, number));
  });
}

void World::failWritesTo(const std::string &part, int error) {
  std::lock_guard<std::mutex> lock(mutex);
  badPart = part;
  badError = error;
}

FaultDevice &World::faultsOf(unsigned number) {
  std::lock_guard<std::mutex> lock(mutex);
  return *taps.at(number);
}

void World::addFault(unsigned number, const FaultDevice::Fault &fault) {
  plans.resize(std::max<size_t>(plans.size(), number + 1));
  plans[number].faults.push_back(fault);
}

void World::failFlush(unsigned number, uint64_t n, int error) {
  plans.resize(std::max<size_t>(plans.size(), number + 1));
  plans[number].flushError = error;
  plans[number].flushAt = n;
}

/// A seed by which both doubles keep everything.
static uint64_t seedThatKeeps(uint64_t seed) {
  auto keeps = [](const CrashFates &fates) {
    for (uint64_t key = 0; key < 64; ++key)
      if (fates.of(key) != Fate::Kept)
        return false;
    return true;
  };
  while (!keeps(CrashFates(seed)) || !keeps(CrashFates(crashMix(seed, 0xf01d))))
    ++seed;
  return seed;
}

void World::lose(uint64_t seed, bool kill) {
  if (kill)
    seed = seedThatKeeps(seed);
  std::string next = base / "next";
  folder->crashInto(next, seed);
  device = device->crash(seed);
  setDeviceOpener(nullptr);
  setFileSystem(nullptr);
  names.reset();
  folder.reset();
  power.reset();
  fs::remove_all(root);
  fs::rename(next, root);
  CrashFates fates(crashMix(seed, 0x4a3e));
  for (const std::string &path : tierFiles)
    if (unnamed.count(path) && !kill && !fates.happened(fates.key(path)))
      device->truncate(path, 0);
  unnamed.clear();
}

void World::makeReal() {
  setDeviceOpener(nullptr);
  setFileSystem(nullptr);
  names.reset();
  folder.reset();
  for (const std::string &path : tierFiles) {
    uint64_t size = device->size(path);
    std::error_code ignored;
    fs::remove(path, ignored);
    if (!size || !fs::exists(folderOf(path)))
      continue;
    std::ofstream out(path, std::ios::binary);
    constexpr uint64_t piece = 1 << 16;
    for (uint64_t at = 0; at < size; at += piece) {
      std::string data = device->bytes(path, at, piece);
      out.seekp(static_cast<std::streamoff>(at));
      if (data.find_first_not_of('\0') != std::string::npos)
        out.write(data.data(), static_cast<std::streamsize>(data.size()));
    }
    out.close();
    fs::resize_file(path, size);
  }
}
