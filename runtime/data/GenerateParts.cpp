//===- GenerateParts.cpp - What the generators are made of
//-----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/GenerateParts.h"

#include "runtime/core/Math.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <zlib.h>

namespace trc::data {

TableWriter::TableWriter(std::string path) : path(std::move(path)) {}

TableWriter::~TableWriter() {
  if (gz)
    gzclose(static_cast<gzFile>(gz));
}

Status TableWriter::open() {
  bool packed = path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  unfinished = Unfinished(part());
  errno = 0;
  // "T" writes plain bytes through the same calls.
  gz = gzopen(part().c_str(), packed ? "wb1" : "wbT");
  if (!gz) {
    int err = errno ? errno : ENOMEM;
    unfinished.keep(); // it is not there
    return Status::ioError("cannot write", path, err);
  }
  return Status();
}

void TableWriter::separate() {
  if (!first)
    buffer += '\t';
  first = false;
}

void TableWriter::field(int64_t value) {
  separate();
  char text[24];
  buffer.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

void TableWriter::field(const std::string &text) {
  separate();
  buffer += text;
}

void TableWriter::list(const std::vector<int64_t> &values, char separator) {
  separate();
  char text[24];
  for (size_t i = 0; i < values.size(); ++i) {
    if (i)
      buffer += separator;
    buffer.append(text,
                  std::to_chars(text, text + sizeof(text), values[i]).ptr);
  }
}

void TableWriter::endRow() {
  buffer += '\n';
  first = true;
  ++count;
  if (buffer.size() > 256 * 1024)
    flush();
}

void TableWriter::flush() {
  if (!failed && !buffer.empty() &&
      gzwrite(static_cast<gzFile>(gz), buffer.data(),
              static_cast<unsigned>(buffer.size())) <= 0)
    failed = true;
  buffer.clear();
}

Status TableWriter::finish() {
  flush();
  int err = errno;
  int rc = gzclose(static_cast<gzFile>(gz));
  gz = nullptr;
  if (failed || rc != Z_OK)
    return Status::ioError("cannot write", path,
                           rc == Z_ERRNO ? errno
                           : err         ? err
                                         : EIO);
  if (std::rename(part().c_str(), path.c_str()) != 0)
    return Status::ioError("cannot write", path, errno);
  unfinished.keep();
  return Status();
}

static double power(double base, double exponent) {
  return math::exp(exponent * math::log(base));
}

ZipfSampler::ZipfSampler(int64_t n, double slope) {
  double sum = 0;
  for (int64_t r = 1; r <= n; ++r)
    cumulative.push_back(sum += power(static_cast<double>(r), -slope));
}

int64_t ZipfSampler::draw(SplitMix &random) const {
  double u = random.unit() * cumulative.back();
  auto it = std::upper_bound(cumulative.begin(), cumulative.end() - 1, u);
  return it - cumulative.begin();
}

CurveSampler::CurveSampler(int64_t n, const double (&shares)[4]) : n(n) {
  double x = 1e-4;
  for (int i = 0; i < 4; ++i, x *= 10) {
    logX[i] = math::log(x);
    logC[i] = math::log(shares[i]);
  }
  logX[4] = logC[4] = 0;
}

int64_t CurveSampler::draw(SplitMix &random) const {
  double c = math::log(1.0 - random.unit()); // of (0, 1]
  int i = 0;
  while (i < 3 && c > logC[i + 1])
    ++i;
  // Below the first point its segment's line goes on to the hottest row.
  double slope = (logX[i + 1] - logX[i]) / (logC[i + 1] - logC[i]);
  double x = math::exp(logX[i] + (c - logC[i]) * slope);
  int64_t rank = static_cast<int64_t>(x * static_cast<double>(n));
  return std::min(std::max<int64_t>(rank, 0), n - 1);
}

Scatter::Scatter(int64_t rows, uint64_t seed) : n(static_cast<uint64_t>(rows)) {
  // About the golden section of n, so that neighbours land far apart.
  factor = std::max<uint64_t>(
      1, static_cast<uint64_t>(0.6180339887 * static_cast<double>(n)));
  while (std::gcd(factor, n) != 1)
    ++factor;
  offset = mix64(seed) % n;
}

int64_t Scatter::operator()(int64_t rank) const {
  return static_cast<int64_t>(
      (static_cast<unsigned __int128>(rank) * factor + offset) % n);
}

double IdCounter::distinct() const {
  return static_cast<double>(
      counts.size() -
      static_cast<size_t>(std::count(counts.begin(), counts.end(), 0u)));
}

double IdCounter::topShare() const {
  return total ? double(*std::max_element(counts.begin(), counts.end())) /
                     double(total)
               : 0;
}

double IdCounter::shareOf(size_t hottest) const {
  if (!total)
    return 0;
  std::vector<uint32_t> sorted = counts;
  hottest = std::min(std::max<size_t>(hottest, 1), sorted.size());
  std::partial_sort(sorted.begin(),
                    sorted.begin() + static_cast<int64_t>(hottest),
                    sorted.end(), std::greater<uint32_t>());
  double sum = 0;
  for (size_t i = 0; i < hottest; ++i)
    sum += sorted[i];
  return sum / static_cast<double>(total);
}

double IdCounter::shareOfHottest(double fraction) const {
  return shareOf(static_cast<size_t>(fraction * distinct()));
}

double IdCounter::shareOfHottestRows(double fraction) const {
  return shareOf(
      static_cast<size_t>(fraction * static_cast<double>(counts.size())));
}

double standardNormal(SplitMix &random) {
  return math::normalQuantile((static_cast<double>(random.next() >> 12) + 0.5) *
                              0x1p-52);
}

double logNormal(SplitMix &random, double mu, double sigma) {
  return math::exp(mu + sigma * standardNormal(random));
}

int64_t geometric(SplitMix &random, double mean) {
  if (mean <= 1)
    return 1;
  double u = 1.0 - random.unit();
  return 1 + static_cast<int64_t>(math::log(u) / math::log(1 - 1 / mean));
}

double effectOf(uint64_t seed, uint64_t key) {
  uint64_t h = mix64(mix64(seed) ^ (key * 0x9e3779b97f4a7c15ull + 1));
  return math::normalQuantile((static_cast<double>(h >> 12) + 0.5) * 0x1p-52);
}

bool bernoulli(SplitMix &random, double logit) {
  return random.unit() < 1 / (1 + math::exp(-logit));
}

} // namespace trc::data
