//===- Claims.cpp - Which sessions a state's stores may name --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from manifest.json, which runtimes from before claims write anew: an
// older executable and a newer one may take turns on a state.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Claims.h"

#include "runtime/checkpoint/FileUtil.h"
#include "runtime/checkpoint/SealedJson.h"

#include <map>
#include <nlohmann/json.hpp>

using namespace trc;
using nlohmann::json;

static const char *const claimsFile = "claims.json";

using Claims = std::map<uint32_t, std::vector<uint64_t>>; // by generation

static Status readClaims(const std::string &folder, Claims &claims) {
  SealedSource source{
      folder + "/" + claimsFile, "a list of claims",
      "whether a copy of this state has taken its stores over is not known; "
      "the next session that trains writes it anew"};
  if (!pathExists(source.path))
    return Status();
  Result<std::string> text = readFile(source.path);
  if (!text.ok())
    return text.takeStatus();
  return openSealedJson(*text, source, [&](const json &j) {
    for (const json &c : j.at("claims")) {
      auto &holders = claims[c.at("generation").get<uint32_t>()];
      for (const json &holder : c.at("holders"))
        holders.push_back(std::stoull(holder.get<std::string>()));
    }
    return Status();
  });
}

Status trc::checkClaims(const std::string &folder) {
  Claims claims;
  return readClaims(folder, claims);
}

std::optional<std::vector<uint64_t>> trc::holdersIn(const std::string &folder,
                                                    uint32_t generation) {
  Claims claims;
  if (!readClaims(folder, claims).ok())
    return std::nullopt;
  return std::move(claims[generation]);
}

Status trc::writeHolders(const std::string &folder, uint32_t generation,
                         const std::vector<uint64_t> &holders) {
  Claims claims;
  if (!readClaims(folder, claims).ok())
    claims.clear(); // damaged: of other generations anybody may be the last
  claims[generation] = holders;
  json j;
  j["format"] = 1;
  j["claims"] = json::array();
  for (const auto &c : claims) {
    json names = json::array();
    for (uint64_t holder : c.second)
      names.push_back(std::to_string(holder));
    j["claims"].push_back({{"generation", c.first}, {"holders", names}});
  }
  return replaceFile(folder, claimsFile, sealJson(std::move(j)));
}
