//===- Session.h - RAII over the public C ABI -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The executable's main is a client of the C ABI like any other; this turns
// its statuses and error structs into Status. One thread.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_SESSION_H
#define TERRACE_RUNTIME_MODEL_SESSION_H

#include "runtime/core/Status.h"
#include "runtime/model/Config.h"
#include "runtime/model/Options.h"

#include <memory>
#include <string>
#include <vector>

namespace trc::model {

class Session {
public:
  struct Open {
    const trc_artifact *artifact = nullptr;
    const RunOptions *options = nullptr;
    trc_mode mode = TRC_TRAIN;
    std::string stateDir;
    bool fresh = false, warm = false;
    void (*log)(void *, int32_t, const char *) = nullptr;
    void *logUser = nullptr;
  };
  static Result<std::unique_ptr<Session>> open(const Open &how);
  ~Session(); // closes, if close() was not called
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// The session stays open() where the state could not be stored yet: close
  /// it again; to drop the session gives those steps up.
  Status close();
  bool open() const { return session != nullptr; }

  trc_model_info info();
  /// False where the pipeline is full.
  Result<bool> submit(const trc_batch &batch, trc_ticket &ticket);
  /// Head models: the probabilities of `samples` samples.
  Status forward(trc_ticket ticket, float *probabilities, int64_t samples);
  /// Models without a head: one [rows, dim] buffer per feature.
  struct Buffer {
    float *data;
    int64_t rows, dim;
  };
  Status forward(trc_ticket ticket, const std::vector<Buffer> &outputs);
  /// `gradients` empty for head models.
  Status backward(trc_ticket ticket, const std::vector<Buffer> &gradients,
                  float scale, float *const *weightGradients = nullptr);
  Status release(trc_ticket ticket);
  Status setLr(double scale);
  /// Cuts now and writes while training goes on.
  Status beginCheckpoint(uint32_t keep);
  /// How it ended; WOULD_BLOCK until then, unless `block`.
  Status checkpointOutcome(bool block);
  Status readRows(const std::string &table, const std::vector<int64_t> &rows,
                  float *out);
  Status readState(const std::string &table, int slot,
                   const std::vector<int64_t> &rows, float *out);
  /// The counters; null where there are none.
  nlohmann::json stats();

private:
  explicit Session(trc_session *session) : session(session) {}
  trc_session *session;
};

/// What an error means to the user, with the trc_error's numbers kept.
Status statusOf(trc_status code, const trc_error &error);

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_SESSION_H
