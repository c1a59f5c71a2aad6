//===- ReopenTable.cpp - How long until a state is open -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening reads the superblock, then the index that a checkpoint left; records
// are read when they are wanted. So the index alone is made here, with rows in
// random places of segments that are full, and read with a cold page cache:
// first plainly, then by a store that takes it over.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/IndexFile.h"
#include "runtime/store/RowStore.h"
#include "runtime/store/StoreLayout.h"
#include "test/bench/store/Sections.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <numeric>
#include <sys/resource.h>
#include <unistd.h>

using namespace trc;
using namespace trc::bench;

namespace {

constexpr uint32_t payload = 8;

class Reopen {
public:
  Reopen(uint32_t rows, std::string folder) : folder(std::move(folder)) {
    o.group = "bench";
    o.folder = this->folder;
    o.prefix = "bench-";
    o.extents = {{this->folder + "/rows", 0}};
    o.rows = rows;
    o.payloadBytes = payload;
    o.storeBytes = static_cast<uint32_t>(recordBytes(payload));
    o.geometry = storeGeometry(rows, o.storeBytes, storeFill(1, 0.5));
    o.key = 7;
  }
  ~Reopen() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  Status make();
  /// Milliseconds.
  Result<double> readPlainly();
  Result<double> open(double &cpu);
  uint64_t indexBytes() const { return bytes; }

private:
  Status openDevice();
  Status dropCache() const;
  std::string index() const { return folder + "/" + name; }

  std::string folder;
  std::string name = indexName("bench-", IndexKind::Base, 1);
  RowStoreOptions o;
  std::unique_ptr<Device> device;
  uint64_t bytes = 0;
};

double cpuSeconds() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

} // namespace

Status Reopen::openDevice() {
  DeviceOptions d;
  d.bufferBytes = static_cast<uint32_t>(deviceBufferBytes(o.storeBytes));
  auto opened = trc::openDevice(d);
  if (!opened.ok())
    return opened.takeStatus();
  device = std::move(*opened);
  return {};
}

Status Reopen::make() {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::ioError("cannot make the folder", folder, error.value());
  TRC_RETURN_IF_ERROR(openDevice());
  o.create = true;
  auto store = RowStore::open(*device, o);
  if (!store.ok())
    return store.takeStatus();
  o.create = false;

  IndexHeader header{};
  header.kind = static_cast<uint32_t>(IndexKind::Base);
  header.key = o.key;
  header.segmentBytes = o.geometry.segmentBytes;
  header.segments = o.geometry.segments;
  header.rows = o.rows;
  header.storeBytes = o.storeBytes;
  header.payloadBytes = o.payloadBytes;
  header.id = header.base = header.previous = 1;
  header.dense = 1;
  auto writer = IndexWriter::create(folder, name, header);
  if (!writer.ok())
    return writer.takeStatus();
  // Every place below `rows` once, each far from the one before.
  uint64_t stride = 2654435761u % o.rows;
  while (std::gcd(stride, uint64_t(o.rows)) != 1)
    ++stride;
  std::vector<uint32_t> words;
  for (uint64_t row = 0; row < o.rows; ++row) {
    words.push_back(static_cast<uint32_t>(row * stride % o.rows) + 1);
    if (words.size() == 1 << 16 || row + 1 == o.rows) {
      TRC_RETURN_IF_ERROR(
          (*writer)->append(IndexRows, words.data(), words.size()));
      words.clear();
    }
  }
  StoreLayout layout(o.geometry, o.storeBytes, {0});
  for (uint32_t s = 0; s <= layout.segmentOf(o.rows - 1); ++s) {
    uint32_t entry[2] = {s, s + 1};
    TRC_RETURN_IF_ERROR((*writer)->append(IndexSegments, entry, 2));
  }
  TRC_RETURN_IF_ERROR((*writer)->finish());
  bytes = (*writer)->bytes();
  return {};
}

Status Reopen::dropCache() const {
  Fd fd(::open(index().c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.open())
    return Status::ioError("cannot open", index(), errno);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

Result<double> Reopen::readPlainly() {
  TRC_RETURN_IF_ERROR(dropCache());
  Fd fd(::open(index().c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.open())
    return Status::ioError("cannot open", index(), errno);
  std::vector<char> buffer(1 << 20);
  double start = wallSeconds();
  ssize_t n;
  while ((n = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
  }
  if (n < 0)
    return Status::ioError("cannot read", index(), errno);
  return (wallSeconds() - start) * 1e3;
}

Result<double> Reopen::open(double &cpu) {
  device.reset();
  TRC_RETURN_IF_ERROR(openDevice());
  TRC_RETURN_IF_ERROR(dropCache());
  double start = wallSeconds(), used = cpuSeconds();
  auto store = RowStore::open(*device, o);
  if (!store.ok())
    return store.takeStatus();
  TRC_RETURN_IF_ERROR((*store)->adopt({1, {name}}, true));
  double ms = (wallSeconds() - start) * 1e3;
  cpu = (cpuSeconds() - used) * 1e3;
  if ((*store)->writtenCount() != o.rows || !(*store)->written(o.rows - 1))
    return Status(TRC_INTERNAL, "rows are missing after opening");
  return ms;
}

bool trc::bench::reopenTable(const Settings &settings, uint32_t rows) {
  std::fprintf(stderr, "%u rows, reopening\n", rows);
  Table table({"round", "index", "read ms", "open ms", "CPU ms",
               "open / (100 ms + read)"});
  Status status;
  {
    Reopen reopen(rows, settings.folder + "/store");
    status = reopen.make();
    for (uint32_t round = 1; round <= settings.rounds && status.ok(); ++round) {
      Result<double> read = reopen.readPlainly();
      double cpu = 0;
      Result<double> open = read.ok() ? reopen.open(cpu) : Result<double>(0.0);
      status = read.ok() ? open.takeStatus() : read.takeStatus();
      if (status.ok())
        table.add({std::to_string(round),
                   size(static_cast<double>(reopen.indexBytes())),
                   figure(*read), figure(*open), figure(cpu),
                   figure(*open / (100 + *read))});
    }
  }
  std::printf("\n== reopen: an index of %u rows in random places; wanted: at "
              "most 1\n",
              rows);
  if (!status.ok())
    table.add({"FAILED", status.message()});
  table.print();
  return status.ok();
}
