//===- CrashDevice.cpp - A device that forgets like hardware --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread pool moves the bytes; the files behind it keep what is durable, what
// is current, and the writes that lie between.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/io/CrashDevice.h"
#include "runtime/io/Files.h"
#include "test/runtime/io/CrashRandom.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

using namespace trc;

namespace {

/// Sparse bytes in chunks that copies share until they write.
class SparseBytes {
public:
  uint64_t size = 0;

  void write(uint64_t offset, const char *data, uint64_t bytes) {
    size = std::max(size, offset + bytes);
    forEach(offset, bytes, [&](uint64_t chunk, uint64_t inside, uint64_t n) {
      std::shared_ptr<Chunk> &c = chunks[chunk];
      if (!c)
        c = std::make_shared<Chunk>();
      else if (c.use_count() > 1)
        c = std::make_shared<Chunk>(*c);
      std::memcpy(c->bytes + inside, data, n);
      data += n;
    });
  }
  void read(uint64_t offset, char *data, uint64_t bytes) const {
    forEach(offset, bytes, [&](uint64_t chunk, uint64_t inside, uint64_t n) {
      auto c = chunks.find(chunk);
      if (c == chunks.end())
        std::memset(data, 0, n);
      else
        std::memcpy(data, c->second->bytes + inside, n);
      data += n;
    });
  }
  void truncate(uint64_t bytes) {
    if (bytes < size) {
      std::string zeroes(chunkBytes - bytes % chunkBytes, 0);
      write(bytes, zeroes.data(), zeroes.size());
      chunks.erase(chunks.upper_bound(bytes / chunkBytes), chunks.end());
    }
    size = bytes;
  }

private:
  static constexpr uint64_t chunkBytes = 16384;
  struct Chunk {
    char bytes[chunkBytes] = {};
  };
  template <typename F>
  static void forEach(uint64_t offset, uint64_t bytes, const F &take) {
    for (uint64_t at = offset, end = offset + bytes; at < end;) {
      uint64_t n = std::min(chunkBytes - at % chunkBytes, end - at);
      take(at / chunkBytes, at % chunkBytes, n);
      at += n;
    }
  }
  std::map<uint64_t, std::shared_ptr<Chunk>> chunks;
};

struct PendingWrite {
  uint64_t offset;
  std::vector<char> data;
};

struct CrashFile {
  FileInfo info;
  bool exists = false; // durably, with the durable bytes' size
  SparseBytes durable, current;
  std::vector<PendingWrite> pending; // in the order in which they were done

  void truncate(uint64_t bytes) {
    durable.truncate(bytes);
    current.truncate(bytes);
    info.bytes = bytes;
  }
};

/// Writes the parts of `w` that a tear leaves.
void tear(const PendingWrite &w, CrashDevice::Tear how, uint64_t key,
          SparseBytes &out) {
  auto put = [&](uint64_t from, uint64_t to) {
    if (from < to)
      out.write(w.offset + from, w.data.data() + from, to - from);
  };
  uint64_t bytes = w.data.size();
  if (how == CrashDevice::Tear::CacheLines) {
    for (uint64_t at = 0; at < bytes;) {
      uint64_t address = w.offset + at;
      uint64_t end = std::min(bytes, at + 64 - address % 64);
      uint64_t roll = crashMix(key, address / 64);
      if (roll % 4 == 0) // the line was being written
        for (uint64_t word = at; word < end;) {
          uint64_t next = std::min(end, word + 8 - (w.offset + word) % 8);
          if (crashMix(roll, word) % 2)
            put(word, next);
          word = next;
        }
      else if (roll % 2)
        put(at, end);
      at = end;
    }
    return;
  }
  uint64_t unit = how == CrashDevice::Tear::Bytes ? 1 : 512;
  uint64_t units = (bytes + unit - 1) / unit;
  uint64_t cut = crashMix(key, 1) % (units + 1) * unit;
  switch (crashMix(key, 2) % 4) {
  case 0: // the beginning
    put(0, std::min(cut, bytes));
    break;
  case 1: // the end
    put(std::min(cut, bytes), bytes);
    break;
  case 2: { // all but a hole
    uint64_t end = cut + unit * (1 + crashMix(key, 3) % (units + 1));
    put(0, std::min(cut, bytes));
    put(std::min(end, bytes), bytes);
    break;
  }
  default: // here and there
    for (uint64_t at = 0, step = std::max<uint64_t>(unit, 8); at < bytes;
         at += step)
      if (crashMix(key, 4 + at) % 2)
        put(at, std::min(at + step, bytes));
  }
}

} // namespace

/// Thread-safe; shared by a device and the files adapter of its engine.
class trc::CrashFiles {
public:
  CrashFiles(uint32_t blockBytes, PowerSwitch *power)
      : blockBytes(blockBytes), power(power) {}

  Result<uint32_t> open(const std::string &path, uint64_t bytes, bool create) {
    bytes = (bytes + 4095) / 4096 * 4096;
    std::lock_guard<std::mutex> lock(mutex);
    size_t i = find(path);
    if (i == files.size()) {
      if (!create)
        return Status::ioError("cannot open", path, ENOENT);
      if (power && power->gone())
        return Status::ioError("cannot open", path, EIO);
      files.emplace_back();
      files[i].info.path = path;
      files[i].info.note = "memory";
    }
    CrashFile &file = files[i];
    file.info.blockBytes = blockBytes;
    file.current.size = std::max(file.current.size, bytes);
    file.info.bytes = file.current.size;
    return static_cast<uint32_t>(i);
  }

  FileInfo info(uint32_t file) const {
    std::lock_guard<std::mutex> lock(mutex);
    return files[file].info;
  }

  int32_t transfer(IoRequest::Kind kind, uint32_t id, char *data,
                   uint32_t bytes, uint64_t offset) {
    std::lock_guard<std::mutex> lock(mutex);
    CrashFile &file = files[id];
    if (offset % blockBytes || bytes % blockBytes)
      return -EINVAL;
    if (kind == IoRequest::Kind::Read) {
      if (power && power->gone())
        return -EIO;
      uint64_t size = file.current.size;
      uint64_t n = offset < size ? std::min<uint64_t>(bytes, size - offset) : 0;
      file.current.read(offset, data, n);
      return static_cast<int32_t>(n);
    }
    PowerSwitch::Answer answer =
        power ? power->operation() : PowerSwitch::Answer::Go;
    if (answer == PowerSwitch::Answer::Gone)
      return -EIO;
    file.current.write(offset, data, bytes);
    file.info.bytes = file.current.size;
    file.pending.push_back({offset, {data, data + bytes}});
    return answer == PowerSwitch::Answer::Go ? static_cast<int32_t>(bytes)
                                             : -EIO;
  }

  Status flush(uint32_t id) {
    std::lock_guard<std::mutex> lock(mutex);
    CrashFile &file = files[id];
    PowerSwitch::Answer answer =
        power ? power->operation() : PowerSwitch::Answer::Go;
    if (answer != PowerSwitch::Answer::Go)
      return Status::ioError("cannot flush", file.info.path, EIO);
    ++flushCount;
    file.exists = true;
    file.durable.size = std::max(file.durable.size, file.current.size);
    for (const PendingWrite &w : file.pending)
      file.durable.write(w.offset, w.data.data(), w.data.size());
    file.pending.clear();
    return {};
  }

  std::shared_ptr<CrashFiles> crash(uint64_t seed, CrashDevice::Tear how,
                                    const CrashDevice::Options &next) const {
    CrashFates fates(seed);
    auto after = std::make_shared<CrashFiles>(next.blockBytes, next.power);
    std::lock_guard<std::mutex> lock(mutex);
    for (const CrashFile &file : files) {
      uint64_t key = fates.key(file.info.path);
      CrashFile kept;
      kept.info = file.info;
      kept.durable = file.durable;
      kept.exists = true;
      if (!file.exists) {
        Fate fate = fates.of(crashMix(key, 7));
        if (fate == Fate::Lost)
          continue;
        if (fate == Fate::Kept)
          kept.durable.size = file.current.size;
      } else if (file.durable.size < file.current.size &&
                 fates.happened(crashMix(key, 8))) {
        kept.durable.size = file.current.size;
      }
      std::map<uint64_t, uint64_t> times; // writes of the same place so far
      for (const PendingWrite &w : file.pending) {
        uint64_t k = crashMix(crashMix(key, w.offset), times[w.offset]++);
        switch (fates.of(k)) {
        case Fate::Kept:
          kept.durable.write(w.offset, w.data.data(), w.data.size());
          break;
        case Fate::Torn:
          tear(w, how, k, kept.durable);
          break;
        case Fate::Lost:
          break;
        }
      }
      kept.current = kept.durable;
      kept.info.bytes = kept.current.size;
      after->files.push_back(std::move(kept));
    }
    return after;
  }

  /// Runs `use` on the file of that name, if there is one.
  template <typename F> void with(const std::string &path, const F &use) {
    std::lock_guard<std::mutex> lock(mutex);
    size_t i = find(path);
    if (i < files.size())
      use(files[i]);
  }
  uint64_t unflushed() const {
    std::lock_guard<std::mutex> lock(mutex);
    uint64_t n = 0;
    for (const CrashFile &file : files)
      n += file.pending.size();
    return n;
  }
  uint64_t flushes() const {
    std::lock_guard<std::mutex> lock(mutex);
    return flushCount;
  }

private:
  size_t find(const std::string &path) const {
    size_t i = 0;
    while (i < files.size() && files[i].info.path != path)
      ++i;
    return i;
  }

  const uint32_t blockBytes;
  PowerSwitch *const power;
  mutable std::mutex mutex;
  std::vector<CrashFile> files;
  uint64_t flushCount = 0;
};

namespace {

class Adapter final : public Files {
public:
  explicit Adapter(std::shared_ptr<CrashFiles> files)
      : files(std::move(files)) {}
  Result<uint32_t> open(const std::string &path, uint64_t bytes,
                        bool create) override {
    return files->open(path, bytes, create);
  }
  FileInfo info(uint32_t file) const override { return files->info(file); }
  int32_t transfer(IoRequest::Kind kind, uint32_t file, char *data,
                   uint32_t bytes, uint64_t offset) override {
    return files->transfer(kind, file, data, bytes, offset);
  }
  Status flush(uint32_t file) override { return files->flush(file); }

private:
  std::shared_ptr<CrashFiles> files;
};

} // namespace

CrashDevice::CrashDevice(const Options &options)
    : CrashDevice(options, std::make_shared<CrashFiles>(options.blockBytes,
                                                        options.power)) {}

CrashDevice::CrashDevice(const Options &options,
                         std::shared_ptr<CrashFiles> given)
    : options(options), files(std::move(given)) {
  DeviceOptions pool;
  pool.depth = pool.threads = std::max(1u, options.depth);
  pool.bufferBytes = (options.bufferBytes + 4095) / 4096 * 4096;
  auto opened =
      openThreadDevice(std::make_unique<Adapter>(files), pool, "crash");
  if (!opened.ok()) // a test without threads or memory has nothing to say
    std::abort();
  engine = std::move(*opened);
}

CrashDevice::~CrashDevice() = default;

std::unique_ptr<CrashDevice> CrashDevice::crash(uint64_t seed) const {
  Options next = options;
  next.power = nullptr;
  return crash(seed, next);
}

std::unique_ptr<CrashDevice> CrashDevice::crash(uint64_t seed,
                                                const Options &next) const {
  return std::unique_ptr<CrashDevice>(
      new CrashDevice(next, files->crash(seed, options.tear, next)));
}

std::unique_ptr<CrashDevice> CrashDevice::again() const {
  return std::unique_ptr<CrashDevice>(new CrashDevice(options, files));
}

uint64_t CrashDevice::unflushed() const { return files->unflushed(); }
uint64_t CrashDevice::flushes() const { return files->flushes(); }

std::string CrashDevice::bytes(const std::string &path, uint64_t offset,
                               uint64_t count) const {
  std::string out;
  files->with(path, [&](CrashFile &file) {
    uint64_t size = file.current.size;
    out.resize(offset < size ? std::min(count, size - offset) : 0);
    file.current.read(offset, out.data(), out.size());
  });
  return out;
}

uint64_t CrashDevice::size(const std::string &path) const {
  uint64_t size = 0;
  files->with(path, [&](CrashFile &file) { size = file.current.size; });
  return size;
}

void CrashDevice::poke(const std::string &path, uint64_t offset,
                       const std::string &data) {
  files->with(path, [&](CrashFile &file) {
    file.durable.write(offset, data.data(), data.size());
    file.current.write(offset, data.data(), data.size());
    file.info.bytes = file.current.size;
  });
}

void CrashDevice::truncate(const std::string &path, uint64_t bytes) {
  files->with(path, [&](CrashFile &file) { file.truncate(bytes); });
}

Result<uint32_t> CrashDevice::openFile(const std::string &path, uint64_t bytes,
                                       bool create) {
  return files->open(path, bytes, create);
}

FileInfo CrashDevice::fileInfo(uint32_t file) const {
  return files->info(file);
}

void CrashDevice::submit(IoRequest &request) { engine->submit(request); }

Status CrashDevice::flush(uint32_t file) { return files->flush(file); }
