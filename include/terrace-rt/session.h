/*===- session.h - Open a compiled model and train it -------------*- C -*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* Threads: one producer thread submits; one trainer thread runs, for each
|* ticket in order, forward and then backward or release. trc_stats and
|* trc_cancel may be called from any thread. Both roles may be one thread.
|* Ownership: ids, offsets, weights and labels are copied by submit. Tensors
|* stay the caller's and are free again when the call returns. Strings and
|* descriptions handed out live as long as the session.
|* Structs begin with struct_size = sizeof(struct), set by the caller.
|*
\*===----------------------------------------------------------------------===*/
#ifndef TERRACE_RT_SESSION_H
#define TERRACE_RT_SESSION_H

#include "terrace-rt/artifact.h"
#include "terrace-rt/status.h"
#include "terrace-rt/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trc_session trc_session;
typedef uint64_t trc_ticket; /* 0 is never a ticket */

enum trc_mode { TRC_TRAIN = 0, TRC_EVAL = 1, TRC_SERVE = 2 };
enum trc_open_flags {
  /* Start anew; an existing state at state_dir is removed first. Of a model
   * that was compiled to serve: look at no state, every row has its initial
   * value. */
  TRC_OPEN_FRESH = 1,
  /* Fill the caches with the rows that they held when the state was closed,
   * before trc_open returns. Changes speed, never results. Where nobody knows
   * these rows (a checkpoint, rows laid out anew, a damaged file), log says so
   * and the caches start empty. */
  TRC_OPEN_WARM = 2
};
enum trc_log_level { TRC_LOG_INFO = 0, TRC_LOG_WARNING = 1 };

typedef struct trc_open_options {
  uint32_t struct_size;
  int32_t mode; /* trc_mode; eval and serve change no byte of the state */
  const char *artifact_path; /* a shared library made by --emit=lib; NULL: use
                                `artifact` */
  const trc_artifact *artifact; /* linked in; NULL: use `artifact_path` */
  const char *state_dir;        /* NULL: "<model>.state" */
  uint32_t flags;               /* trc_open_flags */
  uint32_t threads;             /* work threads; 0: one per CPU */
  /* A checkpoint of this state to start from (its name); NULL: the newest of
   * the closed state and the checkpoints. */
  const char *from;
  const char *init_from; /* another state's folder: rows are taken by table
                            name; NULL: none */
  const char *cpu; /* "x86-64-v3" or "x86-64-v4" to force an image; NULL: the
                      best this CPU runs */
  void (*log)(void *user, int32_t level, const char *line); /* NULL: silent */
  void *log_user;
} trc_open_options;

trc_status trc_open(const trc_open_options *options, trc_session **session,
                    trc_error *error);

/* Ends the session: drains, writes the tables back and marks the state clean
 * (train mode), frees. Batches in flight are released, not applied.
 * TRC_NO_SPACE, TRC_IO and TRC_NO_MEMORY: the state could not be stored, but
 * all of it is still here. The session stays open, and its state locked: mend
 * what the message names and call trc_close again, or give the steps since the
 * last root up with trc_discard. Only these, trc_stats, trc_describe and
 * trc_get_blob may follow. With any other status the handle is gone (but in a
 * forked child, where it is left alone: TRC_FORKED). After a failure that ended
 * the session (TRC_POISONED) nothing is saved: the state is that of the last
 * checkpoint. */
trc_status trc_close(trc_session *session, trc_error *error);
/* Ends the session and saves nothing: the state stays that of its last
 * checkpoint or close. The handle is gone (but in a forked child). NULL is
 * fine. No other thread may be in a call of the session. */
trc_status trc_discard(trc_session *session, trc_error *error);

typedef struct trc_feature_info {
  const char *name;
  const char *column;  /* of the data; several features may share one */
  const char *weights; /* column of the weights; NULL: not weighted */
  const char
      *pooling; /* "sum", "mean", "weighted_mean", "sqrtn", "max", "none" */
  const char *table;
  int64_t table_rows;
  int64_t dim;
  int64_t max_ids; /* per bag */
  int32_t ids;     /* 0 index: 0 <= id < table_rows; 1 hash: any 64-bit id */
  int32_t strings; /* 1: the data holds strings, hashed by trc_hash_string */
} trc_feature_info;

typedef struct trc_model_info {
  uint32_t struct_size;
  uint32_t feature_count;
  const trc_feature_info *features;
  const char *model;
  const char *hash;   /* of the plan */
  const char *head;   /* "fm", "logistic"; NULL: the trainer is the head */
  int64_t batch;      /* samples of a batch, at most */
  int64_t max_ids;    /* ids of a batch over all features, at most */
  int64_t lookahead;  /* batches worth submitting ahead of forward */
  int64_t step;       /* optimizer steps in the state */
  int64_t samples;    /* samples applied in the state */
  int64_t parameters; /* floats in all tables, without optimizer state */
} trc_model_info;

/* step and samples are those of the moment of the call. */
trc_status trc_describe(trc_session *session, trc_model_info *info,
                        trc_error *error);

/* The bags of one feature: offsets[samples + 1], from 0 to value_count,
 * non-decreasing. */
typedef struct trc_bags {
  const void *values;   /* int32_t or int64_t ids */
  const void *offsets;  /* int32_t or int64_t */
  const float *weights; /* one per id for weighted features, else NULL */
  int64_t value_count;
  int32_t value_bits;  /* 32 or 64 */
  int32_t offset_bits; /* 32 or 64 */
} trc_bags;

enum trc_batch_flags {
  /* Only looked up: release comes after forward, and backward is refused. What
   * only an update needs is then left out. */
  TRC_BATCH_FORWARD_ONLY = 1
};

typedef struct trc_batch {
  uint32_t struct_size;
  uint32_t feature_count; /* all features of the model, in its order */
  const trc_bags *features;
  int64_t samples;     /* 0 .. batch */
  const float *labels; /* head models: one per sample, 0 or 1; may be NULL to
                          predict only */
  uint32_t flags;      /* trc_batch_flags */
  uint32_t reserved;   /* 0 */
} trc_batch;

/* Copies the batch and queues it; TRC_WOULD_BLOCK where the pipeline is full
 * until forward and backward (or release) were called. Where room is only a
 * matter of work already under way, waits for it. Bad ids are reported here or,
 * where a check runs ahead, by forward of this ticket; either way the step is
 * not applied and the ticket is over. */
trc_status trc_submit(trc_session *session, const trc_batch *batch,
                      trc_ticket *ticket, trc_error *error);

/* All bags of a batch in one array, key by key: bag s of key k is
 * values[offsets[k * samples + s]] .. values[offsets[k * samples + s + 1] - 1],
 * as in TorchRec's KeyedJaggedTensor. Keys that no feature names are left
 * alone. */
typedef struct trc_keyed_batch {
  uint32_t struct_size;
  uint32_t key_count;
  const int32_t *keys;  /* by feature of the model: its key; NULL: feature i is
                           key i. Several features may have one key. */
  const void *values;   /* int32_t or int64_t ids */
  const void *offsets;  /* [key_count * samples + 1], int32_t or int64_t, from 0
                           to value_count, non-decreasing */
  const float *weights; /* one per id; those of features without are left
                           alone. NULL where no feature is weighted */
  int64_t value_count;
  int32_t value_bits;  /* 32 or 64 */
  int32_t offset_bits; /* 32 or 64 */
  int64_t samples;     /* 0 .. batch */
  const float *labels; /* as in trc_batch */
  uint32_t flags;      /* trc_batch_flags */
  uint32_t reserved;   /* 0 */
} trc_keyed_batch;

/* As trc_submit. Offsets in errors are those of the array. */
trc_status trc_submit_keyed(trc_session *session, const trc_keyed_batch *batch,
                            trc_ticket *ticket, trc_error *error);

/* Waits for the batch's outputs and copies them out. Without a head: one f32
 * tensor per feature, [samples, dim], or [ids, dim] for pooling none (the ids
 * that remain after overflow and on_bad_id); or, where all features are pooled,
 * one tensor [samples, sum of dims] with all of them side by side. With a head:
 * one tensor [samples], the predicted probabilities, and, if a second one is
 * given, the logits; outputs may be NULL with a count of 0. CPU, any strides;
 * f32, or f16 or bf16, to which the f32 results are then rounded (to nearest,
 * ties to even), each tensor as it likes. TRC_BAD_ARGUMENT leaves the ticket as
 * it was; TRC_BAD_INPUT ends it.
 */
trc_status trc_forward(trc_session *session, trc_ticket ticket,
                       DLTensor *const *outputs, uint32_t output_count,
                       trc_error *error);

typedef struct trc_backward_options {
  uint32_t struct_size;
  float grad_scale; /* gradients are multiplied by it; 1: as they are */
  float *const *weight_gradients; /* NULL: none; else one per feature */
} trc_backward_options;

/* Applies the step. Without a head: gradients shaped as the outputs, one per
 * feature or one for all, in f32, f16 or bf16. With a head: gradients NULL, 0.
 * NaN or infinite gradients are TRC_BAD_INPUT and the step is not applied (or
 * counted and skipped: on_bad_grad). weight_gradients[f], where it is not NULL,
 * receives the gradients of a weighted feature's weights, one float per id that
 * remains after overflow and on_bad_id, in order (docs/numerics.md). Models
 * without a head only; written before the step is applied, and only if it is.
 */
trc_status trc_backward(trc_session *session, trc_ticket ticket,
                        const DLTensor *const *gradients,
                        uint32_t gradient_count,
                        const trc_backward_options *options, trc_error *error);

/* Ends a batch that is not to be applied (evaluated or skipped); before or
 * after its forward. Dirties nothing. */
trc_status trc_release(trc_session *session, trc_ticket ticket,
                       trc_error *error);

/* Multiplies every table's learning rate from the next backward on. */
trc_status trc_set_lr(trc_session *session, double lr_scale, trc_error *error);

/* Weights of `count` rows of a table, as [count, dim] f32 (write_rows:
 * optimizer state is kept). With no batch in flight. */
trc_status trc_read_rows(trc_session *session, const char *table,
                         const int64_t *rows, int64_t count, float *out,
                         trc_error *error);
trc_status trc_write_rows(trc_session *session, const char *table,
                          const int64_t *rows, int64_t count,
                          const float *values, trc_error *error);
/* One optimizer state of `count` rows; slot counts from 0 in the order of
 * docs/numerics.md; width floats each. */
trc_status trc_read_state(trc_session *session, const char *table, int32_t slot,
                          const int64_t *rows, int64_t count, float *out,
                          trc_error *error);
/* Sets it; weights and other states are kept. Finite, and sums of squares not
 * negative. */
trc_status trc_write_state(trc_session *session, const char *table,
                           int32_t slot, const int64_t *rows, int64_t count,
                           const float *values, trc_error *error);

/* A consistent state between two steps: tables, optimizer state, head, step,
 * samples and `blob`. Name: "ckpt-<step>". Keeps the last `keep` (0: all).
 * Called by the trainer's thread, not between forward and backward; batches may
 * be in flight. trc_checkpoint returns once it is durable.
 * trc_checkpoint_begin returns after the cut, and training goes on while it is
 * written (one at a time: the next begin waits for it). trc_checkpoint_wait
 * says how it ended; with `block` 0 it is TRC_WOULD_BLOCK until then. A failed
 * checkpoint leaves the session and older checkpoints as they are. */
trc_status trc_checkpoint(trc_session *session, const void *blob,
                          uint64_t blob_bytes, uint32_t keep, trc_error *error);
trc_status trc_checkpoint_begin(trc_session *session, const void *blob,
                                uint64_t blob_bytes, uint32_t keep,
                                trc_error *error);
trc_status trc_checkpoint_wait(trc_session *session, int32_t block,
                               trc_error *error);
/* The blob of the state that was opened, or of the last checkpoint; *bytes is
 * in and out; data may be NULL to ask. */
trc_status trc_get_blob(trc_session *session, void *data, uint64_t *bytes,
                        trc_error *error);

/* Counters, as one JSON object; valid until the next trc_stats of this session.
 */
trc_status trc_stats(trc_session *session, const char **json, trc_error *error);

/* Wakes every waiting call, which then returns TRC_CANCELLED; only close may
 * follow. Close still saves: steps whose backward returned are applied, batches
 * in flight are released. */
trc_status trc_cancel(trc_session *session);

/* The 64-bit id of a string feature's value. */
int64_t trc_hash_string(const char *text, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* TERRACE_RT_SESSION_H */
