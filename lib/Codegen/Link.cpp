//===- Link.cpp - Executables and libraries, linked in process --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of a linker, built by hand: no start files and libraries of
// gcc, no build-id, no debug information (it holds paths), so that the same
// objects give the same bytes on any machine with the same libc.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Link.h"

#include "runtime/core/Output.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace llvm;
using namespace terrace::codegen;

static Error ioError(const Twine &what, StringRef path, std::error_code error) {
  return createStringError(error, "cannot " + what + " '" + path +
                                      "': " + error.message());
}

/// The full path of a file of libc, the C++ runtime or zlib.
static Expected<std::string> findSystemFile(StringRef name, StringRef package) {
  static constexpr StringRef folders[] = {"/usr/lib/x86_64-linux-gnu",
                                          "/lib/x86_64-linux-gnu", "/usr/lib64",
                                          "/lib64", "/usr/lib"};
  for (StringRef folder : folders) {
    std::string path = (folder + "/" + name).str();
    if (sys::fs::exists(path))
      return path;
  }
  return createStringError("cannot link an executable: " + name +
                           " was not found in /usr/lib/x86_64-linux-gnu, "
                           "/lib/x86_64-linux-gnu, /usr/lib64, /lib64 or "
                           "/usr/lib; install the package " +
                           package);
}

static std::vector<std::string> runtimeFolders() {
  if (auto folder = sys::Process::GetEnv("TERRACE_RUNTIME_DIR"))
    return {*folder};
  static int anchor;
  std::string program = sys::fs::getMainExecutable(nullptr, &anchor);
  SmallString<128> prefix = sys::path::parent_path(
      sys::path::parent_path(program)); // <prefix>/bin/terrace
  std::vector<std::string> folders;
  for (StringRef folder : {"lib", "lib/terrace"}) {
    SmallString<128> path = prefix;
    sys::path::append(path, folder);
    folders.push_back(path.str().str());
  }
  return folders;
}

Expected<std::vector<std::string>> terrace::codegen::findRuntimeArchives() {
  static constexpr StringRef names[] = {"libTerraceModelMain.a",
                                        "libTerraceRuntime.a"};
  std::vector<std::string> folders = runtimeFolders();
  for (const std::string &folder : folders) {
    std::vector<std::string> archives;
    for (StringRef name : names)
      archives.push_back((folder + "/" + name).str());
    if (!llvm::all_of(archives, [](const std::string &path) {
          return sys::fs::exists(path);
        }))
      continue;
    // The one archive that is not ours; a package of Terrace may bring it.
    std::string uring = folder + "/liburing.a";
    if (!sys::fs::exists(uring)) {
      auto path = findSystemFile("liburing.a", "liburing-dev");
      if (!path)
        return path.takeError();
      uring = *path;
    }
    archives.push_back(uring);
    return archives;
  }
  return createStringError(
      "cannot link an executable: libTerraceModelMain.a and "
      "libTerraceRuntime.a were not found in " +
      llvm::join(folders, " or ") +
      "; build the runtime, or set TERRACE_RUNTIME_DIR to its folder");
}

namespace {
/// Temporary objects, removed whatever happens, and the command line.
class LinkJob {
public:
  explicit LinkJob(StringRef output, unsigned mode)
      : output(output.str()), mode(mode) {}
  Error addObjects(ArrayRef<ObjectCode> objects);
  void add(const Twine &argument) { arguments.push_back(argument.str()); }
  Error run();

private:
  Error link(std::string &linked);

  std::string output;
  unsigned mode;
  std::vector<std::string> arguments;
  std::vector<trc::Unfinished> temporaries;
};

/// A pipe whose contents a thread collects. lld maps its output file into
/// memory, where a full disk is a SIGBUS, or writes it and aborts when that
/// fails; what is no plain file it makes in memory and writes in one go, and a
/// pipe takes all that fits into memory.
class Collector {
public:
  Collector() = default;
  Collector(const Collector &) = delete;
  ~Collector() {
    (void)finish();
    for (int fd : {ends[0], ends[1], stop[0], stop[1]})
      if (fd >= 0)
        ::close(fd);
  }
  std::error_code start() {
    if (::pipe2(ends, O_CLOEXEC) != 0 || ::pipe2(stop, O_CLOEXEC) != 0)
      return std::error_code(errno, std::generic_category());
    thread = std::thread([this] { collect(); });
    return {};
  }
  std::string path() const {
    return "/proc/self/fd/" + std::to_string(ends[1]);
  }
  /// All that was written until now; a writer that forgot to close is no
  /// reason to wait.
  std::string finish() {
    if (thread.joinable()) {
      ::close(stop[1]);
      stop[1] = -1;
      thread.join();
    }
    return std::move(bytes);
  }

private:
  void collect() {
    std::vector<char> piece(size_t(1) << 16);
    pollfd waits[2] = {{ends[0], POLLIN, 0}, {stop[0], POLLIN, 0}};
    while (true) {
      if (::poll(waits, 2, -1) < 0 && errno != EINTR)
        return;
      if (waits[0].revents & POLLIN) {
        ssize_t n = ::read(ends[0], piece.data(), piece.size());
        if (n > 0)
          bytes.append(piece.data(), size_t(n));
      } else if (waits[1].revents) {
        return;
      }
    }
  }

  int ends[2] = {-1, -1}, stop[2] = {-1, -1};
  std::thread thread;
  std::string bytes;
};
} // namespace

Error LinkJob::addObjects(ArrayRef<ObjectCode> objects) {
  for (const ObjectCode &object : objects) {
    SmallString<128> path;
    int fd;
    if (std::error_code error =
            sys::fs::createTemporaryFile("terrace", "o", fd, path))
      return ioError("create the temporary file", path, error);
    temporaries.emplace_back(path.str().str());
    add(path);
    raw_fd_ostream stream(fd, /*shouldClose=*/true);
    stream.write(object.data(), object.size());
    stream.close();
    if (stream.has_error()) {
      std::error_code error = stream.error();
      stream.clear_error();
      return ioError("write the temporary file", path, error);
    }
  }
  return Error::success();
}

/// lld says "ld.lld: error: <what>\n>>> details"; the first line is enough.
static std::string firstError(StringRef text) {
  StringRef line = text.substr(text.find("error: ")).split('\n').first;
  line.consume_front("error: ");
  return line.empty() ? "the linker failed" : line.str();
}

Error LinkJob::link(std::string &linked) {
  Collector collector;
  if (std::error_code error = collector.start())
    return ioError("make a pipe for", output, error);
  add("-o");
  add(collector.path());
  std::vector<const char *> line{"ld.lld"};
  for (const std::string &argument : arguments)
    line.push_back(argument.c_str());

  static std::mutex mutex; // lld's state is global
  static bool usable = true;
  std::string out, err;
  std::lock_guard<std::mutex> lock(mutex);
  if (!usable)
    return createStringError("cannot link '" + output +
                             "': an earlier link crashed in this process");
  raw_string_ostream outStream(out), errStream(err);
  lld::Result result =
      lld::lldMain(line, outStream, errStream, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  if (result.retCode != 0)
    return createStringError("cannot link '" + output +
                             "': " + firstError(err));
  linked = collector.finish();
  return Error::success();
}

Error LinkJob::run() {
  std::string linked;
  if (Error error = link(linked))
    return error;
  if (linked.empty())
    return createStringError("cannot link '" + output +
                             "': the linker wrote nothing; is /proc mounted?");
  if (trc::Status s = trc::writeOutput(output, linked, mode); !s.ok())
    return createStringError(s.message());
  return Error::success();
}

static void addCommonFlags(LinkJob &job) {
  for (const char *flag :
       {"-m", "elf_x86_64", "--build-id=none", "--hash-style=gnu",
        "--strip-debug", "--gc-sections", "-z", "relro", "-z", "now", "-z",
        "noexecstack", "--no-color-diagnostics"})
    job.add(flag);
}

Error terrace::codegen::linkExecutable(ArrayRef<ObjectCode> objects,
                                       ArrayRef<std::string> runtimeArchives,
                                       StringRef output) {
  struct File {
    StringRef name, package;
  };
  static constexpr File startFiles[] = {{"Scrt1.o", "libc6-dev"},
                                        {"crti.o", "libc6-dev"}};
  static constexpr File libraries[] = {
      {"libstdc++.so.6", "libstdc++6"}, {"libgcc_s.so.1", "libgcc-s1"},
      {"libz.so.1", "zlib1g"},          {"libm.so.6", "libc6"},
      {"libc.so.6", "libc6"},           {"libc_nonshared.a", "libc6-dev"}};
  constexpr StringRef loader = "/lib64/ld-linux-x86-64.so.2";

  LinkJob job(output, 0777);
  auto addFile = [&](const File &file) -> Error {
    auto path = findSystemFile(file.name, file.package);
    if (!path)
      return path.takeError();
    job.add(*path);
    return Error::success();
  };
  addCommonFlags(job);
  for (const char *flag : {"-pie", "--eh-frame-hdr", "--dynamic-linker"})
    job.add(flag);
  job.add(loader);
  for (const File &file : startFiles)
    if (Error error = addFile(file))
      return error;
  if (Error error = job.addObjects(objects))
    return error;
#ifdef TERRACE_SANITIZER_LIBRARIES
  // A sanitizer's runtime has to be the first library of the program.
  SmallVector<StringRef> sanitizers;
  StringRef(TERRACE_SANITIZER_LIBRARIES).split(sanitizers, ':');
  for (StringRef library : sanitizers)
    job.add(library);
#endif
  job.add("--start-group");
  for (const std::string &archive : runtimeArchives)
    job.add(archive);
  job.add("--end-group");
  job.add("--as-needed");
  for (const File &file : libraries)
    if (Error error = addFile(file))
      return error;
  job.add(loader); // __tls_get_addr
  if (Error error = addFile({"crtn.o", "libc6-dev"}))
    return error;
  return job.run();
}

Error terrace::codegen::linkLibrary(ArrayRef<ObjectCode> objects,
                                    StringRef output) {
  LinkJob job(output, 0777);
  addCommonFlags(job);
  job.add("-shared");
  if (Error error = job.addObjects(objects))
    return error;
  return job.run();
}

Error terrace::codegen::linkRelocatable(ArrayRef<ObjectCode> objects,
                                        StringRef output, bool aarch64) {
  LinkJob job(output, 0666);
  for (const char *flag : {"-m", aarch64 ? "aarch64linux" : "elf_x86_64",
                           "--build-id=none", "--no-color-diagnostics", "-r"})
    job.add(flag);
  if (Error error = job.addObjects(objects))
    return error;
  return job.run();
}
