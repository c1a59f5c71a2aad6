//===- ByteSource.cpp - Plain and gzip files as lines
//----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/ByteSource.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace trc::data {

static constexpr size_t inputBytes = 128 * 1024;
static constexpr size_t lineBufferBytes = 128 * 1024;
/// A longer line is taken for a file that is no text table at all.
static constexpr size_t maxLineBytes = 16 * 1024 * 1024;

struct ByteSource::Impl {
  int fd = -1;
  bool gzip = false;
  bool streamOpen = false; // inside a gzip member
  z_stream z = {};
  std::string input; // compressed bytes, or the two probed bytes
  size_t inputBegin = 0, inputEnd = 0;
};

ByteSource::ByteSource(std::string path)
    : path_(std::move(path)), impl(std::make_unique<Impl>()) {}

ByteSource::~ByteSource() {
  if (impl->gzip)
    inflateEnd(&impl->z);
  if (impl->fd >= 0)
    ::close(impl->fd);
}

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string &path) {
  std::unique_ptr<ByteSource> s(new ByteSource(path));
  s->impl->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (s->impl->fd < 0)
    return Status::ioError("cannot open the data file", path, errno);
  struct stat st;
  if (::fstat(s->impl->fd, &st) == 0 && S_ISDIR(st.st_mode))
    return Status::ioError("cannot read the data file", path, EISDIR);
  s->impl->input.resize(inputBytes);
  while (s->impl->inputEnd < 2) {
    Result<int64_t> n = s->readRaw(&s->impl->input[s->impl->inputEnd],
                                   static_cast<int64_t>(2 - s->impl->inputEnd));
    if (!n.ok())
      return n.takeStatus();
    if (*n == 0)
      break;
    s->impl->inputEnd += static_cast<size_t>(*n);
  }
  const std::string &head = s->impl->input;
  if (s->impl->inputEnd == 2 && head[0] == '\x1f' && head[1] == '\x8b') {
    if (inflateInit2(&s->impl->z, 15 + 16) != Z_OK)
      return Status(TRC_NO_MEMORY, "no memory to unpack " + path);
    s->impl->gzip = true;
    s->impl->streamOpen = true;
  }
  return s;
}

Result<int64_t> ByteSource::readRaw(char *out, int64_t size) {
  for (;;) {
    ssize_t n = ::read(impl->fd, out, static_cast<size_t>(size));
    if (n >= 0)
      return static_cast<int64_t>(n);
    if (errno != EINTR)
      return Status::ioError("cannot read the data file", path_, errno);
  }
}

Result<int64_t> ByteSource::read(char *out, int64_t size) {
  if (impl->gzip)
    return readGzip(out, size);
  if (impl->inputBegin < impl->inputEnd) { // the probed bytes
    size_t n = std::min<size_t>(static_cast<size_t>(size),
                                impl->inputEnd - impl->inputBegin);
    std::memcpy(out, &impl->input[impl->inputBegin], n);
    impl->inputBegin += n;
    return static_cast<int64_t>(n);
  }
  return readRaw(out, size);
}

Result<int64_t> ByteSource::readGzip(char *out, int64_t size) {
  Impl &s = *impl;
  s.z.next_out = reinterpret_cast<Bytef *>(out);
  s.z.avail_out = static_cast<uInt>(size);
  while (s.z.avail_out == static_cast<uInt>(size)) {
    if (s.inputBegin == s.inputEnd) {
      Result<int64_t> n =
          readRaw(s.input.data(), static_cast<int64_t>(s.input.size()));
      if (!n.ok())
        return n.takeStatus();
      if (*n == 0) {
        if (!s.streamOpen)
          return int64_t(0);
        return Status(TRC_CORRUPT, "the gzip file '" + path_ +
                                       "' is truncated: its data end early; "
                                       "copy or write it again");
      }
      s.inputBegin = 0;
      s.inputEnd = static_cast<size_t>(*n);
    }
    if (!s.streamOpen) { // another member
      if (inflateReset(&s.z) != Z_OK)
        return Status(TRC_INTERNAL, "zlib cannot be reset");
      s.streamOpen = true;
    }
    s.z.next_in = reinterpret_cast<Bytef *>(&s.input[s.inputBegin]);
    s.z.avail_in = static_cast<uInt>(s.inputEnd - s.inputBegin);
    int rc = inflate(&s.z, Z_NO_FLUSH);
    s.inputBegin = s.inputEnd - s.z.avail_in;
    if (rc == Z_STREAM_END)
      s.streamOpen = false;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
      return Status(TRC_CORRUPT, "the gzip file '" + path_ + "' is damaged: " +
                                     (s.z.msg ? s.z.msg : "bad data"));
  }
  return size - static_cast<int64_t>(s.z.avail_out);
}

LineReader::LineReader(std::unique_ptr<ByteSource> source, bool quotes)
    : source(std::move(source)), quotes(quotes), buffer(lineBufferBytes, 0) {}

Result<bool> LineReader::physical(std::string &line) {
  line.clear();
  for (;;) {
    const char *from = buffer.data() + begin;
    const char *nl =
        static_cast<const char *>(std::memchr(from, '\n', end - begin));
    if (nl) {
      line.append(from, nl);
      begin = static_cast<size_t>(nl - buffer.data()) + 1;
      ++physicalLines;
      if (!line.empty() && line.back() == '\r')
        line.pop_back();
      return true;
    }
    line.append(from, end - begin);
    begin = end = 0;
    if (line.size() > maxLineBytes)
      return Status(TRC_BAD_INPUT, source->path() + ":" +
                                       std::to_string(physicalLines + 1) +
                                       ": a line of more than 16 MiB; is this "
                                       "a text table?");
    if (ended) {
      if (line.empty())
        return false;
      ++physicalLines;
      if (line.back() == '\r')
        line.pop_back();
      return true;
    }
    Result<int64_t> n =
        source->read(buffer.data(), static_cast<int64_t>(buffer.size()));
    if (!n.ok())
      return n.takeStatus();
    end = static_cast<size_t>(*n);
    ended = *n == 0;
  }
}

Result<bool> LineReader::next(std::string &line) {
  Result<bool> got = physical(line);
  if (!got.ok() || !*got)
    return got;
  current = physicalLines;
  if (!quotes)
    return true;
  auto open = [&] { return std::count(line.begin(), line.end(), '"') % 2; };
  std::string more;
  while (open()) { // a line break inside quotes
    Result<bool> rest = physical(more);
    if (!rest.ok())
      return rest;
    if (!*rest)
      return Status(TRC_BAD_INPUT, source->path() + ":" +
                                       std::to_string(current) +
                                       ": a quoted field is never closed");
    if (line.size() + more.size() > maxLineBytes)
      return Status(TRC_BAD_INPUT, source->path() + ":" +
                                       std::to_string(current) +
                                       ": a quoted field of more than 16 MiB; "
                                       "is a quote missing?");
    line += '\n';
    line += more;
  }
  return true;
}

} // namespace trc::data
