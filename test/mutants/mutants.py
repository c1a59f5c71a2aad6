"""mutants.py - The protocol of the store and the session, broken on purpose.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Each entry is one forgotten or misplaced step in one source file, and the test
that must fail because of it. `edits` are (find, replace) pairs; the text to
find occurs exactly once (or `count` times), so an entry that the sources have
left behind is an error, not a mutant that nobody tries.
"""
from dataclasses import dataclass, field

STORE = "RowStoreTest"
CRASH = "SessionCrashTest"
FAULT = "SessionFaultTest"
FOLDER = "CheckpointFolderTest"
HISTORIES = "RowStoreHistory*"
LOSSES = "*SessionCrashSweep.AnyLoss*"


@dataclass
class Mutant:
    name: str
    file: str
    edits: list  # of (find, replace)
    program: str
    test: str  # GoogleTest filter
    count: int = 1
    env: dict = field(default_factory=dict)


MUTANTS = [
    Mutant("flush dropped before the index and its root", "runtime/store/Cut.cpp",
           [("    status = s.flushAll(lock, true);\n", "")], STORE, HISTORIES),
    Mutant("the tail's records left out of the flush", "runtime/store/RowWrites.cpp",
           [("  if (withUser)\n    closeTail(user);\n", "")], STORE, "Checkpoint*:" + HISTORIES),
    Mutant("index file named before its bytes are synced", "runtime/store/IndexFile.cpp",
           [("  TRC_RETURN_IF_ERROR(syncFile(fd.get(), temporary));\n", "")], STORE, HISTORIES),
    Mutant("index file's name not synced", "runtime/store/IndexFile.cpp",
           [("  finished = true;\n  return syncFolder(folder);", "  finished = true;\n  return {};")], STORE, HISTORIES),
    Mutant("flush dropped after the root", "runtime/checkpoint/StateDir.cpp",
           [("  TRC_RETURN_IF_ERROR(syncFolder(parent));\n", "")], CRASH, LOSSES),
    Mutant("root's bytes not synced before its name", "runtime/checkpoint/FileUtil.cpp",
           [("  return syncFile(fd->get(), path);\n", "  return Status();\n")], CRASH, LOSSES),
    Mutant("space of a root used again while the root is there", "runtime/session/SessionSave.cpp",
           [("  TRC_RETURN_IF_ERROR(oldest.closed ? state->removeClosed()\n"
             "                                    : state->removeCheckpoint(oldest.name));\n", "")],
           CRASH, LOSSES),
    Mutant("root's removal not synced before its space is used", "runtime/checkpoint/StateDir.cpp",
           [("  TRC_RETURN_IF_ERROR(syncFolder(path));\n", "")], CRASH, LOSSES),
    Mutant("segment freed before its moves are durable", "runtime/store/Cleaner.cpp",
           [("  if (status.ok())\n    status = commitMoves(lock, moved);\n",
             "  freeVictims(victims);\n  if (status.ok())\n    status = commitMoves(lock, moved);\n")],
           STORE, HISTORIES),
    Mutant("segment freed although its moves were put off", "runtime/store/Cleaner.cpp",
           [("    putOff.victims = std::move(victims);\n", "    freeVictims(victims);\n")], FAULT, "SessionFault.*"),
    Mutant("moves durable before the copies", "runtime/store/Cleaner.cpp",
           [("  TRC_RETURN_IF_ERROR(flushAll(lock, false));\n", "")], STORE, HISTORIES),
    Mutant("move applied without its generation", "runtime/store/ImageLoad.cpp",
           [("    if (slice.places[i] != uint64_t(entry[1]) + 1 ||\n"
             "        slice.lives[i] != uint64_t(entry[2]) + 1)\n",
             "    if (slice.places[i] != uint64_t(entry[1]) + 1)\n")], STORE, HISTORIES),
    Mutant("lives of moved rows' segments lost", "runtime/store/ImageLoad.cpp",
           [("        fits = fits && (!w->lives[s] || settle(s, w->lives[s]));\n",
             "        fits = fits && w;\n")], STORE, HISTORIES),
    Mutant("marks that are left not set", "runtime/store/ImageLoad.cpp",
           [("    if (uint64_t twice = w.buckets.finish(); twice != MarkBuckets::none)\n"
             "      refuse(marks.placeOf(twice));\n", "")], STORE, "Hostile*"),
    Mutant("moves file dropped while an image needs it", "runtime/store/Images.cpp",
           [("        [&](const Checkpoint &c) { return c.id <= file.lastId; });\n",
             "        [&](const Checkpoint &c) { return c.id > file.lastId; });\n")], STORE, HISTORIES),
    Mutant("moves of a row in any order", "runtime/store/Cleaner.cpp",
           [("    return ageA != ageB ? ageA > ageB : a.from < b.from;\n",
             "    return ageA != ageB ? ageA < ageB : a.from < b.from;\n")],
           STORE, "Cleaning*:" + HISTORIES),
    Mutant("checks not seeded with the generation", "runtime/store/RowStore.cpp",
           [("recordMix(segments[layout.segmentOf(place)].generation,", "recordMix(0,")],
           STORE, "RowStoreFault.LostWrite*", count=2),
    Mutant("generations begin at nought with every open", "runtime/store/RowStore.cpp",
           [("      if (getrandom(&s.generation, sizeof s.generation, 0) !=\n"
             "          static_cast<ssize_t>(sizeof s.generation))\n",
             "      if (getrandom(&s.generation, 0, 0) != 0)\n")],
           STORE, "RowStoreFault.LostWriteAfterReopening*"),
    Mutant("segment free while reads are under way", "runtime/store/Segments.cpp",
           [("    if (epochReads[epoch ^ 1] > 0)\n      return;\n", "")], STORE, "Cleaning*:" + HISTORIES),
    Mutant("cut without preserve", "runtime/exec/Cut.cpp",
           [("  if (!cutting)\n    return Status();\n", "  if (cutting || !cutting)\n    return Status();\n")],
           CRASH, LOSSES),
    Mutant("row replaced ahead of the capture not remembered", "runtime/store/RowWrites.cpp",
           [("      cut.special.emplace(row, old - 1);\n", "      (void)old;\n")],
           STORE, "Checkpoint*:" + HISTORIES),
    Mutant("checkpoint's records not held", "runtime/store/Segments.cpp",
           [("  for (const Checkpoint &c : retained)\n    if (c.marks.test(place))\n      return true;\n", "")],
           STORE, "Checkpoint*:Cleaning*:" + HISTORIES),
    Mutant("failed flush forgotten", "runtime/store/RowWrites.cpp",
           [("  if (!status.ok())\n    fail(status.clone());\n  return failure.clone();\n",
             "  return status.ok() ? failure.clone() : std::move(status);\n")],
           STORE, "RowStoreFault.FailedFlushPoisons"),
    Mutant("failed write forgotten", "runtime/store/RowWrites.cpp",
           [("      store.fail(error(result < 0 ? -result : ENOSPC));\n", "      (void)error(0);\n")],
           STORE, "RowStoreFault.*"),
    Mutant("store claimed before the folder knows by whom", "runtime/session/SessionOpen.cpp",
           [("  TRC_RETURN_IF_ERROR(announceHolder(before));\n  for (const auto &store : homes.stores)\n"
             "    TRC_RETURN_IF_ERROR(store->claim(holder));\n",
             "  for (const auto &store : homes.stores)\n    TRC_RETURN_IF_ERROR(store->claim(holder));\n"
             "  TRC_RETURN_IF_ERROR(announceHolder(before));\n")],
           CRASH, LOSSES),
    Mutant("a store's new holder left out of its claim", "runtime/session/SessionOpen.cpp",
           [("    TRC_RETURN_IF_ERROR(store->claim(holder));\n", "    (void)store;\n")], FOLDER, "FolderTest.*Cop*"),
    Mutant("blob taken over before its root is durable", "runtime/session/SessionSave.cpp",
           [("    if (committed->durable) {\n", "    {\n")], FAULT, "SessionFault.*"),
    Mutant("root in doubt taken for one that is not there", "runtime/checkpoint/StateDir.cpp",
           [("  inDoubt = true;\n  TRC_RETURN_IF_ERROR(syncFolder(parent));\n",
             "  TRC_RETURN_IF_ERROR(syncFolder(parent));\n")], FAULT, "SessionFault.*"),
]
