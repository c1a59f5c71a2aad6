//===- GenerateRetail.cpp - Twins of Online Retail and of a click log
//------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `retail` has the columns and about the statistics of the Online Retail file
// (workloads.md 9.1), for examples where that file is absent; `clicks` feeds
// the ten-line hello spec. Both have planted effects, so that a model learns.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/GenerateParts.h"

#include "runtime/core/Math.h"

#include <algorithm>

namespace trc::data {

namespace {
constexpr int64_t stocks = 4070, customers = 4373, countries = 38;
} // namespace

void generateRetail(Generator &g) {
  const uint64_t seed = g.options.seed;
  SplitMix random(mix64(seed ^ 0x7265746169ull));
  const int64_t invoices = g.scaled(25900, 200);
  // The slopes are those of the sorted counts of the real file (9.1).
  ZipfSampler stockRank(stocks, 0.51), customerRank(customers - 1, 0.62),
      countryRank(countries - 1, 1.2);
  Scatter stockId(stocks, seed + 1), customerId(customers - 1, seed + 2);
  IdCounter stockCount(stocks), customerCount(customers),
      countryCount(countries);

  for (const char *name : {"invoice", "cancel", "stock", "qty", "unix_s",
                           "price_cents", "customer", "country"})
    g.out.field(std::string(name));
  g.out.endRow();

  std::vector<int64_t> recent; // stocks of the last rows
  size_t recentAt = 0;
  int64_t time = 1291191960, cancelled = 0, newcomers = 0;
  std::vector<int64_t> sizes;
  for (int64_t invoice = 0; invoice < invoices; ++invoice) {
    time += 60 * geometric(random, 20);
    // Invoices without a customer are as long as others: 24.9 % of the rows.
    // Every fifth is a customer's first, until all have come.
    int64_t customer = 0;
    if (random.unit() >= 0.249)
      customer = 1 + (invoice % 5 == 0 && newcomers < customers - 1
                          ? customerId(customers - 2 - newcomers++)
                          : customerId(customerRank.draw(random)));
    SplitMix fixed(mix64(seed + 3) ^ static_cast<uint64_t>(customer));
    int64_t country =
        customer == 0 || fixed.unit() < 0.885 ? 0 : 1 + countryRank.draw(fixed);
    double habit = effectOf(seed + 4, static_cast<uint64_t>(customer));
    // Cancellations: 15 % of the invoices, but short ones.
    bool cancel = bernoulli(random, -2.0 + 0.9 * habit);
    int64_t size =
        cancel ? geometric(random, 2.4)
               : std::max<int64_t>(1, static_cast<int64_t>(logNormal(
                                          random, math::log(13.0), 1.12)));
    size = std::min<int64_t>(size, 1114);
    sizes.push_back(size);
    for (int64_t line = 0; line < size; ++line) {
      int64_t stock = 0;
      if (!recent.empty() && random.unit() < 0.42)
        stock = recent[random.below(recent.size())];
      else
        // Some articles come back more often: prefer them when cancelling.
        for (int tries = 0; tries < 6; ++tries) {
          stock = stockId(stockRank.draw(random));
          double fault = effectOf(seed + 5, static_cast<uint64_t>(stock));
          if (!cancel || fault > 0.8)
            break;
        }
      if (recent.size() < 600)
        recent.push_back(stock);
      else
        recent[recentAt++ % recent.size()] = stock;
      int64_t quantity = geometric(random, 9.5);
      double price = math::exp(
          5.3 + 0.9 * effectOf(seed + 6, static_cast<uint64_t>(stock)));
      g.out.field(invoice);
      g.out.field(int64_t(cancel));
      g.out.field(stock);
      g.out.field(cancel ? -quantity : quantity);
      g.out.field(time);
      g.out.field(static_cast<int64_t>(price));
      g.out.field(customer);
      g.out.field(country);
      g.endRow();
      cancelled += cancel;
      stockCount.add(stock);
      customerCount.add(customer);
      countryCount.add(country);
      stockCount.endSample();
      customerCount.endSample();
      countryCount.endSample();
    }
  }
  double rows = static_cast<double>(g.out.rows());
  g.note("rows", 541909 * g.options.scale, rows);
  g.note("rows per invoice", 20.92, rows / static_cast<double>(invoices));
  std::nth_element(sizes.begin(), sizes.begin() + invoices / 2, sizes.end());
  g.note("rows per invoice, median", 10,
         static_cast<double>(sizes[static_cast<size_t>(invoices / 2)]));
  g.note("share of cancelled rows", 0.0171,
         static_cast<double>(cancelled) / rows);
  g.note("stock: distinct", 4070, stockCount.distinct());
  g.note("stock: share of the top 1 %", 0.098, stockCount.shareOfHottest(0.01));
  g.note("stock: distinct per 2048 rows", 1048, stockCount.distinctPerWindow());
  g.note("customer: distinct", 4373, customerCount.distinct());
  g.note("customer: share of the top id", 0.249, customerCount.topShare());
  g.note("customer: distinct per 2048 rows", 75,
         customerCount.distinctPerWindow());
  g.note("country: distinct", 38, countryCount.distinct());
  g.note("country: share of the top id", 0.914, countryCount.topShare());

  g.spec = R"(terrace: 1
model: retail
seed: 7
batch: {size: 2048}
defaults:
  table: {dim: 16, optimizer: {kind: rowwise_adagrad, lr: 0.1, eps: 1e-8}}
features:
- {name: stock, table: {rows: 4070}}
- {name: customer, table: {rows: 4373}, dedup: basket}
- {name: country, table: {rows: 38}, dedup: basket}
head: {kind: fm, label: cancel, loss: bce}
train: {epochs: 1, eval_every: 50, metrics: [auc, logloss, ne]}
data: {path: )" +
           g.dataName +
           R"(, session: invoice, eval: {last: 10%}}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 8MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: retail.store}
plan: {lookahead: 2, place: [{tables: "*", home: disk, cache: {dram: 64KiB}}]}
)";
}

void generateClicks(Generator &g) {
  const uint64_t seed = g.options.seed;
  constexpr int64_t users = 100000, items = 1000000;
  const int64_t rows = g.scaled(2000000, 4096);
  SplitMix random(mix64(seed ^ 0x636c69636bull));
  ZipfSampler userRank(users, 0.7), itemRank(items, 0.9);
  Scatter userId(users, seed + 1), itemId(items, seed + 2);
  IdCounter userCount(users), itemCount(items);
  for (const char *name : {"user", "item", "click"})
    g.out.field(std::string(name));
  g.out.endRow();
  int64_t clicks = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t user = userId(userRank.draw(random));
    int64_t item = itemId(itemRank.draw(random));
    uint64_t u = static_cast<uint64_t>(user), i = static_cast<uint64_t>(item);
    // Tastes: two hidden factors of user and item, and how good the item is.
    double logit = -1.3 + 0.6 * effectOf(seed + 3, u) +
                   0.9 * effectOf(seed + 4, i) +
                   0.7 * effectOf(seed + 5, u) * effectOf(seed + 6, i) +
                   0.7 * effectOf(seed + 7, u) * effectOf(seed + 8, i);
    bool click = bernoulli(random, logit);
    clicks += click;
    g.out.field(user);
    g.out.field(item);
    g.out.field(int64_t(click));
    g.endRow();
    userCount.add(user);
    itemCount.add(item);
    userCount.endSample();
    itemCount.endSample();
  }
  g.note("rows", 2000000 * g.options.scale, static_cast<double>(rows));
  g.note("share of clicks", 0.26,
         static_cast<double>(clicks) / static_cast<double>(rows));
  // Of the distributions themselves: sum of r^-s over the hottest percent.
  g.note("user: share of the hottest 1 % of the rows", 0.231,
         userCount.shareOfHottestRows(0.01));
  g.note("item: share of the hottest 1 % of the rows", 0.516,
         itemCount.shareOfHottestRows(0.01));
  g.spec = R"(terrace: 1
model: clicks
features:
- {name: user, table: {rows: 100000, dim: 16}}
- {name: item, table: {rows: 1000000, dim: 16}}
head: {kind: fm, label: click}
data: {path: )" +
           g.dataName +
           R"(, eval: {last: 10%}}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 32MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: clicks.store}
)";
}

} // namespace trc::data
