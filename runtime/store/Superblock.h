//===- Superblock.h - Whose segments lie here -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first 4 KiB of a store's region in an extent: names the state, the
// geometry and the extent's number. Written once, when the state is made.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_SUPERBLOCK_H
#define TERRACE_RUNTIME_STORE_SUPERBLOCK_H

#include "runtime/store/RowStore.h"

namespace trc {

/// Checks the superblock of each extent, or writes them (options.create) and
/// makes them durable. `files`: the extents' ids in the device.
Status openSuperblocks(Device &device, const RowStoreOptions &options,
                       const std::vector<uint32_t> &files);

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_SUPERBLOCK_H
