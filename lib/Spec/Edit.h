//===- Edit.h - Edits of the spec's tree: --node, --set, count --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What happens to the YAML tree before it is decoded. In order: the node file
// is merged, `--set` edits are applied, items with `count` are repeated,
// templates and defaults are laid under tables and features.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SPEC_EDIT_H
#define TERRACE_SPEC_EDIT_H

#include "Spec/Yaml.h"

#include "llvm/ADT/ArrayRef.h"

namespace terrace::spec {

/// Keys that a node file may hold, `terrace` among them.
llvm::ArrayRef<llvm::StringRef> nodeKeys();

/// Lays a node file over the model: each of its keys replaces the model's;
/// `plan` is merged key by key.
bool mergeNode(Yaml &root, const Yaml &node, Diagnostics &diagnostics);

/// Applies one `key=value`; see SpecInput::edits.
bool applyEdit(Yaml &root, llvm::StringRef edit, Diagnostics &diagnostics);

/// Appends `item`, repeated if it has `count`: `{i}` becomes the number of the
/// copy, and a list gives one value to each. Copies after the first are
/// counted in `copies` (parallel to `out`), for error messages.
bool expandCount(const Yaml &item, std::vector<Yaml> &out,
                 std::vector<unsigned> &copies, Diagnostics &diagnostics);

/// Lays `over` on `under`. Maps merge key by key, but a map that names another
/// `kind` replaces: {kind: adam} keeps nothing of an adagrad below it.
Yaml overlay(const Yaml &under, const Yaml &over);

} // namespace terrace::spec

#endif // TERRACE_SPEC_EDIT_H
