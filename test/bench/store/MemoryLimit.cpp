//===- MemoryLimit.cpp - A control group that bounds memory ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/MemoryLimit.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc::bench;

/// 0 or errno. Control files want one write() per value.
static int put(const std::string &path, const std::string &value) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return errno;
  int error = ::write(fd, value.data(), value.size()) < 0 ? errno : 0;
  ::close(fd);
  return error;
}

static bool exists(const std::string &path) {
  return ::access(path.c_str(), F_OK) == 0;
}

/// Where version 2 is mounted, and this process's group there.
static std::string ownGroup() {
  std::string root;
  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, point, type, rest;
       mounts >> device >> point >> type && std::getline(mounts, rest);)
    if (type == "cgroup2")
      root = point;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.compare(0, 3, "0::") == 0 && !root.empty())
      return root + (line == "0::/" ? "" : line.substr(3));
  return "";
}

/// Whether groups below this one of version 2 may limit memory. A group with
/// processes of its own cannot be asked to allow that, unless it is the root.
static bool handsMemoryDown(const std::string &group) {
  auto listed = [&] {
    std::ifstream in(group + "/cgroup.subtree_control");
    for (std::string word; in >> word;)
      if (word == "memory")
        return true;
    return false;
  };
  if (!listed())
    put(group + "/cgroup.subtree_control", "+memory");
  return listed();
}

MemoryLimit::MemoryLimit(const std::string &parent, uint64_t bytes)
    : limit(bytes) {
  std::string below = parent;
  if (below.empty()) {
    below = ownGroup();
    if (!below.empty() && !handsMemoryDown(below)) // then beside our group
      below.resize(below.rfind('/'));
    if (below.empty() || !handsMemoryDown(below)) {
      reason = "no control group of version 2 that may limit memory; --cgroup "
               "names another";
      return;
    }
  }
  reason = make(below);
  if (!reason.empty() && !group.empty()) {
    ::rmdir(group.c_str());
    group.clear();
  }
}

std::string MemoryLimit::make(const std::string &parent) {
  static std::atomic<int> count{0};
  auto failed = [](const std::string &what, int error) {
    return "cannot " + what + ": " + std::strerror(error);
  };
  std::string path = parent + "/terrace-bench-" + std::to_string(::getpid()) +
                     "-" + std::to_string(count++);
  if (::mkdir(path.c_str(), 0755) != 0)
    return failed("make a control group in " + parent, errno);
  group = path;
  std::string value = std::to_string(limit);
  if (exists(group + "/memory.max")) { // version 2
    if (int e = put(group + "/memory.max", value))
      return failed("limit the memory of " + group, e);
    put(group + "/memory.swap.max", "0");
    return "";
  }
  if (exists(group + "/memory.limit_in_bytes")) { // version 1
    int e = put(group + "/memory.limit_in_bytes", value);
    return e ? failed("limit the memory of " + group, e) : "";
  }
  return "no memory controller in " + parent;
}

MemoryLimit::~MemoryLimit() {
  // A group stays busy for a moment after its last process has been reaped.
  for (int i = 0; i < 100 && !group.empty(); ++i) {
    if (::rmdir(group.c_str()) == 0 || errno != EBUSY)
      return;
    ::usleep(10000);
  }
}

bool MemoryLimit::enter() const {
  return !group.empty() &&
         put(group + "/cgroup.procs", std::to_string(::getpid())) == 0;
}
