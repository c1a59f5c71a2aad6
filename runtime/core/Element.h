//===- Element.h - Types that weights are stored in -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "Storage" of docs/numerics.md. Arithmetic is f32 everywhere; only rows at
// rest are narrower. The kernels convert for themselves: here is what the rest
// of the runtime needs, by integer operations alone. Thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_ELEMENT_H
#define TERRACE_RUNTIME_CORE_ELEMENT_H

#include "runtime/core/Quantize.h"

#include <cstdint>
#include <string>

namespace trc {

/// i8 and i4: whole numbers with a scale and a bias per row (Quantize.h), in
/// artifacts that serve.
enum class Element { f32, f16, bf16, i8, i4 };

const char *elementName(Element element);
bool parseElement(const std::string &name, Element &element);

inline bool isQuantized(Element element) {
  return element == Element::i8 || element == Element::i4;
}
inline int quantizedBits(Element element) {
  return element == Element::i8 ? 8 : 4;
}
/// Columns of the longest row that is quantised.
constexpr int64_t mostQuantizedColumns = 2048;

/// Bytes of a row's weights, with its scale and bias.
inline int64_t weightsBytes(Element element, int64_t dim) {
  if (isQuantized(element))
    return rowScaleBytes + (dim * quantizedBits(element) + 7) / 8;
  return dim * (element == Element::f32 ? 4 : 2);
}
/// Where the state of a row begins: behind its weights, at 4 bytes.
inline int64_t stateOffset(Element element, int64_t dim) {
  return (weightsBytes(element, dim) + 3) / 4 * 4;
}

/// To nearest, ties to even.
uint16_t f16FromF32(float x);
uint16_t bf16FromF32(float x);
float f32FromF16(uint16_t bits);
float f32FromBF16(uint16_t bits);

/// Numbers of f32, f16 or bf16 to and from f32; `bits` may lie at any byte.
void decodeFloats(Element element, const char *bits, int64_t count, float *to);
void encodeFloats(Element element, const float *from, int64_t count,
                  char *bits);

void decodeWeights(Element element, const char *from, int64_t dim, float *to);
/// Also zeroes what lies between the weights and the state.
void encodeWeights(Element element, const float *from, int64_t dim, char *to);
/// Makes weights what a row would keep of them.
void roundWeights(Element element, float *weights, int64_t dim);
/// Why a row of finite weights cannot be stored so: "column 3 is 1e9, too large
/// for f16"; empty where it can. Of f32 everything passes.
std::string whyNotStored(Element element, const float *weights, int64_t dim,
                         int64_t *column = nullptr);

/// The seed of a row's random rounding at a step. key: of the table; row: of
/// the table, not of its group.
uint64_t roundingSeed(uint64_t key, int64_t step, int64_t row);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_ELEMENT_H
