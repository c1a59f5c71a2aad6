//===- Fields.h - Reading typed values out of the spec's tree ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `Fields` is one map of the spec: it reports unknown keys at once and reads
// values with their ranges and units. A bad value is reported and leaves the
// default, so that decoding goes on and finds the next error.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SPEC_FIELDS_H
#define TERRACE_SPEC_FIELDS_H

#include "Spec/Spec.h"
#include "Spec/Words.h"
#include "Spec/Yaml.h"

#include <limits>

namespace terrace::spec {

/// What all readers of one spec share.
struct Reading {
  Diagnostics &diagnostics;
  /// > 0: a copy made by `count`; what copy 0 already reported is not repeated.
  unsigned copy = 0;

  void error(Loc loc, const llvm::Twine &message) {
    if (copy == 0 || !diagnostics.hasErrorAt(loc))
      diagnostics.error(loc, message);
  }
};

/// The range of a number; `open` excludes `low`.
struct Range {
  double low = -std::numeric_limits<float>::max();
  double high = std::numeric_limits<float>::max();
  bool openLow = false, openHigh = false;
};

/// Each reads one node; `path` is for the message. False after an error.
bool readInteger(Reading &, const Yaml &, llvm::StringRef path, int64_t low,
                 int64_t high, Int &out);
bool readUnsigned(Reading &, const Yaml &, llvm::StringRef path,
                  Value<uint64_t> &out);
bool readReal(Reading &, const Yaml &, llvm::StringRef path, Range range,
              Real &out);
bool readString(Reading &, const Yaml &, llvm::StringRef path, Str &out);
/// A name of a table, feature, tier or model: also part of paths and globs.
bool readName(Reading &, const Yaml &, llvm::StringRef path, Str &out);
bool readStrings(Reading &, const Yaml &, llvm::StringRef path,
                 std::vector<Str> &out);
bool readSize(Reading &, const Yaml &, llvm::StringRef path, Int &out,
              bool zeroAllowed = false);
/// A number with a unit of time; `instead` is what the key takes as well.
bool readDuration(Reading &, const Yaml &, llvm::StringRef path, Int &seconds,
                  llvm::StringRef instead = "");
/// A whole number of `what`, or a percentage.
bool readAmount(Reading &, const Yaml &, llvm::StringRef path,
                llvm::StringRef what, Value<Amount> &out);
bool readWord(Reading &, const Yaml &, llvm::StringRef path,
              llvm::ArrayRef<llvm::StringRef> allowed, unsigned &index);

template <typename E>
bool readEnum(Reading &reading, const Yaml &node, llvm::StringRef path,
              Value<E> &out) {
  unsigned index;
  if (!readWord(reading, node, path, words<E>(), index))
    return false;
  out = {E(index), node.loc};
  return true;
}

/// "1.5GiB" as bytes, and bytes as the largest unit that divides them.
std::string printSize(int64_t bytes);
std::string printDuration(int64_t seconds);
std::string printReal(double value);

class Fields {
public:
  /// Reports and ignores keys outside of `keys`. A node that is not a map is
  /// reported and then has no keys.
  Fields(Reading &reading, const Yaml &node, llvm::StringRef path,
         llvm::ArrayRef<llvm::StringRef> keys);

  bool isMap() const { return node.isMap(); }
  Loc loc() const { return node.loc; }
  Reading &reading;

  /// The value of a key; null where absent or without a value.
  const Yaml *get(llvm::StringRef key) const;
  /// The location of the key itself.
  Loc keyLoc(llvm::StringRef key) const;
  std::string path(llvm::StringRef key) const;
  void error(llvm::StringRef key, const llvm::Twine &message) const;
  /// One error that names all keys of the list that are absent.
  bool require(llvm::ArrayRef<llvm::StringRef> keys) const;
  /// Reports those of `keys` that are given but mean nothing here.
  void refuse(llvm::ArrayRef<llvm::StringRef> keys,
              const llvm::Twine &why) const;

  void integer(llvm::StringRef key, int64_t low, int64_t high, Int &out) const {
    if (const Yaml *value = get(key))
      readInteger(reading, *value, path(key), low, high, out);
  }
  void real(llvm::StringRef key, Range range, Real &out) const {
    if (const Yaml *value = get(key))
      readReal(reading, *value, path(key), range, out);
  }
  void string(llvm::StringRef key, Str &out) const {
    if (const Yaml *value = get(key))
      readString(reading, *value, path(key), out);
  }
  void string(llvm::StringRef key, std::optional<Str> &out) const {
    Str text;
    if (const Yaml *value = get(key))
      if (readString(reading, *value, path(key), text))
        out = text;
  }
  void strings(llvm::StringRef key, std::vector<Str> &out) const {
    if (const Yaml *value = get(key))
      readStrings(reading, *value, path(key), out);
  }
  template <typename E> void word(llvm::StringRef key, Value<E> &out) const {
    if (const Yaml *value = get(key))
      readEnum(reading, *value, path(key), out);
  }

private:
  const Yaml &node;
  std::string base;
};

} // namespace terrace::spec

#endif // TERRACE_SPEC_FIELDS_H
