//===- Stores.h - The stores of a state's groups ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opens a store per group, over one device per set of files, and holds the
// files locked as long as the stores live.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_SESSION_STORES_H
#define TERRACE_RUNTIME_SESSION_STORES_H

#include "runtime/checkpoint/StateDir.h"
#include "runtime/store/RowStore.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trc {

struct StoresOptions {
  uint64_t key = 0;               // of the state
  std::vector<uint64_t> replaces; // of states that were here and were given up
  std::optional<std::vector<uint64_t>> holders; // see RowStoreOptions
  uint64_t holder = 0;                          // with create
  uint32_t generation = 0;     // of the layout; has index files of its own
  std::string folder;          // relative paths lie in it, and the index files
  bool create = false;         // new and empty, ours to write
  bool readOnly = false;       // existing ones, to look at
  bool scratch = false;        // with create: in files without a name
  uint32_t depth = storeDepth; // transfers in flight
  uint32_t retained = 1;
  std::vector<bool> pmem; // by group: at home on persistent memory; or empty
  /// Of a group that a pipeline writes to.
  struct Writer {
    std::string name; // for messages
    uint32_t writeSlots = 1, maxWrites = 0;
    bool onlyCuts = false; // the rows' home is memory
  };
  std::vector<Writer> writers; // by group, or empty
  std::function<Status()> onFull;
  /// What messages call a row of a group; empty: by numbers.
  std::function<std::string(size_t group, uint32_t row)> rowName;
};

struct HomeStores {
  std::vector<std::string> locked; // files that are held
  std::vector<Fd> locks;
  std::vector<std::unique_ptr<Device>> devices;  // outlive the stores
  std::vector<std::unique_ptr<RowStore>> stores; // per group
  HomeStores() = default;
  HomeStores(HomeStores &&) = default;
  HomeStores &operator=(HomeStores &&other) noexcept;
};

Result<HomeStores> openStores(const std::vector<ManifestGroup> &groups,
                              const StoresOptions &options);

} // namespace trc

#endif // TERRACE_RUNTIME_SESSION_STORES_H
