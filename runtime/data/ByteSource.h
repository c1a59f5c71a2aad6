//===- ByteSource.h - The bytes of a plain or gzip file --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams a file front to back in bounded memory; gzip is recognised by its
// first two bytes, not by the file's name, and may have several members. A
// gzip file that ends early or fails its checksum is an error, never a short
// file. Not thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_BYTESOURCE_H
#define TERRACE_RUNTIME_DATA_BYTESOURCE_H

#include "runtime/core/Status.h"

#include <memory>
#include <string>

namespace trc::data {

class ByteSource {
public:
  static Result<std::unique_ptr<ByteSource>> open(const std::string &path);
  ~ByteSource();
  ByteSource(const ByteSource &) = delete;
  ByteSource &operator=(const ByteSource &) = delete;

  /// Reads up to `size` bytes; 0 at the end of the file.
  Result<int64_t> read(char *out, int64_t size);
  const std::string &path() const { return path_; }

private:
  struct Impl;
  explicit ByteSource(std::string path);
  Result<int64_t> readRaw(char *out, int64_t size);
  Result<int64_t> readGzip(char *out, int64_t size);

  std::string path_;
  std::unique_ptr<Impl> impl;
};

/// Splits a ByteSource into lines. A quoted field (CSV only) may hold line
/// breaks; the record then spans several physical lines.
class LineReader {
public:
  LineReader(std::unique_ptr<ByteSource> source, bool quotes);

  /// The next line without its end ("\n" or "\r\n"); false at the end of the
  /// file. The text is valid until the next call.
  Result<bool> next(std::string &line);
  /// Number of the line that next() returned (its first physical line), from 1.
  int64_t lineNumber() const { return current; }
  const std::string &path() const { return source->path(); }

private:
  Result<bool> physical(std::string &line);

  std::unique_ptr<ByteSource> source;
  bool quotes;
  std::string buffer; // bytes begin..end are unread
  size_t begin = 0, end = 0;
  bool ended = false;
  int64_t current = 0, physicalLines = 0;
};

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_BYTESOURCE_H
