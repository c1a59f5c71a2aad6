//===- ChromeTrace.cpp - Lanes over time, for a browser -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lane is a thread of the trace; times are microseconds.
//
//===----------------------------------------------------------------------===//
#include "runtime/stats/ChromeTrace.h"

#include <cerrno>
#include <nlohmann/json.hpp>

using namespace trc;

/// As a JSON string.
static std::string jsonText(const std::string &text) {
  return nlohmann::json(text).dump();
}

Result<std::unique_ptr<ChromeTrace>>
ChromeTrace::create(const std::string &path, const Plan &plan) {
  std::FILE *file = std::fopen(path.c_str(), "we");
  if (!file)
    return Status::ioError("cannot create the trace", path, errno);
  std::fputs("[\n", file);
  for (size_t l = 0; l < plan.lanes.size(); ++l)
    std::fprintf(file,
                 "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%zu,"
                 "\"args\":{\"name\":%s}},\n",
                 l, jsonText(plan.lanes[l].name).c_str());
  return std::unique_ptr<ChromeTrace>(new ChromeTrace(plan, file));
}

ChromeTrace::~ChromeTrace() {
  // The last event has no comma after it.
  std::fputs("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,"
             "\"args\":{\"name\":\"terrace\"}}\n]\n",
             file);
  std::fclose(file);
}

void ChromeTrace::add(int op, int64_t t, uint64_t beginNs, uint64_t endNs) {
  const OpPlan &o = plan.ops[op];
  std::string name = opName(o.kind);
  if (o.group >= 0)
    name += " " + plan.groups[o.group].name;
  std::lock_guard<std::mutex> lock(mutex);
  std::fprintf(
      file,
      "{\"ph\":\"X\",\"name\":%s,\"pid\":1,\"tid\":%d,\"ts\":%.3f,"
      "\"dur\":%.3f,\"args\":{\"batch\":%lld}},\n",
      jsonText(name).c_str(), o.lane, static_cast<double>(beginNs) / 1000,
      static_cast<double>(endNs - beginNs) / 1000, static_cast<long long>(t));
}
