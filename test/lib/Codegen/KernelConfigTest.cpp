//===- KernelConfigTest.cpp - Names and column plans ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelConfig.h"
#include "Codegen/VectorSplit.h"

#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"

using namespace terrace::codegen;

TEST(KernelConfig, SpellsNamesAsTheArtifactDoes) {
  EXPECT_EQ(KernelConfig::gatherPool(16, Pooling::Sum).name(),
            "gather_pool_16_sum");
  EXPECT_EQ(KernelConfig::gatherPool(9, Pooling::WeightedMean, true).name(),
            "gather_pool_9_weighted_mean_weighted");
  EXPECT_EQ(KernelConfig::segmentUpdate(16, Optimizer::RowwiseAdagrad).name(),
            "segment_update_16_rowwise_adagrad");
  EXPECT_EQ(KernelConfig::segmentUpdate(1, Optimizer::Adam, true).name(),
            "segment_update_1_adam_decay");
  EXPECT_EQ(
      KernelConfig::segmentUpdate(3, Optimizer::MomentumSgd, true, true, true)
          .name(),
      "segment_update_3_momentum_sgd_decay_decoupled_clip");
  EXPECT_EQ(KernelConfig::segmentUpdate(3, Optimizer::Ftrl, false, false, true)
                .name(),
            "segment_update_3_ftrl_clip");
  EXPECT_EQ(
      KernelConfig::gatherPool(16, Pooling::Max).stored(Element::F16).name(),
      "gather_pool_16_f16_max");
  EXPECT_EQ(KernelConfig::gatherPool(5, Pooling::Sum, true)
                .stored(Element::I4)
                .name(),
            "gather_pool_5_i4_sum_weighted");
  EXPECT_EQ(KernelConfig::gatherPool(5, Pooling::Sum, true).byId().name(),
            "gather_pool_5_sum_weighted_direct");
  EXPECT_EQ(KernelConfig::segmentUpdate(16, Optimizer::Sgd, true)
                .stored(Element::BF16, true)
                .name(),
            "segment_update_16_bf16_sgd_decay_stochastic");
}

TEST(KernelConfig, ParseIsTheInverseOfName) {
  std::vector<KernelConfig> configs;
  for (int64_t dim : {1, 130, 2048}) {
    for (Pooling pooling : {Pooling::Sum, Pooling::Mean, Pooling::WeightedMean,
                            Pooling::Sqrtn, Pooling::Max, Pooling::None})
      configs.push_back(KernelConfig::gatherPool(dim, pooling));
    for (Pooling pooling :
         {Pooling::Sum, Pooling::Mean, Pooling::WeightedMean, Pooling::Sqrtn})
      configs.push_back(KernelConfig::gatherPool(dim, pooling, true));
    for (Optimizer optimizer :
         {Optimizer::Sgd, Optimizer::Adagrad, Optimizer::RowwiseAdagrad,
          Optimizer::Adam, Optimizer::MomentumSgd,
          Optimizer::PartialRowwiseAdam})
      for (int variant = 0; variant < 8; ++variant)
        configs.push_back(KernelConfig::segmentUpdate(
            dim, optimizer, variant & 1, variant & 2, variant & 4));
    for (bool clip : {false, true}) {
      configs.push_back(
          KernelConfig::segmentUpdate(dim, Optimizer::Lamb, true, false, clip));
      configs.push_back(KernelConfig::segmentUpdate(dim, Optimizer::Ftrl, false,
                                                    false, clip));
    }
  }
  for (size_t i = 0, wide = configs.size(); i < wide; ++i) {
    for (Element element : {Element::F16, Element::BF16})
      configs.push_back(configs[i].stored(
          element, configs[i].kind == KernelKind::SegmentUpdate && i % 2));
    if (configs[i].kind == KernelKind::GatherPool)
      for (Element element : {Element::I8, Element::I4})
        configs.push_back(configs[i].stored(element));
  }
  for (size_t i = 0, all = configs.size(); i < all; ++i)
    if (configs[i].kind == KernelKind::GatherPool)
      configs.push_back(configs[i].byId());
  for (const KernelConfig &config : configs) {
    auto parsed = KernelConfig::parse(config.name());
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    EXPECT_EQ(parsed->kind, config.kind) << config.name();
    EXPECT_EQ(parsed->dim, config.dim) << config.name();
    EXPECT_EQ(parsed->direct, config.direct) << config.name();
    EXPECT_EQ(parsed->name(), config.name());
  }
}

TEST(KernelConfig, RefusesOtherNamesAndSaysWhy) {
  struct Case {
    const char *name, *why;
  };
  for (Case c :
       {Case{"", "starts with neither"},
        Case{"gather_16_sum", "starts with neither"},
        Case{"gather_pool_0_sum", "not a dimension"},
        Case{"gather_pool_016_sum", "not a dimension"},
        Case{"gather_pool_-1_sum", "not a dimension"},
        Case{"gather_pool__sum", "not a dimension"},
        Case{"gather_pool_99999999999999999999_sum", "not a dimension"},
        Case{"gather_pool_2049_sum", "2049 is outside 1..2048"},
        Case{"gather_pool_16_median", "'median' is not one of sum"},
        Case{"gather_pool_16_max_weighted", "max takes no weights"},
        Case{"gather_pool_16_none_weighted", "none takes no weights"},
        Case{"gather_pool_16_sum_direct_weighted", "is not one of sum"},
        Case{"segment_update_16_sgd_direct", "is not one of"},
        Case{"segment_update_16_sum", "'sum' is not one of sgd"},
        Case{"segment_update_16_sgd_decay_decay", "is not one of"},
        Case{"segment_update_16_sgd_clip_decay", "is not one of"},
        Case{"segment_update_16_sgd_stochastic", "f32 is never rounded"},
        Case{"segment_update_16_i8_sgd", "rows of i8 are never updated"},
        Case{"segment_update_16_f32_sgd", "'f32_sgd' is not one of"},
        Case{"gather_pool_16_f16_sum_stochastic", "is not one of"},
        Case{"segment_update_16_ftrl_decay", "ftrl takes no such decay"},
        Case{"segment_update_16_lamb_decoupled", "lamb takes no such"}}) {
    auto parsed = KernelConfig::parse(c.name);
    ASSERT_FALSE(bool(parsed)) << c.name;
    std::string text = llvm::toString(parsed.takeError());
    EXPECT_NE(text.find(c.why), std::string::npos) << text;
  }
}

// Each column exactly once, in order, by powers of two that are aligned to
// themselves; blocks within the limit and at multiples of 32 columns.
TEST(ColumnPlan, CoversEveryDimension) {
  struct Shape {
    int64_t lanes, pieces;
  };
  for (Shape shape : {Shape{8, 12}, Shape{8, 4}, Shape{16, 24}, Shape{16, 12}})
    for (int64_t dim = 1; dim <= KernelConfig::maxDim; ++dim) {
      ColumnPlan plan = planColumns(dim, shape.lanes, shape.pieces);
      // A tail below one step of 32 columns cannot be cut further.
      const int64_t least = 32 / shape.lanes - 1 + llvm::Log2_64(shape.lanes);
      const int64_t limit = std::max(shape.pieces, least);
      int64_t next = 0;
      auto walk = [&](int64_t start, llvm::ArrayRef<Piece> pieces) {
        ASSERT_EQ(start, next);
        ASSERT_EQ(start % 32, 0);
        ASSERT_LE(int64_t(pieces.size()), limit) << dim;
        for (const Piece &piece : pieces) {
          ASSERT_EQ(start + piece.column, next);
          ASSERT_EQ(piece.width & (piece.width - 1), 0);
          ASSERT_LE(piece.width, shape.lanes);
          ASSERT_EQ(piece.column % piece.width, 0);
          next += piece.width;
        }
      };
      for (int64_t i = 0; i < plan.blocks; ++i)
        walk(i * plan.blockColumns, plan.block);
      if (!plan.tail.empty())
        walk(plan.tailStart, plan.tail);
      ASSERT_EQ(next, dim);
    }
}
