//===- Superblock.h - Whose segments lie here -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first 4 KiB of a store's region in an extent: names the state, the
// geometry and the extent's number, as they were when the state was made. 512
// bytes on lies a claim: which session was the last that opened the store to
// write. Each of them writes it anew; a torn one is none.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_SUPERBLOCK_H
#define TERRACE_RUNTIME_STORE_SUPERBLOCK_H

#include "runtime/store/RowStore.h"

namespace trc {

/// Checks the superblock of each extent, or writes them (options.create) and
/// makes them durable. `files`: the extents' ids in the device. `holders`: who
/// had claimed them.
Status openSuperblocks(Device &device, const RowStoreOptions &options,
                       const std::vector<uint32_t> &files,
                       std::vector<uint64_t> &holders);
/// RowStore::claim().
Status claimSuperblocks(Device &device, const RowStoreOptions &options,
                        const std::vector<uint32_t> &files, uint64_t holder);

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_SUPERBLOCK_H
