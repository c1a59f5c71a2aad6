/*===- tensor.h - DLPack's tensor, as far as it is used here ------*- C -*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* The same layout as DLTensor of DLPack 0.8 and later, so that a tensor of any
|* framework passes without a copy. If dlpack.h was included first, its own
|* definitions are used.
|*
\*===----------------------------------------------------------------------===*/
#ifndef TERRACE_RT_TENSOR_H
#define TERRACE_RT_TENSOR_H

#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2 } DLDeviceType;
typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;
typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4
} DLDataTypeCode;
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* NULL: compact, row-major */
  uint64_t byte_offset;
} DLTensor;
#endif

#endif /* TERRACE_RT_TENSOR_H */
