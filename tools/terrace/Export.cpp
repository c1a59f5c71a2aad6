//===- Export.cpp - `terrace export` and `terrace rows` -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thin: runtime/inspect reads and writes; here are names, numbers and texts.
//
//===----------------------------------------------------------------------===//
#include "Spec/Words.h"
#include "StateVerb.h"

#include "runtime/core/Hash.h"
#include "runtime/core/Output.h"
#include "runtime/inspect/Export.h"
#include "runtime/inspect/Portable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace terrace::tool {

using driver::Outcome;
using namespace trc::inspect;

static int exportPortable(const ExportVerb &verb, const OpenRoot &at,
                          bool json) {
  if (!verb.since.empty() || !verb.tables.empty() || verb.weightsOnly)
    return fail(Outcome::Usage,
                "--format rows is a whole checkpoint, for terrace checkpoint "
                "import; --since, --table and --weights-only go with npy and "
                "safetensors",
                json);
  trc::Result<Portable> made = [&] {
    ProgressLine line("exporting", json);
    return exportRows(at.source, verb.output, line.take());
  }();
  if (!made.ok())
    return fail(made.takeStatus(), json);
  if (json) {
    llvm::json::Object out = okObject();
    out["output"] = verb.output;
    out["checkpoint"] = nameOf(at.source);
    out["step"] = made->step;
    out["rows"] = int64_t(made->rows);
    out["bytes"] = int64_t(made->bytes);
    print(std::move(out));
    return 0;
  }
  llvm::outs() << "wrote " << nameOf(at.source) << " (step " << made->step
               << ") to " << verb.output << ": "
               << counted(made->rows, "written row") << ", "
               << shownBytes(made->bytes) << "\n";
  return 0;
}

int runExport(const ExportVerb &verb, bool json) {
  const llvm::StringRef formats[] = {"safetensors", "npy", "rows"};
  if (!llvm::is_contained(formats, verb.format))
    return fail(Outcome::Usage,
                "no format '" + verb.format + "'" +
                    spec::didYouMean(verb.format, formats) +
                    " (formats: " + spec::listOf(formats) + ")",
                json);
  auto at = openRoot(verb.state, verb.at);
  if (!at.ok())
    return fail(at.takeStatus(), json);
  if (trc::Status free = trc::refuseStateFile(verb.output, verb.state);
      !free.ok())
    return fail(Outcome::Usage, free.message(), json);
  if (verb.format == "rows")
    return exportPortable(verb, *at, json);
  std::optional<trc::StateSource> since;
  if (!verb.since.empty()) {
    auto found = findRoot(*at->dir, verb.since, warn);
    if (!found.ok())
      return fail(found.takeStatus(), json);
    since = std::move(*found);
  }
  ExportOptions options;
  options.safetensors = verb.format == "safetensors";
  options.output = verb.output;
  options.tables = verb.tables;
  options.weightsOnly = verb.weightsOnly;
  trc::Result<Exported> done = [&] {
    ProgressLine line("exporting", json);
    return exportTensors(at->source, since ? &*since : nullptr, options,
                         line.take());
  }();
  if (!done.ok())
    return fail(done.takeStatus(), json);
  if (json) {
    llvm::json::Array tables;
    for (const Exported::Table &t : done->tables)
      tables.push_back(llvm::json::Object{{"table", t.name}, {"rows", t.rows}});
    llvm::json::Object out = okObject();
    out["output"] = verb.output;
    out["checkpoint"] = nameOf(at->source);
    out["step"] = at->source.manifest.step;
    if (since)
      out["since"] = nameOf(*since);
    out["tables"] = std::move(tables);
    out["bytes"] = int64_t(done->bytes);
    print(std::move(out));
    return 0;
  }
  llvm::outs() << "wrote " << nameOf(at->source) << " (step "
               << at->source.manifest.step << ") to " << verb.output << ", "
               << shownBytes(done->bytes) << "\n";
  for (const Exported::Table &t : done->tables)
    llvm::outs() << "  " << t.name << ": " << counted(uint64_t(t.rows), "row")
                 << (since ? " changed since " + nameOf(*since) : "") << "\n";
  return 0;
}

/// Digits enough to read the same float back, and no more than needed.
static std::string shownFloat(float x) {
  char text[32];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, double(x));
    if (std::strtof(text, nullptr) == x || std::isnan(x))
      break;
  }
  return text;
}

static llvm::json::Array floats(const char *record, size_t begin,
                                size_t count) {
  llvm::json::Array list;
  for (size_t i = 0; i < count; ++i) {
    float x;
    std::memcpy(&x, record + (begin + i) * 4, 4);
    // As text where JSON has no word for it.
    if (std::isfinite(x))
      list.push_back(double(x));
    else
      list.push_back(shownFloat(x));
  }
  return list;
}

static std::string floatLine(const char *record, size_t begin, size_t count) {
  std::string line;
  for (size_t i = 0; i < count; ++i) {
    float x;
    std::memcpy(&x, record + (begin + i) * 4, 4);
    line += (i ? " " : "") + shownFloat(x);
  }
  return line;
}

/// The row of an argument: a row number; in `hash` tables the id, or with
/// --strings the text, that hashes to it.
static trc::Result<int64_t> rowOf(const trc::ManifestTable &table,
                                  const std::string &id, bool strings) {
  bool hash = table.ids == "hash";
  if (strings && !hash)
    return trc::Status(TRC_BAD_ARGUMENT, "--strings: table '" + table.name +
                                             "' has ids: " + table.ids +
                                             "; give row numbers");
  if (strings)
    return trc::hashRow(trc::hashString(id), table.rows);
  int64_t value = 0;
  if (!llvm::to_integer(id, value, 10))
    return trc::Status(TRC_BAD_ARGUMENT,
                       "'" + id + "' is no id" +
                           (hash ? "; --strings takes texts" : ""));
  if (hash)
    return trc::hashRow(value, table.rows);
  if (value < 0 || value >= table.rows)
    return trc::Status(TRC_NOT_FOUND,
                       "table '" + table.name + "' has rows 0 .. " +
                           std::to_string(table.rows - 1) + ", not " + id);
  return value;
}

int runRows(const RowsVerb &verb, bool json) {
  auto at = openRoot(verb.state, verb.at);
  if (!at.ok())
    return fail(at.takeStatus(), json);
  const trc::Manifest &manifest = at->source.manifest;
  auto found = findTable(manifest, verb.table);
  if (!found.ok())
    return fail(found.takeStatus(), json);
  const trc::ManifestTable &table = manifest.tables[*found];
  std::vector<int64_t> wanted;
  for (const std::string &id : verb.ids) {
    auto row = rowOf(table, id, verb.strings);
    if (!row.ok())
      return fail(row.takeStatus(), json);
    wanted.push_back(*row);
  }
  RowBlock block;
  block.rows = wanted;
  llvm::sort(block.rows);
  block.rows.erase(std::unique(block.rows.begin(), block.rows.end()),
                   block.rows.end());
  std::vector<bool> written;
  trc::Status read = guarded([&]() -> trc::Status {
    auto reader = trc::StateReader::open(at->source, true);
    if (!reader.ok())
      return reader.takeStatus();
    for (int64_t row : block.rows)
      written.push_back((*reader)->written(*found, row));
    return readBlock(**reader, *found, block);
  });
  if (!read.ok())
    return fail(read, json);
  std::vector<std::string> names = stateNames(table);
  llvm::json::Array list;
  size_t dim = size_t(table.dim);
  for (size_t i = 0; i < wanted.size(); ++i) {
    size_t k = llvm::lower_bound(block.rows, wanted[i]) - block.rows.begin();
    const char *record = block.record(k);
    if (json) {
      llvm::json::Object item{{"row", wanted[i]},
                              {"written", bool(written[k])},
                              {"weights", floats(record, 0, dim)}};
      if (table.ids == "hash")
        item["id"] = verb.ids[i];
      size_t begin = dim;
      for (size_t s = 0; s < names.size() && verb.withState; ++s) {
        item[names[s]] = floats(record, begin, size_t(table.stateWidths[s]));
        begin += size_t(table.stateWidths[s]);
      }
      list.push_back(std::move(item));
      continue;
    }
    llvm::outs() << "row " << wanted[i];
    if (table.ids == "hash")
      llvm::outs() << " (id " << verb.ids[i] << ")";
    llvm::outs() << (written[k] ? "" : " (never written)") << ": "
                 << floatLine(record, 0, dim) << "\n";
    size_t begin = dim;
    for (size_t s = 0; s < names.size() && verb.withState; ++s) {
      llvm::outs() << "  " << names[s] << ": "
                   << floatLine(record, begin, size_t(table.stateWidths[s]))
                   << "\n";
      begin += size_t(table.stateWidths[s]);
    }
  }
  if (json) {
    llvm::json::Object out = okObject();
    out["checkpoint"] = nameOf(at->source);
    out["step"] = manifest.step;
    out["table"] = table.name;
    out["rows"] = std::move(list);
    print(std::move(out));
  }
  return 0;
}

} // namespace terrace::tool
