//===- StoreFixture.h - A store on a device that can fail -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_STORE_STOREFIXTURE_H
#define TERRACE_TEST_RUNTIME_STORE_STOREFIXTURE_H

#include "runtime/store/RowStore.h"
#include "test/runtime/io/FaultDevice.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace trc {

class StoreFixture {
public:
  explicit StoreFixture(
      DeviceOptions::Backend backend = DeviceOptions::Backend::Memory,
      uint32_t bufferBytes = 16384) {
    static std::atomic<int> count{0};
    folder = std::filesystem::temp_directory_path() /
             ("terrace-store-" + std::to_string(getpid()) + "-" +
              std::to_string(count++));
    std::filesystem::create_directories(folder);
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
    options.payloadBytes = 68;
    options.storeBytes = recordBytes(68);
    options.writeSlots = 2;
    options.maxWrites = 1000;
    options.depth = 8;
    options.key = 42;
  }
  ~StoreFixture() {
    store.reset();
    device.reset();
    inner.reset();
    std::filesystem::remove_all(folder);
  }

  std::string path(const char *name) const { return (folder / name).string(); }
  void payload(uint32_t bytes) {
    options.payloadBytes = bytes;
    options.storeBytes = static_cast<uint32_t>(recordBytes(bytes));
  }
  void open() {
    store.reset();
    auto opened = RowStore::open(*device, options);
    if (opened.ok())
      store = std::move(*opened);
    else
      FAIL() << opened.takeStatus().message();
  }

  /// The payload of a row's n-th version.
  std::vector<char> value(uint32_t row, uint32_t version) const {
    std::vector<char> v(options.payloadBytes);
    uint32_t x = row * 2654435761u ^ (version * 40503u + 1);
    for (char &c : v) {
      x = x * 1664525u + 1013904223u;
      c = static_cast<char>(x >> 24);
    }
    return v;
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

  std::filesystem::path folder;
  std::string skip; // why there is no device
  std::unique_ptr<Device> inner;
  std::unique_ptr<FaultDevice> device;
  RowStoreOptions options;
  std::unique_ptr<RowStore> store;
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_STORE_STOREFIXTURE_H
