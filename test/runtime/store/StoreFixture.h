//===- StoreFixture.h - A store on a device that can fail -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small store in a folder of its own, and what tests do with it all the
// time: write versions of rows, read them back, make checkpoints.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_STORE_STOREFIXTURE_H
#define TERRACE_TEST_RUNTIME_STORE_STOREFIXTURE_H

#include "runtime/store/RowStore.h"
#include "test/runtime/io/FaultDevice.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <unistd.h>

namespace trc {

/// The payload of a row's n-th version.
inline std::vector<char> rowValue(uint32_t bytes, uint32_t row,
                                  uint32_t version) {
  std::vector<char> v(bytes);
  uint32_t x = row * 2654435761u ^ (version * 40503u + 1);
  for (char &c : v) {
    x = x * 1664525u + 1013904223u;
    c = static_cast<char>(x >> 24);
  }
  return v;
}

using Image = RowStore::Image;

/// Rows [begin, end).
inline std::vector<uint32_t> range(uint32_t begin, uint32_t end) {
  std::vector<uint32_t> v(end - begin);
  std::iota(v.begin(), v.end(), begin);
  return v;
}

/// A folder that goes with the test.
class TestFolder {
public:
  TestFolder() {
    static std::atomic<int> count{0};
    path = std::filesystem::temp_directory_path() /
           ("terrace-store-" + std::to_string(getpid()) + "-" +
            std::to_string(count++));
    std::filesystem::create_directories(path);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

class StoreFixture {
public:
  explicit StoreFixture(
      DeviceOptions::Backend backend = DeviceOptions::Backend::Memory,
      uint32_t bufferBytes = 16384) {
    DeviceOptions d;
    d.backend = backend;
    d.depth = 16;
    d.bufferBytes = bufferBytes;
    auto opened = openDevice(d);
    if (opened.ok()) {
      inner = std::move(*opened);
      device = std::make_unique<FaultDevice>(*inner);
    } else {
      skip = opened.takeStatus().message();
    }
    options.group = "g16";
    options.extents = {{path("rows"), 0}};
    options.rows = 1000;
    options.writeSlots = 2;
    options.maxWrites = 1000;
    options.depth = 8;
    options.key = 42;
    options.create = true;
    options.folder = folder.path.string();
    options.prefix = "g16-";
    payload(68);
  }
  ~StoreFixture() {
    store.reset();
    device.reset();
    inner.reset();
  }

  std::string path(const char *name) const {
    return (folder.path / name).string();
  }
  void payload(uint32_t bytes) {
    options.payloadBytes = bytes;
    options.storeBytes = static_cast<uint32_t>(recordBytes(bytes));
    fit();
  }
  /// A geometry with room for the rows, twice.
  void fit(double fill = 2.5) {
    options.geometry =
        storeGeometry(options.rows, options.storeBytes, fill,
                      static_cast<uint32_t>(options.extents.size()));
  }
  void open() {
    store.reset();
    auto opened = RowStore::open(*device, options);
    if (opened.ok())
      store = std::move(*opened);
    else
      FAIL() << opened.takeStatus().message();
  }
  /// Opens again what is there.
  void reopen() {
    options.create = false;
    open();
  }

  std::vector<char> value(uint32_t row, uint32_t version) const {
    return rowValue(options.payloadBytes, row, version);
  }

  /// Records for store->write, which must outlive it.
  std::vector<char> records(const std::vector<uint32_t> &rows,
                            uint32_t version) const {
    std::vector<char> r(rows.size() * options.storeBytes, 'x');
    for (size_t i = 0; i < rows.size(); ++i) {
      char *record = r.data() + i * options.storeBytes;
      auto v = value(rows[i], version);
      std::memcpy(record + recordHeaderBytes, v.data(), v.size());
      store->seal(rows[i], record);
    }
    return r;
  }
  Status write(const std::vector<uint32_t> &rows, uint32_t version) {
    auto r = records(rows, version);
    Status s = store->write(0, rows.data(), static_cast<uint32_t>(rows.size()),
                            r.data());
    Status done = store->waitWrites(0);
    return s.ok() ? std::move(done) : std::move(s);
  }
  Status read(const std::vector<uint32_t> &rows, std::vector<char> &out) {
    uint64_t pitch = options.payloadBytes + 4;
    out.assign(rows.size() * pitch, 0);
    ReadBatch batch;
    batch.rows = rows.data();
    batch.count = static_cast<uint32_t>(rows.size());
    batch.out = out.data();
    batch.pitch = pitch;
    return store->read(batch);
  }
  void expect(const std::vector<uint32_t> &rows, uint32_t version) {
    std::vector<char> out;
    Status s = read(rows, out);
    ASSERT_TRUE(s.ok()) << s.message();
    for (size_t i = 0; i < rows.size(); ++i) {
      auto v = value(rows[i], version);
      ASSERT_EQ(
          std::memcmp(out.data() + i * (v.size() + 4), v.data(), v.size()), 0)
          << "row " << rows[i];
    }
  }
  /// A checkpoint of what is written.
  Status checkpoint(uint64_t id, RowStore::Image &image) {
    TRC_RETURN_IF_ERROR(store->beginCut(id));
    if (Status s = store->finishCut(image); !s.ok()) {
      store->dropCut();
      return s;
    }
    store->keepCut();
    return {};
  }

  TestFolder folder;
  std::string skip; // why there is no device
  std::unique_ptr<Device> inner;
  std::unique_ptr<FaultDevice> device;
  RowStoreOptions options;
  std::unique_ptr<RowStore> store;
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_STORE_STOREFIXTURE_H
