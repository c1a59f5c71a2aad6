//===- Superblock.cpp - Whose segments lie here ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Superblock.h"
#include "runtime/store/Crc32c.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>

using namespace trc;

namespace {

struct Superblock {
  char magic[8];
  uint32_t version;
  uint32_t extent, extents;
  uint32_t segments;
  uint64_t segmentBytes;
  uint64_t key;
  uint32_t rows, storeBytes, payloadBytes;
  uint32_t crc;
};
constexpr char storeMagic[8] = {'T', 'R', 'C', 'S', 'T', 'O', 'R', 'E'};
constexpr uint32_t storeVersion = 1;

uint32_t checkOf(const Superblock &block) {
  return crc32c(0, &block, offsetof(Superblock, crc));
}

/// Moves the superblock's sector, however short the transfers, and waits.
class SectorOp final : public IoRequest {
public:
  SectorOp(Kind k, uint32_t id, uint64_t at, uint32_t block, Superblock &value)
      : block(block), value(value) {
    kind = k;
    file = id;
    offset = at;
    bytes = static_cast<uint32_t>(storeSector);
  }
  void begin(char *buffer) override {
    if (kind == Kind::Write) {
      std::memset(buffer, 0, storeSector);
      std::memcpy(buffer, &value, sizeof value);
    }
  }
  bool complete(int32_t result, char *buffer) override {
    uint32_t whole =
        result > 0 ? static_cast<uint32_t>(result) / block * block : 0;
    if (whole > 0 && whole < bytes) {
      offset += whole;
      at += whole;
      bytes -= whole;
      return true;
    }
    if (whole == bytes && kind == Kind::Read)
      std::memcpy(&value, buffer, sizeof value);
    int error = whole == bytes                  ? 0
                : result < 0                    ? -result
                : kind == IoRequest::Kind::Read ? ENODATA
                                                : ENOSPC;
    std::lock_guard<std::mutex> lock(mutex);
    outcome = error;
    done = true;
    changed.notify_all();
    return false;
  }
  int wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done; });
    return outcome;
  }

private:
  const uint32_t block;
  Superblock &value;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int outcome = 0;
};

int move(Device &device, IoRequest::Kind kind, uint32_t file, uint64_t base,
         Superblock &value) {
  SectorOp op(kind, file, base, device.fileInfo(file).blockBytes, value);
  device.submit(op);
  return op.wait();
}

std::string numbers(const Superblock &b) {
  return std::to_string(b.rows) + " rows of " + std::to_string(b.payloadBytes) +
         " bytes in " + std::to_string(b.segments) + " segments of " +
         std::to_string(b.segmentBytes) + " bytes over " +
         std::to_string(b.extents) + " files";
}

} // namespace

Status trc::openSuperblocks(Device &device, const RowStoreOptions &o,
                            const std::vector<uint32_t> &files) {
  uint32_t count = static_cast<uint32_t>(files.size());
  for (uint32_t i = 0; i < count; ++i) {
    const RowStoreOptions::Extent &e = o.extents[i];
    std::string where = "'" + e.path + "' at offset " + std::to_string(e.base);
    Superblock want{};
    std::memcpy(want.magic, storeMagic, sizeof storeMagic);
    want.version = storeVersion;
    want.extent = i;
    want.extents = count;
    want.segments = o.geometry.segments;
    want.segmentBytes = o.geometry.segmentBytes;
    want.key = o.key;
    want.rows = o.rows;
    want.storeBytes = o.storeBytes;
    want.payloadBytes = o.payloadBytes;
    want.crc = checkOf(want);
    Superblock found{};
    if (int error =
            move(device, IoRequest::Kind::Read, files[i], e.base, found))
      return Status::ioError("cannot read the superblock of group '" + o.group +
                                 "' at offset " + std::to_string(e.base) +
                                 " of",
                             e.path, error);
    bool valid = std::memcmp(found.magic, storeMagic, sizeof storeMagic) == 0 &&
                 found.crc == checkOf(found);
    if (o.create) {
      if (valid && found.key != o.key &&
          std::find(o.replaces.begin(), o.replaces.end(), found.key) ==
              o.replaces.end())
        return Status(TRC_MISMATCH, where + " belongs to another state (" +
                                        numbers(found) +
                                        "); remove it, or give group '" +
                                        o.group + "' another file");
      if (int error =
              move(device, IoRequest::Kind::Write, files[i], e.base, want))
        return Status::ioError("cannot write the superblock of group '" +
                                   o.group + "' at offset " +
                                   std::to_string(e.base) + " of",
                               e.path, error);
      TRC_RETURN_IF_ERROR(device.flush(files[i]));
      continue;
    }
    if (!valid)
      return Status(
          TRC_CORRUPT,
          "the superblock of group '" + o.group + "' in " + where +
              (std::memcmp(found.magic, storeMagic, sizeof storeMagic) == 0
                   ? " fails its check"
                   : " is not one of a row store") +
              "; the file is damaged, or not the state's");
    if (found.version != storeVersion)
      return Status(TRC_MISMATCH, where + " has version " +
                                      std::to_string(found.version) +
                                      ", this runtime reads version " +
                                      std::to_string(storeVersion));
    if (found.key != o.key)
      return Status(TRC_MISMATCH, where +
                                      " belongs to another state, not to "
                                      "that of group '" +
                                      o.group + "'");
    if (std::memcmp(&found, &want, sizeof want) == 0)
      continue;
    if (found.extent != i || found.extents != count)
      return Status(TRC_MISMATCH,
                    where + " is file " + std::to_string(found.extent + 1) +
                        " of " + std::to_string(found.extents) + " of group '" +
                        o.group + "', here it is given as " +
                        std::to_string(i + 1) + " of " + std::to_string(count));
    return Status(TRC_MISMATCH, where + " has " + numbers(found) + ", group '" +
                                    o.group + "' needs " + numbers(want));
  }
  return {};
}
