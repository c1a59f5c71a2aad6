//===- Verify.cpp - Whether everything can be read ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sound root is read once, in the order of the log. Only where that fails are
// rows read by number, and blocks that fail halved until single rows are left.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Verify.h"

#include "runtime/checkpoint/Claims.h"
#include "runtime/inspect/Roots.h"

#include <algorithm>

using namespace trc;
using namespace trc::inspect;

namespace {

class Verifier {
public:
  Verifier(const StateSource &root, const std::function<void(Problem)> &take,
           const Progress &progress, Verified &out)
      : root(root), take(take), progress(progress), out(out) {}

  Status run() {
    if (Status blob = checkBlob(root, nullptr); !blob.ok())
      tell({}, -1, blob);
    Result<std::unique_ptr<StateReader>> opened = StateReader::open(root);
    if (!opened.ok()) {
      Status why = opened.takeStatus();
      if (why.code() == TRC_LOCKED || why.code() == TRC_NO_MEMORY)
        return why;
      tell({}, -1, why);
      return Status();
    }
    reader = std::move(*opened);
    out.opened = true;
    out.rows = reader->writtenCount();
    uint64_t done = 0;
    Status all =
        reader->scan([&](int, uint64_t, const char *, uint32_t) -> Status {
          if (progress && ++done % 65536 == 0)
            progress(done, out.rows);
          return Status();
        });
    return all.ok() ? Status() : one(std::move(all));
  }

private:
  void tell(const std::string &table, int64_t row, const Status &why) {
    ++out.problems;
    out.lost += row >= 0;
    take({out.root, table, row, why.message()});
  }

  /// Row by row, after `failed` stopped the scan.
  Status one(Status failed) {
    uint64_t done = 0;
    const std::vector<ManifestTable> &tables = root.manifest.tables;
    for (size_t t = 0; t < tables.size(); ++t) {
      int table = static_cast<int>(t);
      size_t most = blockRows(tables[t].recordBytes());
      std::vector<int64_t> rows;
      for (int64_t row = reader->nextWritten(table, 0); row < tables[t].rows;) {
        rows.clear();
        for (; row < tables[t].rows && rows.size() < most;
             row = reader->nextWritten(table, row + 1))
          rows.push_back(row);
        check(table, rows.data(), rows.size());
        done += rows.size();
        if (progress)
          progress(done, out.rows);
      }
    }
    // What the scan met is no row's: still, it is there.
    if (!out.lost)
      tell({}, -1, failed);
    return Status();
  }

  void check(int table, const int64_t *rows, size_t count) {
    Status s = reader->read(table, rows, static_cast<int64_t>(count),
                            [](int64_t, const char *) {});
    if (s.ok())
      return;
    if (count == 1)
      return tell(root.manifest.tables[table].name, rows[0], s);
    check(table, rows, count / 2);
    check(table, rows + count / 2, count - count / 2);
  }

  const StateSource &root;
  const std::function<void(Problem)> &take;
  const Progress &progress;
  Verified &out;
  std::unique_ptr<StateReader> reader;
};

} // namespace

Status inspect::verifyRoot(const StateSource &root,
                           const std::function<void(Problem)> &take,
                           const Progress &progress, Verified &out) {
  out = {};
  out.root = nameOf(root);
  out.step = root.manifest.step;
  return guarded([&] { return Verifier(root, take, progress, out).run(); });
}

Status inspect::scrubState(const StateDir &dir,
                           const std::function<void(Problem)> &take,
                           const Progress &progress,
                           std::vector<Verified> &out) {
  TRC_RETURN_IF_ERROR(checkIsState(dir));
  auto unreadable = [&](const std::string &name, const Status &why) {
    Verified v;
    v.root = name;
    v.problems = 1;
    out.push_back(v);
    take({name, {}, -1, why.message()});
  };
  for (const std::string &name : listFolder(dir.path() + "/checkpoints"))
    if (name.rfind("ckpt-", 0) == 0)
      if (Result<StateSource> root = dir.checkpoint(name); !root.ok())
        unreadable(name, root.takeStatus());
  if (Result<std::optional<StateSource>> root = dir.closedState(); !root.ok())
    unreadable(closedName, root.takeStatus());
  if (Result<std::optional<Manifest>> identity = dir.identity(); !identity.ok())
    unreadable("manifest.json", identity.takeStatus());
  if (Status claims = checkClaims(dir.path()); !claims.ok())
    unreadable("claims.json", claims);
  for (const StateSource &root : dir.roots(nullptr)) {
    Verified v;
    TRC_RETURN_IF_ERROR(verifyRoot(root, take, progress, v));
    out.push_back(std::move(v));
  }
  return Status();
}
