//===- Generate.h - Workloads with known statistics -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `terrace data generate`: writes a table (TSV, some gzipped), a spec that
// matches it, and the achieved statistics next to their targets. The same
// options give the same bytes on every machine: no libm, no hash order.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_GENERATE_H
#define TERRACE_RUNTIME_DATA_GENERATE_H

#include "runtime/data/RowStream.h"

#include <string>
#include <vector>

namespace trc::data {

struct Workload {
  std::string name, description;
};
/// What can be generated.
const std::vector<Workload> &workloads();

struct GenerateOptions {
  std::string workload; // a name of workloads(), in any case
  double scale = 1;     // of rows and samples
  uint64_t seed = 0;
  std::string folder = "."; // made if it is missing
};

/// A measured property and what it should be.
struct Statistic {
  std::string name;
  double target, achieved;
};

struct Generated {
  std::string dataFile, specFile, statisticsFile;
  int64_t rows = 0;
  std::vector<Statistic> statistics;
};

Result<Generated> generateWorkload(const GenerateOptions &options,
                                   const Progress &progress = {});

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_GENERATE_H
