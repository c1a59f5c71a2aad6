//===- BatchReader.cpp - Text tables as batches, read ahead
//----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/BatchReader.h"

#include "runtime/core/Hash.h"

#include <algorithm>
#include <cmath>

namespace trc::data {

void BatchData::reset(const std::vector<FeatureColumn> &columns) {
  samples = 0;
  features.resize(columns.size());
  for (size_t f = 0; f < columns.size(); ++f) {
    features[f].ids.clear();
    features[f].offsets.assign(1, 0);
    features[f].weights.clear();
    features[f].weighted = !columns[f].weights.empty();
  }
  labels.clear();
  origins.clear();
  sessions.clear();
}

void BatchData::append(const Row &row, bool hasLabel) {
  const int64_t *id = row.ids.data();
  const float *weight = row.weights.data();
  for (size_t f = 0; f < features.size(); ++f) {
    Bags &b = features[f];
    int64_t n = row.counts[f];
    b.ids.insert(b.ids.end(), id, id + n);
    b.offsets.push_back(static_cast<int64_t>(b.ids.size()));
    id += n;
    if (b.weighted) {
      b.weights.insert(b.weights.end(), weight, weight + n);
      weight += n;
    }
  }
  if (hasLabel)
    labels.push_back(row.label);
  origins.push_back({row.file, row.line});
  sessions.push_back(row.session);
  ++samples;
}

trc_batch BatchData::view(bool withLabels) {
  bags.clear();
  for (const Bags &f : features) {
    trc_bags b = {};
    b.values = f.ids.data();
    b.offsets = f.offsets.data();
    b.weights = f.weighted ? f.weights.data() : nullptr;
    b.value_count = static_cast<int64_t>(f.ids.size());
    b.value_bits = 64;
    b.offset_bits = 64;
    bags.push_back(b);
  }
  trc_batch v = {};
  v.struct_size = sizeof(v);
  v.feature_count = static_cast<uint32_t>(bags.size());
  v.features = bags.data();
  v.samples = samples;
  v.labels = withLabels && !labels.empty() ? labels.data() : nullptr;
  return v;
}

BatchReader::BatchReader(ReaderOptions given)
    : options(std::move(given)), toSkip(options.skip),
      thread([this] { run(); }) {}

BatchReader::~BatchReader() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

Result<std::unique_ptr<BatchData>> BatchReader::next() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return !ready.empty() || finished; });
  if (!ready.empty()) {
    std::unique_ptr<BatchData> batch = std::move(ready.front());
    ready.pop_front();
    lock.unlock();
    changed.notify_all();
    return batch;
  }
  if (!failure.ok())
    return failure.clone();
  return std::unique_ptr<BatchData>();
}

void BatchReader::recycle(std::unique_ptr<BatchData> batch) {
  if (!batch)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  if (spare.size() < static_cast<size_t>(options.queue))
    spare.push_back(std::move(batch));
}

int64_t BatchReader::badRows(std::string *first) const {
  std::lock_guard<std::mutex> lock(mutex);
  if (first)
    *first = firstBad;
  return bad;
}

std::string BatchReader::origin(const BatchData &batch, int64_t sample) const {
  if (sample < 0 || sample >= batch.samples)
    return "";
  const BatchData::Origin &o = batch.origins[static_cast<size_t>(sample)];
  return options.files.paths[static_cast<size_t>(o.file)] + ":" +
         std::to_string(o.line);
}

bool BatchReader::push() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] {
    return stopping || ready.size() < static_cast<size_t>(options.queue);
  });
  if (stopping)
    return false;
  ready.push_back(std::move(filling));
  lock.unlock();
  changed.notify_all();
  return true;
}

bool BatchReader::emit(const Row &row, int64_t epoch) {
  if (toSkip > 0) {
    --toSkip;
    return true;
  }
  if (!filling) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!spare.empty()) {
        filling = std::move(spare.back());
        spare.pop_back();
      }
    }
    if (!filling)
      filling = std::make_unique<BatchData>();
    filling->reset(options.format.features);
    filling->epoch = epoch;
  }
  // A NaN label marks a file without the (optional) label column.
  filling->append(row, !std::isnan(row.label));
  return filling->samples < options.batch || push();
}

Status BatchReader::readEpoch(int64_t epoch) {
  RowStream rows(options.files, options.format);
  Result<int64_t> passed = rows.skip(options.first);
  if (!passed.ok())
    return passed.takeStatus();
  int64_t left = options.last - options.first, taken = 0;
  bool shuffle = options.shuffleBuffer > 1;
  if (!shuffle && toSkip > 0) { // whole lines, without parsing them
    Result<int64_t> n = rows.skip(std::min(toSkip, left));
    if (!n.ok())
      return n.takeStatus();
    toSkip -= *n;
    taken = *n;
  }
  std::vector<Row> buffer;
  SplitMix random(mix64(options.shuffleSeed) + static_cast<uint64_t>(epoch));
  Row row;
  bool stopped = false;
  int64_t seenBad = 0;
  while (taken < left && !stopped) {
    Result<bool> got = rows.next(row);
    if (!got.ok())
      return got.takeStatus();
    if (rows.badRows() != seenBad) {
      std::lock_guard<std::mutex> lock(mutex);
      bad += rows.badRows() - seenBad;
      seenBad = rows.badRows();
      if (firstBad.empty())
        firstBad = rows.firstBad();
    }
    if (!*got)
      break;
    ++taken;
    if (!shuffle) {
      stopped = !emit(row, epoch);
    } else if (buffer.size() < static_cast<size_t>(options.shuffleBuffer)) {
      buffer.push_back(row);
    } else {
      std::swap(buffer[random.below(buffer.size())], row);
      stopped = !emit(row, epoch);
    }
  }
  while (!buffer.empty() && !stopped) {
    std::swap(buffer[random.below(buffer.size())], buffer.back());
    stopped = !emit(buffer.back(), epoch);
    buffer.pop_back();
  }
  if (!stopped && filling && filling->samples > 0)
    push(); // an epoch's last batch may be partial
  if (taken == 0)
    return Status(TRC_BAD_INPUT,
                  "the data hold no rows: " + options.files.paths.front() +
                      (options.files.paths.size() > 1 ? ", ..." : ""));
  return Status();
}

void BatchReader::run() {
  Status status;
  try {
    for (int64_t e = 0; e < options.epochs && status.ok(); ++e) {
      status = readEpoch(e);
      std::lock_guard<std::mutex> lock(mutex);
      if (stopping)
        break;
    }
  } catch (const std::bad_alloc &) {
    status = Status(TRC_NO_MEMORY, "no memory to read the data");
  }
  // Full batches before a bad row are handed out; the partial one that the row
  // would have joined is not. So the batches do not depend on timing.
  {
    std::lock_guard<std::mutex> lock(mutex);
    failure = std::move(status);
    finished = true;
  }
  changed.notify_all();
}

} // namespace trc::data
