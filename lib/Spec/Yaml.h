//===- Yaml.h - A small tree of YAML nodes ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's YAML nodes are a stream that can be walked once; templates, `count`,
// `--node` and `--set` need a tree to edit. Every node and key knows where it
// was written. Anchors, aliases, tags, several documents and repeated keys are
// refused here.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SPEC_YAML_H
#define TERRACE_SPEC_YAML_H

#include "Spec/Diagnostics.h"

#include <string>
#include <vector>

namespace terrace::spec {

struct YamlEntry;

struct Yaml {
  enum class Kind { Null, Scalar, Map, List };
  Kind kind = Kind::Null;
  Loc loc;
  std::string text;     ///< of a scalar, unquoted
  bool quoted = false;  ///< a quoted scalar is never null
  bool refused = false; ///< an alias: reported, and not missing
  std::vector<YamlEntry> entries;
  std::vector<Yaml> items;

  bool isNull() const { return kind == Kind::Null; }
  bool isScalar() const { return kind == Kind::Scalar; }
  bool isMap() const { return kind == Kind::Map; }
  bool isList() const { return kind == Kind::List; }

  /// The value of a key of a map, or null where there is none.
  const Yaml *find(llvm::StringRef key) const;
  Yaml *find(llvm::StringRef key);
  /// Adds or replaces a key.
  Yaml &set(llvm::StringRef key, Loc keyLoc, Yaml value);
  void erase(llvm::StringRef key);

  static Yaml scalar(llvm::StringRef text, Loc loc);
  static Yaml map(Loc loc);
};

struct YamlEntry {
  std::string key;
  Loc keyLoc;
  Yaml value;
};

/// "a whole number", "a list", ...: for messages.
llvm::StringRef kindName(const Yaml &node);

/// Parses one document. Reports to `diagnostics`, with locations in source
/// `file`. False if the tree cannot be used; what is refused but leaves a
/// whole tree (an anchor, a repeated key) is only reported.
bool parseYaml(llvm::StringRef text, unsigned file, Yaml &root,
               Diagnostics &diagnostics);

} // namespace terrace::spec

#endif // TERRACE_SPEC_YAML_H
