/*===- artifact.h - What the compiler hands to the runtime --------*- C -*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* A compiled model is one constant, `terrace_artifact`, in an executable or a
|* shared library: the plan as JSON text (docs/artifact.md), and the generated
|* kernels for each CPU image. Nothing in it is written at run time.
|*
\*===----------------------------------------------------------------------===*/
#ifndef TERRACE_RT_ARTIFACT_H
#define TERRACE_RT_ARTIFACT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRC_ARTIFACT_MAGIC 0x31435254u /* "TRC1" */
#define TRC_ARTIFACT_ABI 4u

/* CPU images, in rising order of demands. Index into trc_kernel.image. */
enum trc_cpu { TRC_CPU_V3 = 0, TRC_CPU_V4 = 1, TRC_CPU_COUNT = 2 };

typedef struct trc_kernel {
  const char *name; /* as in the plan, e.g. "gather_pool_16_sum" */
  const void *image[TRC_CPU_COUNT]; /* NULL where the image was not built */
} trc_kernel;

typedef struct trc_artifact {
  uint32_t magic;      /* TRC_ARTIFACT_MAGIC */
  uint32_t abi;        /* TRC_ARTIFACT_ABI */
  uint64_t plan_bytes; /* without the terminating zero */
  const char *plan;    /* JSON, zero terminated */
  uint64_t kernel_count;
  const trc_kernel *kernels;
} trc_artifact;

/* The symbol that `--emit=lib` exports and `--emit=exe` defines. */
extern const trc_artifact terrace_artifact;

/*
 * Kernels. Rows are bytes at `rows + slots[x] * pitch`: W (dim elements of the
 * table's type, then zeros up to a multiple of 4 bytes), then the optimizer
 * state in f32 (docs/numerics.md). Row addresses are at least 4-byte
 * aligned, whatever the pitch. [begin, end) is the part of one call, so that
 * threads split the outputs. Kernels neither fault on empty ranges nor touch
 * anything outside what is named here.
 */

/* Pools bags begin..end-1; bag b holds occurrences offsets[b] ..
 * offsets[b+1]-1; out is dense [bags, dim] f32. x[j]: index into slots of
 * occurrence j. weights[j]: NULL where the kernel is not weighted. winner:
 * [bags, dim] i32 for max (position inside the bag, -1 where empty), else NULL.
 * For pooling none the range counts occurrences, and out is [occurrences, dim];
 * offsets is NULL. */
typedef void (*trc_gather_pool_fn)(const char *rows, int64_t pitch,
                                   const uint32_t *slots, const uint32_t *x,
                                   const int32_t *offsets, const float *weights,
                                   float *out, int32_t *winner, int64_t begin,
                                   int64_t end);

/* The same, of kernels named `..._direct`: occurrence j is row ids[j]. */
typedef void (*trc_gather_rows_fn)(const char *rows, int64_t pitch,
                                   const int64_t *ids, const int32_t *offsets,
                                   const float *weights, float *out,
                                   int32_t *winner, int64_t begin, int64_t end);

/* Updates unique rows begin..end-1; row u has contributions seg[u] ..
 * seg[u+1]-1 in summation order, contribution k being coef[k] * grads[occ[k] *
 * dim + c]. hp: the optimizer's scalars, see docs/artifact.md. seeds[u -
 * begin]: of row u's random rounding; NULL where the kernel rounds to nearest.
 */
typedef void (*trc_segment_update_fn)(char *rows, int64_t pitch,
                                      const uint32_t *slots, const int32_t *seg,
                                      const uint32_t *occ, const float *coef,
                                      const float *grads, const float *hp,
                                      const uint64_t *seeds, int64_t begin,
                                      int64_t end);

#ifdef __cplusplus
}
#endif
#endif /* TERRACE_RT_ARTIFACT_H */
