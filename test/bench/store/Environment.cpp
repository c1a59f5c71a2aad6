//===- Environment.cpp - Where figures were taken -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Environment.h"
#include "test/bench/store/Table.h"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

using namespace trc::bench;

static std::string firstLine(const std::string &path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

static std::string cpuModel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, 10, "model name") == 0)
      return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

/// "ext4 on /dev/vda (mq-deadline, 512-byte blocks)".
static std::string deviceOf(const std::string &folder) {
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0)
    return "unknown device";
  std::string number = std::to_string(major(info.st_dev)) + ":" +
                       std::to_string(minor(info.st_dev));
  std::string text = "device " + number;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, word, type, source;
    words >> id >> parent >> device;
    while (words >> word && word != "-")
      ;
    if (device == number && words >> type >> source)
      text = type + " on " + source +
             (type == "tmpfs" ? " (MEMORY: no device is measured)" : "");
  }
  std::string queue = "/sys/dev/block/" + number + "/queue/";
  std::string scheduler = firstLine(queue + "scheduler");
  if (scheduler.empty()) // a partition: its disk has the queue
    queue = "/sys/dev/block/" + number + "/../queue/",
    scheduler = firstLine(queue + "scheduler");
  if (!scheduler.empty())
    text += " (scheduler " + scheduler + ", " +
            firstLine(queue + "logical_block_size") + "-byte blocks)";
  struct statvfs room{};
  if (::statvfs(folder.c_str(), &room) == 0)
    text += ", " +
            size(static_cast<double>(room.f_bavail) *
                 static_cast<double>(room.f_frsize)) +
            " free";
  return text;
}

std::string trc::bench::environment(const std::string &folder) {
  std::ostringstream out;
  std::time_t now = std::time(nullptr);
  char date[64] = "";
  std::tm parts{};
  if (gmtime_r(&now, &parts))
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts);
  utsname kernel{};
  ::uname(&kernel);
  unsigned cpus = std::thread::hardware_concurrency();
  double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                  static_cast<double>(::sysconf(_SC_PAGESIZE));
  double load[1] = {0};
  bool known = ::getloadavg(load, 1) == 1;
  out << date << ", Linux " << kernel.release << ", " << cpuModel() << ", "
      << cpus << " CPUs, " << size(memory) << " of memory\n"
      << folder << ": " << deviceOf(folder) << "\n";
  if (known && load[0] > 0.5)
    out << "NOTE: a load of " << figure(load[0])
        << ": others are at work here, so these are no figures to keep\n";
  return out.str();
}
