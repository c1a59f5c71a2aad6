/*===- status.h - Status codes and the caller's error struct ------*- C -*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* Every call returns a trc_status and, where it is not TRC_OK, fills the
|* caller's trc_error (which may be NULL). No call prints, aborts or throws.
|*
\*===----------------------------------------------------------------------===*/
#ifndef TERRACE_RT_STATUS_H
#define TERRACE_RT_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trc_status {
  TRC_OK = 0,
  TRC_WOULD_BLOCK = 1,  /* no room for one more batch in flight: run forward and
                           backward first */
  TRC_BAD_ARGUMENT = 2, /* a null pointer, a wrong shape, type or device */
  TRC_BAD_INPUT = 3,    /* ids, offsets, weights or gradients: feature, sample,
                           position and value say where */
  TRC_OUT_OF_ORDER = 4, /* forward, then backward or release, in ticket order */
  TRC_NOT_FOUND = 5,    /* no such state, checkpoint, table or row */
  TRC_LOCKED = 6,       /* another process has the state open */
  TRC_MISMATCH = 7, /* the state belongs to another model, or the artifact to
                       another ABI */
  TRC_CORRUPT = 8,  /* stored bytes failed their check */
  TRC_IO = 9,       /* the device or the file system said no */
  TRC_NO_SPACE = 10,
  TRC_NO_MEMORY = 11,
  TRC_UNSUPPORTED = 12, /* this machine or this build cannot do it */
  TRC_CANCELLED = 13,
  TRC_POISONED = 14, /* an earlier failure ended this session; open it anew */
  TRC_FORKED = 15,   /* the handle was opened by the parent process */
  TRC_INTERNAL = 16,
  TRC_FULL = 17 /* a tier holds all that it can: raise its capacity, or keep
                   fewer checkpoints */
} trc_status;

typedef struct trc_error {
  uint32_t struct_size; /* sizeof(trc_error), set by the caller */
  int32_t status;
  int64_t sample; /* -1 where it does not apply; so are the next two */
  int64_t position;
  int64_t value;      /* the id, or the bits of the offending float */
  char feature[128];  /* empty where it does not apply */
  char message[1024]; /* one line: what, where, the value, what to do */
} trc_error;

/* The status as a word, e.g. "bad input". Never NULL. */
const char *trc_status_name(trc_status status);

#ifdef __cplusplus
}
#endif
#endif /* TERRACE_RT_STATUS_H */
