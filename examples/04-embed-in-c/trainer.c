/*===- trainer.c - A trainer in C on Terrace's C ABI --------------*- C -*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* Two-tower model: the score of a user and a basket is the dot product of
|* their embeddings, the label is made up from the ids. Shows the whole life of
|* a session: open, submit ahead, forward, backward, checkpoint, close.
|* Usage: trainer ARTIFACT.so STEPS
|*
\*===----------------------------------------------------------------------===*/
#include <terrace-rt/terrace-rt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 256, DIM = 8, MAX_BASKET = 10, USERS = 20000, ITEMS = 50000 };

static void check(trc_status status, const trc_error *error, const char *what) {
  if (status == TRC_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, trc_status_name(status),
          error->message);
  exit(1);
}

static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

typedef struct {
  int64_t users[BATCH], user_offsets[BATCH + 1];
  int64_t items[BATCH * MAX_BASKET], item_offsets[BATCH + 1];
  float labels[BATCH];
} data;

/* Batch number t; the same numbers make the same batch, so a resumed run sees
 * the same stream. */
static void make_batch(uint64_t t, data *d) {
  uint64_t state = t * 1000003u + 17;
  int64_t n = 0;
  d->item_offsets[0] = 0;
  for (int b = 0; b < BATCH; ++b) {
    d->user_offsets[b] = b;
    d->users[b] = (int64_t)(next(&state) % USERS);
    int length = (int)(next(&state) % (MAX_BASKET + 1)); /* empty baskets too */
    int64_t parity = 0;
    for (int j = 0; j < length; ++j) {
      int64_t item = (int64_t)(next(&state) % 100 ? next(&state) % 500
                                                  : next(&state) % ITEMS);
      d->items[n++] = item;
      parity += item % 2 ? 1 : -1;
    }
    d->item_offsets[b + 1] = n;
    d->labels[b] = parity > 0 ? 1.0f : 0.0f;
  }
  d->user_offsets[BATCH] = BATCH;
}

/* The ticket of batch t, or 0 where the pipeline has no room for one more. */
static trc_ticket submit(trc_session *session, uint64_t t) {
  static data d; /* submit copies, so one buffer serves every batch */
  make_batch(t, &d);
  trc_bags bags[2] = {
      {d.users, d.user_offsets, NULL, BATCH, 64, 64},
      {d.items, d.item_offsets, NULL, d.item_offsets[BATCH], 64, 64},
  };
  trc_batch batch = {.struct_size = sizeof(batch),
                     .feature_count = 2,
                     .features = bags,
                     .samples = BATCH};
  trc_ticket ticket = 0;
  trc_error error = {.struct_size = sizeof(error)};
  trc_status status = trc_submit(session, &batch, &ticket, &error);
  if (status == TRC_WOULD_BLOCK)
    return 0;
  check(status, &error, "submit");
  return ticket;
}

static DLTensor tensor(float *values, int64_t *shape) {
  DLTensor t = {.data = values,
                .device = {kDLCPU, 0},
                .ndim = 2,
                .dtype = {kDLFloat, 32, 1},
                .shape = shape};
  return t;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: trainer ARTIFACT.so STEPS\n");
    return 2;
  }
  int64_t steps = strtoll(argv[2], NULL, 10);
  trc_error error = {.struct_size = sizeof(error)};
  trc_open_options options = {.struct_size = sizeof(options),
                              .mode = TRC_TRAIN,
                              .artifact_path = argv[1],
                              .state_dir = "embed.state"};
  trc_session *session = NULL;
  check(trc_open(&options, &session, &error), &error, "open");
  trc_model_info info = {.struct_size = sizeof(info)};
  check(trc_describe(session, &info, &error), &error, "describe");
  uint64_t start = (uint64_t)info.step, end = start + (uint64_t)steps;
  printf("model %s, from step %lld, lookahead %lld\n", info.model,
         (long long)info.step, (long long)info.lookahead);

  enum { MAX_AHEAD = 9 };
  trc_ticket tickets[MAX_AHEAD];
  uint64_t ahead = (uint64_t)info.lookahead + 1, submitted = start;
  if (ahead > MAX_AHEAD)
    ahead = MAX_AHEAD;

  static float user[BATCH * DIM], basket[BATCH * DIM], gradUser[BATCH * DIM],
      gradBasket[BATCH * DIM];
  int64_t shape[2] = {BATCH, DIM};
  DLTensor outUser = tensor(user, shape), outBasket = tensor(basket, shape);
  DLTensor inUser = tensor(gradUser, shape),
           inBasket = tensor(gradBasket, shape);
  DLTensor *outputs[2] = {&outUser, &outBasket};
  const DLTensor *gradients[2] = {&inUser, &inBasket};
  trc_backward_options backward = {.struct_size = sizeof(backward),
                                   .grad_scale = 1.0f};

  double loss = 0;
  for (uint64_t t = start; t < end; ++t) {
    while (submitted < end && submitted < t + ahead) {
      if (!(tickets[submitted % MAX_AHEAD] = submit(session, submitted)))
        break;
      ++submitted;
    }
    trc_ticket ticket = tickets[t % MAX_AHEAD];
    check(trc_forward(session, ticket, outputs, 2, &error), &error, "forward");

    data d;
    make_batch(t, &d);
    loss = 0;
    for (int b = 0; b < BATCH; ++b) {
      double z = 0;
      for (int c = 0; c < DIM; ++c)
        z += (double)user[b * DIM + c] * basket[b * DIM + c] +
             basket[b * DIM + c];
      double p = 1 / (1 + exp(-z));
      loss -= log(d.labels[b] > 0 ? p + 1e-12 : 1 - p + 1e-12) / BATCH;
      float dz = (float)((p - d.labels[b]) / BATCH);
      for (int c = 0; c < DIM; ++c) {
        gradUser[b * DIM + c] = dz * basket[b * DIM + c];
        gradBasket[b * DIM + c] = dz * (user[b * DIM + c] + 1);
      }
    }
    check(trc_backward(session, ticket, gradients, 2, &backward, &error),
          &error, "backward");
    if (t == start || (t + 1) % 50 == 0)
      printf("step %llu loss %.5f\n", (unsigned long long)(t + 1), loss);
  }
  check(trc_checkpoint(session, "embed-in-c", 10, 2, &error), &error,
        "checkpoint");
  const char *stats = NULL;
  check(trc_stats(session, &stats, &error), &error, "stats");
  printf("%s\n", stats);
  check(trc_close(session, &error), &error, "close");
  return 0;
}
