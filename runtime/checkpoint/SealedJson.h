//===- SealedJson.h - JSON files that notice damage -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An object whose member `crc32c` is the checksum of its text without it.
// nlohmann prints keys sorted and doubles so that they read back exactly, so
// printing again gives the bytes that were summed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/core/Status.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>

namespace trc {

/// The text of `object` with its checksum.
std::string sealJson(nlohmann::json object);

/// Where a sealed text is from, for messages.
struct SealedSource {
  std::string path;
  std::string what;   // "a manifest"
  std::string advice; // what to do where it is damaged
};

/// TRC_CORRUPT: path, what is wrong, advice.
Status corruptJson(const SealedSource &source, const std::string &why);

/// Checks the sum and hands the object to `read`. What that throws over members
/// that are missing or of another kind is TRC_CORRUPT too.
Status
openSealedJson(const std::string &text, const SealedSource &source,
               const std::function<Status(const nlohmann::json &)> &read);

} // namespace trc
