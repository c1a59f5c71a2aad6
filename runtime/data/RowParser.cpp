//===- RowParser.cpp - Columns of a text table as features
//-----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/RowParser.h"

#include "runtime/core/Hash.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace trc::data {

static Status bad(std::string message) {
  return Status(TRC_BAD_INPUT, std::move(message));
}

static std::string quote(std::string_view value) {
  std::string text(value.substr(0, 40));
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20)
      c = '?';
  return "'" + text + (value.size() > 40 ? "...'" : "'");
}

static std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ')
    s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ')
    s.remove_suffix(1);
  return s;
}

Result<RowParser> RowParser::create(const RowFormat &format,
                                    const std::vector<std::string> &columns,
                                    char separator, const std::string &where) {
  RowParser p;
  p.format = format;
  p.separator = separator;
  p.columnCount = columns.size();
  auto index = [&](const std::string &name) -> int32_t {
    auto it = std::find(columns.begin(), columns.end(), name);
    return it == columns.end() ? -1
                               : static_cast<int32_t>(it - columns.begin());
  };
  auto missing = [&](const std::string &name, const std::string &use) {
    std::string have;
    for (const std::string &c : columns)
      have += (have.empty() ? "" : ", ") + c;
    // The usual slip: commas in a file that is not called .csv.
    bool commas = separator == '\t' && columns.size() == 1 &&
                  have.find(',') != std::string::npos;
    return bad(where + ": no column '" + name + "' (" + use +
               "); the columns are: " + have +
               (commas ? " (lines are split at tabs; call the file .csv or "
                         ".csv.gz to split them at commas)"
                       : ""));
  };
  auto repeated = [&](int32_t column) {
    return column >= 0 && std::count(columns.begin(), columns.end(),
                                     columns[static_cast<size_t>(column)]) > 1;
  };
  for (const FeatureColumn &f : format.features) {
    Source s{index(f.column), -1};
    if (s.column < 0)
      return missing(f.column, "ids of feature '" + f.name + "'");
    if (!f.weights.empty()) {
      s.weights = index(f.weights);
      if (s.weights < 0)
        return missing(f.weights, "weights of feature '" + f.name + "'");
    }
    p.sources.push_back(s);
  }
  if (!format.label.empty()) {
    p.labelIndex = index(format.label);
    if (p.labelIndex < 0 && !format.labelOptional)
      return missing(format.label, "the label");
  }
  if (!format.session.empty()) {
    p.sessionIndex = index(format.session);
    if (p.sessionIndex < 0)
      return missing(format.session, "data.session");
  }
  // Which of the two would be read is nobody's guess.
  std::vector<int32_t> read = {p.labelIndex, p.sessionIndex};
  for (const Source &source : p.sources)
    read.insert(read.end(), {source.column, source.weights});
  for (int32_t column : read)
    if (repeated(column))
      return bad(where + ": the column '" +
                 columns[static_cast<size_t>(column)] +
                 "' is there more than once");
  return p;
}

Status RowParser::split(std::string_view line, char separator,
                        std::vector<std::string_view> &fields,
                        std::string &unquoted) {
  fields.clear();
  bool quoted = separator == ',' && line.find('"') != std::string_view::npos;
  if (!quoted) {
    for (;;) {
      size_t at = line.find(separator);
      fields.push_back(line.substr(0, at));
      if (at == std::string_view::npos)
        return Status();
      line.remove_prefix(at + 1);
    }
  }
  // RFC 4180: "a,b" and "" for a quote. Views into `unquoted` are made last,
  // since it must not move; it never outgrows the line.
  unquoted.clear();
  unquoted.reserve(line.size());
  size_t i = 0;
  for (;;) {
    size_t start = unquoted.size();
    if (i < line.size() && line[i] == '"') {
      ++i;
      for (;;) {
        if (i >= line.size())
          return bad("a quoted field is never closed");
        if (line[i] == '"') {
          if (i + 1 < line.size() && line[i + 1] == '"') {
            unquoted += '"';
            i += 2;
            continue;
          }
          ++i;
          break;
        }
        unquoted += line[i++];
      }
      if (i < line.size() && line[i] != separator)
        return bad("text after the closing quote of field " +
                   std::to_string(fields.size() + 1));
    } else {
      while (i < line.size() && line[i] != separator)
        unquoted += line[i++];
    }
    fields.emplace_back(unquoted.data() + start, unquoted.size() - start);
    if (i >= line.size())
      return Status();
    ++i;
  }
}

static bool parseId(std::string_view text, bool anyId, int64_t &id) {
  text = trim(text);
  const char *end = text.data() + text.size();
  auto r = std::from_chars(text.data(), end, id);
  if (r.ec == std::errc() && r.ptr == end)
    return true;
  uint64_t wide;
  r = std::from_chars(text.data(), end, wide);
  if (!anyId || r.ec != std::errc() || r.ptr != end)
    return false;
  id = static_cast<int64_t>(wide);
  return true;
}

static bool parseFloat(std::string_view text, float &value) {
  text = trim(text);
  if (!text.empty() && text.front() == '+')
    text.remove_prefix(1);
  const char *end = text.data() + text.size();
  auto r = std::from_chars(text.data(), end, value);
  return r.ec == std::errc() && r.ptr == end;
}

/// Calls `item` for each part of a list; an empty field is an empty list.
template <typename F>
static bool forEachItem(std::string_view field, const std::string &sep,
                        F item) {
  if (field.empty())
    return true;
  for (;;) {
    size_t at = sep.empty() ? std::string_view::npos : field.find(sep);
    if (!item(field.substr(0, at)))
      return false;
    if (at == std::string_view::npos)
      return true;
    field.remove_prefix(at + sep.size());
  }
}

Status RowParser::parseFeature(const FeatureColumn &feature,
                               const Source &source, Row &row) {
  std::string_view field = fields[static_cast<size_t>(source.column)];
  std::string_view wrong;
  size_t before = row.ids.size();
  bool ok = forEachItem(field, format.listSep, [&](std::string_view item) {
    int64_t id;
    if (feature.strings)
      id = hashString(item);
    else if (!parseId(item, feature.anyId, id)) {
      wrong = item;
      return false;
    }
    row.ids.push_back(id);
    return true;
  });
  if (!ok)
    return bad("column '" + feature.column + "': " + quote(wrong) +
               " is no 64-bit integer");
  size_t count = row.ids.size() - before;
  row.counts.push_back(static_cast<int32_t>(count));
  if (source.weights < 0)
    return Status();
  size_t weightsBefore = row.weights.size();
  ok = forEachItem(fields[static_cast<size_t>(source.weights)], format.listSep,
                   [&](std::string_view item) {
                     float w;
                     if (!parseFloat(item, w)) {
                       wrong = item;
                       return false;
                     }
                     row.weights.push_back(w);
                     return true;
                   });
  if (!ok)
    return bad("column '" + feature.weights + "': " + quote(wrong) +
               " is no number");
  size_t weights = row.weights.size() - weightsBefore;
  if (weights != count)
    return bad("column '" + feature.weights + "' has " +
               std::to_string(weights) + " weights for the " +
               std::to_string(count) + " ids of column '" + feature.column +
               "'");
  return Status();
}

Status RowParser::parse(std::string_view line, Row &row) {
  row.ids.clear();
  row.weights.clear();
  row.counts.clear();
  TRC_RETURN_IF_ERROR(split(line, separator, fields, unquoted));
  if (fields.size() != columnCount)
    return bad("the row has " + std::to_string(fields.size()) +
               " fields, the header " + std::to_string(columnCount));
  for (size_t f = 0; f < sources.size(); ++f)
    TRC_RETURN_IF_ERROR(parseFeature(format.features[f], sources[f], row));
  row.label = std::numeric_limits<float>::quiet_NaN();
  if (labelIndex >= 0) {
    std::string_view text = fields[static_cast<size_t>(labelIndex)];
    if (!parseFloat(text, row.label) || (row.label != 0 && row.label != 1))
      return bad("column '" + format.label + "': the label " + quote(text) +
                 " is neither 0 nor 1");
  }
  if (sessionIndex >= 0)
    row.session = static_cast<uint64_t>(
        hashString(fields[static_cast<size_t>(sessionIndex)]));
  return Status();
}

} // namespace trc::data
