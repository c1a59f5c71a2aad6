//===- Profile.cpp - Measured statistics of the ids -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Profile/Profile.h"

#include "Machine/YamlToJson.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace terrace::profile;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

namespace {

const Stats *find(const std::vector<Stats> &list, StringRef name) {
  for (const Stats &s : list)
    if (s.name == name)
      return &s;
  return nullptr;
}

constexpr double mostMean = 1e18;
constexpr int64_t mostCount = int64_t(1) << 53;

std::string shown(const json::Value &value) {
  if (std::optional<double> number = value.getAsNumber()) {
    llvm::SmallString<32> text; // JSON has no words for all of them
    llvm::raw_svector_ostream(text) << *number;
    return text.str().str();
  }
  if (std::optional<StringRef> text = value.getAsString())
    return ("'" + text->take_front(60) + "'").str();
  return value.getAsArray()    ? "a list"
         : value.getAsObject() ? "a map"
         : value.getAsNull()   ? "nothing"
                               : "true or false";
}

/// Reads one entry; unknown keys are ignored, since a newer profiler may
/// measure more, but a known key of the wrong type is an error.
struct Reader {
  std::string file, error;

  void fail(const Twine &where, const Twine &what) {
    if (error.empty())
      error = (file + ": " + where + ": " + what).str();
  }

  void number(const json::Object &o, StringRef key, const Twine &where,
              double &out) {
    const json::Value *v = o.get(key);
    if (!v || v->getAsNull())
      return;
    std::optional<double> n = v->getAsNumber();
    // Larger ones belong to no batch, and products of them stay finite.
    if (!n || !(*n >= 0) || *n > mostMean)
      return fail(where + "." + key,
                  "expected a number from 0 to 1e18, found " + shown(*v));
    out = *n;
  }

  void integer(const json::Object &o, StringRef key, const Twine &where,
               int64_t &out) {
    const json::Value *v = o.get(key);
    if (v && !v->getAsNull())
      count(*v, where + "." + key, out);
  }

  /// A profiler may write 3.0; beyond 2^53 that would not be exact.
  bool count(const json::Value &v, const Twine &where, int64_t &out,
             int64_t low = 0) {
    std::optional<double> n = v.getAsNumber();
    if (!n || !(*n >= double(low)) || *n > double(mostCount) ||
        *n != std::floor(*n)) {
      fail(where, "expected a whole number from " + Twine(low) +
                      " to 2^53, found " + shown(v));
      return false;
    }
    out = int64_t(*n);
    return true;
  }

  /// A list, or nothing where the key is absent.
  const json::Array *array(const json::Object &o, StringRef key,
                           const Twine &where) {
    const json::Value *v = o.get(key);
    if (!v || v->getAsNull())
      return nullptr;
    if (!v->getAsArray())
      fail(where + "." + key, "expected a list, found " + shown(*v));
    return v->getAsArray();
  }

  Stats stats(const json::Object &o, StringRef name, const Twine &where) {
    Stats s;
    s.name = name.str();
    integer(o, "batches", where, s.batches);
    integer(o, "batch", where, s.batch);
    number(o, "ids", where, s.ids);
    integer(o, "max_ids", where, s.maxIds);
    number(o, "unique_ids", where, s.uniqueIds);
    integer(o, "max_unique_ids", where, s.maxUniqueIds);
    number(o, "unique_bags", where, s.uniqueBags);
    number(o, "unique_bag_ids", where, s.uniqueBagIds);
    number(o, "samples_per_session", where, s.samplesPerSession);
    number(o, "unchanged", where, s.unchanged);
    if (s.unchanged > 1)
      fail(where + ".unchanged", "expected a share from 0 to 1");
    integer(o, "distinct_ids", where, s.distinctIds);
    integer(o, "cold", where, s.cold);
    if (const json::Array *reuse = array(o, "reuse", where))
      for (const json::Value &v : *reuse)
        count(v, where + ".reuse", s.reuse.emplace_back());
    const json::Array *rows = array(o, "cache_rows", where);
    const json::Array *ratio = array(o, "miss_ratio", where);
    if (rows && ratio) {
      if (rows->size() != ratio->size())
        fail(where, "cache_rows and miss_ratio differ in length");
      for (size_t i = 0; i < std::min(rows->size(), ratio->size()); ++i) {
        int64_t r = 0;
        if (!count((*rows)[i], where + ".cache_rows", r, 1))
          break;
        std::optional<double> m = (*ratio)[i].getAsNumber();
        if (!m || !(*m >= 0 && *m <= 1) ||
            (!s.missCurve.empty() && r <= s.missCurve.back().first)) {
          fail(where, "the miss-ratio curve needs rising rows above 0 and "
                      "ratios from 0 to 1, found " +
                          Twine(r) + ": " + shown((*ratio)[i]));
          break;
        }
        s.missCurve.emplace_back(r, *m);
      }
    }
    return s;
  }

  std::vector<Stats> list(const json::Object &root, StringRef key) {
    std::vector<Stats> result;
    const json::Value *v = root.get(key);
    if (!v)
      return result;
    const json::Array *array = v->getAsArray();
    if (!array) {
      fail(key, "expected a list");
      return result;
    }
    for (const json::Value &item : *array) {
      const json::Object *o = item.getAsObject();
      std::optional<StringRef> name =
          o ? o->getString("name") : std::optional<StringRef>();
      if (!name) {
        fail(key, "every entry needs a name");
        break;
      }
      result.push_back(stats(*o, *name, key + "." + *name));
    }
    return result;
  }
};

} // namespace

const Stats *Profile::table(StringRef name) const { return find(tables, name); }
const Stats *Profile::feature(StringRef name) const {
  return find(features, name);
}
const Stats *Profile::group(StringRef name) const { return find(groups, name); }

Expected<Profile> Profile::parse(StringRef text, StringRef name) {
  Expected<json::Value> root = yamlToJson(text, name);
  if (!root)
    return root.takeError();
  Reader r;
  r.file = name.str();
  Profile p;
  p.origin = name.str();
  const json::Object *o = root->getAsObject();
  if (!o || o->getInteger("terrace_profile") != 1) {
    r.fail("profile", "expected a profile (terrace_profile: 1)");
  } else {
    p.tables = r.list(*o, "tables");
    p.features = r.list(*o, "features");
    p.groups = r.list(*o, "groups");
  }
  if (!r.error.empty())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s",
                                   r.error.c_str());
  return p;
}

Expected<Profile> Profile::load(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError(
        buffer.getError(), "cannot read profile '%s': %s", path.str().c_str(),
        buffer.getError().message().c_str());
  return parse((*buffer)->getBuffer(), path);
}

double terrace::profile::dedupFactor(double samplesPerSession,
                                     double unchanged) {
  double s = std::max(1.0, samplesPerSession);
  double d = std::clamp(unchanged, 0.0, 1.0);
  return 1.0 / (1.0 - d * (s - 1.0) / s);
}

double terrace::profile::uniformUnique(double draws, double rows) {
  if (rows <= 0 || draws <= 0)
    return 0;
  // rows * (1 - (1 - 1/rows)^draws), without losing digits for large tables.
  return -rows *
         std::expm1(draws * std::log1p(-1.0 / std::max(rows, 1.0 + 1e-9)));
}

double terrace::profile::missesPerBatch(const MissCurve &curve, int64_t rows,
                                        double cached, double ids,
                                        double unique) {
  if (cached >= double(rows))
    return 0;
  if (cached <= 0)
    return unique;
  if (curve.empty())
    return unique * (1.0 - cached / double(rows));
  double r0 = 0, m = 1;
  for (auto [r1, m1] : curve) {
    if (cached <= double(r1)) {
      m += (m1 - m) * (cached - r0) / std::max(1.0, double(r1) - r0);
      break;
    }
    r0 = double(r1);
    m = m1;
  }
  return std::min(unique, ids * m);
}
