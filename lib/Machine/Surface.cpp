//===- Surface.cpp - A measured figure over two axes ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Costs change with the order of magnitude of a size, so the axes are
// logarithmic; a figure between two points never leaves their range.
//
//===----------------------------------------------------------------------===//
#include "Machine/Surface.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace terrace;
using namespace terrace::machine;

namespace {

/// The cell of an axis that holds a point, and how far into it.
struct Place {
  size_t low = 0, high = 0;
  double part = 0;
};

Place placeOn(const std::vector<double> &axis, double point) {
  if (!(point > axis.front()))
    return {};
  if (point >= axis.back())
    return {axis.size() - 1, axis.size() - 1, 0};
  size_t high = static_cast<size_t>(
      std::upper_bound(axis.begin(), axis.end(), point) - axis.begin());
  return {high - 1, high,
          std::log(point / axis[high - 1]) /
              std::log(axis[high] / axis[high - 1])};
}

/// A list of numbers above 0.
std::string readNumbers(const json::Value *value, const Twine &key,
                        std::vector<double> &out) {
  const json::Array *list = value ? value->getAsArray() : nullptr;
  if (!list || list->empty())
    return (key + ": expected a list of numbers").str();
  out.clear();
  for (size_t i = 0; i < list->size(); ++i) {
    std::optional<double> v = (*list)[i].getAsNumber();
    if (!v || !(*v >= 1e-9) || *v > 1e15)
      return (key + "[" + Twine(i) + "]: expected a number from 1e-9 to 1e15")
          .str();
    out.push_back(*v);
  }
  return "";
}

std::string readAxis(const json::Object &o, StringRef key,
                     std::vector<double> &out) {
  std::string error = readNumbers(o.get(key), key, out);
  for (size_t i = 1; error.empty() && i < out.size(); ++i)
    if (out[i] <= out[i - 1])
      error = (key + "[" + Twine(i) + "]: the sizes of a grid rise").str();
  return error;
}

} // namespace

double Surface::at(double px, double py) const {
  if (empty())
    return 0;
  Place a = placeOn(x, px), b = placeOn(y, py);
  auto cell = [&](size_t i, size_t j) { return values[i * y.size() + j]; };
  double low = cell(a.low, b.low) * (1 - b.part) + cell(a.low, b.high) * b.part;
  double high =
      cell(a.high, b.low) * (1 - b.part) + cell(a.high, b.high) * b.part;
  return low * (1 - a.part) + high * a.part;
}

std::string machine::readSurface(const json::Value &value,
                                 const SurfaceKeys &keys, Surface &out) {
  const json::Object *o = value.getAsObject();
  if (!o)
    return ": expected a mapping of " + std::string(keys.x) + ", " + keys.y +
           " and " + keys.value;
  for (const auto &entry : *o) {
    StringRef key = entry.first;
    if (key != keys.x && key != keys.y && key != keys.value)
      return ("." + key + ": unknown key").str();
  }
  Surface read;
  std::string error = readAxis(*o, keys.x, read.x);
  if (error.empty())
    error = readAxis(*o, keys.y, read.y);
  if (!error.empty())
    return "." + error;
  const json::Value *grid = o->get(keys.value);
  const json::Array *lines = grid ? grid->getAsArray() : nullptr;
  if (!lines || lines->size() != read.x.size())
    return (Twine(".") + keys.value + ": expected a list of " +
            Twine(read.x.size()) + " lists, one for each of " + keys.x)
        .str();
  for (size_t i = 0; i < lines->size(); ++i) {
    std::vector<double> line;
    std::string key = (Twine(keys.value) + "[" + Twine(i) + "]").str();
    error = readNumbers(&(*lines)[i], key, line);
    if (!error.empty())
      return "." + error;
    if (line.size() != read.y.size())
      return (Twine(".") + key + ": " + Twine(line.size()) + " numbers for " +
              Twine(read.y.size()) + " of " + keys.y)
          .str();
    llvm::append_range(read.values, line);
  }
  out = std::move(read);
  return "";
}

json::Value machine::surfaceJson(const Surface &surface,
                                 const SurfaceKeys &keys) {
  json::Array lines;
  for (size_t i = 0; i < surface.x.size(); ++i) {
    json::Array line;
    for (size_t j = 0; j < surface.y.size(); ++j)
      line.push_back(surface.values[i * surface.y.size() + j]);
    lines.push_back(std::move(line));
  }
  return json::Object{{keys.x, json::Array(surface.x)},
                      {keys.y, json::Array(surface.y)},
                      {keys.value, std::move(lines)}};
}
