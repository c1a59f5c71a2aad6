//===- CrashFolder.cpp - A folder that forgets like a disk ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tree of nodes mirrors the real folder; each folder knows its durable names
// and the current ones, and the steps that lead from one to the other.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/io/CrashFolder.h"
#include "test/runtime/io/CrashRandom.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

using namespace trc;
namespace fs = std::filesystem;

CrashFolder::CrashFolder(std::string path, PowerSwitch *power)
    : root(fs::path(path).lexically_normal().string()), power(power),
      posix(posixFileSystem()) {
  top = scan(root);
  setFileSystem(this);
}

CrashFolder::~CrashFolder() { setFileSystem(nullptr); }

CrashFolder::NodePtr CrashFolder::scan(const std::string &path) const {
  auto node = std::make_shared<Node>();
  if (fs::is_directory(path)) {
    node->folder = true;
    for (const auto &entry : fs::directory_iterator(path))
      node->names[entry.path().filename().string()] =
          scan(entry.path().string());
    node->durable = node->names;
    return node;
  }
  std::ifstream in(path, std::ios::binary);
  node->current.assign(std::istreambuf_iterator<char>(in), {});
  node->synced = node->current;
  return node;
}

CrashFolder::Place CrashFolder::find(const std::string &path) const {
  Place place;
  fs::path relative =
      fs::path(path).lexically_normal().lexically_relative(root);
  if (relative.empty() || *relative.begin() == "..")
    return place;
  place.node = top;
  for (const fs::path &part : relative) {
    if (part == "." || part.empty())
      continue;
    if (!place.node || !place.node->folder)
      return Place();
    place.folder = place.node;
    place.name = part.string();
    auto found = place.folder->names.find(place.name);
    place.node = found == place.folder->names.end() ? nullptr : found->second;
  }
  return place;
}

CrashFolder::Answer CrashFolder::begin(int &error) {
  Answer answer = power ? power->operation() : Answer::Go;
  error = answer == Answer::Go ? 0 : -EIO;
  if (operations++ == failOperation && answer == Answer::Go) {
    error = -failError;
    return Answer::Gone;
  }
  return answer;
}

void CrashFolder::step(Step s) {
  for (int i = 0; i < 2; ++i)
    s.folder[i] = s.at[i];
  steps.push_back(std::move(s));
}

void CrashFolder::apply(const Step &s, std::map<const Node *, Names> &folders) {
  Names &a = folders[s.at[0].get()];
  switch (s.kind) {
  case Step::Link:
    a[s.name[0]] = s.node[0];
    break;
  case Step::Unlink:
    a.erase(s.name[0]);
    break;
  case Step::Rename: {
    auto from = a.find(s.name[0]);
    if (from != a.end() && from->second == s.node[0])
      a.erase(from);
    folders[s.at[1].get()][s.name[1]] = s.node[0];
    break;
  }
  case Step::Exchange:
    a[s.name[0]] = s.node[1];
    folders[s.at[1].get()][s.name[1]] = s.node[0];
    break;
  }
}

int CrashFolder::create(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex);
  Place place = find(path);
  if (!place.folder)
    return posix.create(path);
  int error;
  if (begin(error) == Answer::Gone)
    return error;
  int fd = posix.create(path);
  if (fd < 0)
    return fd;
  if (!place.node) {
    place.node = std::make_shared<Node>();
    place.folder->names[place.name] = place.node;
    step({Step::Link,
          {},
          {place.folder, nullptr},
          {place.name, ""},
          {place.node, nullptr}});
  }
  place.node->current.clear();
  open[fd] = place.node;
  if (error < 0)
    ::close(fd);
  return error < 0 ? error : fd;
}

int64_t CrashFolder::write(int fd, const void *data, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto known = open.find(fd);
  if (known == open.end())
    return posix.write(fd, data, bytes);
  int error;
  if (begin(error) == Answer::Gone)
    return error;
  int64_t n = posix.write(fd, data, bytes);
  if (n > 0)
    known->second->current.append(static_cast<const char *>(data),
                                  static_cast<size_t>(n));
  return error < 0 ? error : n;
}

int CrashFolder::sync(int fd) {
  std::lock_guard<std::mutex> lock(mutex);
  auto known = open.find(fd);
  if (known == open.end())
    return posix.sync(fd);
  int error;
  if (begin(error) == Answer::Go)
    known->second->synced = known->second->current;
  return error;
}

int CrashFolder::rename(const std::string &from, const std::string &to) {
  std::lock_guard<std::mutex> lock(mutex);
  Place a = find(from), b = find(to);
  if (!a.folder || !b.folder || !a.node)
    return posix.rename(from, to);
  int error;
  if (begin(error) == Answer::Gone)
    return error;
  if (int r = posix.rename(from, to); r < 0)
    return r;
  a.folder->names.erase(a.name);
  b.folder->names[b.name] = a.node;
  step({Step::Rename,
        {},
        {a.folder, b.folder},
        {a.name, b.name},
        {a.node, nullptr}});
  return error;
}

int CrashFolder::exchange(const std::string &from, const std::string &to) {
  std::lock_guard<std::mutex> lock(mutex);
  Place a = find(from), b = find(to);
  if (!a.folder || !b.folder || !a.node || !b.node)
    return posix.exchange(from, to);
  int error;
  if (begin(error) == Answer::Gone)
    return error;
  if (int r = posix.exchange(from, to); r < 0)
    return r;
  a.folder->names[a.name] = b.node;
  b.folder->names[b.name] = a.node;
  step({Step::Exchange,
        {},
        {a.folder, b.folder},
        {a.name, b.name},
        {a.node, b.node}});
  return error;
}

int CrashFolder::unlink(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex);
  Place place = find(path);
  if (!place.folder || !place.node)
    return posix.unlink(path);
  int error;
  if (begin(error) == Answer::Gone)
    return error;
  if (int r = posix.unlink(path); r < 0)
    return r;
  place.folder->names.erase(place.name);
  step({Step::Unlink, {}, {place.folder, nullptr}, {place.name, ""}, {}});
  return error;
}

int CrashFolder::makeFolder(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex);
  Place place = find(path);
  if (!place.folder || place.node)
    return posix.makeFolder(path);
  int error;
  if (begin(error) == Answer::Gone)
    return error;
  if (int r = posix.makeFolder(path); r < 0)
    return r;
  auto node = std::make_shared<Node>();
  node->folder = true;
  place.folder->names[place.name] = node;
  step({Step::Link,
        {},
        {place.folder, nullptr},
        {place.name, ""},
        {node, nullptr}});
  return error;
}

int CrashFolder::removeFolder(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex);
  Place place = find(path);
  if (!place.folder || !place.node)
    return posix.removeFolder(path);
  int error;
  if (begin(error) == Answer::Gone)
    return error;
  if (int r = posix.removeFolder(path); r < 0)
    return r;
  place.folder->names.erase(place.name);
  step({Step::Unlink, {}, {place.folder, nullptr}, {place.name, ""}, {}});
  return error;
}

int CrashFolder::syncFolder(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex);
  NodePtr node = find(path).node;
  if (!node || !node->folder)
    return posix.syncFolder(path);
  int error;
  if (begin(error) != Answer::Go)
    return error;
  std::vector<Step> rest;
  for (Step &s : steps) {
    for (NodePtr &folder : s.folder)
      if (folder == node)
        folder = nullptr;
    if (s.folder[0] || s.folder[1]) {
      rest.push_back(std::move(s));
      continue;
    }
    std::map<const Node *, Names> folders;
    for (const NodePtr &at : s.at)
      if (at)
        folders[at.get()] = at->durable;
    apply(s, folders);
    for (const NodePtr &at : s.at)
      if (at)
        at->durable = folders[at.get()];
  }
  steps = std::move(rest);
  return 0;
}

uint64_t CrashFolder::unsynced() const {
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t n = steps.size();
  std::vector<NodePtr> todo = {top};
  while (!todo.empty()) {
    NodePtr node = todo.back();
    todo.pop_back();
    n += node->current != node->synced;
    for (const auto &entry : node->names)
      todo.push_back(entry.second);
  }
  return n;
}

void CrashFolder::failAt(uint64_t n, int error) {
  std::lock_guard<std::mutex> lock(mutex);
  failOperation = n;
  failError = error;
}

uint64_t CrashFolder::operationCount() const {
  std::lock_guard<std::mutex> lock(mutex);
  return operations;
}

void CrashFolder::persist(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex);
  if (Place place = find(path); place.node && !(power && power->gone()))
    place.node->synced = place.node->current;
}

/// A file's content after the crash.
static std::string survivor(const std::string &synced,
                            const std::string &current, const CrashFates &fates,
                            uint64_t key) {
  if (synced == current)
    return current;
  switch (fates.of(key)) {
  case Fate::Kept:
    return current;
  case Fate::Lost:
    return synced;
  case Fate::Torn:
    break;
  }
  size_t longest = std::max(synced.size(), current.size());
  std::string mixed(crashMix(key, 1) % (longest + 1), 0);
  for (size_t at = 0; at < mixed.size(); at += 512) {
    uint64_t roll = crashMix(key, 2 + at) % 3; // current, synced or zeroes
    const std::string &from = roll == 0 ? current : synced;
    if (roll < 2 && at < from.size()) {
      size_t n = std::min({size_t(512), from.size() - at, mixed.size() - at});
      std::memcpy(&mixed[at], &from[at], n);
    }
  }
  return mixed;
}

void CrashFolder::writeOut(const Node &node, const std::string &target,
                           const std::string &path,
                           const std::map<const Node *, Names> &folders,
                           const CrashFates &fates) const {
  if (!node.folder) {
    std::string text =
        survivor(node.synced, node.current, fates, fates.key(path));
    std::ofstream(target + path, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return;
  }
  fs::create_directory(target + path);
  auto changed = folders.find(&node);
  const Names &names =
      changed == folders.end() ? node.durable : changed->second;
  for (const auto &entry : names)
    writeOut(*entry.second, target, path + "/" + entry.first, folders, fates);
}

void CrashFolder::copyStrangers(const Node &node, const std::string &from,
                                const std::string &to) const {
  if (!fs::is_directory(to))
    return;
  for (const auto &entry : fs::directory_iterator(from)) {
    std::string name = entry.path().filename().string();
    auto known = node.names.find(name);
    if (known == node.names.end()) {
      if (entry.is_regular_file())
        fs::copy_file(entry.path(), to + "/" + name,
                      fs::copy_options::skip_existing);
    } else if (known->second->folder) {
      copyStrangers(*known->second, from + "/" + name, to + "/" + name);
    }
  }
}

void CrashFolder::crashInto(const std::string &target, uint64_t seed) const {
  std::lock_guard<std::mutex> lock(mutex);
  // A mood of its own: a device that loses all beside names that all stay is
  // what a forgotten flush is found by.
  CrashFates fates(crashMix(seed, 0xf01d));
  std::map<const Node *, Names> folders;
  std::map<uint64_t, uint64_t> times; // steps of the same names so far
  for (const Step &s : steps) {
    for (const NodePtr &at : s.at)
      if (at)
        folders.emplace(at.get(), at->durable);
    uint64_t key = crashMix(fates.key(s.name[0]), s.name[1]) + s.kind;
    if (fates.happened(crashMix(key, times[key]++)))
      apply(s, folders);
  }
  writeOut(*top, target, "", folders, fates);
  copyStrangers(*top, root, target);
}
