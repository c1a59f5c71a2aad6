//===- DataFiles.h - Files of a test's own folder ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fixture with a scratch folder, and small helpers to fill it.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_DATA_DATAFILES_H
#define TERRACE_TEST_RUNTIME_DATA_DATAFILES_H

#include "runtime/data/BatchReader.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

namespace trc::data {

class DataTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern =
        std::filesystem::temp_directory_path() / "terrace-data-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string path(const std::string &name) const {
    return folder + "/" + name;
  }
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  static std::string gzip(const std::string &text) {
    z_stream z = {};
    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&z, text.size()) + 64, 0);
    z.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
    z.avail_in = static_cast<uInt>(text.size());
    z.next_out = reinterpret_cast<Bytef *>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
  }

  /// "i" and "y" columns: i counts from 0.
  static std::string counting(int rows, int from = 0) {
    std::string text = "i\ty\n";
    for (int i = from; i < from + rows; ++i)
      text += std::to_string(i) + "\t" + std::to_string(i % 2) + "\n";
    return text;
  }
  static ReaderOptions countingOptions(std::vector<std::string> paths,
                                       int64_t batch) {
    ReaderOptions o;
    o.files.paths = std::move(paths);
    o.format.features = {{"i", "i", "", false, false}};
    o.format.label = "y";
    o.batch = batch;
    return o;
  }

  struct Read {
    std::vector<int64_t> ids;
    std::vector<int64_t> sizes; // of the batches
    int64_t bad = 0;
    std::string firstBad, error;
  };
  /// Everything of the first feature.
  static Read readAll(const ReaderOptions &options) {
    Read r;
    BatchReader reader(options);
    for (;;) {
      auto got = reader.next();
      if (!got.ok()) {
        r.error = got.takeStatus().message();
        break;
      }
      if (!*got)
        break;
      const BatchData::Bags &b = (*got)->features[0];
      r.ids.insert(r.ids.end(), b.ids.begin(), b.ids.end());
      r.sizes.push_back((*got)->samples);
      reader.recycle(std::move(*got));
    }
    r.bad = reader.badRows(&r.firstBad);
    return r;
  }
  static std::vector<int64_t> range(int64_t from, int64_t to) {
    std::vector<int64_t> v;
    for (int64_t i = from; i < to; ++i)
      v.push_back(i);
    return v;
  }

  std::string folder;
};

} // namespace trc::data

#endif // TERRACE_TEST_RUNTIME_DATA_DATAFILES_H
