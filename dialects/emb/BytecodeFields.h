//===- BytecodeFields.h - Encodes attributes field by field -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An attribute or type is a code and its parameters in order. A dialect lists
// its attributes once; codes are positions in that list, so that the list only
// ever grows at its end. Reading checks what it builds: a damaged file is an
// error, never an assertion.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_EMB_BYTECODEFIELDS_H
#define TERRACE_DIALECTS_EMB_BYTECODEFIELDS_H

#include "dialects/emb/F64.h"

#include "mlir/Bytecode/BytecodeImplementation.h"

#include <limits>
#include <tuple>
#include <type_traits>

namespace terrace::bytecode {

using Reader = mlir::DialectBytecodeReader;
using Writer = mlir::DialectBytecodeWriter;

struct Version : mlir::DialectVersion {
  explicit Version(uint64_t number) : number(number) {}
  uint64_t number;
};

/// A field that a later version of a dialect added: an older file lacks it, and
/// it takes the value of T(). Fields of one attribute only grow in version.
template <uint64_t version, typename T> struct Since {
  T value{};
  Since() = default;
  Since(T value) : value(std::move(value)) {}
};
template <typename T> struct IsSince : std::false_type {};
template <uint64_t version, typename T>
struct IsSince<Since<version, T>> : std::true_type {
  static constexpr uint64_t added = version;
};

//===----------------------------------------------------------------------===//
// One field
//===----------------------------------------------------------------------===//

template <typename T>
void writeField(Writer &writer, uint64_t version, const T &value) {
  if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>)
    writer.writeVarInt(static_cast<uint64_t>(value));
  else if constexpr (std::is_integral_v<T>)
    writer.writeSignedVarInt(value);
  else if constexpr (std::is_same_v<T, emb::F64>)
    writer.writeVarInt(value.bits());
  else if constexpr (IsSince<T>::value) {
    if (version >= IsSince<T>::added)
      writeField(writer, version, value.value);
  } else if constexpr (std::is_base_of_v<mlir::Attribute, T>)
    writer.writeOptionalAttribute(value);
  else if constexpr (std::is_base_of_v<mlir::Type, T>) {
    writer.writeVarInt(bool(value));
    if (value)
      writer.writeType(value);
  } else {
    writer.writeVarInt(value.size());
    for (const auto &element : value)
      writeField(writer, version, element);
  }
}

template <typename T>
mlir::LogicalResult readField(Reader &reader, uint64_t version, T &value) {
  if constexpr (IsSince<T>::value) {
    return version < IsSince<T>::added
               ? mlir::success()
               : readField(reader, version, value.value);
  } else if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
    uint64_t code = 0;
    if (failed(reader.readVarInt(code)))
      return mlir::failure();
    uint64_t last = 1;
    if constexpr (std::is_enum_v<T>)
      last = lastEnumerator(T());
    if (code > last)
      return reader.emitError() << "code " << code << " of an enum is unknown";
    value = static_cast<T>(code);
    return mlir::success();
  } else if constexpr (std::is_integral_v<T>) {
    return reader.readSignedVarInt(value);
  } else if constexpr (std::is_same_v<T, emb::F64>) {
    uint64_t bits = 0;
    if (failed(reader.readVarInt(bits)))
      return mlir::failure();
    value = emb::F64::fromBits(bits);
    return mlir::success();
  } else if constexpr (std::is_base_of_v<mlir::Attribute, T>) {
    return reader.readOptionalAttribute(value);
  } else if constexpr (std::is_base_of_v<mlir::Type, T>) {
    uint64_t present = 0;
    if (failed(reader.readVarInt(present)))
      return mlir::failure();
    return present ? reader.readType(value) : mlir::success();
  } else {
    uint64_t size = 0;
    if (failed(reader.readVarInt(size)))
      return mlir::failure();
    // One by one: a damaged size ends at the end of the file.
    for (uint64_t i = 0; i < size; ++i)
      if (failed(readField(reader, version, value.emplace_back())))
        return mlir::failure();
    return mlir::success();
  }
}

//===----------------------------------------------------------------------===//
// One attribute or type
//===----------------------------------------------------------------------===//

template <typename T>
void writeFields(Writer &writer, uint64_t version, T value) {
  std::apply(
      [&](const auto &...fields) {
        (writeField(writer, version, fields), ...);
      },
      fieldsOf(value));
}

/// What `get` takes: lists as ArrayRef, everything else as it is.
// NOLINTBEGIN(bugprone-return-const-ref-from-parameter): fields outlive calls.
template <typename T> const T &asArgument(const T &field) { return field; }
template <uint64_t version, typename T>
const T &asArgument(const Since<version, T> &field) {
  return field.value;
}
// NOLINTEND(bugprone-return-const-ref-from-parameter)
template <typename T>
llvm::ArrayRef<T> asArgument(const llvm::SmallVector<T> &field) {
  return field;
}

/// Enum attributes and types without parameters have nothing to verify.
template <typename Fields> struct NeedsCheck : std::true_type {};
template <> struct NeedsCheck<std::tuple<>> : std::false_type {};
template <typename T>
struct NeedsCheck<std::tuple<T>>
    : std::integral_constant<bool, !std::is_enum_v<T>> {};

template <typename T> T readFields(Reader &reader, uint64_t version) {
  using Fields = decltype(fieldsOf(std::declval<T>()));
  Fields fields;
  bool ok = std::apply(
      [&](auto &...field) {
        return (mlir::succeeded(readField(reader, version, field)) && ...);
      },
      fields);
  if (!ok)
    return {};
  return std::apply(
      [&](const auto &...field) -> T {
        if constexpr (NeedsCheck<Fields>::value)
          return T::getChecked([&]() { return reader.emitError(); },
                               reader.getContext(), asArgument(field)...);
        else
          return T::get(reader.getContext(), asArgument(field)...);
      },
      fields);
}

/// The attributes or types of a dialect; a code is a position.
template <typename Base, typename... Ts> struct List {
  static mlir::LogicalResult write(Base value, Writer &writer,
                                   uint64_t version) {
    uint64_t code = 0;
    auto one = [&](auto null) {
      using T = decltype(null);
      if (auto typed = llvm::dyn_cast<T>(value)) {
        writer.writeVarInt(code);
        writeFields(writer, version, typed);
        return true;
      }
      ++code;
      return false;
    };
    return mlir::success((one(Ts()) || ...));
  }

  static Base read(Reader &reader, uint64_t version) {
    uint64_t code = 0, at = 0;
    if (failed(reader.readVarInt(code)))
      return {};
    Base result;
    auto one = [&](auto null) {
      using T = decltype(null);
      if (at++ != code)
        return false;
      result = readFields<T>(reader, version);
      return true;
    };
    if (!(one(Ts()) || ...))
      reader.emitError() << "code " << code << " is unknown";
    return result;
  }
};

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

/// The version that a file was written with; one from the future is an error.
inline std::unique_ptr<mlir::DialectVersion>
readVersion(Reader &reader, llvm::StringRef dialect, uint64_t current) {
  uint64_t number = 0;
  if (failed(reader.readVarInt(number)))
    return nullptr;
  if (number == 0 || number > current) {
    reader.emitError() << "dialect " << dialect << " has version " << number
                       << " here, but this Terrace knows 1 to " << current
                       << ": use a newer Terrace";
    return nullptr;
  }
  return std::make_unique<Version>(number);
}

//===----------------------------------------------------------------------===//
// A dialect
//===----------------------------------------------------------------------===//

/// Encodes a dialect from its two lists. Parameters that a version added are
/// filled in while reading (Since), so that nothing is left to upgrade after.
template <typename Attributes, typename Types, uint64_t current>
struct Interface : mlir::BytecodeDialectInterface {
  explicit Interface(mlir::Dialect *dialect)
      : BytecodeDialectInterface(dialect) {}

  mlir::Attribute readAttribute(Reader &reader) const override {
    return Attributes::read(reader, versionOf(reader));
  }
  mlir::LogicalResult writeAttribute(mlir::Attribute attribute,
                                     Writer &writer) const override {
    return Attributes::write(attribute, writer, versionOf(writer));
  }
  mlir::Type readType(Reader &reader) const override {
    return Types::read(reader, versionOf(reader));
  }
  mlir::LogicalResult writeType(mlir::Type type,
                                Writer &writer) const override {
    return Types::write(type, writer, versionOf(writer));
  }
  void writeVersion(Writer &writer) const override {
    writer.writeVarInt(versionOf(writer));
  }
  std::unique_ptr<mlir::DialectVersion>
  readVersion(Reader &reader) const override {
    return bytecode::readVersion(reader, getDialect()->getNamespace(), current);
  }
  mlir::LogicalResult
  upgradeFromVersion(mlir::Operation *,
                     const mlir::DialectVersion &) const override {
    return mlir::success();
  }

private:
  /// The current version, unless the file says or its writer asked for another.
  /// What an older one lacks is not written.
  template <typename Stream> uint64_t versionOf(Stream &stream) const {
    auto version = stream.getDialectVersion(getDialect()->getNamespace());
    return mlir::succeeded(version)
               ? static_cast<const Version *>(*version)->number
               : current;
  }
};

} // namespace terrace::bytecode

#endif // TERRACE_DIALECTS_EMB_BYTECODEFIELDS_H
