//===- Portable.cpp - A checkpoint outside of its state -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of an imported state lie in one file, tables of equal records in one
// store. Its name is that of no layout of generation 1, so the first training
// session lays the rows out anew and takes this file away.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Portable.h"

#include "runtime/checkpoint/RowsFile.h"
#include "runtime/checkpoint/SealedJson.h"
#include "runtime/inspect/OutputFile.h"
#include "runtime/inspect/Roots.h"
#include "runtime/session/Session.h"
#include "runtime/store/Crc32c.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <unistd.h>

using namespace trc;
using namespace trc::inspect;
using nlohmann::json;

namespace {

constexpr const char *rootFile = "checkpoint.json";
constexpr const char *rowsFile = "rows.bin";
constexpr const char *blobFile = "blob.bin";

struct Head {
  Manifest manifest; // without groups
  uint64_t rows = 0, bytes = 0, chunks = 0;
  uint32_t seal = 0;
};

std::string toText(const Head &head) {
  json j = {{"terrace_rows", 1},     {"manifest", head.manifest.toText()},
            {"rows", head.rows},     {"bytes", head.bytes},
            {"chunks", head.chunks}, {"seal", head.seal}};
  return sealJson(std::move(j));
}

Result<Head> readHead(const std::string &folder) {
  std::string path = folder + "/" + rootFile;
  if (!pathExists(path))
    return Status(TRC_NOT_FOUND,
                  "'" + folder + "' holds no " + rootFile +
                      "; import takes what terrace export --format rows wrote");
  Result<std::string> text = readFile(path);
  if (!text.ok())
    return text.takeStatus();
  Head head;
  TRC_RETURN_IF_ERROR(openSealedJson(
      *text, {path, "a portable checkpoint", "export it again"},
      [&](const json &j) -> Status {
        if (int format = j.at("terrace_rows").get<int>(); format != 1)
          return Status(TRC_MISMATCH, "'" + path + "' has format " +
                                          std::to_string(format) +
                                          "; this terrace reads 1");
        head.rows = j.at("rows").get<uint64_t>();
        head.bytes = j.at("bytes").get<uint64_t>();
        head.chunks = j.at("chunks").get<uint64_t>();
        head.seal = j.at("seal").get<uint32_t>();
        Result<Manifest> m =
            Manifest::fromText(j.at("manifest").get<std::string>(), path);
        if (!m.ok())
          return m.takeStatus();
        head.manifest = std::move(*m);
        return {};
      }));
  return Result<Head>(std::move(head));
}

} // namespace

static Status exportInto(const StateSource &at, const std::string &folder,
                         const Progress &progress, Portable &out) {
  Result<std::unique_ptr<StateReader>> opened = StateReader::open(at);
  if (!opened.ok())
    return opened.takeStatus();
  StateReader &reader = **opened;
  uint64_t total = reader.writtenCount();
  TRC_RETURN_IF_ERROR(refuseStateFolder(folder));
  TRC_RETURN_IF_ERROR(makeFolders(folder));
  // Half an old one under the new name would be worse than none.
  TRC_RETURN_IF_ERROR(removeFile(folder + "/" + rootFile));
  TRC_RETURN_IF_ERROR(syncFolder(folder));

  Head head;
  head.manifest = at.manifest;
  head.manifest.groups.clear();
  head.manifest.residentFile.clear(); // rows of a plan's groups
  head.manifest.blobFile = at.manifest.blobFile.empty() ? "" : blobFile;
  std::string text = head.manifest.toText();
  head.seal = crc32c(0, text.data(), text.size());
  std::vector<uint32_t> recordBytes;
  for (const ManifestTable &t : at.manifest.tables)
    recordBytes.push_back(t.recordBytes());
  Unfinished rowsPart(folder + "/" + rowsFile);
  Unfinished blobPart;
  Result<std::unique_ptr<RowsWriter>> rows =
      RowsWriter::create(folder + "/" + rowsFile, recordBytes, head.seal);
  if (!rows.ok())
    return rows.takeStatus();
  for (size_t t = 0; t < recordBytes.size(); ++t) {
    int table = static_cast<int>(t);
    TRC_RETURN_IF_ERROR(forBlocks(
        reader, table,
        [&](int64_t row) { return reader.nextWritten(table, row); },
        [&](const RowBlock &block) -> Status {
          for (size_t i = 0; i < block.rows.size(); ++i)
            TRC_RETURN_IF_ERROR((*rows)->add(
                static_cast<uint32_t>(t), static_cast<uint64_t>(block.rows[i]),
                block.record(i)));
          if (progress)
            progress((*rows)->rows(), total);
          return Status();
        }));
  }
  TRC_RETURN_IF_ERROR((*rows)->finish());
  head.rows = (*rows)->rows();
  head.bytes = (*rows)->bytes();
  head.chunks = (*rows)->chunks();
  if (!at.manifest.blobFile.empty()) {
    std::string path = folder + "/" + blobFile;
    blobPart = Unfinished(path);
    Result<Fd> blob = createFile(path);
    if (!blob.ok())
      return blob.takeStatus();
    TRC_RETURN_IF_ERROR(checkBlob(at, [&](const char *data, uint64_t bytes) {
      return writeAll(blob->get(), data, bytes, path);
    }));
    TRC_RETURN_IF_ERROR(syncFile(blob->get(), path));
  }
  // From here on another root may name them.
  rowsPart.keep();
  blobPart.keep();
  TRC_RETURN_IF_ERROR(replaceFile(folder, rootFile, toText(head)));
  out = {at.manifest.step, at.manifest.samples, head.rows,
         head.bytes + at.manifest.blobBytes};
  return Status();
}

Result<Portable> inspect::exportRows(const StateSource &at,
                                     const std::string &folder,
                                     const Progress &progress) {
  Portable out;
  bool made = !pathExists(folder);
  Status s = guarded([&] { return exportInto(at, folder, progress, out); });
  if (s.ok())
    return out;
  // Not what was refused: only what this call may have begun.
  if (refuseStateFolder(folder).ok() && !pathExists(folder + "/" + rootFile)) {
    for (const char *name : {rowsFile, blobFile})
      (void)removeFile(folder + "/" + name);
    if (made)
      ::rmdir(folder.c_str());
  }
  return s;
}

namespace {

class Importer {
public:
  Importer(const std::string &folder, StateDir &dir, const Progress &progress)
      : folder(folder), dir(dir), progress(progress) {}

  Status run(Head &head) {
    m = head.manifest;
    m.key = randomKey();
    m.sequence = 1;
    m.generation = 1;
    Manifest identity = m;
    identity.sequence = identity.samples = identity.step = 0;
    identity.generation = 0;
    identity.lrScale = 1;
    identity.headState = {};
    identity.blobFile.clear();
    identity.blobBytes = identity.blobCrc = 0;
    identity.importing = true;
    // As a session does: the key is known before any file carries it.
    TRC_RETURN_IF_ERROR(dir.writeIdentity(identity));
    divide();
    StoresOptions options;
    options.key = m.key;
    options.folder = dir.path();
    options.generation = m.generation;
    options.create = true;
    Result<HomeStores> opened = openStores(m.groups, options);
    if (!opened.ok())
      return opened.takeStatus();
    homes = std::move(*opened);
    TRC_RETURN_IF_ERROR(readRows(folder + "/" + rowsFile, head.bytes,
                                 head.chunks, head.seal,
                                 [&](const RowsChunk &chunk) {
                                   TRC_RETURN_IF_ERROR(take(chunk));
                                   if (progress)
                                     progress(loaded, head.rows);
                                   return Status();
                                 }));
    if (loaded != head.rows)
      return corrupt("it holds " + std::to_string(loaded) + " rows of " +
                     std::to_string(head.rows));
    return commit();
  }

private:
  Status corrupt(const std::string &why) const {
    return Status(TRC_CORRUPT, "'" + folder + "/" + rowsFile + "': " + why +
                                   "; export it again");
  }

  /// Tables of equal records share a store.
  void divide() {
    constexpr int64_t most = int64_t(1) << 31; // rows of a shared store
    std::map<uint32_t, size_t> open;           // group that takes such records
    at.resize(m.tables.size());
    m.groups.clear();
    for (size_t t = 0; t < m.tables.size(); ++t) {
      uint32_t bytes = m.tables[t].recordBytes();
      auto known = open.find(bytes);
      if (known == open.end() ||
          m.groups[known->second].rows > most - m.tables[t].rows) {
        open[bytes] = m.groups.size();
        m.groups.emplace_back();
      }
      at[t] = open[bytes];
      ManifestGroup &g = m.groups[at[t]];
      g.tables.push_back(static_cast<int>(t));
      g.rowBase.push_back(g.rows);
      g.rows += m.tables[t].rows;
      g.payloadBytes = bytes;
      g.storeBytes = static_cast<int64_t>(recordBytes(bytes));
    }
    uint64_t base = 0;
    for (ManifestGroup &g : m.groups) {
      // Every row is written once; places are counted in 32 bits.
      g.geometry = storeGeometry(static_cast<uint64_t>(g.rows),
                                 static_cast<uint64_t>(g.storeBytes),
                                 g.rows > most ? 1.0 : 1.25);
      g.extents.push_back({memoryStoreFile, base});
      base += g.geometry.extentBytes(1);
    }
    pending.resize(m.groups.size());
  }

  Status take(const RowsChunk &chunk) {
    if (chunk.table >= m.tables.size() ||
        chunk.recordBytes != m.tables[chunk.table].recordBytes())
      return corrupt("a chunk is of no table");
    const ManifestTable &t = m.tables[chunk.table];
    size_t group = at[chunk.table];
    const ManifestGroup &g = m.groups[group];
    size_t k = static_cast<size_t>(std::find(g.tables.begin(), g.tables.end(),
                                             static_cast<int>(chunk.table)) -
                                   g.tables.begin());
    Pending &p = pending[group];
    for (uint32_t i = 0; i < chunk.count; ++i) {
      if (chunk.rows[i] >= static_cast<uint64_t>(t.rows))
        return corrupt("table '" + t.name + "' has " + std::to_string(t.rows) +
                       " rows, not one with number " +
                       std::to_string(chunk.rows[i]));
      p.rows.push_back(static_cast<uint32_t>(
          static_cast<uint64_t>(g.rowBase[k]) + chunk.rows[i]));
    }
    p.payloads.insert(p.payloads.end(), chunk.records,
                      chunk.records +
                          static_cast<size_t>(chunk.count) * chunk.recordBytes);
    loaded += chunk.count;
    // Few large appends: each may leave the rest of a sector empty.
    constexpr size_t enough = 1 << 20;
    return p.payloads.size() >= enough ? flush(group) : Status();
  }

  Status flush(size_t group) {
    Pending &p = pending[group];
    if (p.rows.empty())
      return Status();
    RowStore &store = *homes.stores[group];
    sorted = p.rows;
    std::sort(sorted.begin(), sorted.end());
    auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice == sorted.end())
      twice = std::find_if(sorted.begin(), sorted.end(),
                           [&](uint32_t row) { return store.written(row); });
    if (twice != sorted.end())
      return corrupt("a row is there twice, number " + std::to_string(*twice) +
                     " of the tables with records of " +
                     std::to_string(store.payloadBytes()) + " bytes");
    TRC_RETURN_IF_ERROR(store.load(p.rows.data(),
                                   static_cast<uint32_t>(p.rows.size()),
                                   p.payloads.data()));
    p.rows.clear();
    p.payloads.clear();
    return Status();
  }

  Status commit() {
    for (size_t g = 0; g < homes.stores.size(); ++g) {
      TRC_RETURN_IF_ERROR(flush(g));
      TRC_RETURN_IF_ERROR(homes.stores[g]->beginCut(m.sequence));
      RowStore::Image image;
      TRC_RETURN_IF_ERROR(homes.stores[g]->finishCut(image));
      m.groups[g].index = std::move(image.files);
    }
    if (!m.blobFile.empty()) {
      StateSource source;
      source.manifest = m;
      source.folder = folder;
      std::string name = "closed-" + std::to_string(m.sequence) + ".blob";
      std::string path = dir.path() + "/" + name;
      Result<Fd> blob = createFile(path);
      if (!blob.ok())
        return blob.takeStatus();
      TRC_RETURN_IF_ERROR(
          checkBlob(source, [&](const char *data, uint64_t bytes) {
            return writeAll(blob->get(), data, bytes, path);
          }));
      TRC_RETURN_IF_ERROR(syncFile(blob->get(), path));
      m.blobFile = name;
    }
    bool inDoubt = false;
    TRC_RETURN_IF_ERROR(dir.writeClosed(m, inDoubt));
    for (const auto &store : homes.stores)
      store->keepCut();
    return Status();
  }

  const std::string &folder;
  StateDir &dir;
  const Progress &progress;
  Manifest m;
  std::vector<size_t> at; // group by table
  HomeStores homes;
  struct Pending {
    std::vector<uint32_t> rows;
    std::vector<char> payloads;
  };
  std::vector<Pending> pending; // by group
  std::vector<uint32_t> sorted;
  uint64_t loaded = 0;
};

} // namespace

/// Removes what an import makes; what it is comes last.
static Status clear(StateDir &dir) {
  TRC_RETURN_IF_ERROR(dir.wipe({memoryStoreFile}));
  TRC_RETURN_IF_ERROR(removeFile(dir.path() + "/manifest.json"));
  return syncFolder(dir.path());
}

Result<Portable> inspect::importRows(const std::string &folder,
                                     const std::string &path,
                                     const Progress &progress) {
  Result<Head> head = readHead(folder);
  if (!head.ok())
    return head.takeStatus();
  bool made = !pathExists(path);
  Result<std::unique_ptr<StateDir>> opened = StateDir::open(path, true, true);
  if (!opened.ok())
    return opened.takeStatus();
  StateDir &dir = **opened;
  // An import that was killed: its files are of no use, and in the way.
  if (dir.importing())
    TRC_RETURN_IF_ERROR(clear(dir));
  for (const char *name :
       {"manifest.json", "closed.json", "checkpoints", memoryStoreFile})
    if (pathExists(dir.path() + "/" + name))
      return Status(TRC_BAD_ARGUMENT, "'" + path + "' holds a state (" + name +
                                          "); import makes a new one: name "
                                          "another folder");
  Status s =
      guarded([&] { return Importer(folder, dir, progress).run(*head); });
  if (!s.ok()) {
    (void)clear(dir);
    if (made)
      ::rmdir(dir.path().c_str());
    return s;
  }
  const Manifest &m = head->manifest;
  return Portable{m.step, m.samples, head->rows, head->bytes + m.blobBytes};
}
