//===- ResidentFile.h - Which rows the caches of a state held ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written at a clean close and named by its root, so that a later open can fill
// the caches before the first step. Numbers of rows alone, by group, in the
// order in which the policy would have evicted them. A hint: whoever reads it
// goes on without where it is missing, damaged or of another state.
//
//   header    magic, format, groups, key and sequence of the root
//   by group  policy, its age, rows of the group, count; count x (row, heat)
//   end       CRC32C of all that
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_RESIDENTFILE_H
#define TERRACE_RUNTIME_CHECKPOINT_RESIDENTFILE_H

#include "runtime/cache/GroupCache.h"
#include "runtime/checkpoint/FileUtil.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trc {

/// Of which closed state.
struct ResidentRoot {
  uint64_t key = 0, sequence = 0;
  uint32_t groups = 0;
};

struct ResidentGroup {
  std::string policy; // empty: the group has no cache
  uint64_t age = 0;   // GroupCache::policyAge
  uint64_t rows = 0;  // of the group
  uint64_t count = 0; // resident
};

/// Streams; holds one buffer.
class ResidentWriter {
public:
  static Result<std::unique_ptr<ResidentWriter>>
  create(const std::string &path, const ResidentRoot &root);
  Status beginGroup(const ResidentGroup &group);
  /// As many as the group's count, the row to evict first first.
  Status add(ResidentRow row);
  /// Makes the contents durable, not the name.
  Status finish();
  /// All of a group: what beginGroup() and add() take, from its cache, which
  /// pins nothing.
  Status addCache(const GroupCache &cache);

private:
  ResidentWriter(std::string path, Fd fd)
      : path(std::move(path)), fd(std::move(fd)) {}
  Status put(const void *data, size_t bytes);
  Status flush();

  std::string path;
  Fd fd;
  std::vector<char> buffer;
  uint32_t crc = 0;
  uint64_t left = 0; // rows of the group to come
};

/// Checks the whole file first, then calls `begin` for each group and `take`
/// for pieces of its rows. TRC_CORRUPT, TRC_MISMATCH (of another root) or
/// TRC_IO with file and reason.
Status readResidents(
    const std::string &path, const ResidentRoot &root,
    const std::function<Status(uint32_t group, const ResidentGroup &)> &begin,
    const std::function<Status(const ResidentRow *rows, uint32_t count)> &take);

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_RESIDENTFILE_H
