//===- YamlToJson.cpp - A YAML or JSON text as a JSON value ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine/YamlToJson.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace llvm;

namespace {

/// Collects the first error, wherever it comes from: LLVM's parser or us.
struct Converter {
  SourceMgr sources;
  std::string name, error;

  static void onDiagnostic(const SMDiagnostic &diag, void *self) {
    auto *c = static_cast<Converter *>(self);
    if (c->error.empty())
      c->error = (c->name + ":" + Twine(diag.getLineNo()) + ":" +
                  Twine(diag.getColumnNo() + 1) + ": " + diag.getMessage())
                     .str();
  }

  void fail(yaml::Node *node, const Twine &message) {
    if (!error.empty())
      return;
    SMLoc loc = node ? node->getSourceRange().Start : SMLoc();
    if (!loc.isValid()) {
      error = (name + ": " + message).str();
      return;
    }
    auto [line, column] = sources.getLineAndColumn(loc);
    error =
        (name + ":" + Twine(line) + ":" + Twine(column) + ": " + message).str();
  }

  json::Value scalar(yaml::ScalarNode *node) {
    SmallString<64> storage;
    StringRef text = node->getValue(storage);
    StringRef raw = node->getRawValue();
    if (!raw.starts_with("\"") && !raw.starts_with("'")) {
      int64_t integer;
      double real;
      if (text.empty() || text == "null" || text == "~")
        return nullptr;
      if (text == "true" || text == "false")
        return text == "true";
      if (!text.getAsInteger(10, integer))
        return integer;
      if (!text.getAsDouble(real))
        return real;
    }
    if (!json::isUTF8(text)) {
      fail(node, "text is not UTF-8");
      return nullptr;
    }
    return text.str();
  }

  json::Value convert(yaml::Node *node, unsigned depth = 0) {
    if (!node || !error.empty())
      return nullptr;
    // Neither a machine nor a decision; and this walk is recursive.
    if (depth > 32) {
      fail(node, "nested more than 32 levels deep");
      return nullptr;
    }
    if (auto *s = dyn_cast<yaml::ScalarNode>(node))
      return scalar(s);
    if (auto *s = dyn_cast<yaml::BlockScalarNode>(node))
      return json::fixUTF8(s->getValue());
    if (auto *s = dyn_cast<yaml::SequenceNode>(node)) {
      json::Array array;
      for (yaml::Node &item : *s)
        array.push_back(convert(&item, depth + 1));
      return array;
    }
    if (auto *m = dyn_cast<yaml::MappingNode>(node)) {
      json::Object object;
      for (yaml::KeyValueNode &pair : *m) {
        auto *key = dyn_cast_or_null<yaml::ScalarNode>(pair.getKey());
        if (!key) {
          fail(&pair, "a key must be a word");
          pair.skip();
          continue;
        }
        SmallString<32> storage;
        std::string text = json::fixUTF8(key->getValue(storage));
        json::Value value = convert(pair.getValue(), depth + 1);
        if (!object.try_emplace(text, std::move(value)).second)
          fail(key, "'" + text + "' is given twice");
      }
      return object;
    }
    if (isa<yaml::NullNode>(node))
      return nullptr;
    fail(node, "anchors and aliases are not supported");
    return nullptr;
  }
};

} // namespace

Expected<json::Value> terrace::yamlToJson(StringRef text, StringRef name) {
  Converter c;
  c.name = name.str();
  c.sources.setDiagHandler(Converter::onDiagnostic, &c);
  yaml::Stream stream(text, c.sources, /*ShowColors=*/false);
  json::Value value = nullptr;
  auto document = stream.begin();
  if (document == stream.end() || !document->getRoot())
    c.fail(nullptr, "the file is empty");
  else
    value = c.convert(document->getRoot());
  if (c.error.empty() && stream.failed())
    c.fail(nullptr, "not valid YAML");
  if (!c.error.empty())
    return createStringError(inconvertibleErrorCode(), "%s", c.error.c_str());
  return value;
}

Expected<json::Value> terrace::yamlFileToJson(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return createStringError(buffer.getError(), "cannot read '%s': %s",
                             path.str().c_str(),
                             buffer.getError().message().c_str());
  return yamlToJson((*buffer)->getBuffer(), path);
}
