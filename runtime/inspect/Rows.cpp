//===- Rows.cpp - The rows of a root in blocks ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Rows.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

using namespace trc;
using namespace trc::inspect;

size_t inspect::blockRows(uint32_t recordBytes) {
  constexpr size_t most = 4096, target = 4 << 20; // rows; bytes of records
  return std::max<size_t>(
      1, std::min(most, target / std::max<size_t>(recordBytes, 1)));
}

Status inspect::readBlock(StateReader &reader, int table, RowBlock &block) {
  block.recordBytes = reader.manifest().tables[table].recordBytes();
  block.records.resize(block.rows.size() * block.recordBytes);
  return reader.read(
      table, block.rows.data(), static_cast<int64_t>(block.rows.size()),
      [&](int64_t i, const char *record) {
        std::memcpy(block.records.data() +
                        static_cast<size_t>(i) * block.recordBytes,
                    record, block.recordBytes);
      });
}

Status inspect::forBlocks(StateReader &reader, int table, const NextRow &next,
                          const std::function<Status(const RowBlock &)> &take) {
  const ManifestTable &t = reader.manifest().tables[table];
  size_t most = blockRows(t.recordBytes());
  RowBlock block;
  for (int64_t row = next(0); row < t.rows;) {
    block.rows.clear();
    for (; row < t.rows && block.rows.size() < most; row = next(row + 1))
      block.rows.push_back(row);
    TRC_RETURN_IF_ERROR(readBlock(reader, table, block));
    TRC_RETURN_IF_ERROR(take(block));
  }
  return Status();
}

std::vector<std::string> inspect::stateNames(const ManifestTable &table) {
  static const struct {
    const char *optimizer;
    std::vector<std::string> names;
  } known[] = {{"adagrad", {"sum"}},
               {"rowwise_adagrad", {"sum"}},
               {"adam", {"exp_avg", "exp_avg_sq"}}};
  for (const auto &k : known)
    if (table.optimizer == k.optimizer &&
        table.stateWidths.size() == k.names.size())
      return k.names;
  std::vector<std::string> names;
  for (size_t s = 0; s < table.stateWidths.size(); ++s)
    names.push_back("state" + std::to_string(s));
  return names;
}

Status inspect::guarded(const std::function<Status()> &work) {
  try {
    return work();
  } catch (const std::bad_alloc &) {
    return Status(TRC_NO_MEMORY, "not enough memory for the state's index and "
                                 "the blocks of rows");
  } catch (const std::length_error &) {
    return Status(TRC_NO_MEMORY, "the state's manifest asks for more memory "
                                 "than there can be");
  }
}
