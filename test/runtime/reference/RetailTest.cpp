//===- RetailTest.cpp - The reference on real data, against numpy ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// AUC on Online Retail (first 90 % trains, one pass, batch 2048) as measured
// with numpy: logistic 0.616 progressive and 0.775 held out, fm 0.695 and
// 0.803. Covers reader, interpreter, heads and metrics at once.
//
//===----------------------------------------------------------------------===//
#include "ReferencePlans.h"
#include "runtime/data/BatchReader.h"
#include "runtime/model/Metrics.h"
#include "runtime/reference/Interpreter.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace trc;
using namespace trc::reference;

static std::string retailFile() {
  const char *folder = std::getenv("TERRACE_SHARED_DATA");
  return std::string(folder ? folder : TERRACE_DEFAULT_DATA) +
         "/online_retail.tsv.gz";
}

static data::ReaderOptions readerOptions(int64_t first, int64_t last) {
  data::ReaderOptions o;
  o.files.paths = {retailFile()};
  for (const char *name : {"stock", "customer", "country"})
    o.format.features.push_back({name, name, "", false, false});
  o.format.label = "cancel";
  o.batch = 2048;
  o.first = first;
  o.last = last;
  return o;
}

static void checkAuc(const std::string &head, int64_t dim, json init,
                     json optimizer, double progressive, double heldOut) {
  if (::access(retailFile().c_str(), R_OK) != 0)
    GTEST_SKIP() << retailFile() << " is not there";
  json plan = makePlan({tablePlan("stock", 4070, dim, optimizer, init),
                        tablePlan("customer", 4373, dim, optimizer, init),
                        tablePlan("country", 38, dim, optimizer, init)},
                       {featurePlan("stock", 0, "sum", 1),
                        featurePlan("customer", 1, "sum", 1),
                        featurePlan("country", 2, "sum", 1)},
                       head, 2048);
  auto model = Interpreter::create(plan.dump());
  ASSERT_TRUE(model.ok()) << model.takeStatus().message();
  const data::ReaderOptions whole =
      readerOptions(0, std::numeric_limits<int64_t>::max());
  auto rows = data::countRows(whole.files, whole.format);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(*rows, 541909);
  int64_t train = *rows * 9 / 10;
  for (bool training : {true, false}) {
    model::Metrics metrics;
    data::BatchReader reader(training ? readerOptions(0, train)
                                      : readerOptions(train, *rows));
    for (;;) {
      auto batch = reader.next();
      ASSERT_TRUE(batch.ok()) << batch.takeStatus().message();
      if (!*batch)
        break;
      Status s = (*model)->forward((*batch)->view(true));
      ASSERT_TRUE(s.ok()) << s.message();
      metrics.add((*model)->probabilities().data(), (*batch)->labels.data(),
                  (*batch)->samples);
      if (training) {
        s = (*model)->backward(nullptr, 1, 1);
        ASSERT_TRUE(s.ok()) << s.message();
      }
      reader.recycle(std::move(*batch));
    }
    model::MetricValues v = metrics.values();
    EXPECT_EQ(v.samples, training ? train : *rows - train);
    EXPECT_NEAR(v.auc, training ? progressive : heldOut, 0.005);
    std::printf("%s %s: AUC %.4f, loss %.4f, NE %.4f\n", head.c_str(),
                training ? "progressive" : "held out", v.auc, v.loss, v.ne);
  }
}

TEST(Retail, LogisticReachesNumpysAuc) {
  checkAuc("logistic", 1, {{"kind", "constant"}, {"value", 0}},
           {{"kind", "adagrad"}, {"lr", 0.1}, {"eps", 1e-8}}, 0.616, 0.775);
}

TEST(Retail, FmReachesNumpysAuc) {
  checkAuc("fm", 16, {{"kind", "uniform"}, {"low", -0.01}, {"high", 0.01}},
           {{"kind", "rowwise_adagrad"}, {"lr", 0.1}, {"eps", 1e-8}}, 0.695,
           0.803);
}
