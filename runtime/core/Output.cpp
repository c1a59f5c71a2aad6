//===- Output.cpp - Files that a user asked for ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Output.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace trc {

namespace {

bool named(const std::string &path) { return !path.empty() && path != "-"; }

/// Of what holds bytes of its own; two openings of a terminal are no conflict.
bool identify(const std::string &path, struct stat &st) {
  return ::stat(path.c_str(), &st) == 0 &&
         (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

bool same(const struct stat &a, const struct stat &b) {
  if (S_ISBLK(a.st_mode) || S_ISBLK(b.st_mode))
    return S_ISBLK(a.st_mode) && S_ISBLK(b.st_mode) && a.st_rdev == b.st_rdev;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Status refusal(const std::string &output, const std::string &why) {
  return Status(TRC_BAD_ARGUMENT, "the output '" + output + "' " + why +
                                      "; nothing was written, name another");
}

/// The nearest folder of a path that may not exist yet.
std::string existingFolder(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  fs::path at = fs::absolute(path, ec);
  // The file of a link lies where the link points.
  if (fs::path real = fs::weakly_canonical(at, ec); !ec)
    at = real;
  do
    at = at.parent_path();
  while (at.has_relative_path() && !fs::is_directory(at, ec));
  return at.string();
}

bool isStateFolder(const std::string &folder) {
  struct stat st;
  for (const char *name : {"checkpoints", "closed.json", "manifest.json"})
    if (::stat((folder + "/" + name).c_str(), &st) == 0)
      return true;
  return false;
}

/// Absolute paths among the texts of a manifest: of files outside its folder.
void collectPaths(const nlohmann::json &j, std::vector<std::string> &out) {
  if (j.is_string()) {
    if (const auto &text = j.get_ref<const std::string &>();
        !text.empty() && text[0] == '/')
      out.push_back(text);
    return;
  }
  for (const auto &child : j)
    if (child.is_structured() || child.is_string())
      collectPaths(child, out);
}

} // namespace

Status refuseInput(const std::string &output,
                   const std::vector<std::string> &inputs) {
  struct stat out, in;
  if (!named(output) || !identify(output, out))
    return Status();
  for (const std::string &input : inputs)
    if (named(input) && identify(input, in) && same(out, in))
      return refusal(output, "is the input '" + input + "'");
  return Status();
}

Status refuseStateFile(const std::string &output, const std::string &state) {
  namespace fs = std::filesystem;
  struct stat folder;
  if (!named(output) || ::stat(state.c_str(), &folder) != 0 ||
      !isStateFolder(state))
    return Status();
  struct stat at;
  for (fs::path p = existingFolder(output);; p = p.parent_path()) {
    if (::stat(p.c_str(), &at) == 0 && at.st_dev == folder.st_dev &&
        at.st_ino == folder.st_ino)
      return refusal(output, "lies in the folder of the state '" + state + "'");
    if (!p.has_relative_path())
      break;
  }
  // A folder as output, and that is the state's own.
  if (::stat(output.c_str(), &at) == 0 && at.st_dev == folder.st_dev &&
      at.st_ino == folder.st_ino)
    return refusal(output, "is the folder of a state");
  std::vector<std::string> files;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(state, ec), end; !ec && it != end;
       it.increment(ec)) {
    files.push_back(it->path().string());
    if (it->path().extension() != ".json")
      continue;
    // What cannot be read names nothing; opening the state says so.
    std::ifstream in(it->path());
    collectPaths(nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false),
                 files);
  }
  return refuseInput(output, files);
}

//===----------------------------------------------------------------------===//
// Files under work
//===----------------------------------------------------------------------===//

/// Never freed, only used again: a signal may come at any time.
struct Unfinished::Entry {
  std::atomic<char *> path{nullptr};
  std::atomic<char *> removed{nullptr}; // the path, once a signal removed it
  std::atomic<bool> taken{true};
  Entry *next = nullptr;
};

std::atomic<Unfinished::Entry *> Unfinished::first{nullptr};

Unfinished::Unfinished(const std::string &path) {
  char *copy = ::strdup(path.c_str());
  for (Entry *e = first.load(); e && !entry; e = e->next)
    if (bool free = false; e->taken.compare_exchange_strong(free, true))
      entry = e;
  if (!entry) {
    entry = new Entry;
    entry->next = first.load();
    while (!first.compare_exchange_weak(entry->next, entry)) {
    }
  }
  entry->path.store(copy);
}

Unfinished::Unfinished(Unfinished &&other) noexcept : entry(other.entry) {
  other.entry = nullptr;
}

Unfinished &Unfinished::operator=(Unfinished &&other) noexcept {
  if (this != &other) {
    discard();
    entry = std::exchange(other.entry, nullptr);
  }
  return *this;
}

void Unfinished::keep() {
  if (!entry)
    return;
  std::free(entry->path.exchange(nullptr));
  std::free(entry->removed.exchange(nullptr));
  entry->taken.store(false);
  entry = nullptr;
}

void Unfinished::discard() {
  if (!entry)
    return;
  char *path = entry->path.exchange(nullptr);
  if (path)
    ::unlink(path);
  std::free(path);
  std::free(entry->removed.exchange(nullptr));
  entry->taken.store(false);
  entry = nullptr;
}

void removeUnfinished() {
  int saved = errno;
  for (Unfinished::Entry *e = Unfinished::first.load(); e; e = e->next)
    if (char *path = e->path.exchange(nullptr)) {
      ::unlink(path);
      e->removed.store(path); // a signal's handler frees nothing
    }
  errno = saved;
}

void endBySignal(int number) {
  removeUnfinished();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

//===----------------------------------------------------------------------===//
// Whole files
//===----------------------------------------------------------------------===//

/// Closes as well; errno on failure.
static int writeAndClose(int fd, std::string_view bytes) {
  int err = 0;
  while (!bytes.empty() && !err) {
    ssize_t n = ::write(fd, bytes.data(),
                        std::min<size_t>(bytes.size(), size_t(1) << 30));
    if (n >= 0)
      bytes.remove_prefix(static_cast<size_t>(n));
    else if (errno != EINTR)
      err = errno;
  }
  // Some file systems say only here that the disk is full.
  if (::close(fd) != 0 && !err && errno != EINTR)
    err = errno;
  return err;
}

Status writeOutput(const std::string &path, std::string_view bytes,
                   unsigned mode) {
  const char *cannot = "cannot write";
  std::string target = path;
  struct stat st;
  bool there = ::stat(path.c_str(), &st) == 0;
  if (there && !S_ISREG(st.st_mode)) {
    int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
      return Status::ioError(cannot, path, errno);
    int err = writeAndClose(fd, bytes);
    return err ? Status::ioError(cannot, path, err) : Status();
  }
  if (char *real = there ? ::realpath(path.c_str(), nullptr) : nullptr) {
    target = real;
    std::free(real);
  }
  for (unsigned attempt = 0;; ++attempt) {
    std::string part = target + "." + std::to_string(::getpid()) + "-" +
                       std::to_string(attempt) + ".tmp";
    Unfinished unfinished(part);
    int fd =
        ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
      int err = errno;
      unfinished.keep(); // not there, or somebody else's
      if (err == EEXIST && attempt < 100)
        continue;
      return Status::ioError(cannot, path, err);
    }
    int err = writeAndClose(fd, bytes);
    if (!err && ::rename(part.c_str(), target.c_str()) != 0)
      err = errno;
    if (err)
      return Status::ioError(cannot, path, err);
    unfinished.keep();
    return Status();
  }
}

} // namespace trc
