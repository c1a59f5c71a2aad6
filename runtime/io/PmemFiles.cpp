//===- PmemFiles.cpp - Mapped persistent memory ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files on DAX file systems and DAX devices, mapped by libpmem2, which is
// loaded when the first such device opens: programs that use none run without
// it. Elsewhere a file emulates persistent memory through the page cache.
//
// A write is a copy into the map, durable when it is done where stores have
// byte or cache line granularity; with page granularity flush() does it.
//
// A load from a bad line of the media, or behind a truncated end, is a SIGBUS,
// and a library has no business handling signals. So transfers read by
// pread(2): the kernel copies with care, and the failure is EIO or a short
// read. That costs a system call per transfer (0.2 to 0.4 us), which rows that
// are read in place, once a transfer has verified them, do not pay. What stays
// is a line that goes bad between that and the load, and a file that another
// program cuts in spite of its lock: these end the process, as they do for
// every program that maps files. Bad blocks that the kernel knows of at open
// are never read in place. Space is allocated at open, so a store cannot fail.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/OpenFile.h"
#include "runtime/io/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <libpmem2.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace trc;

namespace {

/// The functions of libpmem2.
struct Pmem2 {
  std::string error; // why it cannot be used; empty: it can
#define TERRACE_PMEM2_FUNCTIONS(X)                                             \
  X(config_new)                                                                \
  X(config_delete)                                                             \
  X(config_set_required_store_granularity)                                     \
  X(config_set_protection)                                                     \
  X(source_from_fd)                                                            \
  X(source_delete)                                                             \
  X(source_size)                                                               \
  X(map_new)                                                                   \
  X(map_delete)                                                                \
  X(map_get_address)                                                           \
  X(map_get_size)                                                              \
  X(map_get_store_granularity)                                                 \
  X(get_memcpy_fn)                                                             \
  X(badblock_context_new)                                                      \
  X(badblock_next)                                                             \
  X(badblock_context_delete)                                                   \
  X(errormsg)
// NOLINTBEGIN(bugprone-macro-parentheses): names are declared and assigned.
#define TERRACE_PMEM2_DECLARE(name) decltype(&::pmem2_##name) name = nullptr;
  TERRACE_PMEM2_FUNCTIONS(TERRACE_PMEM2_DECLARE)
#undef TERRACE_PMEM2_DECLARE

  static const Pmem2 &get() {
    static const Pmem2 library; // never closed: maps may outlive us
    return library;
  }

private:
  Pmem2() {
    void *handle = ::dlopen("libpmem2.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char *why = ::dlerror();
      error = std::string(why ? why : "cannot load libpmem2.so.1") +
              " (install the package libpmem2-1)";
      return;
    }
#define TERRACE_PMEM2_LOAD(name)                                               \
  name = reinterpret_cast<decltype(name)>(::dlsym(handle, "pmem2_" #name));    \
  if (!name)                                                                   \
    error = "libpmem2.so.1 lacks pmem2_" #name;
    TERRACE_PMEM2_FUNCTIONS(TERRACE_PMEM2_LOAD)
#undef TERRACE_PMEM2_LOAD
// NOLINTEND(bugprone-macro-parentheses)
#undef TERRACE_PMEM2_FUNCTIONS
  }
};

/// Calls its function when it goes.
template <typename F> class AtExit {
public:
  explicit AtExit(F f) : f(std::move(f)) {}
  AtExit(const AtExit &) = delete;
  ~AtExit() { f(); }

private:
  F f;
};

struct Range {
  uint64_t begin, end;
};

struct PmemFile {
  int fd = -1;
  FileInfo info;
  bool readOnly = false, character = false;
  pmem2_map *map = nullptr;
  char *base = nullptr;
  pmem2_memcpy_fn copy = nullptr;
  bool pages = false; // granularity: durable by flush() only
  std::vector<Range> bad;
  int flushError = 0; // sticky

  bool isBad(uint64_t offset, uint64_t bytes) const {
    for (const Range &r : bad)
      if (offset < r.end && r.begin < offset + bytes)
        return true;
    return false;
  }
};

class PmemFiles final : public Files {
public:
  ~PmemFiles() override {
    for (PmemFile &file : files) {
      if (file.map)
        Pmem2::get().map_delete(&file.map);
      if (file.fd >= 0)
        ::close(file.fd);
    }
  }
  Result<uint32_t> open(const std::string &path, uint64_t bytes,
                        bool create) override;
  FileInfo info(uint32_t file) const override { return at(file).info; }
  int32_t transfer(IoRequest::Kind kind, uint32_t file, char *data,
                   uint32_t bytes, uint64_t offset) override;
  Status flush(uint32_t file) override;
  const char *mapped(uint32_t file, uint64_t offset,
                     uint64_t bytes) const override;

private:
  static Status openAndSize(PmemFile &file, uint64_t bytes, bool create);
  static Status map(PmemFile &file);
  PmemFile &at(uint32_t file) const {
    std::lock_guard<std::mutex> lock(mutex);
    return files[file]; // stays where it is
  }

  mutable std::mutex mutex;
  mutable std::deque<PmemFile> files;
};

} // namespace

Status PmemFiles::openAndSize(PmemFile &file, uint64_t bytes, bool create) {
  const std::string &path = file.info.path;
  Result<int> opened =
      openTier(path, create, FileKind::OrDevice, file.readOnly);
  if (!opened.ok())
    return opened.takeStatus();
  file.fd = *opened;
  struct stat st;
  if (fstat(file.fd, &st) != 0)
    return Status::ioError("cannot open", path, errno);
  file.character = S_ISCHR(st.st_mode);
  file.info.bytes = static_cast<uint64_t>(st.st_size);
  if (file.character)
    return {}; // its size is known when it is mapped
  if (!S_ISREG(st.st_mode))
    return Status(TRC_BAD_ARGUMENT,
                  "'" + path +
                      "' is neither a file nor a DAX device, so it "
                      "cannot be persistent memory");
  if (file.readOnly || bytes == 0)
    return {};
  // Whole: a hole could run out of space at a store, and that is a SIGBUS.
  int error = ::posix_fallocate(file.fd, 0, static_cast<off_t>(bytes));
  if (error)
    return Status::ioError(
        "cannot allocate " + std::to_string(bytes) + " bytes of", path, error);
  if (bytes > file.info.bytes) {
    file.info.bytes = bytes;
    if (::fsync(file.fd) != 0) // the allocation, once and for all
      return Status::ioError("cannot sync", path, errno);
  }
  return {};
}

Status PmemFiles::map(PmemFile &file) {
  const Pmem2 &lib = Pmem2::get();
  const std::string &path = file.info.path;
  auto failed = [&](const char *what) {
    return Status(TRC_UNSUPPORTED,
                  std::string(what) + " '" + path +
                      "' as persistent memory: " + lib.errormsg());
  };
  pmem2_source *source = nullptr;
  if (lib.source_from_fd(&source, file.fd) != 0)
    return failed("cannot use");
  AtExit freeSource([&] { lib.source_delete(&source); });
  if (file.character) {
    size_t size = 0;
    if (lib.source_size(source, &size) != 0)
      return failed("cannot ask the size of");
    file.info.bytes = size;
  }
  pmem2_config *config = nullptr;
  if (lib.config_new(&config) != 0)
    return failed("no memory to map");
  AtExit freeConfig([&] { lib.config_delete(&config); });
  if (lib.config_set_required_store_granularity(config,
                                                PMEM2_GRANULARITY_PAGE) != 0 ||
      (file.readOnly &&
       lib.config_set_protection(config, PMEM2_PROT_READ) != 0) ||
      lib.map_new(&file.map, config, source) != 0)
    return failed("cannot map");
  file.base = static_cast<char *>(lib.map_get_address(file.map));
  file.copy = lib.get_memcpy_fn(file.map);
  file.pages =
      lib.map_get_store_granularity(file.map) == PMEM2_GRANULARITY_PAGE;
  if (file.pages)
    file.info.note =
        "not on persistent memory: stores go through the page cache";
  pmem2_badblock_context *context = nullptr;
  if (!file.pages && lib.badblock_context_new(&context, source) == 0) {
    pmem2_badblock block;
    while (lib.badblock_next(context, &block) == 0)
      file.bad.push_back({block.offset, block.offset + block.length});
    lib.badblock_context_delete(&context);
    if (!file.bad.empty())
      file.info.note = std::to_string(file.bad.size()) +
                       " bad blocks, the first at offset " +
                       std::to_string(file.bad[0].begin);
  }
  return {};
}

Result<uint32_t> PmemFiles::open(const std::string &path, uint64_t bytes,
                                 bool create) {
  bytes = (bytes + 4095) / 4096 * 4096;
  PmemFile file;
  file.info.path = path;
  file.info.blockBytes = 512;
  Status s = openAndSize(file, bytes, create);
  if (s.ok() && (file.info.bytes > 0 || file.character))
    s = map(file);
  if (s.ok() && file.character && file.info.bytes < bytes)
    s = Status(TRC_NO_SPACE, "the DAX device '" + path + "' has " +
                                 std::to_string(file.info.bytes) +
                                 " bytes, but " + std::to_string(bytes) +
                                 " are needed");
  if (!s.ok()) {
    if (file.map)
      Pmem2::get().map_delete(&file.map);
    if (file.fd >= 0)
      ::close(file.fd);
    return s;
  }
  file.info.direct = file.map && !file.pages;
  if (!file.map)
    file.info.note = "empty";
  std::lock_guard<std::mutex> lock(mutex);
  files.push_back(std::move(file));
  return static_cast<uint32_t>(files.size() - 1);
}

int32_t PmemFiles::transfer(IoRequest::Kind kind, uint32_t id, char *data,
                            uint32_t bytes, uint64_t offset) {
  PmemFile &file = at(id);
  uint64_t size = file.info.bytes;
  if (kind == IoRequest::Kind::Read) {
    uint64_t n = offset < size ? std::min<uint64_t>(bytes, size - offset) : 0;
    if (file.isBad(offset, n))
      return -EIO;
    if (file.character) {
      std::memcpy(data, file.base + offset, n);
      return static_cast<int32_t>(n);
    }
    ssize_t got = ::pread(file.fd, data, n, static_cast<off_t>(offset));
    return got < 0 ? -errno : static_cast<int32_t>(got);
  }
  if (file.readOnly)
    return -EBADF;
  if (offset > size || bytes > size - offset)
    return -ENOSPC; // a map does not grow
  struct stat st;
  if (!file.character && (fstat(file.fd, &st) != 0 ||
                          static_cast<uint64_t>(st.st_size) < offset + bytes))
    return -EIO; // somebody has cut it
  file.copy(file.base + offset, data, bytes,
            file.pages ? PMEM2_F_MEM_NOFLUSH : PMEM2_F_MEM_NONTEMPORAL);
  return static_cast<int32_t>(bytes);
}

Status PmemFiles::flush(uint32_t id) {
  PmemFile &file = at(id);
  // Otherwise each write was durable when it was done.
  if (!file.pages)
    return {};
  int error;
  {
    std::lock_guard<std::mutex> lock(mutex);
    error = file.flushError;
  }
  if (!error && fdatasync(file.fd) != 0) {
    error = errno;
    std::lock_guard<std::mutex> lock(mutex);
    file.flushError = error;
  }
  return error ? Status::ioError("cannot flush", file.info.path, error)
               : Status();
}

const char *PmemFiles::mapped(uint32_t id, uint64_t offset,
                              uint64_t bytes) const {
  const PmemFile &file = at(id);
  bool inside = offset <= file.info.bytes && bytes <= file.info.bytes - offset;
  return file.base && inside && !file.isBad(offset, bytes) ? file.base + offset
                                                           : nullptr;
}

Result<std::unique_ptr<Device>>
trc::openPmemDevice(const DeviceOptions &options) {
  const Pmem2 &lib = Pmem2::get();
  if (!lib.error.empty())
    return Status(TRC_UNSUPPORTED,
                  "persistent memory is not available: " + lib.error);
  DeviceOptions pool = options;
  // A transfer is work for a core, not a wait.
  if (!pool.threads)
    pool.threads = std::min(options.depth,
                            std::max(2u, std::thread::hardware_concurrency()));
  return openThreadDevice(std::make_unique<PmemFiles>(), pool,
                          "persistent memory (libpmem2)");
}
