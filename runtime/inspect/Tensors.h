//===- Tensors.h - Files of named arrays ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays whose shapes are known before and whose values come in pieces, at any
// offset: a folder of .npy files, or one safetensors file. Little-endian f32 or
// i64. Nothing is in its place before finish() returned, and nothing stays
// behind where it failed or was not called. Memory: what a header takes.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_TENSORS_H
#define TERRACE_RUNTIME_INSPECT_TENSORS_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trc::inspect {

struct TensorInfo {
  std::string name;
  bool ids = false; // i64; else f32
  std::vector<int64_t> shape;

  uint64_t elementBytes() const { return ids ? 8 : 4; }
  uint64_t bytes() const;
};

/// Texts that travel along with the arrays.
using Metadata = std::vector<std::pair<std::string, std::string>>;

class TensorWriter {
public:
  virtual ~TensorWriter() = default;
  /// Bytes of the tensor with that index, from byte `offset` of its values.
  virtual Status write(size_t tensor, uint64_t offset, const void *data,
                       uint64_t bytes) = 0;
  /// No more of this tensor follows.
  virtual Status done(size_t tensor) = 0;
  /// Every file durable, then every file in its place.
  virtual Status finish() = 0;
  /// Of all files.
  virtual uint64_t totalBytes() const = 0;
};

/// FOLDER/NAME.npy each, and FOLDER/export.json with the metadata.
Result<std::unique_ptr<TensorWriter>> openNpy(const std::string &folder,
                                              std::vector<TensorInfo> tensors,
                                              const Metadata &metadata);
Result<std::unique_ptr<TensorWriter>>
openSafetensors(const std::string &path, const std::vector<TensorInfo> &tensors,
                const Metadata &metadata);

/// BAD_ARGUMENT where two have one name.
Status checkNames(const std::vector<TensorInfo> &tensors);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_TENSORS_H
