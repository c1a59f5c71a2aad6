//===- ArrayFiles.h - Reads npy and safetensors files -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As small as can be, and written from the formats' descriptions, not from the
// writers: what a user's loader would see.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_INSPECT_ARRAYFILES_H
#define TERRACE_TEST_RUNTIME_INSPECT_ARRAYFILES_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace arrays {

struct Array {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;

  template <typename T> std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

inline std::string slurp(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error("no file " + path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline Array readNpy(const std::string &path) {
  std::string all = slurp(path);
  if (all.compare(0, 8, std::string("\x93NUMPY\x01\x00", 8)) != 0)
    throw std::runtime_error("no npy file");
  size_t length = static_cast<unsigned char>(all[8]) +
                  256u * static_cast<unsigned char>(all[9]);
  if ((10 + length) % 64 || all[10 + length - 1] != '\n')
    throw std::runtime_error("header not padded");
  std::string header = all.substr(10, length);
  Array a;
  size_t at = header.find("'descr': '") + 10;
  a.dtype = header.substr(at, header.find('\'', at) - at);
  at = header.find("'shape': (") + 10;
  std::string shape = header.substr(at, header.find(')', at) - at);
  int64_t count = 1;
  for (size_t p = 0; p < shape.size();) {
    size_t used = 0;
    a.shape.push_back(std::stoll(shape.substr(p), &used));
    count *= a.shape.back();
    p += used;
    while (p < shape.size() && (shape[p] == ',' || shape[p] == ' '))
      ++p;
  }
  if (a.shape.size() == 1 && shape.back() != ',')
    throw std::runtime_error("a tuple of one needs its comma");
  a.bytes = all.substr(10 + length);
  if (a.bytes.size() != static_cast<size_t>(count) * (a.dtype == "<i8" ? 8 : 4))
    throw std::runtime_error("size does not match the shape");
  return a;
}

struct Safetensors {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;
};

inline Safetensors readSafetensors(const std::string &path) {
  std::string all = slurp(path);
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i)
    length |= uint64_t(static_cast<unsigned char>(all[i])) << (8 * i);
  nlohmann::json j = nlohmann::json::parse(all.substr(8, length));
  Safetensors out;
  std::map<uint64_t, uint64_t> pieces; // begin, end
  for (const auto &[name, value] : j.items()) {
    if (name == "__metadata__") {
      out.metadata = value.get<std::map<std::string, std::string>>();
      continue;
    }
    Array a;
    a.dtype = value["dtype"];
    a.shape = value["shape"].get<std::vector<int64_t>>();
    uint64_t begin = value["data_offsets"][0], end = value["data_offsets"][1];
    size_t element = a.dtype == "I64" ? 8 : 4;
    size_t count = element;
    for (int64_t d : a.shape)
      count *= static_cast<size_t>(d);
    if (end - begin != count || (8 + length + begin) % element)
      throw std::runtime_error(name + ": offsets do not match the shape");
    a.bytes = all.substr(8 + length + begin, count);
    if (count)
      pieces[begin] = end;
    out.arrays[name] = std::move(a);
  }
  uint64_t at = 0;
  for (const auto &[begin, end] : pieces) {
    if (begin != at)
      throw std::runtime_error("a hole");
    at = end;
  }
  if (8 + length + at != all.size())
    throw std::runtime_error("bytes are left over");
  return out;
}

} // namespace arrays

#endif // TERRACE_TEST_RUNTIME_INSPECT_ARRAYFILES_H
