//===- Compact.cpp - Keeps only the newest root ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Compact.h"

#include "runtime/checkpoint/Claims.h"
#include "runtime/inspect/Roots.h"
#include "runtime/inspect/Verify.h"

#include <algorithm>
#include <sys/stat.h>

using namespace trc;
using namespace trc::inspect;

/// Bytes on disk of the files in a folder and in its checkpoints.
static uint64_t bytesOf(const std::string &folder, int depth = 2) {
  uint64_t bytes = 0;
  for (const std::string &name : listFolder(folder)) {
    std::string path = folder + "/" + name;
    struct stat st;
    if (::lstat(path.c_str(), &st) != 0)
      continue;
    if (S_ISREG(st.st_mode))
      bytes += static_cast<uint64_t>(st.st_blocks) * 512;
    else if (S_ISDIR(st.st_mode) && depth > 0)
      bytes += bytesOf(path, depth - 1);
  }
  return bytes;
}

/// The paths of tier files, without the number of their generation.
static std::vector<std::string>
tierFilesOf(const std::vector<StateSource> &roots) {
  std::vector<std::string> files;
  for (const StateSource &root : roots)
    for (const ManifestGroup &g : root.manifest.groups)
      for (const ManifestGroup::Extent &e : g.extents) {
        std::string path = tierPath(e.path, root.manifest.generation);
        if (std::find(files.begin(), files.end(), path) == files.end())
          files.push_back(path);
      }
  return files;
}

/// Index files that only the roots that are gone named.
static Status dropIndexFiles(const StateDir &dir, const StateSource &root) {
  StoresOptions options;
  options.key = root.manifest.key;
  options.folder = dir.path();
  options.generation = root.manifest.generation;
  options.holders = holdersIn(dir.path(), options.generation);
  Result<HomeStores> homes = openStores(root.manifest.groups, options);
  if (!homes.ok())
    return homes.takeStatus();
  for (size_t g = 0; g < homes->stores.size(); ++g) {
    RowStore &store = *homes->stores[g];
    TRC_RETURN_IF_ERROR(store.adopt(
        {root.manifest.sequence, root.manifest.groups[g].index}, true));
    TRC_RETURN_IF_ERROR(store.removeLeftovers());
  }
  return Status();
}

static Status compactInto(StateDir &dir, const Progress &progress,
                          Compacted &out) {
  std::vector<StateSource> roots = dir.roots(nullptr);
  if (roots.empty())
    return Status(TRC_NOT_FOUND, "the state at '" + dir.path() +
                                     "' holds no root that can be read");
  const StateSource &newest = roots.back();
  out.kept = nameOf(newest);
  out.bytesBefore = bytesOf(dir.path());

  Verified sound;
  std::string first;
  TRC_RETURN_IF_ERROR(verifyRoot(
      newest,
      [&](const Problem &p) {
        if (first.empty())
          first = p.what;
      },
      progress, sound));
  if (sound.problems)
    return Status(TRC_CORRUPT,
                  out.kept + ", the newest, is damaged (" +
                      std::to_string(sound.problems) + " problems, first: " +
                      first + "); nothing was removed; go on from an older " +
                      "checkpoint, or see terrace checkpoint scrub");

  for (const std::string &name : listFolder(dir.path() + "/checkpoints"))
    if (name.rfind("ckpt-", 0) == 0 && name != out.kept) {
      TRC_RETURN_IF_ERROR(dir.removeCheckpoint(name));
      out.removed.push_back(name);
    }
  if (!newest.closed && pathExists(dir.path() + "/closed.json")) {
    TRC_RETURN_IF_ERROR(dir.removeClosed());
    out.removed.push_back(closedName);
  }
  // Folders' names, too: only now may what they retained go.
  if (pathExists(dir.path() + "/checkpoints"))
    TRC_RETURN_IF_ERROR(syncFolder(dir.path() + "/checkpoints"));
  dir.abandonCheckpoint();
  TRC_RETURN_IF_ERROR(dropIndexFiles(dir, newest));
  dir.removeLeftovers(tierFilesOf(roots));
  TRC_RETURN_IF_ERROR(syncFolder(dir.path()));
  out.bytesAfter = bytesOf(dir.path());
  return Status();
}

Result<Compacted> inspect::compactState(StateDir &dir,
                                        const Progress &progress) {
  Compacted out;
  TRC_RETURN_IF_ERROR(guarded([&] { return compactInto(dir, progress, out); }));
  return Result<Compacted>(std::move(out));
}
