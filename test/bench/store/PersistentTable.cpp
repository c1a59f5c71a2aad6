//===- PersistentTable.cpp - Rows read in place ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Sections.h"

#include <cstdio>

using namespace trc::bench;

bool trc::bench::persistentTable(const Settings &, uint32_t payload) {
  std::printf(
      "\n== persistent memory, rows of %u bytes read in place against a "
      "gather from DRAM\n",
      payload);
  std::printf("Terrace store: not there yet: no device of this build maps "
              "persistent memory\n");
  return true;
}
