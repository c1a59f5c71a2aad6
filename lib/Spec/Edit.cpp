//===- Edit.cpp - Edits of the spec's tree: --node, --set, count ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See Edit.h. Nothing here knows what a key means, but which keys hold lists
// of named items and which may be shortened to their `kind`.
//
//===----------------------------------------------------------------------===//
#include "Spec/Edit.h"
#include "Spec/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace terrace::spec {

namespace {
// A thousand tables are usual; this bounds what a typo can cost.
constexpr int64_t maxCount = 100000;

constexpr llvm::StringRef nodeKeyList[] = {"terrace", "memory",  "workers",
                                           "target",  "machine", "plan"};
constexpr llvm::StringRef namedLists[] = {"tables", "features", "dense",
                                          "tiers", "place"};
// {kind: adam} may be written adam.
constexpr llvm::StringRef kindMaps[] = {"optimizer", "init", "ids",
                                        "interaction", "head"};

/// What an item of a named list is called: its name, or its glob.
llvm::StringRef itemName(const Yaml &item) {
  for (llvm::StringRef key : {"name", "tables"})
    if (const Yaml *name = item.find(key))
      if (name->isScalar())
        return name->text;
  return "";
}

/// If `path` is `name` or begins with `name.`, the rest of the path.
bool dropName(llvm::StringRef path, llvm::StringRef name,
              llvm::StringRef &rest) {
  if (name.empty() || !path.consume_front(name))
    return false;
  if (!path.empty() && !path.consume_front("."))
    return false;
  rest = path;
  return true;
}

/// Writes out a shortened `optimizer: adam`.
Yaml lengthen(llvm::StringRef key, const Yaml &node) {
  if (!node.isScalar() || !llvm::is_contained(kindMaps, key))
    return node;
  Yaml map = Yaml::map(node.loc);
  map.set("kind", node.loc, node);
  return map;
}

class Editor {
public:
  Editor(Yaml &root, Loc loc, Diagnostics &diagnostics)
      : root(root), loc(loc), diagnostics(diagnostics) {}

  bool set(llvm::StringRef path, Yaml value) {
    return walk(root, "", path, std::move(value));
  }

private:
  bool fail(const llvm::Twine &message) {
    diagnostics.error(loc, message);
    return false;
  }
  bool walk(Yaml &node, llvm::StringRef key, llvm::StringRef path, Yaml value);
  bool walkList(Yaml &list, llvm::StringRef key, llvm::StringRef path,
                Yaml value);
  Yaml *inlineTable(llvm::StringRef path, llvm::StringRef &rest);

  Yaml &root;
  Loc loc;
  Diagnostics &diagnostics;
};

/// The inline table of a feature, addressed as `tables.NAME`.
Yaml *Editor::inlineTable(llvm::StringRef path, llvm::StringRef &rest) {
  Yaml *features = root.find("features");
  if (!features || !features->isList())
    return nullptr;
  for (Yaml &feature : features->items) {
    Yaml *table = feature.find("table");
    if (!table || !table->isMap())
      continue;
    llvm::StringRef name = itemName(*table);
    if (dropName(path, name.empty() ? itemName(feature) : name, rest))
      return table;
  }
  return nullptr;
}

bool Editor::walkList(Yaml &list, llvm::StringRef key, llvm::StringRef path,
                      Yaml value) {
  llvm::StringRef rest;
  for (Yaml &item : list.items)
    if (dropName(path, itemName(item), rest))
      return walk(item, key, rest, std::move(value));
  auto [first, tail] = path.split('.');
  size_t index;
  if (!first.getAsInteger(10, index) && index < list.items.size())
    return walk(list.items[index], key, tail, std::move(value));
  if (key == "tables")
    if (Yaml *table = inlineTable(path, rest))
      return walk(*table, key, rest, std::move(value));
  if (key == "place" && !tail.empty()) {
    // A pin of its own, after all others, so that it counts.
    Yaml pin = Yaml::map(loc);
    pin.set("tables", loc, Yaml::scalar(first, loc)).quoted = true;
    list.items.push_back(std::move(pin));
    return walk(list.items.back(), key, tail, std::move(value));
  }
  std::vector<llvm::StringRef> names;
  for (const Yaml &item : list.items)
    if (!itemName(item).empty())
      names.push_back(itemName(item));
  return fail("'" + key + "' has no item '" + first + "'" +
              didYouMean(first, names) +
              (names.empty() ? "" : " (items: " + listOf(names) + ")"));
}

bool Editor::walk(Yaml &node, llvm::StringRef key, llvm::StringRef path,
                  Yaml value) {
  if (path.empty()) {
    node = std::move(value);
    return true;
  }
  node = lengthen(key, node);
  if (node.isScalar() && key == "table")
    return fail("this feature's table is '" + node.text +
                "' of 'tables'; address it as tables." + node.text + "." +
                path);
  if (node.isScalar())
    return fail("'" + key + "' is a single value; it has no key '" + path +
                "'");
  if (node.isNull()) {
    node.kind = llvm::is_contained(namedLists, key) ? Yaml::Kind::List
                                                    : Yaml::Kind::Map;
    node.loc = loc;
  }
  if (node.isList())
    return walkList(node, key, path, std::move(value));
  // Keys may hold dots where they are names (cache: {tier: size}).
  llvm::StringRef rest;
  for (YamlEntry &entry : node.entries)
    if (dropName(path, entry.key, rest)) {
      if (rest.empty())
        entry.keyLoc = loc;
      return walk(entry.value, entry.key, rest, std::move(value));
    }
  auto [first, tail] = path.split('.');
  if (first.empty())
    return fail("the key '" + path + "' has an empty part");
  Yaml &made = node.set(first, loc, Yaml());
  made.loc = loc;
  return walk(made, first, tail, std::move(value));
}

} // namespace

llvm::ArrayRef<llvm::StringRef> nodeKeys() { return nodeKeyList; }

bool mergeNode(Yaml &root, const Yaml &node, Diagnostics &diagnostics) {
  bool good = true;
  for (const YamlEntry &entry : node.entries) {
    if (!llvm::is_contained(nodeKeyList, entry.key)) {
      diagnostics.error(entry.keyLoc,
                        "'" + entry.key + "' is not a key of a node file" +
                            didYouMean(entry.key, nodeKeyList) +
                            " (allowed: " + listOf(nodeKeyList) + ")");
      good = false;
      continue;
    }
    Yaml *before = root.find(entry.key);
    if (entry.key == "plan" && before && before->isMap() &&
        entry.value.isMap()) {
      for (const YamlEntry &pin : entry.value.entries)
        before->set(pin.key, pin.keyLoc, pin.value);
      continue;
    }
    root.set(entry.key, entry.keyLoc, entry.value);
  }
  return good;
}

bool applyEdit(Yaml &root, llvm::StringRef edit, Diagnostics &diagnostics) {
  unsigned file = diagnostics.addSource(("--set " + edit).str(), true);
  Loc loc{file, 1, 1};
  auto [key, text] = edit.split('=');
  key = key.trim();
  if (key.empty() || key.size() == edit.size()) {
    diagnostics.error(loc, "expected KEY=VALUE, as in "
                           "memory.tiers.dram.capacity=4GiB");
    return false;
  }
  Yaml value;
  if (!parseYaml(text, file, value, diagnostics))
    return false;
  if (!value.loc.isValid())
    value.loc = loc;
  return Editor(root, loc, diagnostics).set(key, std::move(value));
}

Yaml overlay(const Yaml &under, const Yaml &over) {
  if (!under.isMap() || !over.isMap())
    return over;
  const Yaml *underKind = under.find("kind"), *overKind = over.find("kind");
  if (overKind && (!underKind || underKind->text != overKind->text) &&
      overKind->isScalar())
    return over;
  Yaml result = under;
  result.loc = over.loc;
  for (const YamlEntry &entry : over.entries) {
    const Yaml *below = under.find(entry.key);
    Yaml top = lengthen(entry.key, entry.value);
    result.set(entry.key, entry.keyLoc,
               below ? overlay(lengthen(entry.key, *below), top) : top);
  }
  return result;
}

namespace {
/// One copy of a repeated item. False (after an error) where a list has not
/// one value for each copy.
bool copyItem(const Yaml &node, int64_t index, int64_t count, Yaml &out,
              Diagnostics &diagnostics) {
  if (node.isList()) {
    if (int64_t(node.items.size()) != count) {
      diagnostics.error(node.loc, "a list beside 'count' gives one value to "
                                  "each copy: expected " +
                                      llvm::Twine(count) + " values, found " +
                                      llvm::Twine(node.items.size()));
      return false;
    }
    const Yaml &own = node.items[index];
    if (own.isList()) {
      diagnostics.error(own.loc, "expected a single value for each copy, "
                                 "found a list");
      return false;
    }
    return copyItem(own, index, count, out, diagnostics);
  }
  out.kind = node.kind;
  out.loc = node.loc;
  out.quoted = node.quoted;
  out.text = node.text;
  if (node.isScalar()) {
    std::string number = std::to_string(index);
    for (size_t at = 0; (at = out.text.find("{i}", at)) != std::string::npos;
         at += number.size())
      out.text.replace(at, 3, number);
  }
  bool good = true;
  for (const YamlEntry &entry : node.entries) {
    out.entries.push_back({entry.key, entry.keyLoc, Yaml()});
    good &= copyItem(entry.value, index, count, out.entries.back().value,
                     diagnostics);
  }
  return good;
}
} // namespace

bool expandCount(const Yaml &item, std::vector<Yaml> &out,
                 std::vector<unsigned> &copies, Diagnostics &diagnostics) {
  const Yaml *count = item.isMap() ? item.find("count") : nullptr;
  if (!count || count->isNull()) {
    out.push_back(item);
    copies.push_back(0);
    return true;
  }
  int64_t copiesWanted = 0;
  if (!count->isScalar() ||
      llvm::StringRef(count->text).getAsInteger(10, copiesWanted) ||
      copiesWanted < 1 || copiesWanted > maxCount ||
      int64_t(out.size()) + copiesWanted > maxCount) {
    diagnostics.error(count->loc,
                      "count: expected a whole number, 1 to 100000 over all "
                      "items" +
                          (count->isScalar() ? ", found '" + count->text + "'"
                                             : std::string()));
    return false;
  }
  Yaml plain = item;
  plain.erase("count");
  for (int64_t i = 0; i < copiesWanted; ++i) {
    Yaml copy;
    if (!copyItem(plain, i, copiesWanted, copy, diagnostics))
      return false;
    out.push_back(std::move(copy));
    copies.push_back(i);
  }
  return true;
}

} // namespace terrace::spec
