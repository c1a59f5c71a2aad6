//===- LibHeader.cpp - The header beside a compiled library ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/LibHeader.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace terrace::driver {

namespace {
/// Names become identifiers; two names that become the same one get numbers.
class Identifiers {
public:
  std::string of(llvm::StringRef name) {
    std::string base;
    for (char c : name)
      base += llvm::isAlnum(c) ? llvm::toUpper(c) : '_';
    std::string unique = base;
    for (unsigned n = 2; !used.insert(unique).second; ++n)
      unique = base + "_" + std::to_string(n);
    return unique;
  }

private:
  llvm::StringSet<> used;
};

std::string prefixOf(llvm::StringRef model) {
  std::string prefix = Identifiers().of(model);
  if (llvm::isDigit(prefix[0]))
    prefix = "M" + prefix;
  return prefix;
}
} // namespace

std::string libraryHeader(const spec::Spec &spec, llvm::StringRef fileName) {
  std::string prefix = prefixOf(*spec.model), text;
  llvm::raw_string_ostream os(text);
  os << "/* " << fileName << ": the names of model '" << *spec.model
     << "', made by terrace. */\n"
     << "#ifndef TERRACE_MODEL_" << prefix << "_H\n#define TERRACE_MODEL_"
     << prefix << "_H\n\n"
     << "#define " << prefix << "_BATCH " << spec.batch.size.value
     << " /* samples of a batch, at most */\n"
     << "#define " << prefix << "_MAX_IDS " << spec.batch.maxIds.value
     << "LL /* ids of a batch over all features, at most */\n\n"
     << "/* Index into trc_batch.features, and into the outputs of trc_forward "
        "without a head. */\nenum {\n";
  Identifiers features;
  for (const spec::Feature &f : spec.features) {
    const spec::Table &table = spec.tables[f.table];
    os << "  " << prefix << "_FEATURE_" << features.of(*f.name) << ", /* table "
       << *table.name << ", dim " << table.dim.value << ", "
       << spec::name(f.pooling.value) << ", at most " << f.maxIds.value
       << " ids" << (f.weights ? ", weighted" : "") << " */\n";
  }
  os << "  " << prefix
     << "_FEATURES\n};\n\n/* Widths of the features' outputs, "
     << "in the same order. */\n#define " << prefix << "_DIMS \\\n  { ";
  for (size_t i = 0; i < spec.features.size(); ++i)
    os << (i ? ", " : "") << (i && i % 16 == 0 ? "\\\n    " : "")
       << spec.tables[spec.features[i].table].dim.value;
  os << " }\n\n#endif\n";
  return text;
}

} // namespace terrace::driver
