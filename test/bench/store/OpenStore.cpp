//===- OpenStore.cpp - A row store full of rows ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/OpenStore.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <thread>

using namespace trc;
using namespace trc::bench;

OpenStore::~OpenStore() {
  store.reset();
  device.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

Status OpenStore::open() {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::ioError("cannot make the folder", folder, error.value());
  DeviceOptions d;
  d.backend = backend;
  d.depth = ioDepth;
  d.bufferBytes = static_cast<uint32_t>(deviceBufferBytes(storeBytes()));
  auto inner = openDevice(d);
  if (!inner.ok())
    return inner.takeStatus();
  device = std::make_unique<PlanningDevice>(std::move(*inner));

  RowStoreOptions o;
  o.group = "bench";
  o.extents = {{path(), 0}};
  o.rows = work.rows;
  o.payloadBytes = work.payload;
  o.storeBytes = storeBytes();
  o.writeSlots = writeSlots;
  o.maxWrites = work.batchRows;
  o.depth = ioDepth;
  o.geometry = geometry();
  o.key = Workload::hash(work.seed);
  o.create = true;
  o.folder = folder;
  o.prefix = "bench-";
  auto opened = RowStore::open(*device, o);
  if (!opened.ok())
    return opened.takeStatus();
  store = std::move(*opened);

  uint32_t step = std::max<uint32_t>(1, (4 << 20) / work.payload);
  std::vector<uint32_t> rows(step);
  std::vector<char> content(uint64_t(step) * work.payload);
  for (uint32_t first = 0; first < work.rows; first += step) {
    uint32_t count = std::min(step, work.rows - first);
    std::iota(rows.begin(), rows.end(), first);
    for (uint32_t i = 0; i < count; ++i)
      work.fill(first + i, 0, &content[uint64_t(i) * work.payload]);
    TRC_RETURN_IF_ERROR(store->load(rows.data(), count, content.data()));
  }
  return store->flush();
}

uint64_t OpenStore::memoryBytes() const {
  return store->memoryBytes() +
         deviceMemory(device->depth(), device->bufferBytes());
}

void OpenStore::settle() const {
  uint64_t before = 0, now = store->counters().bytesWritten;
  while (now != before) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    before = now;
    now = store->counters().bytesWritten;
  }
}
