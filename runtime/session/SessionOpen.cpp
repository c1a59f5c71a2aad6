//===- SessionOpen.cpp - Opens a session: what to begin with --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The newest of the cleanly closed state and the checkpoints is taken, or the
// one that was named. Its stores go on where they are. Where the plan wants the
// rows to lie otherwise, they are copied into stores of the next generation;
// reading sessions change no byte and copy into files without a name.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Claims.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <cstdlib>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;

Result<std::unique_ptr<Session>>
Session::open(const trc_open_options &options) {
  std::unique_ptr<Session> session(new Session());
  session->process = ::getpid();
  session->logger = options.log;
  session->logUser = options.log_user;
  session->mode = options.mode;
  if (options.mode != TRC_TRAIN && options.mode != TRC_EVAL &&
      options.mode != TRC_SERVE)
    return Status(TRC_BAD_ARGUMENT,
                  "mode is " + std::to_string(options.mode) +
                      "; use TRC_TRAIN, TRC_EVAL or TRC_SERVE");
  if (options.flags & ~static_cast<uint32_t>(TRC_OPEN_FRESH | TRC_OPEN_WARM))
    return Status(TRC_BAD_ARGUMENT,
                  "flags is " + std::to_string(options.flags) +
                      "; use 0, TRC_OPEN_FRESH or TRC_OPEN_WARM");
  session->warm = options.flags & TRC_OPEN_WARM;
  if (session->warm && (options.flags & TRC_OPEN_FRESH))
    return Status(TRC_BAD_ARGUMENT,
                  "TRC_OPEN_WARM takes up what TRC_OPEN_FRESH removes; give "
                  "one of them");
  constexpr uint32_t mostThreads = 1024;
  if (options.threads > mostThreads)
    return Status(TRC_BAD_ARGUMENT,
                  "threads is " + std::to_string(options.threads) +
                      "; 0 (one per CPU) .. " + std::to_string(mostThreads));
  if (options.from && (options.init_from || (options.flags & TRC_OPEN_FRESH)))
    return Status(TRC_BAD_ARGUMENT,
                  "from names a checkpoint of this state; it does not go with "
                  "init_from or TRC_OPEN_FRESH");
  TRC_RETURN_IF_ERROR(session->openArtifact(options));
  const bool serves = session->plan.serve;
  if (options.mode == TRC_TRAIN && serves)
    return Status(TRC_UNSUPPORTED,
                  "model '" + session->plan.model +
                      "' was compiled with --serve, without optimizers: open "
                      "it with TRC_SERVE, or compile it without --serve");
  if (options.mode != TRC_TRAIN &&
      (options.init_from || (!serves && (options.flags & TRC_OPEN_FRESH))))
    return Status(TRC_BAD_ARGUMENT,
                  "TRC_OPEN_FRESH and init_from are for training");
  TRC_RETURN_IF_ERROR(session->openState(options));
  return Result<std::unique_ptr<Session>>(std::move(session));
}

Status Session::openArtifact(const trc_open_options &options) {
  Result<std::unique_ptr<LoadedArtifact>> loaded =
      LoadedArtifact::load(options.artifact_path, options.artifact);
  if (!loaded.ok())
    return loaded.takeStatus();
  artifact = std::move(*loaded);
  Result<int> chosen = artifact->chooseCpu(options.cpu);
  if (!chosen.ok())
    return chosen.takeStatus();
  cpu = *chosen;
  Result<Plan> parsed =
      parsePlan(artifact->get().plan, artifact->get().plan_bytes);
  if (!parsed.ok())
    return parsed.takeStatus();
  plan = std::move(*parsed);
  handoffOp = plan.findOp(OpKind::handoff);
  resumeOp = plan.findOp(OpKind::resume);
  describeModel();
  return Status();
}

void Session::describeModel() {
  static const char *const poolings[] = {"sum",   "mean", "weighted_mean",
                                         "sqrtn", "max",  "none"};
  for (const FeaturePlan &f : plan.features) {
    const TablePlan &t = plan.tables[f.table];
    trc_feature_info info = {};
    info.name = f.name.c_str();
    info.column = f.column.c_str();
    info.weights = f.weighted() ? f.weights.c_str() : nullptr;
    info.pooling = poolings[static_cast<int>(f.pooling)];
    info.table = t.name.c_str();
    info.table_rows = t.rows;
    info.dim = t.dim;
    info.max_ids = f.maxIds;
    info.ids = t.hash ? 1 : 0;
    info.strings = f.strings ? 1 : 0;
    featureInfos.push_back(info);
  }
  for (const TablePlan &t : plan.tables)
    parameters += t.rows * t.dim;
  for (const OpPlan &op : plan.ops)
    maxAhead = std::max(maxAhead, op.ahead);
}

Status Session::findSource(const trc_open_options &options,
                           std::optional<StateSource> &source) {
  auto warn = [this](const std::string &line) { log(TRC_LOG_WARNING, line); };
  if (options.from) {
    Result<StateSource> named = state->checkpoint(options.from);
    if (!named.ok())
      return named.takeStatus();
    source = std::move(*named);
  } else {
    Result<std::optional<StateSource>> newest = state->newest(warn);
    if (!newest.ok())
      return newest.takeStatus();
    source = std::move(*newest);
  }
  if (source)
    return source->manifest.matches(plan, state->path(), mode == TRC_TRAIN);
  Result<std::optional<Manifest>> identity = state->identity();
  if (!identity.ok())
    return identity.takeStatus();
  if (state->importing())
    return Status(TRC_NOT_FOUND,
                  "the import into '" + state->path() +
                      "' was interrupted: import the checkpoint again (terrace "
                      "checkpoint import), or start fresh");
  if (*identity) {
    TRC_RETURN_IF_ERROR(
        (*identity)->matches(plan, state->path(), mode == TRC_TRAIN));
    // What TRC_OPEN_FRESH leaves behind is news to nobody.
    if (mode == TRC_TRAIN && !(options.flags & TRC_OPEN_FRESH))
      warn("the state at '" + state->path() +
           "' was not closed and has no checkpoint: starting from step 0");
  }
  if (mode != TRC_TRAIN)
    return Status(TRC_NOT_FOUND,
                  "the state at '" + state->path() +
                      "' holds neither a closed state nor a checkpoint; train "
                      "first");
  return Status();
}

/// Unwritten rows keep the value they had when their state was made.
void Session::adoptInit(const Manifest &manifest,
                        const std::vector<int> &tableMap) {
  for (size_t i = 0; i < tableMap.size(); ++i) {
    if (tableMap[i] < 0)
      continue;
    TablePlan &table = plan.tables[tableMap[i]];
    const InitPlan &init = manifest.tables[i].init;
    if (init.kind != table.init.kind || init.first != table.init.first ||
        init.second != table.init.second || init.key != table.init.key)
      log(TRC_LOG_INFO, "table '" + table.name +
                            "': rows not seen yet begin as the state says, not "
                            "as the model's init or seed says");
    table.init = init;
  }
}

Result<std::vector<int>> Session::matchForInit(const StateSource &other,
                                               const std::string &folder) {
  std::vector<int> map = tableMapOf(other.manifest);
  int matched = 0;
  for (size_t i = 0; i < map.size(); ++i) {
    const ManifestTable &from = other.manifest.tables[i];
    if (map[i] < 0) {
      log(TRC_LOG_INFO,
          "init-from: table '" + from.name + "' is not in the model; left out");
      continue;
    }
    const TablePlan &to = plan.tables[map[i]];
    if (to.dim != from.dim) {
      log(TRC_LOG_WARNING, "init-from: table '" + from.name + "' has dim " +
                               std::to_string(from.dim) + ", the model wants " +
                               std::to_string(to.dim) + "; left out");
      map[i] = -1;
      continue;
    }
    ++matched;
    log(TRC_LOG_INFO,
        "init-from: table '" + from.name + "': rows 0 .. " +
            std::to_string(std::min(from.rows, to.rows) - 1) +
            (from.element == to.element
                 ? std::string()
                 : std::string(" converted from ") + elementName(from.element) +
                       " to " + elementName(to.element)) +
            (from.optimizer == to.optimizer.name
                 ? " with their optimizer state"
                 : ", weights only (its optimizer was " + from.optimizer +
                       ")"));
  }
  for (const TablePlan &t : plan.tables)
    if (other.manifest.findTable(t.name) < 0)
      log(TRC_LOG_INFO,
          "init-from: table '" + t.name + "' is new and begins with its init");
  if (!matched)
    return Status(TRC_MISMATCH,
                  "no table of the state at '" + folder +
                      "' has the name and dim of one of the model's");
  return map;
}

/// The state whose rows a new one begins with.
Status Session::findInitSource(const char *folder,
                               std::unique_ptr<StateDir> &otherDir,
                               std::optional<StateSource> &other,
                               std::vector<int> &otherMap) {
  struct stat ours, theirs;
  if (::stat(state->path().c_str(), &ours) == 0 &&
      ::stat(folder, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
      ours.st_ino == theirs.st_ino)
    return Status(TRC_BAD_ARGUMENT, "init-from names the state '" +
                                        state->path() +
                                        "' itself; train into another folder");
  Result<std::unique_ptr<StateDir>> opened =
      StateDir::open(folder, false, false);
  if (!opened.ok())
    return opened.takeStatus();
  otherDir = std::move(*opened);
  Result<std::optional<StateSource>> newest =
      otherDir->newest([this](const std::string &line) {
        log(TRC_LOG_WARNING, "init-from: " + line);
      });
  if (!newest.ok())
    return newest.takeStatus();
  if (!*newest)
    return Status(TRC_NOT_FOUND, std::string("the state at '") + folder +
                                     "' holds neither a closed state nor a "
                                     "checkpoint");
  other = std::move(*newest);
  Result<std::vector<int>> map = matchForInit(*other, folder);
  if (!map.ok())
    return map.takeStatus();
  otherMap = std::move(*map);
  return Status();
}

uint64_t trc::randomKey() {
  uint64_t key = 0;
  while (::getrandom(&key, sizeof(key), 0) != sizeof(key)) {
  }
  return key;
}

/// The key of the state, and its identity on disk: before any file carries the
/// key, so that a kill leaves no file whose state is not known.
Status Session::identify(const Manifest *source) {
  Result<std::optional<Manifest>> known = state->identity();
  key = source ? source->key : known.ok() && *known ? (*known)->key : 0;
  if (!key)
    key = randomKey();
  if (mode != TRC_TRAIN)
    return Status();
  Manifest identity = Manifest::of(plan);
  identity.key = key;
  if (known.ok() && *known) {
    identity.replaces = (*known)->replaces;
  }
  replaced = identity.replaces;
  if (known.ok() && *known && (*known)->toText() == identity.toText())
    return Status();
  return state->writeIdentity(identity);
}

/// Gives the state up, in one step: from then on the folder is a new state's,
/// and what lies in it is to be removed. Files outside of it stay, to be
/// written over.
Status Session::giveUpState() {
  constexpr size_t most = 64; // keys that are remembered
  Manifest next = Manifest::of(plan);
  next.key = randomKey();
  next.removing = true;
  Result<std::optional<Manifest>> known = state->identity();
  if (known.ok() && *known) {
    next.replaces = (*known)->replaces;
    next.replaces.push_back((*known)->key);
    if (next.replaces.size() > most)
      next.replaces.erase(next.replaces.begin());
  }
  return state->writeIdentity(next);
}

/// Removes what is left of a state that was given up, also where that did not
/// come to its end.
Status Session::removeGivenUp() {
  Result<std::optional<Manifest>> known = state->identity();
  if (!known.ok() || !*known || !(*known)->removing)
    return Status();
  TRC_RETURN_IF_ERROR(state->wipe(storeFiles()));
  Manifest next = std::move(**known);
  next.removing = false;
  return state->writeIdentity(next);
}

StoresOptions Session::storesOptions() {
  StoresOptions how;
  how.key = key;
  how.replaces = replaced;
  how.folder = state->path();
  // And the closed state that a run begins with.
  how.retained = static_cast<uint32_t>(plan.store.retained) + 1;
  for (const LanePlan &lane : plan.lanes)
    if (lane.kind == LaneKind::io)
      how.depth = static_cast<uint32_t>(std::min(lane.depth, 4096));
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    StoresOptions::Writer writer;
    writer.name = plan.groups[g].name;
    int ring = plan.findRing(RingRole::writebuf, static_cast<int>(g));
    if (ring >= 0) {
      writer.writeSlots = static_cast<uint32_t>(plan.rings[ring].depth);
      writer.maxWrites = static_cast<uint32_t>(plan.groups[g].maxMiss);
    }
    writer.onlyCuts = !plan.groups[g].cached();
    how.writers.push_back(std::move(writer));
    how.pmem.push_back(plan.tiers[plan.groups[g].home].kind == "pmem");
  }
  // By the plan alone: stores end after the pipeline has begun to.
  how.rowName = [this](size_t g, uint32_t row) {
    const std::vector<int> &tables = plan.groups[g].tables;
    const TablePlan *table = &plan.tables[tables.front()];
    for (int t : tables) // in rising order of their rows
      if (plan.tables[t].rowBase <= static_cast<int64_t>(row))
        table = &plan.tables[t];
    return "row " + std::to_string(static_cast<int64_t>(row) - table->rowBase) +
           " of table '" + table->name + "'";
  };
  if (mode == TRC_TRAIN)
    how.onFull = [this] { return makeRoom(); };
  return how;
}

/// This session is about to be the last writer of the stores: the folder says
/// so, durably, before any of them does. A copy of the folder from before will
/// not know it, and leave the stores alone. `before`: who they may name now.
Status Session::announceHolder(const std::vector<uint64_t> &before) {
  constexpr size_t most = 64; // sessions in a row that died while making stores
  std::vector<uint64_t> names;
  for (uint64_t name : before)
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  if (names.size() > most)
    names.erase(names.begin(), names.end() - most);
  names.push_back(holder);
  return writeHolders(state->path(), generation, names);
}

Status Session::claimStores() {
  std::vector<uint64_t> before;
  for (const auto &store : homes.stores)
    before.insert(before.end(), store->holders().begin(),
                  store->holders().end());
  TRC_RETURN_IF_ERROR(announceHolder(before));
  for (const auto &store : homes.stores)
    TRC_RETURN_IF_ERROR(store->claim(holder));
  return Status();
}

/// Memory, caches and stores of all groups, with the rows of the source.
Status Session::setUp(std::optional<StateSource> &source) {
  bool train = mode == TRC_TRAIN;
  TRC_RETURN_IF_ERROR(pipeline->prepare(artifact->get(), cpu));
  bool live = source && sameLayout(source->manifest);
  StoresOptions how = storesOptions();
  if (live) {
    // The geometry is what the files were made with.
    generation = source->manifest.generation;
    stored = source->manifest.groups;
    how.readOnly = !train;
  } else {
    for (const StateSource &root : state->roots(nullptr))
      generation = std::max(generation, root.manifest.generation + 1);
    stored = layout(generation);
    how.create = true;
    how.scratch = !train;
  }
  how.generation = generation;
  how.holders = holdersIn(state->path(), generation);
  for (ManifestGroup &group : stored)
    group.index.clear();
  if (train && how.create) {
    how.holder = holder;
    TRC_RETURN_IF_ERROR(
        announceHolder(how.holders.value_or(std::vector<uint64_t>())));
  }
  Result<HomeStores> opened = openStores(stored, how);
  if (!opened.ok())
    return opened.takeStatus();
  homes = std::move(*opened);
  if (train && live)
    TRC_RETURN_IF_ERROR(claimStores());
  for (size_t g = 0; g < stored.size(); ++g)
    pipeline->groups[g]->store = std::move(homes.stores[g]);
  if (!source) {
    if (warm)
      log(TRC_LOG_INFO, "caches start cold: the state is new");
    return Status();
  }
  step = savedStep = source->manifest.step;
  savedName = source->name;
  samples = source->manifest.samples;
  lrScale = source->manifest.lrScale;
  pipeline->headState = source->manifest.headState;
  TRC_RETURN_IF_ERROR(source->readBlob(blob));
  if (!live) {
    if (train)
      log(TRC_LOG_INFO, "the plan lays rows out anew: copying " + source->name);
    TRC_RETURN_IF_ERROR(loadRows(*source, tableMapOf(source->manifest)));
  } else {
    savedIsCurrent = source->closed;
    TRC_RETURN_IF_ERROR(adoptRoots(*source));
  }
  if (warm)
    warmUp(*source, live);
  return Status();
}

Status Session::openState(const trc_open_options &options) {
  bool train = mode == TRC_TRAIN;
  std::string folder =
      options.state_dir ? options.state_dir : plan.model + ".state";
  if (folder.empty())
    return Status(TRC_BAD_ARGUMENT, "state_dir is empty");
  // A model that serves may be looked at without any state.
  const bool untrained = !train && (options.flags & TRC_OPEN_FRESH);
  Result<std::unique_ptr<StateDir>> dir =
      StateDir::open(folder, train, train || untrained);
  if (!dir.ok())
    return dir.takeStatus();
  state = std::move(*dir);
  // Before anything is removed: what is asked for may not be there.
  std::unique_ptr<StateDir> otherDir;
  std::optional<StateSource> other;
  std::vector<int> otherMap;
  if (options.init_from)
    TRC_RETURN_IF_ERROR(
        findInitSource(options.init_from, otherDir, other, otherMap));
  if (train && (options.flags & TRC_OPEN_FRESH))
    TRC_RETURN_IF_ERROR(giveUpState());
  if (train)
    TRC_RETURN_IF_ERROR(removeGivenUp());
  std::optional<StateSource> source;
  if (!untrained)
    TRC_RETURN_IF_ERROR(findSource(options, source));
  sequence = state->lastSequence();
  if (other) {
    if (source)
      return Status(TRC_BAD_ARGUMENT,
                    "the state at '" + state->path() + "' exists (step " +
                        std::to_string(source->manifest.step) +
                        "); init-from begins a new one: name another folder or "
                        "start fresh");
    adoptInit(other->manifest, otherMap);
  }
  if (source)
    adoptInit(source->manifest, tableMapOf(source->manifest));
  TRC_RETURN_IF_ERROR(identify(source ? &source->manifest : nullptr));

  pipeline = std::make_unique<Pipeline>(plan, options.threads, train);
  TRC_RETURN_IF_ERROR(setUp(source));
  if (other)
    TRC_RETURN_IF_ERROR(loadRows(*other, otherMap));
  if (train)
    state->removeLeftovers(storeFiles());
  if (source)
    log(TRC_LOG_INFO, std::string(train ? "resuming from " : "reading ") +
                          source->name + ": step " + std::to_string(step) +
                          ", " + std::to_string(samples) + " samples");
  if (const char *path = std::getenv("TERRACE_TRACE"); path && *path) {
    Result<std::unique_ptr<ChromeTrace>> made = ChromeTrace::create(path, plan);
    if (!made.ok())
      return made.takeStatus();
    trace = std::move(*made);
    pipeline->executor.trace = [this](int op, int64_t t, uint64_t begin,
                                      uint64_t end) {
      trace->add(op, t, begin, end);
    };
  }
  pipeline->start();
  return Status();
}
