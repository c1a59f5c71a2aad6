//===- OpsCaller.cpp - handoff and resume: the caller's tensors -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies outputs into the caller's tensors and gradients out of them, in the
// caller's thread. Any strides; f32, f16 or bf16 in CPU memory.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Element.h"
#include "runtime/exec/FpEnv.h"
#include "runtime/exec/Pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace trc;

namespace {

/// A caller's tensor of one or two dimensions.
struct View {
  char *data = nullptr;
  Element element = Element::f32;
  int64_t rowStride = 0, columnStride = 1;
  char *at(int64_t row, int64_t column) const {
    return data + (row * rowStride + column * columnStride) * itemBytes();
  }
  int64_t itemBytes() const { return element == Element::f32 ? 4 : 2; }
  float get(int64_t row, int64_t column) const {
    float value;
    if (element == Element::f32) // without a call per value
      std::memcpy(&value, at(row, column), 4);
    else
      decodeFloats(element, at(row, column), 1, &value);
    return value;
  }
  void put(int64_t row, int64_t column, float value) const {
    if (element == Element::f32)
      std::memcpy(at(row, column), &value, 4);
    else
      encodeFloats(element, &value, 1, at(row, column));
  }
  bool dense(int64_t dim) const {
    return columnStride == 1 && rowStride == dim;
  }
};

bool parseType(const DLDataType &type, Element &element) {
  if (type.lanes != 1)
    return false;
  if (type.code == kDLFloat && (type.bits == 32 || type.bits == 16))
    element = type.bits == 32 ? Element::f32 : Element::f16;
  else if (type.code == kDLBfloat && type.bits == 16)
    element = Element::bf16;
  else
    return false;
  return true;
}

std::string shapeText(const DLTensor &t) {
  std::string text = "[";
  for (int32_t i = 0; i < t.ndim; ++i)
    text += (i ? ", " : "") + std::to_string(t.shape[i]);
  return text + "]";
}

/// dim < 0: one dimension.
Status viewOf(const DLTensor *t, const std::string &what, int64_t rows,
              int64_t dim, View &view) {
  auto bad = [&](const std::string &why) {
    return Status(TRC_BAD_ARGUMENT, what + ": " + why);
  };
  if (!t)
    return bad("the tensor is null");
  if (t->device.device_type != kDLCPU)
    return bad("the tensor is on device type " +
               std::to_string(t->device.device_type) +
               "; this artifact takes CPU tensors");
  if (!parseType(t->dtype, view.element))
    return bad("the tensor is none of f32, f16 and bf16");
  int32_t ndim = dim < 0 ? 1 : 2;
  if (t->ndim != ndim || !t->shape || t->shape[0] != rows ||
      (dim >= 0 && t->shape[1] != dim))
    return bad(
        "the shape is " +
        (t->shape && t->ndim >= 0 && t->ndim < 8 ? shapeText(*t) : "not set") +
        "; [" + std::to_string(rows) +
        (dim < 0 ? "" : ", " + std::to_string(dim)) + "] is needed");
  if (rows > 0 && !t->data)
    return bad("data is null");
  view.data = static_cast<char *>(t->data) + t->byte_offset;
  view.rowStride = t->strides ? t->strides[0] : std::max<int64_t>(dim, 1);
  view.columnStride = t->strides && ndim == 2 ? t->strides[1] : 1;
  return Status();
}

/// One feature's columns of a tensor that holds all features side by side.
View columnsOf(const View &whole, int64_t first) {
  View part = whole;
  if (part.data)
    part.data += first * whole.columnStride * whole.itemBytes();
  return part;
}

/// Rows are short: most are a few vectors, not worth a call.
void copyFloats(const float *from, char *to, int64_t n) {
  if (n < 64)
    for (; n >= 8; n -= 8, from += 8, to += 32)
      __builtin_memcpy(to, from, 32);
  if (n)
    std::memcpy(to, from, static_cast<size_t>(n) * 4);
}

/// Rows begin .. end - 1 of an output to the caller's tensor.
void copyRows(const float *from, int64_t dim, const View &to, int64_t begin,
              int64_t end) {
  if (begin >= end)
    return;
  if (to.dense(dim)) {
    encodeFloats(to.element, from + begin * dim, (end - begin) * dim,
                 to.at(begin, 0));
    return;
  }
  for (int64_t r = begin; r < end; ++r) {
    const float *row = from + r * dim;
    if (to.columnStride != 1)
      for (int64_t c = 0; c < dim; ++c)
        to.put(r, c, row[c]);
    else if (to.element == Element::f32) // a part of a wider tensor
      copyFloats(row, to.at(r, 0), dim);
    else
      encodeFloats(to.element, row, dim, to.at(r, 0));
  }
}

} // namespace

/// The caller's tensors, one per feature, or one with all columns.
static Status viewsOf(Pipeline &p, int64_t t, const DLTensor *const *tensors,
                      uint32_t count, const char *what,
                      std::vector<View> &views) {
  const auto &features = p.plan.features;
  const auto &shapes = p.plan.shape.features;
  views.resize(features.size());
  if (count == features.size() && (!count || tensors)) {
    for (uint32_t f = 0; f < count; ++f)
      TRC_RETURN_IF_ERROR(
          viewOf(tensors[f],
                 std::string(what) + " of feature '" + features[f].name + "'",
                 p.outputRows(t, f), shapes[f].dim, views[f]));
    return Status();
  }
  if (count != 1 || !tensors)
    return Status(TRC_BAD_ARGUMENT,
                  std::to_string(count) + " " + what + "s; the model has " +
                      std::to_string(features.size()) +
                      " features, each with one; or one tensor holds all");
  int64_t columns = 0;
  for (size_t f = 0; f < features.size(); ++f) {
    if (features[f].pooling == Pooling::none)
      return Status(TRC_BAD_ARGUMENT,
                    std::string("one ") + what +
                        " for all features, but feature '" + features[f].name +
                        "' is not pooled: its rows are ids, not samples");
    columns += shapes[f].dim;
  }
  View whole;
  TRC_RETURN_IF_ERROR(viewOf(tensors[0], std::string(what) + " of all features",
                             p.batch(t).samples, columns, whole));
  int64_t first = 0;
  for (size_t f = 0; f < features.size(); ++f) {
    views[f] = columnsOf(whole, first);
    first += shapes[f].dim;
  }
  return Status();
}

Status Pipeline::copyOutputs(int64_t t, DLTensor *const *outputs,
                             uint32_t count) {
  Batch &b = batch(t);
  if (plan.hasHead) {
    if (count > 2 || (count && !outputs))
      return Status(TRC_BAD_ARGUMENT,
                    std::to_string(count) +
                        " outputs; a model with a head has the predictions "
                        "and, second, the logits");
    const int64_t from[2] = {gradsLayout.predictions, gradsLayout.logits};
    View views[2];
    for (uint32_t i = 0; i < count; ++i)
      TRC_RETURN_IF_ERROR(viewOf(outputs[i], i ? "logits" : "predictions",
                                 b.samples, -1, views[i]));
    for (uint32_t i = 0; i < count; ++i) {
      const float *values = at<float>(gradsRing, t, from[i]);
      for (int64_t s = 0; s < b.samples; ++s)
        views[i].put(s, 0, values[s]);
    }
    return Status();
  }
  std::vector<View> views;
  TRC_RETURN_IF_ERROR(viewsOf(*this, t, outputs, count, "output", views));
  // All features of a few samples, then of the next ones: side by side in one
  // tensor they are one place, and a thousand features are one loop.
  constexpr int64_t together = 64;
  int64_t rows = b.samples, floats = 0;
  for (size_t f = 0; f < views.size(); ++f) {
    rows = std::max(rows, outputRows(t, f)); // ids, where it is not pooled
    floats += plan.shape.features[f].dim;
  }
  const int64_t blocks = (rows + together - 1) / together;
  pool.parallelFor(
      0, blocks, 65536 / (floats * together + 1) + 1,
      [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block)
          for (size_t f = 0; f < views.size(); ++f)
            copyRows(outputOf(t, f), plan.shape.features[f].dim, views[f],
                     block * together,
                     std::min((block + 1) * together, outputRows(t, f)));
      });
  return Status();
}

Status Pipeline::takeGradients(int64_t t, const DLTensor *const *gradients,
                               uint32_t count, float scale) {
  ScopedStrictFp strict;
  Batch &b = batch(t);
  if (plan.hasHead) {
    if (gradients || count)
      return Status(TRC_BAD_ARGUMENT, "the model has a head: gradients are its "
                                      "own; pass NULL and 0");
    if (scale != 1.0f)
      return Status(TRC_BAD_ARGUMENT,
                    "grad_scale is for trainers with a head of their own");
    if (!b.hasLabels)
      return Status(TRC_BAD_ARGUMENT,
                    "the batch was submitted without labels; release it");
    return b.gradError.clone();
  }
  std::vector<View> views;
  TRC_RETURN_IF_ERROR(viewsOf(*this, t, gradients, count, "gradient", views));
  for (size_t f = 0; f < views.size(); ++f) {
    int64_t dim = plan.shape.features[f].dim, rows = outputRows(t, f);
    int g = plan.shape.features[f].group;
    bool max = gradsLayout.bagAt[f] >= 0;
    float *to = max ? at<float>(gradsRing, t, gradsLayout.bagAt[f])
                    : at<float>(gradsRing, t, gradsLayout.groupAt[g]) +
                          gradsLayout.rowBase[f] * dim;
    const View &from = views[f];
    std::mutex mutex;
    int64_t bad = rows * dim;
    pool.parallelFor(0, rows, 65536 / dim + 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        float *row = to + r * dim;
        if (from.columnStride == 1)
          decodeFloats(from.element, from.at(r, 0), dim, row);
        else
          for (int64_t c = 0; c < dim; ++c)
            row[c] = from.get(r, c);
        if (scale != 1.0f)
          for (int64_t c = 0; c < dim; ++c)
            row[c] = scale * row[c];
        // Without a branch per value; which one it is matters rarely.
        uint32_t infinite = 0;
        for (int64_t c = 0; c < dim; ++c) {
          uint32_t bits;
          std::memcpy(&bits, row + c, 4);
          infinite |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        if (!infinite)
          continue;
        int64_t c = 0;
        while (std::isfinite(row[c]))
          ++c;
        std::lock_guard<std::mutex> lock(mutex);
        bad = std::min(bad, r * dim + c);
        return;
      }
    });
    if (bad < rows * dim) {
      int64_t r = bad / dim, c = bad % dim, sample = r, position = c;
      std::string where = ", column " + std::to_string(c);
      if (plan.features[f].pooling == Pooling::none) {
        const int32_t *offsets = offsetsOf(t, f);
        for (sample = 0; offsets[sample + 1] <= r;)
          ++sample;
        position = r - offsets[sample];
        where = ", position " + std::to_string(position) + where;
      }
      float value = from.get(r, c);
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      return Status::badInput(
          "gradient of feature '" + plan.features[f].name + "', sample " +
              std::to_string(sample) + where + " is " + shortest(value) +
              (scale == 1.0f ? "" : " times " + shortest(scale)) +
              "; gradients must be finite; the step was not applied "
              "(on_bad_grad: skip counts such steps)",
          plan.features[f].name, sample, position, bits);
    }
    if (max)
      scatterMax(t, f);
  }
  return Status();
}
