//===- ToyModel.h - Artifacts made by hand, for tests -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds a small plan, as the compiler would for one worker, with any home,
// cache size and lookahead, and wraps the C ABI so that a test reads well.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_EXEC_TOYMODEL_H
#define TERRACE_TEST_RUNTIME_EXEC_TOYMODEL_H

#include "runtime/core/Hash.h"
#include "runtime/core/Plan.h"
#include "terrace-rt/terrace-rt.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace toy {

using nlohmann::json;

const void *findKernel(const std::string &name);

struct Table {
  std::string name;
  int64_t rows, dim;
  json optimizer;
  bool hash = false;
  json init = {{"kind", "uniform"}, {"low", -0.5}, {"high", 0.5}};
};
struct Feature {
  std::string name;
  int table;
  std::string pooling = "sum";
  int64_t maxIds = 1;
  bool weighted = false;
  std::string overflow = "error";
  bool dedup = false;
};
struct Model {
  std::string name = "toy";
  std::vector<Table> tables;
  std::vector<Feature> features;
  std::string head; // "": a library
  int64_t batch = 16;
  int64_t lookahead = 2;
  bool dropBadIds = false, skipBadGrads = false;
  // Per table, by turns: home on nvme behind a cache, or in memory.
  std::vector<bool> cached = {false};
  bool direct = false; // groups in memory are looked up by id, where they may
  int64_t retained = 0;
  int64_t spareSlots = 0; // above the least
  std::string policy = "lru";
  std::vector<std::string> paths = {"toy.store"};
  std::string homeKind = "nvme"; // of the tier behind the cache
  double space = 3;
  std::string onFull = "error";
  std::string initKey = "1234";
};

json rowwiseAdagrad(double lr = 0.1);
json sgd(double lr = 0.1, double decay = 0);
json adam(double lr = 0.01);
json adagrad(double lr = 0.1);

json makePlan(const Model &model);

/// A linked-in artifact.
class Artifact {
public:
  explicit Artifact(const Model &model) : Artifact(makePlan(model)) {}
  explicit Artifact(const json &plan);
  const trc_artifact *get() const { return &artifact; }
  const std::string &text() const { return plan; }

private:
  std::string plan;
  std::vector<std::string> names;
  std::vector<trc_kernel> kernels;
  trc_artifact artifact;
};

/// Bags of every feature.
struct Batch {
  struct Bags {
    std::vector<int64_t> ids;
    std::vector<int32_t> offsets{0};
    std::vector<float> weights;
    void add(const std::vector<int64_t> &bag, bool weighted = false,
             const std::vector<float> &w = {});
  };
  int64_t samples = 0;
  std::vector<Bags> features;
  std::vector<float> labels;
  bool forwardOnly = false;

  /// Pointers into this batch.
  const trc_batch *abi();

private:
  std::vector<trc_bags> views;
  trc_batch view = {};
};

Batch randomBatch(const Model &model, trc::SplitMix &random, int64_t samples);

/// A temporary folder, removed at the end.
class Folder {
public:
  Folder();
  ~Folder();
  std::string path() const { return folder; }
  std::string operator/(const std::string &name) const {
    return folder + "/" + name;
  }

private:
  std::string folder;
};

/// A tensor [rows, dim] (dim < 0: [rows]) over its own memory.
struct Tensor {
  std::vector<float> values;
  int64_t shape[2];
  DLTensor view;
  Tensor(int64_t rows, int64_t dim);
  Tensor(const Tensor &) = delete;
};

class Session {
public:
  Session() { clear(); }
  ~Session();
  Session(const Session &) = delete;

  trc_status open(const Artifact &artifact, const std::string &state,
                  int mode = TRC_TRAIN, uint32_t flags = 0,
                  const char *from = nullptr, const char *initFrom = nullptr,
                  uint32_t threads = 2);
  /// The session stays where it may be closed again.
  trc_status close();
  void discard();
  trc_session *get() const { return session; }
  std::vector<std::string> logs;

  trc_status submit(Batch &batch, trc_ticket &ticket);
  trc_status forward(trc_ticket ticket);
  /// Outputs of the last forward, per feature.
  std::vector<std::unique_ptr<Tensor>> outputs;
  trc_status backward(trc_ticket ticket,
                      const std::vector<std::vector<float>> &gradients,
                      float scale = 1, float *const *weights = nullptr);
  trc_status backwardHead(trc_ticket ticket);
  trc_status release(trc_ticket ticket);
  trc_model_info info();
  /// Weights and states of all rows of a table.
  std::vector<std::vector<float>> dump(const std::string &table, int64_t rows,
                                       int64_t dim,
                                       const std::vector<int64_t> &widths);
  json stats();

  trc_error error;

private:
  void clear();
  static void onLog(void *user, int32_t level, const char *line);
  trc_session *session = nullptr;
  const Batch *lastBatch(trc_ticket ticket) const;
  struct Shape {
    int64_t samples;
    std::vector<int64_t> ids;
  };
  std::vector<Shape> shapes; // by ticket - 1
  std::vector<int64_t> dims;
  std::vector<bool> perId;
  bool head = false;

public:
  /// Ids of a feature that remain in that batch (drops and cuts), if they
  /// differ from what was submitted.
  void setRemaining(trc_ticket ticket, size_t feature, int64_t ids) {
    shapes[ticket - 1].ids[feature] = ids;
  }
};

/// Gradients that depend on nothing but the outputs, so that two runs agree.
std::vector<std::vector<float>> gradientsFor(const Session &session);

} // namespace toy

#endif // TERRACE_TEST_RUNTIME_EXEC_TOYMODEL_H
