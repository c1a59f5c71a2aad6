//===- SafetensorsWriter.cpp - One file of named arrays -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight bytes of length, a JSON header, the arrays one after the other without
// a hole. Wider elements come first, so that every array is aligned.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/OutputFile.h"
#include "runtime/inspect/Tensors.h"

#include <nlohmann/json.hpp>

using namespace trc;
using namespace trc::inspect;

namespace {

class SafetensorsWriter final : public TensorWriter {
public:
  Status begin(const std::string &path, const std::vector<TensorInfo> &tensors,
               const Metadata &metadata) {
    TRC_RETURN_IF_ERROR(refuseStateFolder(path));
    nlohmann::ordered_json j;
    for (const auto &m : metadata)
      j["__metadata__"][m.first] = m.second;
    offsets.resize(tensors.size());
    uint64_t at = 0;
    for (bool ids : {true, false})
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (tensors[t].ids != ids)
          continue;
        offsets[t] = at;
        at += tensors[t].bytes();
        j[tensors[t].name] = {{"dtype", ids ? "I64" : "F32"},
                              {"shape", tensors[t].shape},
                              {"data_offsets", {offsets[t], at}}};
      }
    std::string text =
        j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text.resize((text.size() + 7) / 8 * 8, ' ');
    constexpr size_t most = 100u << 20; // what readers of the format take
    if (text.size() > most)
      return Status(TRC_BAD_ARGUMENT,
                    "the header of '" + path + "' would have " +
                        std::to_string(text.size()) +
                        " bytes, readers take no more than " +
                        std::to_string(most) + "; use --format npy");
    base = 8 + text.size();
    total = base + at;
    std::string length(8, '\0');
    for (size_t i = 0; i < 8; ++i)
      length[i] = static_cast<char>(text.size() >> (8 * i) & 255);
    std::string folder = folderOf(path);
    TRC_RETURN_IF_ERROR(makeFolders(folder));
    Result<OutputFile> created = OutputFile::create(path, total);
    if (!created.ok())
      return created.takeStatus();
    file = std::move(*created);
    text = length + text;
    return file.write(0, text.data(), text.size());
  }

  Status write(size_t t, uint64_t offset, const void *data,
               uint64_t bytes) override {
    return file.write(base + offsets[t] + offset, data, bytes);
  }
  Status done(size_t) override { return Status(); }
  Status finish() override {
    TRC_RETURN_IF_ERROR(file.close());
    return file.publish();
  }
  uint64_t totalBytes() const override { return total; }

private:
  OutputFile file;
  std::vector<uint64_t> offsets;
  uint64_t base = 0, total = 0;
};

} // namespace

Result<std::unique_ptr<TensorWriter>>
inspect::openSafetensors(const std::string &path,
                         const std::vector<TensorInfo> &tensors,
                         const Metadata &metadata) {
  TRC_RETURN_IF_ERROR(checkNames(tensors));
  auto writer = std::make_unique<SafetensorsWriter>();
  TRC_RETURN_IF_ERROR(writer->begin(path, tensors, metadata));
  return Result<std::unique_ptr<TensorWriter>>(std::move(writer));
}
