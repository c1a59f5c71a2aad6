//===- Diagnostics.cpp - Located errors of the spec -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects, orders and prints diagnostics. An error that expansion repeats
// (`count`, templates, defaults) is kept once.
//
//===----------------------------------------------------------------------===//
#include "Spec/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

#include <tuple>

namespace terrace::spec {

static llvm::StringRef severityName(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Note:
    return "note";
  }
  return "error";
}

unsigned Diagnostics::addSource(llvm::StringRef name, bool isOption) {
  files.push_back({name.str(), isOption});
  return files.size() - 1;
}

void Diagnostics::add(Severity severity, Loc loc, const llvm::Twine &message) {
  std::string text = message.str();
  for (const Diagnostic &d : diagnostics)
    if (d.severity == severity && d.loc.file == loc.file &&
        d.loc.line == loc.line && d.loc.column == loc.column &&
        d.message == text)
      return;
  errorCount += severity == Severity::Error;
  diagnostics.push_back({severity, loc, std::move(text)});
}

void Diagnostics::error(Loc loc, const llvm::Twine &message) {
  add(Severity::Error, loc, message);
}
void Diagnostics::warning(Loc loc, const llvm::Twine &message) {
  add(Severity::Warning, loc, message);
}
void Diagnostics::note(Loc loc, const llvm::Twine &message) {
  add(Severity::Note, loc, message);
}

bool Diagnostics::hasErrorAt(Loc loc) const {
  return llvm::any_of(diagnostics, [&](const Diagnostic &d) {
    return d.severity == Severity::Error && d.loc.file == loc.file &&
           d.loc.line == loc.line && d.loc.column == loc.column;
  });
}

std::string Diagnostics::format(Loc loc) const {
  if (loc.file >= files.size())
    return "";
  const Source &file = files[loc.file];
  if (file.isOption || !loc.isValid())
    return file.name;
  return (llvm::Twine(file.name) + ":" + llvm::Twine(loc.line) + ":" +
          llvm::Twine(loc.column))
      .str();
}

std::string Diagnostics::format(const Diagnostic &d) const {
  std::string where = format(d.loc);
  if (!where.empty())
    where += ": ";
  return where + severityName(d.severity).str() + ": " + d.message;
}

std::vector<const Diagnostic *> Diagnostics::sorted() const {
  std::vector<const Diagnostic *> order;
  for (const Diagnostic &d : diagnostics)
    order.push_back(&d);
  // A note belongs to what precedes it, so that one keeps its place.
  auto hasNotes = [](const Diagnostic &d) {
    return d.severity == Severity::Note;
  };
  if (llvm::none_of(diagnostics, hasNotes))
    llvm::stable_sort(order, [](const Diagnostic *a, const Diagnostic *b) {
      return std::tie(a->loc.file, a->loc.line, a->loc.column) <
             std::tie(b->loc.file, b->loc.line, b->loc.column);
    });
  return order;
}

void Diagnostics::print(llvm::raw_ostream &os) const {
  for (const Diagnostic *d : sorted())
    os << format(*d) << "\n";
}

std::string Diagnostics::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

llvm::json::Value Diagnostics::toJson() const {
  llvm::json::Array array;
  for (const Diagnostic *d : sorted()) {
    llvm::json::Object object{{"severity", severityName(d->severity)},
                              {"message", llvm::json::fixUTF8(d->message)}};
    if (d->loc.file < files.size())
      object["file"] = llvm::json::fixUTF8(files[d->loc.file].name);
    if (d->loc.isValid()) {
      object["line"] = d->loc.line;
      object["column"] = d->loc.column;
    }
    array.push_back(std::move(object));
  }
  return array;
}

} // namespace terrace::spec
