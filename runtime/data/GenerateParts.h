//===- GenerateParts.h - What the generators are made of --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A writer of TSV (plain or gzip), samplers of skewed ranks, a bijection that
// scatters hot ids over a table, and counters of what came out. Private to the
// generators.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_GENERATEPARTS_H
#define TERRACE_RUNTIME_DATA_GENERATEPARTS_H

#include "runtime/core/Hash.h"
#include "runtime/core/Output.h"
#include "runtime/data/Generate.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trc::data {

/// Appends rows to a file, which has a name of its own until finish(), where
/// errors show. Ends in ".gz": gzip.
class TableWriter {
public:
  explicit TableWriter(std::string path);
  ~TableWriter();
  TableWriter(const TableWriter &) = delete;
  TableWriter &operator=(const TableWriter &) = delete;

  Status open();
  void field(int64_t value);
  void field(const std::string &text);
  /// A list as one field.
  void list(const std::vector<int64_t> &values, char separator);
  void endRow();
  Status finish();
  int64_t rows() const { return count; }

private:
  void separate();
  std::string part() const { return path + ".part"; }
  void flush();

  std::string path, buffer;
  Unfinished unfinished;
  void *gz = nullptr; // gzFile
  bool first = true, failed = false;
  int64_t count = -1; // the header is no row
};

/// Draws ranks 0 .. n-1 with probability ~ (rank + 1)^-slope.
class ZipfSampler {
public:
  ZipfSampler(int64_t n, double slope);
  int64_t draw(SplitMix &random) const;
  double shareOfFirst() const { return cumulative[0] / cumulative.back(); }

private:
  std::vector<double> cumulative;
};

/// Draws ranks from a measured popularity curve: shares of the accesses that
/// go to the hottest 0.01 %, 0.1 %, 1 %, 10 % of the rows, log-log between.
class CurveSampler {
public:
  CurveSampler(int64_t n, const double (&shares)[4]);
  int64_t draw(SplitMix &random) const;

private:
  int64_t n;
  double logX[5], logC[5];
};

/// A bijection of 0 .. n-1, so that hot ranks lie all over the table.
class Scatter {
public:
  Scatter(int64_t n, uint64_t seed);
  int64_t operator()(int64_t rank) const;

private:
  uint64_t n, factor, offset;
};

/// The ids of W5: ranks under a measured curve, without skew, or with a hot set
/// that moves, scattered over the rows of each table.
class TieredIds {
public:
  /// Its curves: kvcache, follower, leader, shift, uniform.
  static bool known(const std::string &curve);
  TieredIds(const std::string &curve, int64_t rows, int tables, int64_t batch,
            uint64_t seed);
  int64_t draw(SplitMix &random, int64_t sample, int table);
  /// Whether the last id was one whose hot place has moved.
  bool moved() const { return elsewhere; }
  /// Of the hottest 0.01, 0.1, 1, 10 %; null: no skew.
  const double *shares() const { return target; }

private:
  int64_t rows, batch;
  uint64_t seed;
  bool shift, elsewhere = false;
  std::vector<CurveSampler> sampler; // one, or none
  const double *target = nullptr;
  std::vector<Scatter> scatter, replaced;
};

/// Counts the ids of one column.
class IdCounter {
public:
  IdCounter(int64_t rows, int64_t window = 2048)
      : counts(static_cast<size_t>(rows)), lastWindow(counts.size(), -1),
        window(window) {}

  void add(int64_t id) {
    size_t i = static_cast<size_t>(id);
    ++counts[i];
    ++total;
    if (lastWindow[i] != currentWindow) {
      lastWindow[i] = currentWindow;
      ++distinctInWindow;
    }
  }
  /// After each sample.
  void endSample() {
    if (++inWindow == window) {
      distinctSum += distinctInWindow;
      ++currentWindow;
      inWindow = distinctInWindow = 0;
    }
  }

  double distinct() const;
  double topShare() const;
  /// Accesses of the hottest `fraction` of the rows that occur.
  double shareOfHottest(double fraction) const;
  /// The same, of all rows of the table.
  double shareOfHottestRows(double fraction) const;
  /// Distinct ids in a window of samples, on average.
  double distinctPerWindow() const {
    return currentWindow ? double(distinctSum) / currentWindow : 0;
  }

private:
  double shareOf(size_t hottest) const;

  std::vector<uint32_t> counts;
  std::vector<int32_t> lastWindow;
  int64_t window, total = 0, inWindow = 0;
  int64_t distinctInWindow = 0, distinctSum = 0;
  int32_t currentWindow = 0;
};

/// exp(mu + sigma * normal).
double logNormal(SplitMix &random, double mu, double sigma);
double standardNormal(SplitMix &random);
/// 1, 2, ... with the given mean.
int64_t geometric(SplitMix &random, double mean);
/// A fixed standard normal number per key, for planted effects.
double effectOf(uint64_t seed, uint64_t key);
bool bernoulli(SplitMix &random, double logit);

/// What a generator gets and gives; the shell in Generate.cpp does the rest.
struct Generator {
  const GenerateOptions &options;
  const Progress &progress;
  TableWriter &out;
  std::string dataName; // as the spec names the file
  std::string spec;     // out: YAML
  std::vector<Statistic> statistics;

  int64_t scaled(double full, int64_t least) const {
    double n = full * options.scale;
    return n < static_cast<double>(least) ? least : static_cast<int64_t>(n);
  }
  void endRow() {
    out.endRow();
    if (progress && out.rows() % 16384 == 0)
      progress(out.rows());
  }
  void note(const std::string &name, double target, double achieved) {
    statistics.push_back({name, target, achieved});
  }
};

void generateMultiHot(Generator &g, bool uniform);           // w1
void generateSessions(Generator &g, bool shuffled);          // w3
void generateTiered(Generator &g, const std::string &curve); // w5
void generateRetail(Generator &g);
void generateClicks(Generator &g);

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_GENERATEPARTS_H
