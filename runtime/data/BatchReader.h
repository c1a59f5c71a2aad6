//===- BatchReader.h - Text tables as batches, read ahead ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread of its own reads, parses and shuffles; next() hands out batches
// from a bounded queue. One consumer thread. Memory is bounded by the queue's
// length times a batch plus the shuffle buffer, whatever the files' sizes.
// The sequence of batches is a function of the options alone.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_BATCHREADER_H
#define TERRACE_RUNTIME_DATA_BATCHREADER_H

#include "runtime/data/RowStream.h"
#include "terrace-rt/session.h"

#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

namespace trc::data {

/// One batch, ready for trc_submit through view().
struct BatchData {
  struct Bags {
    std::vector<int64_t> ids, offsets;
    std::vector<float> weights;
    bool weighted = false;
  };
  struct Origin {
    int32_t file;
    int64_t line;
  };
  int64_t samples = 0;
  std::vector<Bags> features;
  std::vector<float> labels; // empty where the data have no label
  std::vector<Origin> origins;
  std::vector<uint64_t> sessions;
  int64_t epoch = 0;

  void reset(const std::vector<FeatureColumn> &columns);
  void append(const Row &row, bool hasLabel);
  /// Points into this batch; valid until it changes.
  trc_batch view(bool withLabels);

private:
  std::vector<trc_bags> bags;
};

struct ReaderOptions {
  TableFiles files;
  RowFormat format;
  int64_t batch = 2048;
  int64_t shuffleBuffer = 0; // rows; 0: file order
  uint64_t shuffleSeed = 0;
  int64_t first = 0; // rows first..last-1 of the files take part
  int64_t last = std::numeric_limits<int64_t>::max();
  int64_t epochs = 1;
  int64_t skip = 0; // samples to pass over at the start, over all epochs
  int64_t queue = 2;
};

class BatchReader {
public:
  /// Starts reading at once.
  explicit BatchReader(ReaderOptions options);
  ~BatchReader();
  BatchReader(const BatchReader &) = delete;
  BatchReader &operator=(const BatchReader &) = delete;

  /// The next batch, null after the last one; an error is final.
  Result<std::unique_ptr<BatchData>> next();
  /// Gives a batch's memory back for reuse.
  void recycle(std::unique_ptr<BatchData> batch);

  /// Bad rows skipped so far, and the first of them as text.
  int64_t badRows(std::string *first = nullptr) const;
  /// "file:line" of a sample, for errors.
  std::string origin(const BatchData &batch, int64_t sample) const;

private:
  void run();
  Status readEpoch(int64_t epoch);
  /// Appends one sample to the batch being filled; false once stopped.
  bool emit(const Row &row, int64_t epoch);
  bool push();

  const ReaderOptions options;
  // Reader thread only.
  std::unique_ptr<BatchData> filling;
  int64_t toSkip = 0;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<BatchData>> ready;
  std::vector<std::unique_ptr<BatchData>> spare;
  Status failure;
  bool finished = false, stopping = false;
  int64_t bad = 0;
  std::string firstBad;
  std::thread thread; // last: it uses all of the above
};

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_BATCHREADER_H
