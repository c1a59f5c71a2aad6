/*===- ahead.c - As many batches in flight as submit takes --------*- C -*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* Two sessions get the same batches: one at a time, and as many ahead as submit
|* takes. Every third batch is released, some before their forward. Outputs and
|* rows must be equal bit for bit. Usage: ahead ARTIFACT.so
|*
\*===----------------------------------------------------------------------===*/
#include <terrace-rt/terrace-rt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  FEATURES = 5,
  BATCH = 8,
  IDS = 64,
  DIM = 4,
  USERS = 100,
  ITEMS = 500,
  BATCHES = 320
};

typedef struct {
  int64_t ids[FEATURES][IDS], offsets[FEATURES][BATCH + 1];
  float weights[IDS];
  trc_bags bags[FEATURES];
  trc_batch batch;
} data;

typedef struct {
  float values[FEATURES][IDS * DIM];
  int64_t shapes[FEATURES][2];
  DLTensor tensors[FEATURES];
  DLTensor *pointers[FEATURES];
} outputs;

static data batches[BATCHES];
static outputs expected[BATCHES];

static void check(trc_status status, const trc_error *error, const char *what,
                  int batch) {
  if (status == TRC_OK)
    return;
  fprintf(stderr, "%s of batch %d: %s: %s\n", what, batch,
          trc_status_name(status), error->message);
  exit(1);
}

static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* The first feature has one id of `users` a sample, the others up to three of
 * `items`; two have weights. */
static void make_batch(int number, data *d) {
  uint64_t state = (uint64_t)number * 7919;
  for (int f = 0; f < FEATURES; ++f) {
    int64_t n = 0;
    for (int s = 0; s < BATCH; ++s) {
      int64_t length = f == 0 ? 1 : (int64_t)(next(&state) % 4);
      for (int64_t j = 0; j < length; ++j)
        d->ids[f][n++] = (int64_t)(next(&state) % (f == 0 ? USERS : ITEMS));
      d->offsets[f][s + 1] = n;
    }
    d->bags[f] = (trc_bags){
        d->ids[f], d->offsets[f], f == 1 || f == 4 ? d->weights : NULL, n, 64,
        64};
  }
  for (int i = 0; i < IDS; ++i)
    d->weights[i] = 0.5f + (float)(next(&state) % 3);
  d->batch = (trc_batch){.struct_size = sizeof(trc_batch),
                         .feature_count = FEATURES,
                         .features = d->bags,
                         .samples = BATCH};
}

static void shape(const data *d, outputs *o) {
  for (int f = 0; f < FEATURES; ++f) {
    o->shapes[f][0] = f == 2 ? d->bags[f].value_count
                             : BATCH; /* pooling none: a row per id */
    o->shapes[f][1] = DIM;
    o->tensors[f] = (DLTensor){.data = o->values[f],
                               .device = {kDLCPU, 0},
                               .ndim = 2,
                               .dtype = {kDLFloat, 32, 1},
                               .shape = o->shapes[f]};
    o->pointers[f] = &o->tensors[f];
  }
}

/* The outputs are the gradients, too. */
static void finish(trc_session *session, trc_ticket ticket, int number,
                   outputs *o) {
  trc_error error = {.struct_size = sizeof(error)};
  if (number % 6 == 5) {
    check(trc_release(session, ticket, &error), &error, "release", number);
    return;
  }
  shape(&batches[number], o);
  check(trc_forward(session, ticket, o->pointers, FEATURES, &error), &error,
        "forward", number);
  if (number % 6 == 2)
    check(trc_release(session, ticket, &error), &error, "release", number);
  else
    check(trc_backward(session, ticket, (const DLTensor *const *)o->pointers,
                       FEATURES, NULL, &error),
          &error, "backward", number);
}

static trc_session *open_state(const char *artifact, const char *folder) {
  trc_open_options options = {.struct_size = sizeof(options),
                              .artifact_path = artifact,
                              .state_dir = folder,
                              .flags = TRC_OPEN_FRESH,
                              .threads = 2};
  trc_error error = {.struct_size = sizeof(error)};
  trc_session *session = NULL;
  check(trc_open(&options, &session, &error), &error, "open", 0);
  return session;
}

static void read_all(trc_session *session, float *out) {
  static int64_t rows[ITEMS];
  trc_error error = {.struct_size = sizeof(error)};
  for (int i = 0; i < ITEMS; ++i)
    rows[i] = i;
  check(trc_read_rows(session, "users", rows, USERS, out, &error), &error,
        "read_rows", 0);
  check(trc_read_rows(session, "items", rows, ITEMS, out + USERS * DIM, &error),
        &error, "read_rows", 0);
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  trc_error error = {.struct_size = sizeof(error)};
  trc_session *single = open_state(argv[1], "single.state"),
              *ahead = open_state(argv[1], "ahead.state");
  for (int i = 0; i < BATCHES; ++i) {
    trc_ticket ticket = 0;
    make_batch(i, &batches[i]);
    check(trc_submit(single, &batches[i].batch, &ticket, &error), &error,
          "submit", i);
    finish(single, ticket, i, &expected[i]);
  }
  static trc_ticket tickets[BATCHES];
  static outputs got;
  int submitted = 0, most = 0;
  for (int i = 0; i < BATCHES; ++i) {
    while (submitted < BATCHES) {
      trc_status status = trc_submit(ahead, &batches[submitted].batch,
                                     &tickets[submitted], &error);
      if (status == TRC_WOULD_BLOCK)
        break;
      check(status, &error, "submit", submitted++);
    }
    most = submitted - i > most ? submitted - i : most;
    finish(ahead, tickets[i], i, &got);
    for (int f = 0; f < FEATURES && i % 6 != 5; ++f)
      if (memcmp(got.values[f], expected[i].values[f],
                 (size_t)got.shapes[f][0] * DIM * sizeof(float))) {
        fprintf(stderr,
                "batch %d, feature %d: the output differs with %d batches in "
                "flight\n",
                i, f, submitted - i);
        return 1;
      }
  }
  static float left[(USERS + ITEMS) * DIM], right[(USERS + ITEMS) * DIM];
  read_all(single, left);
  read_all(ahead, right);
  check(trc_close(single, &error), &error, "close", 0);
  check(trc_close(ahead, &error), &error, "close", 0);
  if (memcmp(left, right, sizeof(left))) {
    fprintf(stderr, "the rows differ\n");
    return 1;
  }
  printf("%d batches, up to %d in flight: outputs and rows equal\n", BATCHES,
         most);
  return 0;
}
