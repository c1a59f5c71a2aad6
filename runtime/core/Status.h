//===- Status.h - Result of a runtime call ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pointer wide, null for success. Internal C++ side of trc_status: the C
// ABI copies it into the caller's trc_error. Not thread-safe; movable.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_STATUS_H
#define TERRACE_RUNTIME_CORE_STATUS_H

#include "terrace-rt/status.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace trc {

class [[nodiscard]] Status {
public:
  struct Detail {
    trc_status code;
    std::string message; // one line: what, where, the value, what to do
    std::string feature;
    int64_t sample = -1, position = -1, value = -1;
  };

  Status() = default; // success
  Status(trc_status code, std::string message)
      : detail(std::make_unique<Detail>(
            Detail{code, std::move(message), {}, -1, -1, -1})) {}
  static Status badInput(std::string message, std::string feature,
                         int64_t sample, int64_t position, int64_t value) {
    Status s(TRC_BAD_INPUT, std::move(message));
    s.detail->feature = std::move(feature);
    s.detail->sample = sample;
    s.detail->position = position;
    s.detail->value = value;
    return s;
  }
  /// With the text of errno, e.g. ioError("cannot write", path, ENOSPC).
  static Status ioError(const std::string &what, const std::string &path,
                        int err);

  bool ok() const { return !detail; }
  trc_status code() const { return detail ? detail->code : TRC_OK; }
  const std::string &message() const;
  const Detail *get() const { return detail.get(); }
  Status clone() const {
    Status s;
    if (detail)
      s.detail = std::make_unique<Detail>(*detail);
    return s;
  }
  /// Fills the caller's struct (which may be null) and returns the code.
  trc_status fill(trc_error *error) const;

private:
  std::unique_ptr<Detail> detail;
};

/// For messages: the fewest digits that read back to the same number.
std::string shortest(double value);
std::string shortest(float value);

/// A value or a failed Status.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::move(value)) {}
  Result(Status status) : state(std::move(status)) {}
  bool ok() const { return std::holds_alternative<T>(state); }
  T &operator*() { return std::get<T>(state); }
  T *operator->() { return &std::get<T>(state); }
  Status takeStatus() {
    return ok() ? Status() : std::move(std::get<Status>(state));
  }

private:
  std::variant<T, Status> state;
};

} // namespace trc

/// Returns the status from the calling function unless it is a success.
#define TRC_RETURN_IF_ERROR(expr)                                              \
  do {                                                                         \
    if (::trc::Status trcStatus = (expr); !trcStatus.ok())                     \
      return trcStatus;                                                        \
  } while (0)

#endif // TERRACE_RUNTIME_CORE_STATUS_H
