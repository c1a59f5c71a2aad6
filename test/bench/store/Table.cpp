//===- Table.cpp - Aligned columns and figures ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace trc::bench;

void Table::print() const {
  std::vector<size_t> width(rows.front().size(), 0);
  for (const auto &row : rows)
    // Free text is as wide as it likes.
    for (size_t i = 0; i < (row.size() < width.size() ? 1 : row.size()); ++i)
      width[i] = std::max(width[i], row[i].size());
  for (const auto &row : rows) {
    std::printf("%-*s", static_cast<int>(width[0]), row[0].c_str());
    for (size_t i = 1; i < row.size(); ++i)
      std::printf("  %*s",
                  row.size() < width.size() ? 0 : static_cast<int>(width[i]),
                  row[i].c_str());
    std::printf("\n");
  }
  std::fflush(stdout);
}

std::string trc::bench::figure(double value) {
  int before = value >= 1 ? static_cast<int>(std::log10(value)) + 1 : 1;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", std::max(0, 3 - before), value);
  return text;
}

std::string trc::bench::size(double bytes) {
  const char *unit = "B";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024)
      break;
    bytes /= 1024;
    unit = next;
  }
  return figure(bytes) + " " + unit;
}

Spread trc::bench::spread(std::vector<double> values) {
  if (values.empty())
    return {};
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return {(values[n / 2] + values[(n - 1) / 2]) / 2, values.front(),
          values.back()};
}

std::string trc::bench::range(const Spread &s) {
  return figure(s.low) + " .. " + figure(s.high);
}
