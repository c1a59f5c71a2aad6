//===- NpyWriter.cpp - A folder of .npy files -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 1.0 of the format: magic, length, a Python dictionary padded so that
// the values begin at a multiple of 64, values in C order. One file is open at
// a time; all are put in place at the end, the metadata last.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/OutputFile.h"
#include "runtime/inspect/Tensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <unistd.h>

using namespace trc;
using namespace trc::inspect;

uint64_t TensorInfo::bytes() const {
  uint64_t n = elementBytes();
  for (int64_t d : shape)
    n *= static_cast<uint64_t>(d);
  return n;
}

Status inspect::checkNames(const std::vector<TensorInfo> &tensors) {
  std::vector<std::string> names;
  for (const TensorInfo &t : tensors)
    names.push_back(t.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end())
    return Status();
  return Status(TRC_BAD_ARGUMENT,
                "two arrays would be called '" + *twice +
                    "' (a table's name is that of another's state); export "
                    "these tables one at a time, with --table");
}

static std::string npyHeader(const TensorInfo &t) {
  std::string shape;
  for (int64_t d : t.shape)
    shape += std::to_string(d) + ", ";
  shape.resize(shape.size() - (t.shape.size() > 1 ? 2 : 1)); // (n,) (n, m)
  std::string text = std::string("{'descr': '") + (t.ids ? "<i8" : "<f4") +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t before = 10, align = 64;
  size_t total = (before + text.size() + 1 + align - 1) / align * align;
  text.resize(total - before - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

namespace {

class NpyWriter final : public TensorWriter {
public:
  NpyWriter(std::string folder, std::vector<TensorInfo> tensors)
      : folder(std::move(folder)), tensors(std::move(tensors)),
        files(this->tensors.size()), state(this->tensors.size()) {}
  ~NpyWriter() override {
    files.clear();
    meta = OutputFile();
    if (made) // stays where anything is in it
      ::rmdir(folder.c_str());
  }

  Status begin(const Metadata &metadata) {
    TRC_RETURN_IF_ERROR(refuseStateFolder(folder));
    made = !pathExists(folder);
    TRC_RETURN_IF_ERROR(makeFolders(folder));
    nlohmann::ordered_json j;
    for (const auto &m : metadata)
      j[m.first] = m.second;
    std::string text =
        j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    Result<OutputFile> file =
        OutputFile::create(folder + "/export.json", text.size());
    if (!file.ok())
      return file.takeStatus();
    meta = std::move(*file);
    total += text.size();
    TRC_RETURN_IF_ERROR(meta.write(0, text.data(), text.size()));
    return meta.close();
  }

  Status write(size_t t, uint64_t offset, const void *data,
               uint64_t bytes) override {
    TRC_RETURN_IF_ERROR(start(t));
    return files[t].write(state[t].header + offset, data, bytes);
  }

  Status done(size_t t) override {
    TRC_RETURN_IF_ERROR(start(t));
    if (state[t].closed)
      return Status();
    state[t].closed = true;
    return files[t].close();
  }

  Status finish() override {
    for (size_t t = 0; t < tensors.size(); ++t)
      TRC_RETURN_IF_ERROR(done(t));
    for (OutputFile &file : files)
      TRC_RETURN_IF_ERROR(file.publish());
    return meta.publish();
  }

  uint64_t totalBytes() const override { return total; }

private:
  struct State {
    bool open = false, closed = false;
    uint64_t header = 0;
  };

  Status start(size_t t) {
    if (state[t].open)
      return Status();
    std::string header = npyHeader(tensors[t]);
    Result<OutputFile> file =
        OutputFile::create(folder + "/" + tensors[t].name + ".npy",
                           header.size() + tensors[t].bytes());
    if (!file.ok())
      return file.takeStatus();
    files[t] = std::move(*file);
    state[t].open = true;
    state[t].header = header.size();
    total += header.size() + tensors[t].bytes();
    return files[t].write(0, header.data(), header.size());
  }

  std::string folder;
  std::vector<TensorInfo> tensors;
  std::vector<OutputFile> files;
  std::vector<State> state;
  OutputFile meta;
  bool made = false;
  uint64_t total = 0;
};

} // namespace

Result<std::unique_ptr<TensorWriter>>
inspect::openNpy(const std::string &folder, std::vector<TensorInfo> tensors,
                 const Metadata &metadata) {
  TRC_RETURN_IF_ERROR(checkNames(tensors));
  auto writer = std::make_unique<NpyWriter>(folder, std::move(tensors));
  TRC_RETURN_IF_ERROR(writer->begin(metadata));
  return Result<std::unique_ptr<TensorWriter>>(std::move(writer));
}
