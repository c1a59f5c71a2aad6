//===- Doctor.cpp - Can this machine compile and run models ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each check is one function. The devices and the linker are the ones that
// models use, so that what is reported here is what will happen there.
//
//===----------------------------------------------------------------------===//
#include "Driver/Doctor.h"

#include "Codegen/Link.h"
#include "runtime/io/Device.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <condition_variable>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <sys/utsname.h>
#include <thread>
#include <tuple>
#include <unistd.h>

namespace terrace::driver {

namespace {

using Level = Finding::Level;

std::string firstLine(const char *path) {
  auto buffer = llvm::MemoryBuffer::getFileAsStream(path);
  if (!buffer)
    return "";
  return (*buffer)->getBuffer().split('\n').first.str();
}

Finding checkKernel() {
  utsname name{};
  if (::uname(&name) != 0)
    return {"kernel", Level::Warn, "unknown", ""};
  unsigned major = 0, minor = 0;
  llvm::StringRef release = name.release;
  release.consumeInteger(10, major);
  release.consume_front(".");
  release.consumeInteger(10, minor);
  std::string detail = std::string(name.sysname) + " " + name.release;
  if (major < 5 || (major == 5 && minor < 10))
    return {"kernel", Level::Warn, detail,
            "5.10 and later have the io_uring that tiers on NVMe want; older "
            "ones read through a thread pool"};
  return {"kernel", Level::Ok, detail, ""};
}

Finding checkCpu() {
  __builtin_cpu_init();
  std::string cores =
      std::to_string(std::thread::hardware_concurrency()) + " cores";
  if (__builtin_cpu_supports("x86-64-v4"))
    return {"cpu", Level::Ok, "x86-64-v4, " + cores, ""};
  if (__builtin_cpu_supports("x86-64-v3"))
    return {"cpu", Level::Ok, "x86-64-v3 (no AVX-512), " + cores, ""};
  return {"cpu", Level::Fail, "below x86-64-v3, " + cores,
          "models need AVX2 and FMA (x86-64-v3)"};
}

Finding checkMemory() {
  long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || size <= 0)
    return {"memory", Level::Note, "unknown", ""};
  double gib = double(pages) * double(size) / double(1 << 30);
  return {"memory", Level::Ok, llvm::formatv("{0:F1} GiB", gib).str(), ""};
}

Finding checkHugePages() {
  std::string line = firstLine("/sys/kernel/mm/transparent_hugepage/enabled");
  llvm::StringRef chosen = llvm::StringRef(line).split('[').second;
  chosen = chosen.split(']').first;
  if (chosen == "always" || chosen == "madvise")
    return {"huge pages", Level::Ok, "transparent, " + chosen.str(), ""};
  return {"huge pages", Level::Warn,
          chosen.empty() ? "not known here" : chosen.str(),
          "large caches run faster with: echo madvise > "
          "/sys/kernel/mm/transparent_hugepage/enabled"};
}

/// Writes one block and reads it back.
class OneBlock : public trc::IoRequest {
public:
  explicit OneBlock(uint32_t block) { bytes = block; }
  void begin(char *buffer) override {
    if (kind == Kind::Write)
      std::memset(buffer, 0x5a, bytes);
    else
      std::memset(buffer, 0, bytes);
  }
  bool complete(int32_t moved, char *buffer) override {
    bool right = moved == int32_t(bytes);
    for (uint32_t i = 0; right && kind == Kind::Read && i < bytes; ++i)
      right = buffer[i] == 0x5a;
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    result = right ? 0 : moved < 0 ? moved : -EIO;
    wake.notify_one();
    return false;
  }
  int wait() {
    std::unique_lock<std::mutex> lock(mutex);
    wake.wait(lock, [&] { return done; });
    return result;
  }

private:
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  int result = 0;
};

struct Trial {
  std::string error; // empty: the block came back
  std::string describe;
  trc::FileInfo file;
};

/// One write and one read of one block, as a tier would do them.
Trial tryDevice(trc::DeviceOptions::Backend backend, const std::string &path) {
  Trial trial;
  trc::DeviceOptions options;
  options.backend = backend;
  options.depth = 4;
  auto device = trc::openDevice(options);
  if (!device.ok()) {
    trial.error = device.takeStatus().message();
    return trial;
  }
  trial.describe = (*device)->describe();
  auto file = (*device)->openFile(path, 65536, /*create=*/true);
  if (!file.ok()) {
    trial.error = file.takeStatus().message();
    return trial;
  }
  trial.file = (*device)->fileInfo(*file);
  for (auto kind : {trc::IoRequest::Kind::Write, trc::IoRequest::Kind::Read}) {
    OneBlock request(std::max<uint32_t>(trial.file.blockBytes, 512));
    request.kind = kind;
    request.file = *file;
    (*device)->submit(request);
    if (int error = request.wait()) {
      trial.error = std::strerror(-error);
      return trial;
    }
  }
  trial.describe = (*device)->describe();
  return trial;
}

void checkDevices(llvm::StringRef folder, std::vector<Finding> &findings) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, ".terrace-doctor-%%%%%%%%");
  int fd = -1;
  llvm::SmallString<128> unique;
  if (std::error_code ec = llvm::sys::fs::createUniqueFile(path, fd, unique)) {
    findings.push_back({"folder", Level::Fail,
                        folder.str() + ": " + ec.message(),
                        "states and tiers need a folder that can be written"});
    return;
  }
  ::close(fd);
  Trial uring = tryDevice(trc::DeviceOptions::Backend::Uring, unique.c_str());
  if (uring.error.empty())
    findings.push_back({"io_uring", Level::Ok, uring.describe, ""});
  else
    findings.push_back(
        {"io_uring", Level::Warn, uring.error,
         "tiers on NVMe read through Linux AIO or a thread pool instead; in a "
         "container, "
         "allow io_uring_setup in its seccomp filter"});
  Trial any = tryDevice(trc::DeviceOptions::Backend::Auto, unique.c_str());
  std::ignore = llvm::sys::fs::remove(unique);
  std::string where = " in " + folder.str();
  if (!any.error.empty())
    findings.push_back({"direct I/O", Level::Fail, any.error + where,
                        "tiers on NVMe cannot work in this folder"});
  else if (any.file.direct)
    findings.push_back({"direct I/O", Level::Ok,
                        "O_DIRECT, blocks of " +
                            std::to_string(any.file.blockBytes) + " bytes" +
                            where,
                        ""});
  else
    findings.push_back({"direct I/O", Level::Warn, any.file.note + where,
                        "reads go through the page cache, which is memory "
                        "outside of every tier's bound; use ext4 or xfs"});
}

Finding checkLinking(llvm::StringRef folder) {
  auto archives = codegen::findRuntimeArchives();
  if (!archives)
    return {"runtime", Level::Fail, llvm::toString(archives.takeError()),
            "executables need the runtime's archives beside this program"};
  auto object = codegen::emitArtifactObject("{}", {}, codegen::allImages(),
                                            {/*executable=*/true});
  if (!object)
    return {"linking", Level::Fail, llvm::toString(object.takeError()), ""};
  llvm::SmallString<128> path;
  llvm::sys::path::system_temp_directory(true, path);
  llvm::sys::path::append(path, "terrace-doctor-%%%%%%%%");
  llvm::SmallString<128> unique;
  llvm::sys::fs::createUniquePath(path, unique, /*MakeAbsolute=*/false);
  std::vector<codegen::ObjectCode> objects;
  objects.push_back(std::move(*object));
  llvm::Error error = codegen::linkExecutable(objects, *archives, unique);
  std::ignore = llvm::sys::fs::remove(unique);
  if (error)
    return {
        "linking", Level::Fail, llvm::toString(std::move(error)),
        "executables need libc6-dev, libstdc++6 and zlib1g: apt-get install "
        "g++ zlib1g-dev; --emit=lib works without"};
  return {"linking", Level::Ok, "an executable links in process", ""};
}

Finding checkPersistentMemory() {
  std::vector<std::string> devices;
  std::error_code ec;
  for (llvm::sys::fs::directory_iterator it("/dev", ec), end; !ec && it != end;
       it.increment(ec)) {
    llvm::StringRef name = llvm::sys::path::filename(it->path());
    if (name.starts_with("pmem") || name.starts_with("dax"))
      devices.push_back(it->path());
  }
  llvm::sort(devices);
  if (devices.empty())
    return {"persistent memory", Level::Note, "none", ""};
  return {"persistent memory", Level::Ok, llvm::join(devices, ", "), ""};
}

Finding checkCuda() {
  void *library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    return {"cuda", Level::Note, "no driver (libcuda.so.1)", ""};
  auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
  auto count =
      reinterpret_cast<int (*)(int *)>(::dlsym(library, "cuDeviceGetCount"));
  auto version =
      reinterpret_cast<int (*)(int *)>(::dlsym(library, "cuDriverGetVersion"));
  int devices = 0, number = 0, code = init ? init(0) : -1;
  if (code == 0 && count)
    code = count(&devices);
  if (version)
    version(&number);
  Finding finding{"cuda", Level::Note, "", ""};
  if (code != 0)
    finding.detail =
        "the driver is there, but cuInit says error " + std::to_string(code);
  else
    finding.detail = "driver for CUDA " + std::to_string(number / 1000) + "." +
                     std::to_string(number % 1000 / 10) + ", " +
                     std::to_string(devices) + " device(s)";
  if (code == 0 && devices > 0)
    finding.level = Level::Ok;
  ::dlclose(library);
  return finding;
}

llvm::StringRef levelName(Level level) {
  switch (level) {
  case Level::Ok:
    return "ok";
  case Level::Note:
    return "note";
  case Level::Warn:
    return "warn";
  case Level::Fail:
    return "fail";
  }
  return "fail";
}

} // namespace

std::vector<Finding> examine(llvm::StringRef folder) {
  std::vector<Finding> findings;
  findings.push_back(checkKernel());
  findings.push_back(checkCpu());
  findings.push_back(checkMemory());
  findings.push_back(checkHugePages());
  checkDevices(folder, findings);
  findings.push_back(checkLinking(folder));
  findings.push_back(checkPersistentMemory());
  findings.push_back(checkCuda());
  return findings;
}

bool anyFailed(llvm::ArrayRef<Finding> findings) {
  return llvm::any_of(findings,
                      [](const Finding &f) { return f.level == Level::Fail; });
}

void printFindings(llvm::ArrayRef<Finding> findings, llvm::raw_ostream &os) {
  for (const Finding &f : findings) {
    os << llvm::formatv("{0,-5} {1,-18} {2}\n", levelName(f.level), f.name,
                        f.detail);
    if (!f.advice.empty())
      os << llvm::formatv("{0,-25}{1}\n", "", f.advice);
  }
}

llvm::json::Value findingsJson(llvm::ArrayRef<Finding> findings) {
  llvm::json::Array array;
  for (const Finding &f : findings)
    array.push_back(
        llvm::json::Object{{"check", f.name},
                           {"level", levelName(f.level)},
                           {"detail", llvm::json::fixUTF8(f.detail)},
                           {"advice", f.advice}});
  return array;
}

} // namespace terrace::driver
