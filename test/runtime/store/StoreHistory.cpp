//===- StoreHistory.cpp - Random lives of a store against a model ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/store/StoreHistory.h"
#include "runtime/checkpoint/FileUtil.h"

#include <algorithm>
#include <sstream>

using namespace trc;

StoreHistory::StoreHistory(const Options &options, Seen &seen)
    : options(options), seen(seen), random(options.seed * 77 + 1) {
  // Folders in memory: what is durable is decided by CrashFolder.
  chooseShape();
}

StoreHistory::~StoreHistory() {
  if (power)
    power->cut();
  close();
  slowDevice.reset();
  crashDevice.reset();
  folder.reset();
}

/// Several segments, a few times the records that closing a tail wastes, and
/// hardly more room than the rows and the retained checkpoints need.
void StoreHistory::chooseShape() {
  constexpr uint32_t payloads[] = {4, 60, 200, 1000, 5000};
  uint32_t payload = payloads[pick(5)];
  store_.group = "h" + std::to_string(options.seed);
  store_.payloadBytes = payload;
  store_.storeBytes = static_cast<uint32_t>(recordBytes(payload));
  uint32_t pitch = store_.storeBytes;
  store_.geometry.segmentBytes =
      (std::max(16 * pitch, 8 * 4096 + pick(4) * 4096) + 4095) / 4096 * 4096;
  uint32_t each =
      static_cast<uint32_t>(store_.geometry.recordsPerSegment(pitch));
  store_.rows = each * 3 + pick(each * 3);
  store_.retained = 1 + pick(2);
  store_.mergeMoves = 2 + pick(3);
  double fill = 1.6 + 0.1 * pick(14);
  store_.geometry.segments =
      static_cast<uint32_t>(store_.rows * fill / each) + 5;
  store_.writeSlots = 2;
  store_.maxWrites = std::max(1u, each / (1 + pick(6)));
  store_.depth = 1 + pick(8);
  store_.key = options.seed * 11 + 5;
  store_.prefix = "g-";
  uint32_t extents = 1 + pick(3);
  std::string where = options.device ? base.path.string() + "/" : "";
  for (uint32_t i = 0; i < extents; ++i)
    store_.extents.push_back(
        {where + "rows" + std::to_string(i), 4096 * uint64_t(pick(2))});
  current.assign(store_.rows, 0);
  cutPending.assign(store_.rows, false);
  store_.onFull = [this] {
    if (roots.size() < 2 || !forgetOldest())
      return Status(TRC_FULL, "the model has nothing to forget");
    return Status();
  };
}

void StoreHistory::startDevice() {
  power = std::make_unique<PowerSwitch>();
  store_.folder = base.path.string() + "/" + std::to_string(lives);
  std::filesystem::create_directories(store_.folder);
  if (options.device) {
    device = options.device;
    return;
  }
  CrashDevice::Options o;
  o.power = power.get();
  o.depth = 2;
  o.bufferBytes = static_cast<uint32_t>(recordSpan(store_.storeBytes, 4096)) *
                  (1 + pick(3));
  useDevice(std::make_unique<CrashDevice>(o));
  folder = std::make_unique<CrashFolder>(store_.folder, power.get());
}

/// Some transfers are late in a third of the lives, so that writers get ahead
/// of cleaning, or it of them, whatever the machine is busy with.
void StoreHistory::useDevice(std::unique_ptr<CrashDevice> next) {
  slowDevice.reset();
  crashDevice = std::move(next);
  slowDevice = std::make_unique<FaultDevice>(*crashDevice);
  device = slowDevice.get();
  if (pick(3))
    return;
  for (uint32_t i = 0; i < 6; ++i) {
    FaultDevice::Fault late;
    late.type = FaultDevice::Fault::Slow;
    late.kind = pick(3) ? IoRequest::Kind::Write : IoRequest::Kind::Read;
    late.first = pick(200);
    late.count = 1 + pick(8);
    late.keep = pick(800);
    slowDevice->add(late);
  }
}

bool StoreHistory::good(const Status &status, const char *what) {
  if (status.ok())
    return true;
  if (!power->gone())
    ADD_FAILURE() << what << ": " << status.message();
  return false;
}

void StoreHistory::open(bool create) {
  store_.create = create;
  auto opened = RowStore::open(*device, store_);
  if (opened.ok())
    store = std::move(*opened);
  else
    good(opened.takeStatus(), "open");
}

void StoreHistory::close() {
  for (Reading &r : readings)
    if (r.active) {
      (void)store->wait(r.batch);
      r.active = false;
    }
  if (cutting && store)
    store->dropCut(); // lets finishCut() go
  if (finisher.joinable())
    finisher.join();
  cutting = false;
  std::fill(cutPending.begin(), cutPending.end(), false);
  unresolved = 0;
  if (store) {
    seen.cleaned += store->counters().segmentsCleaned;
    seen.stalls += store->counters().stallNs > 0;
  }
  store.reset();
}

/// Takes over what the root names; `older`: goes on from any of them.
void StoreHistory::adopt(bool older) {
  auto text = readFile(store_.folder + "/root");
  std::vector<Saved> found;
  if (text.ok()) {
    std::istringstream lines(*text);
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      Saved saved;
      words >> saved.id;
      for (std::string file; words >> file;)
        saved.files.push_back(file);
      found.push_back(saved);
    }
  } else if (returned > 0) {
    ADD_FAILURE() << "the root is gone: " << text.takeStatus().message();
    return;
  }
  roots = found;
  uint64_t newest = roots.empty() ? 0 : roots.back().id;
  ASSERT_GE(newest, returned) << "an older checkpoint than was returned";
  ASSERT_LT(newest, nextId);
  size_t go = roots.empty() ? 0 : roots.size() - 1;
  if (older && roots.size() > 1) {
    go = pick(static_cast<uint32_t>(roots.size()));
    seen.older += go + 1 < roots.size();
  }
  for (const std::string &name : listFolder(store_.folder))
    seen.openedWithMoves += name.rfind("g-moves", 0) == 0;
  for (size_t i = 0; i < roots.size(); ++i) {
    Status s = store->adopt({roots[i].id, roots[i].files}, i == go);
    if (!good(s, "adopt"))
      return;
    ASSERT_TRUE(cuts.count(roots[i].id));
  }
  if (!good(store->removeLeftovers(), "removeLeftovers"))
    return;
  current = roots.empty() ? Versions(store_.rows, 0) : cuts[roots[go].id];
  // A checkpoint that was on disk when we looked counts as returned.
  returned = newest;
}

void StoreHistory::verify(RowStore &s, const Versions &versions) {
  std::vector<uint32_t> rows;
  for (uint32_t r = 0; r < store_.rows; ++r) {
    ASSERT_EQ(s.written(r), versions[r] != 0) << "row " << r;
    if (versions[r])
      rows.push_back(r);
  }
  ASSERT_EQ(s.writtenCount(), rows.size());
  std::vector<char> out(rows.size() * store_.payloadBytes);
  ReadBatch batch;
  batch.rows = rows.data();
  batch.count = static_cast<uint32_t>(rows.size());
  batch.out = out.data();
  batch.pitch = store_.payloadBytes;
  if (!good(s.read(batch), "read of all"))
    return;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto v = rowValue(store_.payloadBytes, rows[i], versions[rows[i]]);
    ASSERT_EQ(std::memcmp(&out[i * v.size()], v.data(), v.size()), 0)
        << "row " << rows[i] << " is not version " << versions[rows[i]];
  }
}

/// Every retained checkpoint, through a store that only reads. The live one may
/// be cleaning meanwhile, so it is stopped first.
void StoreHistory::verifyRetained() {
  RowStoreOptions o = store_;
  o.create = false;
  o.readOnly = true;
  for (size_t go = 0; go < roots.size(); ++go) {
    auto opened = RowStore::open(*device, o);
    if (!opened.ok()) {
      good(opened.takeStatus(), "open to read");
      return;
    }
    for (size_t i = 0; i < roots.size(); ++i)
      if (!good((*opened)->adopt({roots[i].id, roots[i].files}, i == go),
                "adopt to read"))
        return;
    verify(**opened, cuts[roots[go].id]);
  }
}

void StoreHistory::crash() {
  ++seen.crashes;
  power->cut(); // both sides see the same moment
  close();
  uint64_t seed = random();
  power = std::make_unique<PowerSwitch>();
  CrashDevice::Options o;
  o.power = power.get();
  o.depth = 2;
  o.bufferBytes = device->bufferBytes();
  o.tear = pick(4) ? CrashDevice::Tear::Sectors : CrashDevice::Tear::Bytes;
  auto after = crashDevice->crash(seed, o);
  std::string next = base.path.string() + "/" + std::to_string(++lives);
  folder->crashInto(next, seed + 1);
  folder.reset();
  useDevice(std::move(after));
  std::filesystem::remove_all(store_.folder);
  store_.folder = next;
  folder = std::make_unique<CrashFolder>(next, power.get());
  if (pick(3) == 0) // during recovery, too
    power->cutAt(pick(6));
  open(false);
  if (store) {
    adopt(false);
    if (!testing::Test::HasFailure() && !power->gone())
      verifyAll();
  }
  if (power->gone() && !testing::Test::HasFailure()) {
    crash();
    return;
  }
  if (!testing::Test::HasFailure() && pick(4) == 0) {
    close();
    verifyRetained();
    open(false);
    if (store)
      adopt(false);
  }
  // Cleaning may have met the end of power at any time since.
  if (power->gone() && !testing::Test::HasFailure())
    crash();
}

void StoreHistory::verifyAll() { verify(*store, current); }

std::vector<uint32_t> StoreHistory::someRows(uint32_t most) {
  // Half of the writes go to a tenth of the rows.
  uint32_t n = 1 + pick(std::max(1u, most)), range = store_.rows;
  if (pick(2))
    range = std::max(1u, range / 10);
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < n; ++i)
    rows.push_back(pick(range));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::shuffle(rows.begin(), rows.end(), random);
  return rows;
}

bool StoreHistory::write(std::vector<uint32_t> rows) {
  uint32_t slot = turn++ % 2;
  if (!good(store->waitWrites(slot), "waitWrites"))
    return false;
  uint32_t version = nextVersion++;
  slots[slot].assign(rows.size() * store_.storeBytes, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    char *record = &slots[slot][i * store_.storeBytes];
    auto v = rowValue(store_.payloadBytes, rows[i], version);
    std::memcpy(record + recordHeaderBytes, v.data(), v.size());
    store->seal(rows[i], record);
  }
  Status s = store->write(slot, rows.data(), static_cast<uint32_t>(rows.size()),
                          slots[slot].data());
  auto wrote = [&](uint32_t row) {
    current[row] = version;
    if (cutting && cutPending[row]) {
      cutPending[row] = false;
      --unresolved;
      cuts[cutId][row] = version;
    }
  };
  if (s.ok()) {
    for (uint32_t row : rows)
      wrote(row);
    return true;
  }
  if (power->gone() || s.code() != TRC_FULL)
    return good(s, "write");
  // Part of the batch may be in; see how far it got.
  ++seen.full;
  if (!good(store->waitWrites(slot), "waitWrites"))
    return false;
  bool in = true;
  for (uint32_t row : rows) {
    if (!store->written(row)) {
      EXPECT_EQ(current[row], 0u);
      in = false;
      continue;
    }
    std::vector<char> out(store_.payloadBytes);
    ReadBatch batch;
    batch.rows = &row;
    batch.count = 1;
    batch.out = out.data();
    batch.pitch = out.size();
    if (!good(store->read(batch), "read"))
      return false;
    bool now = out == rowValue(store_.payloadBytes, row, version);
    EXPECT_TRUE(now || out == rowValue(store_.payloadBytes, row, current[row]));
    EXPECT_TRUE(in || !now) << "a batch is not written in order";
    in = now;
    if (now)
      wrote(row);
  }
  return true;
}

void StoreHistory::startRead(Reading &r) {
  r.rows.clear();
  for (uint32_t row : someRows(store_.rows / 2))
    if (current[row])
      r.rows.push_back(row);
  r.versions.clear();
  for (uint32_t row : r.rows)
    r.versions.push_back(current[row]);
  r.out.assign(r.rows.size() * store_.payloadBytes, 0);
  r.batch.rows = r.rows.data();
  r.batch.count = static_cast<uint32_t>(r.rows.size());
  r.batch.out = r.out.data();
  r.batch.pitch = store_.payloadBytes;
  store->start(r.batch);
  r.active = true;
}

bool StoreHistory::endRead(Reading &r) {
  if (!r.active)
    return true;
  r.active = false;
  if (!good(store->wait(r.batch), "read"))
    return false;
  for (size_t i = 0; i < r.rows.size(); ++i) {
    auto v = rowValue(store_.payloadBytes, r.rows[i], r.versions[i]);
    EXPECT_EQ(std::memcmp(&r.out[i * v.size()], v.data(), v.size()), 0)
        << "row " << r.rows[i] << " is not version " << r.versions[i];
  }
  return !testing::Test::HasFailure();
}

void StoreHistory::startCut() {
  std::vector<uint32_t> pending;
  if (pick(3))
    pending = someRows(store_.rows / 4);
  while (roots.size() > store_.retained) // after a power loss
    if (!forgetOldest())
      return;
  cutId = nextId++;
  if (!good(store->beginCut(cutId, pending.data(), pending.size()), "beginCut"))
    return;
  cutting = true;
  cuts[cutId] = current;
  for (uint32_t row : pending)
    cutPending[row] = true;
  unresolved = static_cast<uint32_t>(pending.size());
  finished = Status();
  image = {};
  if (pick(2))
    finisher = std::thread([this] { finished = store->finishCut(image); });
}

bool StoreHistory::writeRoot(const std::vector<Saved> &saved) {
  std::string text;
  for (const Saved &s : saved) {
    text += std::to_string(s.id);
    for (const std::string &file : s.files)
      text += " " + file;
    text += "\n";
  }
  if (!good(replaceFile(store_.folder, "root", text), "root"))
    return false;
  roots = saved;
  return true;
}

bool StoreHistory::forgetOldest() {
  uint64_t id = roots.front().id;
  return writeRoot({roots.begin() + 1, roots.end()}) &&
         good(store->forget(id), "forget");
}

bool StoreHistory::endCut() {
  // What has no value at the cut yet gets one now.
  while (unresolved > 0) {
    std::vector<uint32_t> rows;
    for (uint32_t r = 0; r < store_.rows && rows.size() < store_.maxWrites; ++r)
      if (cutPending[r])
        rows.push_back(r);
    std::shuffle(rows.begin(), rows.end(), random);
    uint32_t before = unresolved;
    if (!write(rows))
      return false;
    if (unresolved == before) { // full, and nothing to forget: give it up
      ++seen.dropped;
      store->dropCut();
      if (finisher.joinable())
        finisher.join();
      cutting = false;
      std::fill(cutPending.begin(), cutPending.end(), false);
      unresolved = 0;
      return true;
    }
  }
  if (finisher.joinable())
    finisher.join();
  else
    finished = store->finishCut(image);
  if (!good(finished, "finishCut"))
    return false;
  cutting = false;
  seen.deltas += image.files.size() > 1;
  if (pick(8) == 0) {
    ++seen.dropped;
    store->dropCut();
    return true;
  }
  std::vector<Saved> next = roots;
  next.push_back({image.id, image.files});
  // The oldest leaves with this root or with one of its own.
  uint64_t leaving = 0;
  if (next.size() > store_.retained && pick(2)) {
    leaving = next.front().id;
    next.erase(next.begin());
  }
  if (!writeRoot(next))
    return false;
  returned = image.id;
  store->keepCut();
  ++seen.checkpoints;
  if (leaving && !good(store->forget(leaving), "forget"))
    return false;
  while (roots.size() > store_.retained)
    if (!forgetOldest())
      return false;
  return true;
}

/// At the end nothing may have been left behind: checkpoints hold records,
/// nobody else.
void StoreHistory::forgetAll() {
  for (Reading &r : readings)
    if (!endRead(r))
      return;
  if (cutting && !endCut())
    return;
  while (!roots.empty())
    if (!forgetOldest())
      return;
  RowStore::Space space = store->space();
  if (good(store->failure(), "at the end")) {
    EXPECT_EQ(space.retained, 0u) << "bytes that nobody holds";
  }
}

void StoreHistory::step() {
  switch (pick(10)) {
  case 0:
  case 1:
  case 2:
  case 3:
  case 4:
    for (uint32_t i = pick(12); i > 0; --i)
      if (!write(someRows(store_.maxWrites)))
        return;
    return;
  case 5:
  case 6: {
    Reading &r = readings[pick(2)];
    if (endRead(r))
      startRead(r);
    return;
  }
  case 7:
  case 8:
    if (!cutting)
      startCut();
    else
      endCut();
    return;
  case 9:
    if (pick(3))
      return;
    if (!options.device && pick(2)) {
      crash();
      return;
    }
    // Without a power loss: what was written since the checkpoint is lost all
    // the same.
    close();
    if (!power->gone() && pick(2))
      verifyRetained();
    open(false);
    if (store)
      adopt(pick(2));
    if (store && !power->gone() && !testing::Test::HasFailure())
      verifyAll();
    return;
  }
}

void StoreHistory::play() {
  startDevice();
  open(true);
  ASSERT_TRUE(store);
  if (!options.device && pick(3))
    power->cutAt(power->operations() + pick(300));
  for (int i = 0; i < options.steps && !testing::Test::HasFailure(); ++i) {
    step();
    if (!options.device && power->gone() && !testing::Test::HasFailure()) {
      crash();
      if (pick(2))
        power->cutAt(power->operations() + pick(200));
    }
  }
  for (const std::string &name : listFolder(store_.folder))
    seen.moved += name.rfind("g-moves", 0) == 0;
  if (testing::Test::HasFailure())
    return;
  if (store && !power->gone())
    forgetAll();
  close();
  power = std::make_unique<PowerSwitch>();
}
