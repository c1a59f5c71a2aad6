//===- Claims.h - Which sessions a state's stores may name ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store says which session was the last that opened it to write, and
// claims.json in the state's folder which ones that may be. Tier files may lie
// outside of the folder: who copies the folder alone has two states over one
// store. The one that was opened last has it; the other does not know the name
// that it finds there, and leaves the store alone.
//
// Read and written while the folder is locked.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_CLAIMS_H
#define TERRACE_RUNTIME_CHECKPOINT_CLAIMS_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trc {

/// Sessions that the stores of a generation of the layout may name, as far as
/// this folder knows; none where nobody has trained in it. Nothing where the
/// file is damaged: then it may be anybody.
std::optional<std::vector<uint64_t>> holdersIn(const std::string &folder,
                                               uint32_t generation);
/// TRC_CORRUPT where the file is damaged.
Status checkClaims(const std::string &folder);
/// Durably, and for this generation alone.
Status writeHolders(const std::string &folder, uint32_t generation,
                    const std::vector<uint64_t> &holders);

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_CLAIMS_H
