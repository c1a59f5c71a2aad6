//===- SealedJson.cpp - JSON files that notice damage ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/SealedJson.h"

#include "runtime/store/Crc32c.h"

#include <nlohmann/json.hpp>

using namespace trc;
using nlohmann::json;

static uint32_t sumOf(const json &object) {
  std::string body = object.dump(1);
  return crc32c(0, body.data(), body.size());
}

std::string trc::sealJson(json object) {
  object["crc32c"] = sumOf(object);
  return object.dump(1) + "\n";
}

Status trc::corruptJson(const SealedSource &source, const std::string &why) {
  return Status(TRC_CORRUPT,
                "'" + source.path + "': " + why + "; " + source.advice);
}

Status trc::openSealedJson(const std::string &text, const SealedSource &source,
                           const std::function<Status(const json &)> &read) {
  try {
    json object = json::parse(text);
    if (!object.is_object() || !object.contains("crc32c"))
      return corruptJson(source, "not " + source.what);
    uint32_t sum = object.at("crc32c").get<uint32_t>();
    object.erase("crc32c");
    if (sumOf(object) != sum)
      return corruptJson(source, "the checksum does not match");
    return read(object);
  } catch (const json::parse_error &e) {
    // Its text quotes the damaged bytes.
    return corruptJson(source, "no JSON at byte " + std::to_string(e.byte));
  } catch (const std::exception &e) {
    return corruptJson(source, e.what());
  }
}
