//===- MemoryFiles.cpp - Sparse files in memory ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

using namespace trc;

Result<uint32_t> MemoryFiles::open(const std::string &path, uint64_t bytes,
                                   bool create) {
  bytes = (bytes + 4095) / 4096 * 4096;
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < files.size(); ++i)
    if (files[i].info.path == path) {
      files[i].info.bytes = std::max(files[i].info.bytes, bytes);
      return static_cast<uint32_t>(i);
    }
  if (!create)
    return Status::ioError("cannot open", path, ENOENT);
  File file;
  file.info.path = path;
  file.info.blockBytes = 512;
  file.info.bytes = bytes;
  file.info.note = "memory";
  files.push_back(std::move(file));
  return static_cast<uint32_t>(files.size() - 1);
}

FileInfo MemoryFiles::info(uint32_t file) const {
  std::lock_guard<std::mutex> lock(mutex);
  return files[file].info;
}

int32_t MemoryFiles::transfer(IoRequest::Kind kind, uint32_t id, char *data,
                              uint32_t bytes, uint64_t offset) {
  std::lock_guard<std::mutex> lock(mutex);
  File &file = files[id];
  uint64_t end = offset + bytes;
  if (kind == IoRequest::Kind::Read)
    end = std::min(end, std::max(file.info.bytes, offset)); // end of file
  else
    file.info.bytes = std::max(file.info.bytes, end);
  for (uint64_t at = offset; at < end;) {
    uint64_t inside = at % chunkBytes;
    uint64_t n = std::min(chunkBytes - inside, end - at);
    auto found = file.chunks.find(at / chunkBytes);
    if (kind == IoRequest::Kind::Read) {
      if (found == file.chunks.end())
        std::memset(data, 0, n);
      else
        std::memcpy(data, found->second.get() + inside, n);
    } else {
      if (found == file.chunks.end()) {
        std::unique_ptr<char[]> chunk(new (std::nothrow) char[chunkBytes]());
        if (!chunk)
          return -ENOMEM;
        found = file.chunks.emplace(at / chunkBytes, std::move(chunk)).first;
      }
      std::memcpy(found->second.get() + inside, data, n);
    }
    data += n;
    at += n;
  }
  return static_cast<int32_t>(end - offset);
}
