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

/// Whose the files are by now. Zero or torn: nobody's.
struct Claim {
  uint64_t key; // of the state
  uint64_t holder;
  uint32_t crc;
  uint32_t zero;
};

struct Sector {
  Superblock block;
  char rest[512 - sizeof(Superblock)]; // what is written again is apart
  Claim claim;
};
static_assert(sizeof(Sector) <= storeSector);

constexpr char storeMagic[8] = {'T', 'R', 'C', 'S', 'T', 'O', 'R', 'E'};
constexpr uint32_t storeVersion = 1;

uint32_t checkOf(const Superblock &block) {
  return crc32c(0, &block, offsetof(Superblock, crc));
}

uint32_t checkOf(const Claim &claim) {
  return crc32c(0, &claim, offsetof(Claim, crc));
}

/// Who holds the files of a state; 0: nobody.
uint64_t holderOf(const Sector &sector, uint64_t key) {
  const Claim &c = sector.claim;
  return c.key == key && c.crc == checkOf(c) ? c.holder : 0;
}

void setHolder(Sector &sector, uint64_t key, uint64_t holder) {
  sector.claim = {key, holder, 0, 0};
  sector.claim.crc = checkOf(sector.claim);
}

/// Moves the superblock's sector, however short the transfers, and waits.
class SectorOp final : public IoRequest {
public:
  SectorOp(Kind k, uint32_t id, uint64_t at, uint32_t block, Sector &value)
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
  Sector &value;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int outcome = 0;
};

int move(Device &device, IoRequest::Kind kind, uint32_t file, uint64_t base,
         Sector &value) {
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

/// One extent of a store.
struct Place {
  Device &device;
  const RowStoreOptions &o;
  uint32_t file, number; // of the extent

  const RowStoreOptions::Extent &extent() const { return o.extents[number]; }
  std::string where() const {
    return "'" + extent().path + "' at offset " + std::to_string(extent().base);
  }
  Status failed(const char *what, int error) const {
    return Status::ioError(std::string(what) + " the superblock of group '" +
                               o.group + "' at offset " +
                               std::to_string(extent().base) + " of",
                           extent().path, error);
  }
  Status read(Sector &sector) const {
    int error =
        move(device, IoRequest::Kind::Read, file, extent().base, sector);
    return error ? failed("cannot read", error) : Status();
  }
  Status write(Sector &sector) const {
    if (int error =
            move(device, IoRequest::Kind::Write, file, extent().base, sector))
      return failed("cannot write", error);
    return device.flush(file);
  }
  /// Somebody else's claim.
  Status taken() const {
    return Status(
        TRC_MISMATCH,
        where() + " belongs by now to another folder: a copy of this state, or "
                  "the state that this one is a copy of, was trained on in it, "
                  "over the rows of this one; go on in that folder, or give "
                  "this one a tier file of its own and a portable checkpoint "
                  "to begin with (terrace checkpoint import); if that folder "
                  "is gone, remove the file and start fresh");
  }
};

} // namespace

Status trc::claimSuperblocks(Device &device, const RowStoreOptions &o,
                             const std::vector<uint32_t> &files,
                             uint64_t holder) {
  for (uint32_t i = 0; i < files.size(); ++i) {
    Place place{device, o, files[i], i};
    Sector sector{};
    TRC_RETURN_IF_ERROR(place.read(sector));
    setHolder(sector, o.key, holder);
    TRC_RETURN_IF_ERROR(place.write(sector));
  }
  return {};
}

Status trc::openSuperblocks(Device &device, const RowStoreOptions &o,
                            const std::vector<uint32_t> &files,
                            std::vector<uint64_t> &holders) {
  uint32_t count = static_cast<uint32_t>(files.size());
  for (uint32_t i = 0; i < count; ++i) {
    Place place{device, o, files[i], i};
    std::string where = place.where();
    Sector made{};
    Superblock &want = made.block;
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
    Sector sector{};
    TRC_RETURN_IF_ERROR(place.read(sector));
    const Superblock &found = sector.block;
    bool valid = std::memcmp(found.magic, storeMagic, sizeof storeMagic) == 0 &&
                 found.crc == checkOf(found);
    uint64_t holder = valid ? holderOf(sector, found.key) : 0;
    bool taken = holder && o.holders &&
                 std::find(o.holders->begin(), o.holders->end(), holder) ==
                     o.holders->end();
    if (o.create) {
      if (valid && found.key != o.key &&
          std::find(o.replaces.begin(), o.replaces.end(), found.key) ==
              o.replaces.end())
        return Status(TRC_MISMATCH, where + " belongs to another state (" +
                                        numbers(found) +
                                        "); remove it, or give group '" +
                                        o.group + "' another file");
      if (taken)
        return place.taken();
      if (o.holder)
        setHolder(made, o.key, o.holder);
      TRC_RETURN_IF_ERROR(place.write(made));
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
    if (taken)
      return place.taken();
    if (holder)
      holders.push_back(holder);
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
