//===- ToySession.cpp - Batches and a session that read well in tests -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace toy;

void Batch::Bags::add(const std::vector<int64_t> &bag, bool weighted,
                      const std::vector<float> &w) {
  ids.insert(ids.end(), bag.begin(), bag.end());
  offsets.push_back(static_cast<int32_t>(ids.size()));
  if (weighted)
    weights.insert(weights.end(), w.begin(), w.end());
}

const trc_batch *Batch::abi() {
  views.clear();
  for (Bags &b : features) {
    trc_bags v = {};
    v.values = b.ids.data();
    v.offsets = b.offsets.data();
    v.weights = b.weights.empty() ? nullptr : b.weights.data();
    v.value_count = static_cast<int64_t>(b.ids.size());
    v.value_bits = 64;
    v.offset_bits = 32;
    views.push_back(v);
  }
  std::memset(&view, 0, sizeof(view));
  view.struct_size = sizeof(view);
  view.feature_count = static_cast<uint32_t>(views.size());
  view.features = views.data();
  view.samples = samples;
  view.labels = labels.empty() ? nullptr : labels.data();
  view.flags = forwardOnly ? TRC_BATCH_FORWARD_ONLY : 0;
  return &view;
}

Batch toy::randomBatch(const Model &m, trc::SplitMix &random, int64_t samples) {
  Batch batch;
  batch.samples = samples;
  batch.features.resize(m.features.size());
  for (int64_t s = 0; s < samples; ++s) {
    // A sample may repeat an earlier one, so that bags coincide.
    bool repeat = s > 0 && random.below(3) == 0;
    int64_t from = repeat ? static_cast<int64_t>(random.below(s)) : 0;
    for (size_t f = 0; f < m.features.size(); ++f) {
      const Feature &x = m.features[f];
      Batch::Bags &bags = batch.features[f];
      std::vector<int64_t> ids;
      std::vector<float> weights;
      if (repeat && x.dedup) {
        ids.assign(bags.ids.begin() + bags.offsets[from],
                   bags.ids.begin() + bags.offsets[from + 1]);
        if (x.weighted)
          weights.assign(bags.weights.begin() + bags.offsets[from],
                         bags.weights.begin() + bags.offsets[from + 1]);
      } else {
        int64_t most = x.maxIds + (x.overflow == "error" ? 0 : 2);
        int64_t n = static_cast<int64_t>(random.below(most + 1));
        for (int64_t j = 0; j < n; ++j) {
          uint64_t rows = static_cast<uint64_t>(m.tables[x.table].rows);
          // Skewed: small ids are hot.
          uint64_t id = random.below(random.below(2) ? rows : rows / 8 + 1);
          ids.push_back(static_cast<int64_t>(
              m.tables[x.table].hash ? random.below(3) * 1000003 + id : id));
          if (x.weighted)
            weights.push_back(static_cast<float>(random.unit() + 0.25));
        }
      }
      bags.add(ids, x.weighted, weights);
    }
    if (!m.head.empty())
      batch.labels.push_back(static_cast<float>(random.below(2)));
  }
  return batch;
}

Folder::Folder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "terrace-XXXXXX").string();
  folder = ::mkdtemp(pattern.data());
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

Tensor::Tensor(int64_t rows, int64_t dim)
    : values(static_cast<size_t>(rows * (dim < 0 ? 1 : dim))) {
  shape[0] = rows;
  shape[1] = dim;
  std::memset(&view, 0, sizeof(view));
  view.data = values.data();
  view.device = {kDLCPU, 0};
  view.ndim = dim < 0 ? 1 : 2;
  view.dtype = {kDLFloat, 32, 1};
  view.shape = shape;
}

void toy::Session::clear() {
  std::memset(&error, 0, sizeof(error));
  error.struct_size = sizeof(error);
}

toy::Session::~Session() {
  if (session && close() != TRC_OK)
    discard();
}

void toy::Session::discard() {
  (void)trc_discard(session, nullptr);
  session = nullptr;
}

void toy::Session::onLog(void *user, int32_t, const char *line) {
  static_cast<Session *>(user)->logs.push_back(line);
}

trc_status toy::Session::open(const Artifact &artifact,
                              const std::string &state, int mode,
                              uint32_t flags, const char *from,
                              const char *initFrom, uint32_t threads) {
  clear();
  trc_open_options o = {};
  o.struct_size = sizeof(o);
  o.mode = mode;
  o.artifact = artifact.get();
  o.state_dir = state.c_str();
  o.flags = flags;
  o.threads = threads;
  o.from = from;
  o.init_from = initFrom;
  o.log = onLog;
  o.log_user = this;
  shapes.clear();
  trc_status status = trc_open(&o, &session, &error);
  if (status != TRC_OK)
    return status;
  trc_model_info i = info();
  head = i.head != nullptr;
  dims.clear();
  perId.clear();
  for (uint32_t f = 0; f < i.feature_count; ++f) {
    dims.push_back(i.features[f].dim);
    perId.push_back(std::string(i.features[f].pooling) == "none");
  }
  return status;
}

trc_status toy::Session::close() {
  clear();
  trc_status status = trc_close(session, &error);
  if (status != TRC_NO_SPACE && status != TRC_IO && status != TRC_NO_MEMORY)
    session = nullptr;
  return status;
}

trc_model_info toy::Session::info() {
  trc_model_info i = {};
  i.struct_size = sizeof(i);
  (void)trc_describe(session, &i, &error);
  return i;
}

trc_status toy::Session::submit(Batch &batch, trc_ticket &ticket) {
  clear();
  trc_status status = trc_submit(session, batch.abi(), &ticket, &error);
  if (status != TRC_OK)
    return status;
  Shape shape{batch.samples, {}};
  for (const Batch::Bags &b : batch.features)
    shape.ids.push_back(static_cast<int64_t>(b.ids.size()));
  shapes.resize(std::max<size_t>(shapes.size(), ticket));
  shapes[ticket - 1] = shape;
  return status;
}

trc_status toy::Session::forward(trc_ticket ticket) {
  clear();
  outputs.clear();
  if (ticket == 0 || ticket > shapes.size())
    return trc_forward(session, ticket, nullptr, 0, &error);
  const Shape &shape = shapes[ticket - 1];
  if (head) {
    outputs.push_back(std::make_unique<Tensor>(shape.samples, -1));
  } else {
    for (size_t f = 0; f < dims.size(); ++f)
      outputs.push_back(std::make_unique<Tensor>(
          perId[f] ? shape.ids[f] : shape.samples, dims[f]));
  }
  std::vector<DLTensor *> views;
  for (auto &t : outputs)
    views.push_back(&t->view);
  return trc_forward(session, ticket, views.data(),
                     static_cast<uint32_t>(views.size()), &error);
}

trc_status
toy::Session::backward(trc_ticket ticket,
                       const std::vector<std::vector<float>> &gradients,
                       float scale, float *const *weights) {
  clear();
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<const DLTensor *> views;
  for (size_t f = 0; f < gradients.size(); ++f) {
    tensors.push_back(std::make_unique<Tensor>(
        static_cast<int64_t>(gradients[f].size()) / dims[f], dims[f]));
    tensors.back()->values = gradients[f];
    tensors.back()->view.data = tensors.back()->values.data();
    views.push_back(&tensors.back()->view);
  }
  trc_backward_options o = {};
  o.struct_size = sizeof(o);
  o.grad_scale = scale;
  o.weight_gradients = weights;
  return trc_backward(session, ticket, views.data(),
                      static_cast<uint32_t>(views.size()), &o, &error);
}

trc_status toy::Session::backwardHead(trc_ticket ticket) {
  clear();
  return trc_backward(session, ticket, nullptr, 0, nullptr, &error);
}

trc_status toy::Session::release(trc_ticket ticket) {
  clear();
  return trc_release(session, ticket, &error);
}

std::vector<std::vector<float>>
toy::Session::dump(const std::string &table, int64_t rows, int64_t dim,
                   const std::vector<int64_t> &widths) {
  clear();
  std::vector<int64_t> all(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i)
    all[static_cast<size_t>(i)] = i;
  std::vector<std::vector<float>> out;
  out.emplace_back(static_cast<size_t>(rows * dim));
  EXPECT_EQ(TRC_OK, trc_read_rows(session, table.c_str(), all.data(), rows,
                                  out[0].data(), &error))
      << error.message;
  for (size_t s = 0; s < widths.size(); ++s) {
    out.emplace_back(static_cast<size_t>(rows * widths[s]));
    EXPECT_EQ(TRC_OK,
              trc_read_state(session, table.c_str(), static_cast<int32_t>(s),
                             all.data(), rows, out.back().data(), &error))
        << error.message;
  }
  return out;
}

json toy::Session::stats() {
  const char *text = nullptr;
  clear();
  if (trc_stats(session, &text, &error) != TRC_OK)
    return json();
  return json::parse(text);
}

std::vector<std::vector<float>> toy::gradientsFor(const Session &session) {
  std::vector<std::vector<float>> grads;
  for (size_t f = 0; f < session.outputs.size(); ++f) {
    grads.emplace_back();
    for (size_t i = 0; i < session.outputs[f]->values.size(); ++i) {
      float v = session.outputs[f]->values[i];
      grads.back().push_back(
          0.25f * v + 0.01f * static_cast<float>((i * 7 + f) % 5) - 0.02f);
    }
  }
  return grads;
}
