//===- Parse.cpp - From files and edits to a validated spec ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of steps: read, merge the node file, apply `--set`, decode,
// validate. Later steps run in spite of errors, so that a user sees all.
//
//===----------------------------------------------------------------------===//
#include "Spec/Decode.h"
#include "Spec/Edit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace terrace::spec {

namespace {

constexpr llvm::StringRef topKeys[] = {
    "terrace", "model",    "seed",      "numerics", "on_bad_id", "on_bad_grad",
    "batch",   "defaults", "templates", "tables",   "features",  "dense",
    "head",    "train",    "serve",     "data",     "memory",    "workers",
    "target",  "machine",  "plan"};

void checkVersion(Reading &reading, const Yaml &root) {
  const Yaml *version = root.find("terrace");
  if (!version || version->isNull())
    reading.error(root.loc, "missing key 'terrace': begin the file with "
                            "'terrace: 1', the version of the spec");
  else if (!version->isScalar() || version->text != "1")
    reading.error(version->loc,
                  "terrace: this compiler reads version 1 of the spec, not '" +
                      (version->isScalar() ? version->text : "...") + "'");
}

/// A name for a model that gives none, from its file.
std::string modelName(llvm::StringRef fileName) {
  std::string name;
  for (char c : llvm::sys::path::stem(fileName))
    name += llvm::isAlnum(c) || c == '_' || c == '-' ? c : '_';
  while (!name.empty() && name.front() == '-')
    name.erase(name.begin());
  return name.empty() ? "model" : name;
}

/// Reads one file's text into a map. False if nothing can be made of it.
bool readRoot(llvm::StringRef text, unsigned file, Yaml &root,
              Diagnostics &diagnostics) {
  if (!parseYaml(text, file, root, diagnostics))
    return false;
  if (root.isMap())
    return true;
  Loc loc = root.loc.isValid() ? root.loc : Loc{file, 1, 1};
  diagnostics.error(
      loc, root.isNull() ? llvm::Twine("the file is empty: a spec begins "
                                       "with 'terrace: 1'")
                         : "a spec is a map of keys, not " + kindName(root));
  return false;
}

std::optional<Spec> resolve(Yaml root, llvm::StringRef fileName,
                            std::optional<Yaml> node,
                            llvm::ArrayRef<std::string> edits,
                            Diagnostics &diagnostics) {
  Reading reading{diagnostics};
  Spec spec;
  if (node) {
    checkVersion(reading, *node);
    mergeNode(root, *node, diagnostics);
  }
  bool editsGood = true;
  for (const std::string &edit : edits)
    editsGood &= applyEdit(root, edit, diagnostics);
  // A node file has a version of its own: the merge took it over.
  checkVersion(reading, root);

  bool hasModelKey = false, hasNodeKey = false;
  for (const YamlEntry &entry : root.entries) {
    bool forNode = llvm::is_contained(nodeKeys(), entry.key);
    hasNodeKey |= forNode && entry.key != "terrace";
    hasModelKey |= !forNode;
  }
  spec.nodeOnly = hasNodeKey && !hasModelKey && !node;

  Fields top(reading, root, "", topKeys);
  spec.model = modelName(fileName);
  decodeModel(reading, root, spec);
  decodeRun(reading, root, spec);
  decodeNode(reading, root, spec);
  // References to a table or tier that was refused would only echo its error.
  validate(reading, spec);
  spec.sources = diagnostics.sources();
  if (diagnostics.hasErrors() || !editsGood)
    return std::nullopt;
  return spec;
}

std::optional<Spec> parseTexts(llvm::StringRef text, llvm::StringRef fileName,
                               const std::optional<std::string> &nodeText,
                               llvm::StringRef nodeName,
                               llvm::ArrayRef<std::string> edits,
                               Diagnostics &diagnostics) {
  Yaml root;
  bool good =
      readRoot(text, diagnostics.addSource(fileName), root, diagnostics);
  std::optional<Yaml> node;
  if (nodeText) {
    node.emplace();
    good &= readRoot(*nodeText, diagnostics.addSource(nodeName), *node,
                     diagnostics);
  }
  if (!good)
    return std::nullopt;
  return resolve(std::move(root), fileName, std::move(node), edits,
                 diagnostics);
}

bool readFile(llvm::StringRef name, std::string &text,
              Diagnostics &diagnostics) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(name, /*IsText=*/false,
                                                   /*NeedsTerminator=*/true);
  if (!buffer) {
    unsigned file = diagnostics.addSource(name);
    diagnostics.environmentError({file, 0, 0}, "cannot read the file: " +
                                                   buffer.getError().message());
    return false;
  }
  text = (*buffer)->getBuffer().str();
  return true;
}

} // namespace

std::optional<Spec>
parseSpecText(llvm::StringRef text, llvm::StringRef fileName,
              Diagnostics &diagnostics, llvm::StringRef nodeText,
              llvm::StringRef nodeName, llvm::ArrayRef<std::string> edits) {
  std::optional<std::string> node;
  if (!nodeName.empty())
    node = nodeText.str();
  return parseTexts(text, fileName, node, nodeName, edits, diagnostics);
}

std::optional<Spec> parseSpec(const SpecInput &input,
                              Diagnostics &diagnostics) {
  std::string text;
  std::optional<std::string> node;
  bool good = readFile(input.modelFile, text, diagnostics);
  if (!input.nodeFile.empty()) {
    node.emplace();
    good &= readFile(input.nodeFile, *node, diagnostics);
  }
  if (!good)
    return std::nullopt;
  return parseTexts(text, input.modelFile, node, input.nodeFile, input.edits,
                    diagnostics);
}

const Tier *Spec::tier(llvm::StringRef name) const {
  for (const Tier &tier : tiers)
    if (*tier.name == name)
      return &tier;
  return nullptr;
}

std::string machinePath(const Spec &spec) {
  const Str &file = *spec.machine;
  llvm::SmallString<128> path(file.value);
  if (llvm::sys::path::is_relative(path) && file.loc.isValid() &&
      file.loc.file < spec.sources.size() &&
      !spec.sources[file.loc.file].isOption) {
    path = llvm::sys::path::parent_path(spec.sources[file.loc.file].name);
    llvm::sys::path::append(path, file.value);
  }
  return path.str().str();
}

int Spec::tableIndex(llvm::StringRef name) const {
  for (auto [i, table] : llvm::enumerate(tables))
    if (*table.name == name)
      return i;
  return -1;
}

bool PlacePin::matches(llvm::StringRef table) const {
  auto glob = llvm::GlobPattern::create(*tables);
  if (!glob) {
    llvm::consumeError(glob.takeError());
    return false;
  }
  return glob->match(table);
}

const PlacePin *Spec::pinOf(llvm::StringRef table) const {
  for (const PlacePin &pin : llvm::reverse(plan.place))
    if (pin.matches(table))
      return &pin;
  return nullptr;
}

std::vector<std::string> Spec::dedupGroups() const {
  std::vector<std::string> groups;
  for (const Feature &feature : features)
    if (feature.dedup && !llvm::is_contained(groups, **feature.dedup))
      groups.push_back(**feature.dedup);
  return groups;
}

} // namespace terrace::spec
