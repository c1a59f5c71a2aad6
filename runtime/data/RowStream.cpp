//===- RowStream.cpp - The rows of several files, in order
//-----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/RowStream.h"

#include <glob.h>
#include <limits>

namespace trc::data {

Result<std::vector<std::string>>
expandPaths(const std::vector<std::string> &patterns) {
  std::vector<std::string> out;
  for (const std::string &pattern : patterns) {
    if (pattern.find_first_of("*?[") == std::string::npos) {
      out.push_back(pattern);
      continue;
    }
    glob_t found = {};
    int rc = ::glob(pattern.c_str(), 0, nullptr, &found);
    if (rc == 0)
      out.insert(out.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (rc == GLOB_NOMATCH)
      return Status(TRC_NOT_FOUND, "no data file matches '" + pattern + "'");
    if (rc != 0)
      return Status(TRC_IO, "cannot list the data files '" + pattern + "'");
  }
  if (out.empty())
    return Status(TRC_BAD_ARGUMENT,
                  "no data file is given: set data.path, or pass --data FILE");
  return out;
}

char separatorOf(const std::string &path) {
  auto endsWith = [&](const std::string &suffix) {
    return path.size() >= suffix.size() &&
           path.compare(path.size() - suffix.size(), suffix.size(), suffix) ==
               0;
  };
  return endsWith(".csv") || endsWith(".csv.gz") ? ',' : '\t';
}

static Result<std::vector<std::string>> readHeader(LineReader &lines,
                                                   const std::string &path) {
  std::string line;
  Result<bool> got = lines.next(line);
  if (!got.ok())
    return got.takeStatus();
  if (!*got)
    return Status(TRC_BAD_INPUT,
                  path + ": the file is empty; a header line was expected");
  if (line.find('\0') != std::string::npos)
    return Status(TRC_BAD_INPUT,
                  path + ": not a text table: the header holds zero bytes");
  if (line.compare(0, 3, "\xef\xbb\xbf") == 0)
    line.erase(0, 3);
  std::vector<std::string_view> fields;
  std::string unquoted;
  Status split = RowParser::split(line, separatorOf(path), fields, unquoted);
  if (!split.ok())
    return Status(TRC_BAD_INPUT, path + ":1: " + split.message());
  return std::vector<std::string>(fields.begin(), fields.end());
}

Result<std::vector<std::string>>
columnsOf(const std::string &path, const std::vector<std::string> &given) {
  if (!given.empty())
    return given;
  Result<std::unique_ptr<ByteSource>> source = ByteSource::open(path);
  if (!source.ok())
    return source.takeStatus();
  LineReader lines(std::move(*source), separatorOf(path) == ',');
  return readHeader(lines, path);
}

Status RowStream::openFile() {
  const std::string &path = files.paths[file];
  Result<std::unique_ptr<ByteSource>> source = ByteSource::open(path);
  if (!source.ok())
    return source.takeStatus();
  char separator = separatorOf(path);
  lines = std::make_unique<LineReader>(std::move(*source), separator == ',');
  std::vector<std::string> columns = files.columns;
  if (columns.empty()) {
    Result<std::vector<std::string>> header = readHeader(*lines, path);
    if (!header.ok())
      return header.takeStatus();
    columns = std::move(*header);
  }
  Result<RowParser> made = RowParser::create(format, columns, separator, path);
  if (!made.ok())
    return made.takeStatus();
  parser = std::make_unique<RowParser>(std::move(*made));
  return Status();
}

Result<bool> RowStream::nextLine() {
  for (;;) {
    if (!lines) {
      if (file == files.paths.size())
        return false;
      TRC_RETURN_IF_ERROR(openFile());
    }
    Result<bool> got = lines->next(line);
    if (!got.ok() || *got)
      return got;
    lines.reset();
    ++file;
  }
}

Result<bool> RowStream::next(Row &row) {
  for (;;) {
    Result<bool> got = nextLine();
    if (!got.ok() || !*got)
      return got;
    Status parsed = parser->parse(line, row);
    if (parsed.ok()) {
      row.file = static_cast<int32_t>(file);
      row.line = lines->lineNumber();
      return true;
    }
    std::string text = files.paths[file] + ":" +
                       std::to_string(lines->lineNumber()) + ": " +
                       parsed.message();
    if (!files.skipBadRows)
      return Status(TRC_BAD_INPUT,
                    text + " (data.on_bad_row: skip passes over such rows)");
    if (bad++ == 0)
      firstBadText = text;
  }
}

Result<int64_t> RowStream::skip(int64_t count) {
  Row row;
  for (int64_t i = 0; i < count; ++i) {
    Result<bool> got = files.skipBadRows ? next(row) : nextLine();
    if (!got.ok())
      return got.takeStatus();
    if (!*got)
      return i;
  }
  return count;
}

Result<int64_t> countRows(const TableFiles &files, const RowFormat &format) {
  RowStream stream(files, format);
  return stream.skip(std::numeric_limits<int64_t>::max());
}

} // namespace trc::data
