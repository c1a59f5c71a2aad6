//===- Yaml.cpp - A small tree of YAML nodes ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks llvm::yaml::Stream once into the tree. After a syntax error the stream
// is never touched again: its nodes are half made then.
//
//===----------------------------------------------------------------------===//
#include "Spec/Yaml.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Casting.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <algorithm>

namespace terrace::spec {

const Yaml *Yaml::find(llvm::StringRef key) const {
  for (const YamlEntry &entry : entries)
    if (entry.key == key)
      return &entry.value;
  return nullptr;
}

Yaml *Yaml::find(llvm::StringRef key) {
  return const_cast<Yaml *>(std::as_const(*this).find(key));
}

Yaml &Yaml::set(llvm::StringRef key, Loc keyLoc, Yaml value) {
  for (YamlEntry &entry : entries)
    if (entry.key == key) {
      entry.keyLoc = keyLoc;
      entry.value = std::move(value);
      return entry.value;
    }
  entries.push_back({key.str(), keyLoc, std::move(value)});
  return entries.back().value;
}

void Yaml::erase(llvm::StringRef key) {
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].key == key) {
      entries.erase(entries.begin() + i);
      return;
    }
}

Yaml Yaml::scalar(llvm::StringRef text, Loc loc) {
  Yaml node;
  node.kind = Kind::Scalar;
  node.loc = loc;
  node.text = text.str();
  return node;
}

Yaml Yaml::map(Loc loc) {
  Yaml node;
  node.kind = Kind::Map;
  node.loc = loc;
  return node;
}

llvm::StringRef kindName(const Yaml &node) {
  switch (node.kind) {
  case Yaml::Kind::Null:
    return "nothing";
  case Yaml::Kind::Scalar:
    return "a single value";
  case Yaml::Kind::Map:
    return "a map";
  case Yaml::Kind::List:
    return "a list";
  }
  return "nothing";
}

namespace {

// Deep nesting is never a spec, and the walk is recursive.
constexpr unsigned maxDepth = 32;
// A spec of a thousand tables is some 100 KiB.
constexpr size_t maxBytes = size_t(64) << 20;

class Reader {
public:
  Reader(llvm::StringRef text, unsigned file, Diagnostics &diagnostics)
      : buffer(text.str()), file(file), diagnostics(diagnostics) {}

  bool read(Yaml &root);

private:
  Loc locOf(llvm::SMLoc where) {
    const char *p = where.getPointer();
    const char *begin = buffer.data();
    if (!p || p < begin)
      p = begin;
    size_t offset = std::min<size_t>(p - begin, buffer.size());
    // Incremental: nodes come in file order, so this is linear over a file.
    if (offset < seenOffset) {
      seenOffset = 0;
      seenLine = 1;
      lineStart = 0;
    }
    for (; seenOffset < offset; ++seenOffset)
      if (buffer[seenOffset] == '\n') {
        ++seenLine;
        lineStart = seenOffset + 1;
      }
    return {file, seenLine, unsigned(offset - lineStart) + 1};
  }
  Loc locOf(const llvm::yaml::Node &node) {
    const char *p = node.getSourceRange().Start.getPointer();
    const char *begin = buffer.data(), *end = begin + buffer.size();
    if (!p || p < begin || p > end)
      return locOf(llvm::SMLoc());
    // An alias and a collection in brackets know the token behind their first.
    if (auto *alias = llvm::dyn_cast<llvm::yaml::AliasNode>(&node)) {
      p = std::clamp(alias->getName().data() - 1, begin, end);
    } else if (!llvm::isa<llvm::yaml::ScalarNode>(node)) {
      const char *open = p;
      while (open > begin && llvm::isSpace(open[-1]))
        --open;
      if (open > begin &&
          open[-1] == (llvm::isa<llvm::yaml::MappingNode>(node)    ? '{'
                       : llvm::isa<llvm::yaml::SequenceNode>(node) ? '['
                                                                   : '\0'))
        p = open - 1;
    }
    return locOf(llvm::SMLoc::getFromPointer(p));
  }

  bool convert(llvm::yaml::Node *node, Yaml &out, unsigned depth);
  bool convertMap(llvm::yaml::MappingNode &map, Yaml &out, unsigned depth);
  bool fail(Loc loc, const llvm::Twine &message) {
    diagnostics.error(loc, message);
    stopped = true;
    return false;
  }

  std::string buffer;
  unsigned file;
  Diagnostics &diagnostics;
  bool stopped = false; // a syntax error: the stream may not be read on
  size_t seenOffset = 0, lineStart = 0;
  unsigned seenLine = 1;
};

bool Reader::convert(llvm::yaml::Node *node, Yaml &out, unsigned depth) {
  if (!node)
    return fail({file, 1, 1}, "cannot read this as YAML");
  out.loc = locOf(*node);
  if (depth > maxDepth)
    return fail(out.loc, "nested more than 32 levels deep");
  bool good = true;
  if (llvm::isa<llvm::yaml::AliasNode>(node)) {
    diagnostics.error(
        out.loc, "aliases are not part of the spec's YAML: use 'defaults', or "
                 "'templates' with {use: NAME}");
    out.refused = true;
    return false;
  }
  if (!node->getAnchor().empty()) {
    diagnostics.error(out.loc,
                      "anchor '&" + node->getAnchor() +
                          "': anchors are not part of the spec's YAML: use "
                          "'defaults', or 'templates' with {use: NAME}");
    good = false;
  }
  if (!node->getRawTag().empty() && node->getRawTag() != "!") {
    diagnostics.error(out.loc, "tag '" + node->getRawTag() +
                                   "': tags are not part of the spec's YAML; "
                                   "leave it out");
    good = false;
  }
  if (auto *scalar = llvm::dyn_cast<llvm::yaml::ScalarNode>(node)) {
    llvm::SmallString<64> storage;
    llvm::StringRef raw = scalar->getRawValue();
    out.quoted = raw.starts_with("\"") || raw.starts_with("'");
    // Unterminated quotes are reported by the scanner; its node is short.
    if (out.quoted && raw.size() < 2)
      return fail(out.loc, "unterminated quoted value");
    out.text = scalar->getValue(storage).str();
    bool isNull = !out.quoted &&
                  (out.text == "null" || out.text == "~" || out.text.empty());
    out.kind = isNull ? Yaml::Kind::Null : Yaml::Kind::Scalar;
    return good;
  }
  if (auto *block = llvm::dyn_cast<llvm::yaml::BlockScalarNode>(node)) {
    out.kind = Yaml::Kind::Scalar;
    out.quoted = true;
    out.text = block->getValue().str();
    return good;
  }
  if (auto *map = llvm::dyn_cast<llvm::yaml::MappingNode>(node)) {
    out.kind = Yaml::Kind::Map;
    return convertMap(*map, out, depth) && good;
  }
  if (auto *list = llvm::dyn_cast<llvm::yaml::SequenceNode>(node)) {
    out.kind = Yaml::Kind::List;
    for (llvm::yaml::Node &item : *list) {
      Yaml child;
      good &= convert(&item, child, depth + 1);
      if (stopped)
        return false;
      out.items.push_back(std::move(child));
    }
    return good;
  }
  return good; // null
}

bool Reader::convertMap(llvm::yaml::MappingNode &map, Yaml &out,
                        unsigned depth) {
  bool good = true;
  for (llvm::yaml::KeyValueNode &pair : map) {
    llvm::yaml::Node *keyNode = pair.getKey();
    if (!keyNode)
      return fail(out.loc, "cannot read this as YAML");
    Yaml key;
    good &= convert(keyNode, key, depth + 1);
    if (stopped)
      return false;
    if (!key.isScalar() && !llvm::isa<llvm::yaml::AliasNode>(keyNode)) {
      diagnostics.error(key.loc, "a key must be a word, not " + kindName(key));
      good = false;
    }
    // A block map says where it begins only through its first key.
    if (out.entries.empty() && key.loc.isValid())
      if (out.loc.line > key.loc.line)
        out.loc = key.loc;
    llvm::yaml::Node *valueNode = pair.getValue();
    if (!valueNode)
      return fail(key.loc, "cannot read the value of '" + key.text + "'");
    YamlEntry entry{key.text, key.loc, {}};
    bool valueGood = convert(valueNode, entry.value, depth + 1);
    good &= valueGood;
    if (stopped)
      return false;
    if (entry.value.isNull())
      entry.value.loc = key.loc;
    if (!key.isScalar())
      continue;
    if (const Yaml *before = out.find(key.text)) {
      diagnostics.error(key.loc, "key '" + key.text +
                                     "' is given twice; the first is at " +
                                     diagnostics.format(before->loc));
      good = false;
      continue;
    }
    out.entries.push_back(std::move(entry));
  }
  return good;
}

bool Reader::read(Yaml &root) {
  if (buffer.size() > maxBytes)
    return fail({file, 1, 1}, "a spec larger than 64 MiB is not read");
  if (buffer.find('\0') != std::string::npos)
    return fail({file, 1, 1}, "the file holds zero bytes: not a text file");
  const auto *bytes = reinterpret_cast<const llvm::UTF8 *>(buffer.data());
  const llvm::UTF8 *cursor = bytes;
  if (!llvm::isLegalUTF8String(&cursor, bytes + buffer.size()))
    return fail(locOf(llvm::SMLoc::getFromPointer(
                    reinterpret_cast<const char *>(cursor))),
                "the file is not UTF-8 text");

  llvm::SourceMgr sources;
  struct Context {
    Reader *reader;
    bool reported;
  } context{this, false};
  sources.setDiagHandler(
      [](const llvm::SMDiagnostic &d, void *opaque) {
        auto &context = *static_cast<Context *>(opaque);
        // Only the first: the scanner repeats itself while it gives up.
        if (context.reported)
          return;
        context.reported = true;
        unsigned line = std::max(1, d.getLineNo());
        unsigned column = std::max(0, d.getColumnNo()) + 1;
        context.reader->diagnostics.error({context.reader->file, line, column},
                                          "YAML: " + d.getMessage());
      },
      &context);
  // The stream copies nothing: locations are pointers into `buffer`.
  llvm::yaml::Stream stream(llvm::MemoryBufferRef(buffer, "spec"), sources,
                            /*ShowColors=*/false);
  llvm::yaml::document_iterator document = stream.begin();
  bool good = true;
  if (document != stream.end()) {
    llvm::yaml::Node *node = document->getRoot();
    if (node && !stream.failed())
      good = convert(node, root, 0);
    if (!stream.failed() && !stopped && good && ++document != stream.end()) {
      llvm::yaml::Node *next = document->getRoot();
      if (next && !stream.failed() && !llvm::isa<llvm::yaml::NullNode>(next))
        diagnostics.error(locOf(*next),
                          "a second document: a spec is one document");
    }
  }
  if (stream.failed() && !context.reported)
    return fail({file, 1, 1}, "cannot read this as YAML");
  return !stream.failed() && !stopped;
}

} // namespace

bool parseYaml(llvm::StringRef text, unsigned file, Yaml &root,
               Diagnostics &diagnostics) {
  return Reader(text, file, diagnostics).read(root);
}

} // namespace terrace::spec
