//===- Abi.cpp - The C ABI over Session -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every function checks the handle and the process, turns exceptions (only
// those of the standard library can arrive here) into statuses, and fills the
// caller's error struct.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Hash.h"
#include "runtime/session/Session.h"

#include <cstring>
#include <new>

using namespace trc;

struct trc_session {
  std::unique_ptr<Session> impl;
};

namespace {

template <typename Body> trc_status guard(trc_error *error, const Body &body) {
  try {
    return body().fill(error);
  } catch (const std::bad_alloc &) {
    return Status(TRC_NO_MEMORY, "out of memory").fill(error);
  } catch (const std::exception &e) {
    return Status(TRC_INTERNAL, std::string("unexpected: ") + e.what())
        .fill(error);
  } catch (...) {
    return TRC_INTERNAL;
  }
}

Status checkHandle(const trc_session *session) {
  if (!session || !session->impl)
    return Status(TRC_BAD_ARGUMENT, "the session is null");
  if (!session->impl->ownProcess())
    return Status(TRC_FORKED, "the session was opened by the parent process; "
                              "open one in the child");
  return Status();
}

template <typename Body>
trc_status withSession(trc_session *session, trc_error *error,
                       const Body &body) {
  return guard(error, [&] {
    TRC_RETURN_IF_ERROR(checkHandle(session));
    return body(*session->impl);
  });
}

Status sizeOf(uint32_t have, size_t least, const char *name) {
  if (have >= least)
    return Status();
  return Status(TRC_BAD_ARGUMENT, std::string(name) + ".struct_size is " +
                                      std::to_string(have) +
                                      "; set it to sizeof(" + name + ")");
}

} // namespace

trc_status trc_open(const trc_open_options *options, trc_session **session,
                    trc_error *error) {
  return guard(error, [&] {
    if (!options || !session)
      return Status(TRC_BAD_ARGUMENT, "options or session is null");
    *session = nullptr;
    // Older callers have shorter structs; what they lack is zero.
    TRC_RETURN_IF_ERROR(
        sizeOf(options->struct_size,
               offsetof(trc_open_options, state_dir) + sizeof(void *),
               "trc_open_options"));
    trc_open_options full = {};
    std::memcpy(&full, options,
                std::min<size_t>(options->struct_size, sizeof(full)));
    Result<std::unique_ptr<Session>> opened = Session::open(full);
    if (!opened.ok())
      return opened.takeStatus();
    *session = new trc_session{std::move(*opened)};
    return Status();
  });
}

trc_status trc_close(trc_session *session, trc_error *error) {
  return guard(error, [&] {
    Status s = checkHandle(session);
    // In a child process the lanes do not exist: leave the memory alone.
    if (!s.ok())
      return s;
    s = session->impl->close();
    if (session->impl->over())
      delete session;
    return s;
  });
}

trc_status trc_discard(trc_session *session, trc_error *error) {
  return guard(error, [&] {
    if (!session)
      return Status();
    TRC_RETURN_IF_ERROR(checkHandle(session));
    session->impl->discard();
    delete session;
    return Status();
  });
}

trc_status trc_describe(trc_session *session, trc_model_info *info,
                        trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    if (!info)
      return Status(TRC_BAD_ARGUMENT, "info is null");
    TRC_RETURN_IF_ERROR(
        sizeOf(info->struct_size, sizeof(uint32_t) * 2, "trc_model_info"));
    return s.describe(*info);
  });
}

trc_status trc_submit(trc_session *session, const trc_batch *batch,
                      trc_ticket *ticket, trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    if (!batch || !ticket)
      return Status(TRC_BAD_ARGUMENT, "batch or ticket is null");
    *ticket = 0;
    TRC_RETURN_IF_ERROR(sizeOf(batch->struct_size,
                               offsetof(trc_batch, samples) + sizeof(int64_t),
                               "trc_batch"));
    trc_batch full = {};
    std::memcpy(&full, batch,
                std::min<size_t>(batch->struct_size, sizeof(full)));
    return s.submit(full, *ticket);
  });
}

trc_status trc_submit_keyed(trc_session *session, const trc_keyed_batch *batch,
                            trc_ticket *ticket, trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    if (!batch || !ticket)
      return Status(TRC_BAD_ARGUMENT, "batch or ticket is null");
    *ticket = 0;
    TRC_RETURN_IF_ERROR(
        sizeOf(batch->struct_size,
               offsetof(trc_keyed_batch, samples) + sizeof(int64_t),
               "trc_keyed_batch"));
    trc_keyed_batch full = {};
    std::memcpy(&full, batch,
                std::min<size_t>(batch->struct_size, sizeof(full)));
    return s.submitKeyed(full, *ticket);
  });
}

trc_status trc_forward(trc_session *session, trc_ticket ticket,
                       DLTensor *const *outputs, uint32_t output_count,
                       trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.forward(ticket, outputs, output_count);
  });
}

trc_status trc_backward(trc_session *session, trc_ticket ticket,
                        const DLTensor *const *gradients,
                        uint32_t gradient_count,
                        const trc_backward_options *options, trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.backward(ticket, gradients, gradient_count, options);
  });
}

trc_status trc_release(trc_session *session, trc_ticket ticket,
                       trc_error *error) {
  return withSession(session, error,
                     [&](Session &s) { return s.release(ticket); });
}

trc_status trc_set_lr(trc_session *session, double lr_scale, trc_error *error) {
  return withSession(session, error,
                     [&](Session &s) { return s.setLr(lr_scale); });
}

trc_status trc_read_rows(trc_session *session, const char *table,
                         const int64_t *rows, int64_t count, float *out,
                         trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.readRows(table, rows, count, out);
  });
}

trc_status trc_write_rows(trc_session *session, const char *table,
                          const int64_t *rows, int64_t count,
                          const float *values, trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.writeRows(table, rows, count, values);
  });
}

trc_status trc_read_state(trc_session *session, const char *table, int32_t slot,
                          const int64_t *rows, int64_t count, float *out,
                          trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.readState(table, slot, rows, count, out);
  });
}

trc_status trc_write_state(trc_session *session, const char *table,
                           int32_t slot, const int64_t *rows, int64_t count,
                           const float *values, trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.writeState(table, slot, rows, count, values);
  });
}

trc_status trc_checkpoint(trc_session *session, const void *blob,
                          uint64_t blob_bytes, uint32_t keep,
                          trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.checkpoint(blob, blob_bytes, keep);
  });
}

trc_status trc_checkpoint_begin(trc_session *session, const void *blob,
                                uint64_t blob_bytes, uint32_t keep,
                                trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    return s.checkpointBegin(blob, blob_bytes, keep);
  });
}

trc_status trc_checkpoint_wait(trc_session *session, int32_t block,
                               trc_error *error) {
  return withSession(session, error,
                     [&](Session &s) { return s.checkpointWait(block != 0); });
}

trc_status trc_get_blob(trc_session *session, void *data, uint64_t *bytes,
                        trc_error *error) {
  return withSession(session, error,
                     [&](Session &s) { return s.getBlob(data, bytes); });
}

trc_status trc_stats(trc_session *session, const char **json,
                     trc_error *error) {
  return withSession(session, error, [&](Session &s) {
    if (!json)
      return Status(TRC_BAD_ARGUMENT, "json is null");
    return s.stats(json);
  });
}

trc_status trc_cancel(trc_session *session) {
  return withSession(session, nullptr, [&](Session &s) {
    s.cancel();
    return Status();
  });
}

int64_t trc_hash_string(const char *text, uint64_t bytes) {
  return hashString(std::string_view(text ? text : "", text ? bytes : 0));
}
