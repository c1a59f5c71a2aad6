//===- Table.h - Aligned columns and figures --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text tables, and figures in few digits. The first column is flush left, the
// others are flush right; a row with fewer cells ends in free text.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_TABLE_H
#define TERRACE_TEST_BENCH_STORE_TABLE_H

#include <string>
#include <vector>

namespace trc::bench {

class Table {
public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print() const;

private:
  std::vector<std::vector<std::string>> rows;
};

/// Three significant digits or all before the point: 0.953, 41.2, 98120.
std::string figure(double value);
/// "1.50 GiB".
std::string size(double bytes);

struct Spread {
  double median = 0, low = 0, high = 0;
};
Spread spread(std::vector<double> values);
/// "97.5 .. 99.1" in figures.
std::string range(const Spread &s);

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_TABLE_H
