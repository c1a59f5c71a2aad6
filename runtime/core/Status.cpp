//===- Status.cpp - Result of a runtime call ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies the internal status into the caller's struct. Strings are cut to the
// struct's fields, never overrun; only as much is written as struct_size says
// the caller has.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Status.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

using namespace trc;

template <typename T> static std::string fewestDigits(T value) {
  char text[64]; // the longest double takes 24
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}
std::string trc::shortest(double value) { return fewestDigits(value); }
std::string trc::shortest(float value) { return fewestDigits(value); }

Status Status::ioError(const std::string &what, const std::string &path,
                       int err) {
  trc_status code = TRC_IO;
  if (err == ENOSPC || err == EDQUOT || err == EFBIG)
    code = TRC_NO_SPACE;
  else if (err == ENOMEM)
    code = TRC_NO_MEMORY;
  else if (err == ENOENT)
    code = TRC_NOT_FOUND;
  std::string message = what + " '" + path + "': " + std::strerror(err);
  if (code == TRC_NO_SPACE)
    message += "; free some space and try again";
  return Status(code, std::move(message));
}

const std::string &Status::message() const {
  static const std::string none = "ok";
  return detail ? detail->message : none;
}

static void copyText(char *out, size_t size, const std::string &text) {
  size_t n = std::min(size - 1, text.size());
  std::memcpy(out, text.data(), n);
  out[n] = 0;
}

trc_status Status::fill(trc_error *error) const {
  if (!error || error->struct_size < offsetof(trc_error, feature))
    return code();
  trc_error full;
  std::memset(&full, 0, sizeof(full));
  full.status = code();
  full.sample = detail ? detail->sample : -1;
  full.position = detail ? detail->position : -1;
  full.value = detail ? detail->value : -1;
  if (detail) {
    copyText(full.feature, sizeof(full.feature), detail->feature);
    copyText(full.message, sizeof(full.message), detail->message);
  }
  // Keep the caller's size; what an older caller does not know stays unwritten.
  full.struct_size = error->struct_size;
  std::memcpy(error, &full, std::min<size_t>(error->struct_size, sizeof(full)));
  return code();
}

const char *trc_status_name(trc_status status) {
  switch (status) {
  case TRC_OK:
    return "ok";
  case TRC_WOULD_BLOCK:
    return "would block";
  case TRC_BAD_ARGUMENT:
    return "bad argument";
  case TRC_BAD_INPUT:
    return "bad input";
  case TRC_OUT_OF_ORDER:
    return "out of order";
  case TRC_NOT_FOUND:
    return "not found";
  case TRC_LOCKED:
    return "locked";
  case TRC_MISMATCH:
    return "mismatch";
  case TRC_CORRUPT:
    return "corrupt";
  case TRC_IO:
    return "i/o error";
  case TRC_NO_SPACE:
    return "no space";
  case TRC_NO_MEMORY:
    return "no memory";
  case TRC_UNSUPPORTED:
    return "unsupported";
  case TRC_CANCELLED:
    return "cancelled";
  case TRC_POISONED:
    return "poisoned";
  case TRC_FORKED:
    return "forked";
  case TRC_INTERNAL:
    return "internal error";
  case TRC_FULL:
    return "full";
  }
  return "unknown status";
}
