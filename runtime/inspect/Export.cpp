//===- Export.cpp - Tables as arrays --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Headers hold shapes, so what --since selects is found out first and kept as a
// bit a row; then the selected rows are read in rising order and every array
// is written from front to back.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Export.h"

#include "runtime/inspect/Diff.h"
#include "runtime/inspect/Roots.h"
#include "runtime/inspect/Tensors.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace trc;
using namespace trc::inspect;

namespace {

/// The rows of a table that are exported.
class Selection {
public:
  explicit Selection(int64_t rows) : rows(rows), wanted(rows) {}

  void keepNone() {
    bits.assign((static_cast<size_t>(rows) + 63) / 64, 0);
    wanted = 0;
    some = true;
  }
  void add(int64_t row) {
    uint64_t bit = uint64_t(1) << (row & 63);
    uint64_t &word = bits[static_cast<size_t>(row) / 64];
    wanted += !(word & bit);
    word |= bit;
  }
  int64_t count() const { return wanted; }
  int64_t next(int64_t row) const {
    if (!some)
      return row;
    while (row < rows) {
      uint64_t word = bits[static_cast<size_t>(row) / 64] >> (row & 63);
      if (word)
        return row + __builtin_ctzll(word);
      row = (row / 64 + 1) * 64;
    }
    return rows;
  }

private:
  int64_t rows, wanted;
  bool some = false; // bits say which; else all
  std::vector<uint64_t> bits;
};

/// A run of floats in every record, and the array it goes to.
struct Slice {
  size_t tensor, begin, bytes;
};

struct Part {
  int table;
  Selection selection;
  size_t ids = 0; // its tensor, with `since`
  std::vector<Slice> slices;
};

class Exporter {
public:
  Exporter(const StateSource &at, const StateSource *since,
           const ExportOptions &options, const Progress &progress)
      : at(at), since(since), options(options), progress(progress) {}

  Status run(Exported &out) {
    TRC_RETURN_IF_ERROR(choose());
    Result<std::unique_ptr<StateReader>> opened = StateReader::open(at, true);
    if (!opened.ok())
      return opened.takeStatus();
    reader = std::move(*opened);
    if (since)
      TRC_RETURN_IF_ERROR(select());
    std::vector<TensorInfo> tensors;
    for (Part &part : parts)
      plan(part, tensors);
    Result<std::unique_ptr<TensorWriter>> created =
        options.safetensors
            ? openSafetensors(options.output, std::move(tensors), metadata())
            : openNpy(options.output, std::move(tensors), metadata());
    if (!created.ok())
      return created.takeStatus();
    writer = std::move(*created);
    for (const Part &part : parts)
      total += static_cast<uint64_t>(part.selection.count());
    for (const Part &part : parts) {
      TRC_RETURN_IF_ERROR(write(part));
      out.tables.push_back(
          {at.manifest.tables[part.table].name, part.selection.count()});
    }
    TRC_RETURN_IF_ERROR(writer->finish());
    out.bytes = writer->totalBytes();
    return Status();
  }

private:
  Status choose() {
    const Manifest &m = at.manifest;
    std::vector<std::string> names = options.tables;
    if (names.empty())
      for (const ManifestTable &t : m.tables)
        names.push_back(t.name);
    for (const std::string &name : names) {
      Result<int> table = findTable(m, name);
      if (!table.ok())
        return table.takeStatus();
      int t = *table;
      if (std::none_of(parts.begin(), parts.end(),
                       [&](const Part &p) { return p.table == t; }))
        parts.push_back({t, Selection(m.tables[t].rows), 0, {}});
    }
    return Status();
  }

  /// Marks the rows that are not as they were.
  Status select() {
    Result<std::unique_ptr<StateReader>> opened =
        StateReader::open(*since, true);
    if (!opened.ok())
      return opened.takeStatus();
    StateReader &before = **opened;
    uint64_t most = reader->writtenCount(), done = 0;
    for (Part &part : parts) {
      const ManifestTable &t = reader->manifest().tables[part.table];
      int from = since->manifest.findTable(t.name);
      if (from < 0)
        continue; // a new table: all of it
      const ManifestTable &old = before.manifest().tables[from];
      if (old.dim != t.dim || old.stateWidths != t.stateWidths ||
          old.init.kind != t.init.kind || old.init.first != t.init.first ||
          old.init.second != t.init.second || old.init.key != t.init.key)
        return Status(TRC_MISMATCH,
                      "table '" + t.name + "' of " + since->name +
                          " has another dim, optimizer state or initial value; "
                          "export without --since");
      part.selection.keepNone();
      size_t bytes = options.weightsOnly ? static_cast<size_t>(t.dim) * 4
                                         : t.recordBytes();
      TRC_RETURN_IF_ERROR(
          forPairs(before, from, *reader, part.table, [&](const RowPair &p) {
            if (progress && ++done % 65536 == 0)
              progress(std::min(done, most), most);
            if (std::memcmp(p.before, p.after, bytes) != 0)
              part.selection.add(p.row);
            return Status();
          }));
      for (int64_t row = old.rows; row < t.rows; ++row) // it has grown
        part.selection.add(row);
    }
    return Status();
  }

  void plan(Part &part, std::vector<TensorInfo> &tensors) {
    const ManifestTable &t = at.manifest.tables[part.table];
    int64_t count = part.selection.count();
    if (since) {
      part.ids = tensors.size();
      tensors.push_back({t.name + ".ids", true, {count}});
    }
    size_t width = static_cast<size_t>(t.dim);
    part.slices.push_back({tensors.size(), 0, width * 4});
    tensors.push_back({t.name, false, {count, t.dim}});
    size_t begin = width * 4;
    std::vector<std::string> names = stateNames(t);
    for (size_t s = 0; s < names.size() && !options.weightsOnly; ++s) {
      int64_t w = t.stateWidths[s];
      part.slices.push_back(
          {tensors.size(), begin, static_cast<size_t>(w) * 4});
      begin += static_cast<size_t>(w) * 4;
      bool scalar = t.optimizer == "rowwise_adagrad"; // one number a row
      tensors.push_back({t.name + "." + names[s], false,
                         scalar ? std::vector<int64_t>{count}
                                : std::vector<int64_t>{count, w}});
    }
  }

  Metadata metadata() const {
    const Manifest &m = at.manifest;
    auto number = [](double x) {
      char text[32];
      std::snprintf(text, sizeof(text), "%.17g", x);
      return std::string(text);
    };
    Metadata data = {{"format", "terrace"},
                     {"model", m.model},
                     {"checkpoint", nameOf(at)},
                     {"step", std::to_string(m.step)},
                     {"samples", std::to_string(m.samples)},
                     {"lr_scale", number(m.lrScale)}};
    if (since) {
      data.emplace_back("since", nameOf(*since));
      data.emplace_back("since_step", std::to_string(since->manifest.step));
    }
    if (!m.head.empty()) {
      data.emplace_back("head", m.head);
      data.emplace_back("head_bias", number(m.headState.bias));
      data.emplace_back("head_bias_sum", number(m.headState.biasSquares));
    }
    for (const Part &part : parts)
      data.emplace_back("optimizer." + m.tables[part.table].name,
                        m.tables[part.table].optimizer);
    return data;
  }

  Status write(const Part &part) {
    std::vector<char> values;
    uint64_t first = 0; // of the block, among the selected rows
    Status s = forBlocks(
        *reader, part.table,
        [&](int64_t row) { return part.selection.next(row); },
        [&](const RowBlock &block) {
          size_t n = block.rows.size();
          if (since)
            TRC_RETURN_IF_ERROR(
                writer->write(part.ids, first * 8, block.rows.data(), n * 8));
          for (const Slice &slice : part.slices) {
            values.resize(n * slice.bytes);
            for (size_t i = 0; i < n; ++i)
              std::memcpy(values.data() + i * slice.bytes,
                          block.record(i) + slice.begin, slice.bytes);
            TRC_RETURN_IF_ERROR(writer->write(slice.tensor, first * slice.bytes,
                                              values.data(), values.size()));
          }
          first += n;
          done += n;
          if (progress)
            progress(done, total);
          return Status();
        });
    TRC_RETURN_IF_ERROR(std::move(s));
    if (since)
      TRC_RETURN_IF_ERROR(writer->done(part.ids));
    for (const Slice &slice : part.slices)
      TRC_RETURN_IF_ERROR(writer->done(slice.tensor));
    return Status();
  }

  const StateSource &at;
  const StateSource *since;
  const ExportOptions &options;
  const Progress &progress;
  std::vector<Part> parts;
  std::unique_ptr<StateReader> reader;
  std::unique_ptr<TensorWriter> writer;
  uint64_t done = 0, total = 0;
};

} // namespace

Result<Exported> inspect::exportTensors(const StateSource &at,
                                        const StateSource *since,
                                        const ExportOptions &options,
                                        const Progress &progress) {
  Exported out;
  TRC_RETURN_IF_ERROR(
      guarded([&] { return Exporter(at, since, options, progress).run(out); }));
  return Result<Exported>(std::move(out));
}
