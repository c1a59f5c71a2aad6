//===- Fields.cpp - Reading typed values out of the spec's tree -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every message says: which key, the value found, what is allowed.
//
//===----------------------------------------------------------------------===//
#include "Spec/Fields.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <charconv>
#include <cmath>

namespace terrace::spec {

namespace {

struct Unit {
  llvm::StringRef name;
  int64_t factor;
};
constexpr Unit sizeUnits[] = {{"B", 1},
                              {"KiB", int64_t(1) << 10},
                              {"MiB", int64_t(1) << 20},
                              {"GiB", int64_t(1) << 30},
                              {"TiB", int64_t(1) << 40},
                              {"PiB", int64_t(1) << 50},
                              {"kB", 1000},
                              {"KB", 1000},
                              {"MB", 1000000},
                              {"GB", 1000000000},
                              {"TB", 1000000000000}};
constexpr Unit timeUnits[] = {
    {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};

// Shows a value in a message: never a megabyte, never a control character.
std::string shown(const Yaml &node) {
  if (!node.isScalar())
    return kindName(node).str();
  std::string text;
  for (char c : llvm::StringRef(node.text).take_front(60))
    text += llvm::isPrint(c) || (c & 0x80) ? c : '?';
  if (node.text.size() > 60)
    text += "...";
  return "'" + text + "'";
}

bool wrong(Reading &reading, const Yaml &node, llvm::StringRef path,
           const llvm::Twine &expected) {
  reading.error(node.loc,
                path + ": expected " + expected + ", found " + shown(node));
  return false;
}

// Decimal only: no octal or hexadecimal surprises.
bool parseWhole(llvm::StringRef text, int64_t &out) {
  text.consume_front("+");
  return !text.empty() && !text.starts_with("+") && !text.getAsInteger(10, out);
}

bool parseReal(llvm::StringRef text, double &out) {
  text.consume_front("+");
  if (text.empty() || text.starts_with("+"))
    return false;
  // Locale-free and exact; refuses hexadecimal.
  auto [end, error] = std::from_chars(text.begin(), text.end(), out);
  return error == std::errc() && end == text.end() && std::isfinite(out);
}

// Splits "1.5GiB" into its number and unit.
bool splitUnit(llvm::StringRef text, double &number, llvm::StringRef &unit) {
  size_t at = text.find_last_of("0123456789.");
  if (at == llvm::StringRef::npos)
    return false;
  unit = text.drop_front(at + 1).ltrim();
  return parseReal(text.take_front(at + 1), number);
}

std::string printUnit(int64_t value, llvm::ArrayRef<Unit> units) {
  for (const Unit &unit : llvm::reverse(units))
    if (value && value % unit.factor == 0)
      return std::to_string(value / unit.factor) + unit.name.str();
  return std::to_string(value) + units[0].name.str();
}

std::string showRange(int64_t low, int64_t high) {
  return std::to_string(low) + " to " + std::to_string(high);
}

} // namespace

std::string printSize(int64_t bytes) {
  return printUnit(bytes, llvm::ArrayRef(sizeUnits).take_front(6));
}

std::string printDuration(int64_t seconds) {
  return printUnit(seconds, llvm::ArrayRef(timeUnits).take_front(4));
}

std::string printReal(double value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  (void)error; // 64 bytes hold every shortest double
  return std::string(buffer, end);
}

bool readInteger(Reading &reading, const Yaml &node, llvm::StringRef path,
                 int64_t low, int64_t high, Int &out) {
  int64_t value;
  if (!node.isScalar() || !parseWhole(node.text, value)) {
    double real = 0;
    if (node.isScalar() && parseReal(node.text, real) &&
        real == std::floor(real) && std::fabs(real) < 9e15)
      return wrong(reading, node, path,
                   "a whole number (write " + llvm::Twine(int64_t(real)) + ")");
    std::string digits = node.text;
    llvm::erase(digits, '_');
    llvm::erase(digits, ',');
    if (node.isScalar() && digits != node.text && parseWhole(digits, value))
      return wrong(reading, node, path,
                   "a whole number without separators (write " + digits + ")");
    // 10M is no number of rows in YAML, but it is clear what is meant.
    double number;
    llvm::StringRef unit;
    const llvm::StringRef letters[] = {"k", "m", "g"};
    if (node.isScalar() && splitUnit(node.text, number, unit))
      for (auto [i, letter] : llvm::enumerate(letters))
        if (unit.equals_insensitive(letter)) {
          real = number * std::pow(1000.0, double(i + 1));
          if (real == std::floor(real) && std::fabs(real) < 9e15)
            return wrong(reading, node, path,
                         "a whole number without a unit (write " +
                             llvm::Twine(int64_t(real)) + ")");
        }
    return wrong(reading, node, path,
                 "a whole number, " + showRange(low, high));
  }
  if (value < low || value > high)
    return wrong(reading, node, path,
                 "a whole number, " + showRange(low, high));
  out = {value, node.loc};
  return true;
}

bool readUnsigned(Reading &reading, const Yaml &node, llvm::StringRef path,
                  Value<uint64_t> &out) {
  uint64_t value;
  if (!node.isScalar() || llvm::StringRef(node.text).getAsInteger(10, value))
    return wrong(reading, node, path, "a whole number, 0 to 2^64 - 1");
  out = {value, node.loc};
  return true;
}

bool readReal(Reading &reading, const Yaml &node, llvm::StringRef path,
              Range range, Real &out) {
  double value;
  std::string allowed = "a number";
  const double most = std::numeric_limits<float>::max();
  if (range.low > -most)
    allowed +=
        (range.openLow ? " above " : ", at least ") + printReal(range.low);
  if (range.high < most)
    allowed += (range.low > -most ? " and" : "") +
               std::string(range.openHigh ? " below " : " at most ") +
               printReal(range.high);
  if (!node.isScalar() || !parseReal(node.text, value) || value < range.low ||
      value > range.high || (range.openLow && value == range.low) ||
      (range.openHigh && value == range.high))
    return wrong(reading, node, path, allowed);
  out = {value, node.loc};
  return true;
}

bool readString(Reading &reading, const Yaml &node, llvm::StringRef path,
                Str &out) {
  if (!node.isScalar() || node.text.empty())
    return wrong(reading, node, path, "a text that is not empty");
  // A line break would tear messages, headers and manifests apart.
  if (llvm::any_of(node.text,
                   [](char c) { return (unsigned char)c < 0x20 && c != '\t'; }))
    return wrong(reading, node, path, "a text without control characters");
  out = {node.text, node.loc};
  return true;
}

bool readName(Reading &reading, const Yaml &node, llvm::StringRef path,
              Str &out) {
  if (!readString(reading, node, path, out))
    return false;
  llvm::StringRef text = node.text;
  if (text.contains("{i}"))
    return wrong(reading, node, path,
                 "a name ({i} is replaced only beside 'count')");
  size_t bad = text.find_first_of("/\\*?[]{}\"'`,:|<>$ \t");
  if (bad != llvm::StringRef::npos || text.starts_with(".") ||
      text.starts_with("-") || text.size() > 200)
    return wrong(reading, node, path,
                 "a name: letters, digits, '_', '-' and '.', not at the "
                 "beginning, at most 200 bytes");
  return true;
}

bool readStrings(Reading &reading, const Yaml &node, llvm::StringRef path,
                 std::vector<Str> &out) {
  std::vector<Str> list;
  if (node.isList()) {
    if (node.items.empty())
      return wrong(reading, node, path, "at least one value");
    for (const Yaml &item : node.items) {
      list.emplace_back();
      if (!readString(reading, item, path, list.back()))
        return false;
    }
  } else {
    list.emplace_back();
    if (!readString(reading, node, path, list.back()))
      return false;
  }
  out = std::move(list);
  return true;
}

bool readSize(Reading &reading, const Yaml &node, llvm::StringRef path,
              Int &out, bool zeroAllowed) {
  const char *expected = "a size such as 64KiB, 512MiB or 2GiB";
  double number;
  llvm::StringRef unit;
  if (!node.isScalar() || !splitUnit(node.text, number, unit))
    return wrong(reading, node, path, expected);
  const Unit *found =
      llvm::find_if(sizeUnits, [&](const Unit &u) { return u.name == unit; });
  int64_t factor = 1;
  if (found != std::end(sizeUnits)) {
    factor = found->factor;
  } else if (!unit.empty()) {
    std::vector<llvm::StringRef> names;
    for (const Unit &u : sizeUnits)
      names.push_back(u.name);
    std::string letter = unit.take_front(1).upper();
    std::string hint = didYouMean(unit, names);
    if (letter == "K" || letter == "M" || letter == "G" || letter == "T")
      hint = "; did you mean '" + letter + "iB' (powers of 1024) or '" +
             letter + "B' (powers of 1000)?";
    reading.error(node.loc, path + ": unknown unit of size '" + unit + "' in " +
                                shown(node) + hint +
                                " (allowed: " + listOf(names) + ")");
    return false;
  }
  double bytes = number * double(factor);
  if (bytes < (zeroAllowed ? 0 : 1) || bytes > 9.0e18 ||
      bytes != std::floor(bytes))
    return wrong(reading, node, path,
                 llvm::Twine(expected) + ", a whole number of bytes" +
                     (zeroAllowed ? "" : " above 0"));
  // Whole numbers stay exact beyond 2^53.
  int64_t whole;
  llvm::StringRef digits = llvm::StringRef(node.text).take_while(
      [](char c) { return llvm::isDigit(c); });
  if (parseWhole(digits, whole) &&
      (digits.size() + unit.size() == node.text.size()))
    out = {whole * factor, node.loc};
  else
    out = {int64_t(bytes), node.loc};
  return true;
}

bool readDuration(Reading &reading, const Yaml &node, llvm::StringRef path,
                  Int &seconds, llvm::StringRef instead) {
  std::string expected =
      instead.str() + "a duration such as 30s, 10min, 2h or 30d";
  double number;
  llvm::StringRef unit;
  if (!node.isScalar() || !splitUnit(node.text, number, unit))
    return wrong(reading, node, path, expected);
  for (const Unit &u : timeUnits)
    if (u.name == unit) {
      double value = number * double(u.factor);
      if (value < 1 || value > 1e12 || value != std::floor(value))
        return wrong(reading, node, path,
                     expected + ", a whole number of seconds");
      seconds = {int64_t(value), node.loc};
      return true;
    }
  std::vector<llvm::StringRef> names;
  for (const Unit &u : timeUnits)
    names.push_back(u.name);
  std::string hint = didYouMean(unit, names);
  if (unit.empty())
    hint = "; a unit is needed";
  else if (unit == "m")
    hint = "; did you mean 'min'?";
  reading.error(node.loc, path + ": unknown unit of time '" + unit + "' in " +
                              shown(node) + hint +
                              " (allowed: " + listOf(names) + ")");
  return false;
}

bool readAmount(Reading &reading, const Yaml &node, llvm::StringRef path,
                llvm::StringRef what, Value<Amount> &out) {
  std::string expected =
      "a whole number of " + what.str() + " above 0, or a share such as 5%";
  if (!node.isScalar())
    return wrong(reading, node, path, expected);
  llvm::StringRef text = node.text;
  Amount amount;
  if (text.consume_back("%")) {
    if (!parseReal(text.rtrim(), amount.percent) || amount.percent <= 0 ||
        amount.percent > 100)
      return wrong(reading, node, path, expected + " (above 0%, at most 100%)");
  } else if (!parseWhole(text, amount.count) || amount.count < 1) {
    return wrong(reading, node, path, expected);
  }
  out = {amount, node.loc};
  return true;
}

bool readWord(Reading &reading, const Yaml &node, llvm::StringRef path,
              llvm::ArrayRef<llvm::StringRef> allowed, unsigned &index) {
  if (node.isScalar())
    for (auto [i, word] : llvm::enumerate(allowed))
      if (node.text == word) {
        index = i;
        return true;
      }
  std::string hint;
  if (node.isScalar())
    hint = didYouMean(node.text, allowed);
  reading.error(node.loc, path + ": " + shown(node) + " is not known" + hint +
                              " (allowed: " + listOf(allowed) + ")");
  return false;
}

Fields::Fields(Reading &reading, const Yaml &node, llvm::StringRef path,
               llvm::ArrayRef<llvm::StringRef> keys)
    : reading(reading), node(node), base(path.str()) {
  if (!node.isMap()) {
    wrong(reading, node, path, "a map with the keys " + listOf(keys));
    return;
  }
  for (const YamlEntry &entry : node.entries)
    if (!llvm::is_contained(keys, entry.key)) {
      Yaml shownKey = Yaml::scalar(entry.key, entry.keyLoc);
      reading.error(entry.keyLoc, (base.empty() ? "" : base + ": ") +
                                      "unknown key " + shown(shownKey) +
                                      keyHint(entry.key, keys) +
                                      " (allowed: " + listOf(keys) + ")");
    }
}

const Yaml *Fields::get(llvm::StringRef key) const {
  const Yaml *value = node.find(key);
  return value && !value->isNull() ? value : nullptr;
}

Loc Fields::keyLoc(llvm::StringRef key) const {
  for (const YamlEntry &entry : node.entries)
    if (entry.key == key)
      return entry.keyLoc;
  return node.loc;
}

std::string Fields::path(llvm::StringRef key) const {
  return base.empty() ? key.str() : base + "." + key.str();
}

void Fields::error(llvm::StringRef key, const llvm::Twine &message) const {
  const Yaml *value = node.find(key);
  reading.error(value ? value->loc : node.loc, path(key) + ": " + message);
}

bool Fields::require(llvm::ArrayRef<llvm::StringRef> keys) const {
  std::vector<llvm::StringRef> missing;
  for (llvm::StringRef key : keys)
    if (const Yaml *value = node.find(key);
        !value || (value->isNull() && !value->refused))
      missing.push_back(key);
  if (missing.empty() || !node.isMap())
    return llvm::all_of(keys, [&](llvm::StringRef key) { return get(key); });
  reading.error(node.loc, (base.empty() ? "" : base + ": ") + "missing " +
                              (missing.size() == 1 ? "key '" : "keys '") +
                              llvm::join(missing, "', '") + "'");
  return false;
}

void Fields::refuse(llvm::ArrayRef<llvm::StringRef> keys,
                    const llvm::Twine &why) const {
  for (llvm::StringRef key : keys)
    if (get(key))
      reading.error(keyLoc(key), path(key) + ": " + why);
}

} // namespace terrace::spec
