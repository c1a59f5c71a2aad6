//===- DumpTest.cpp - The IR after each pass, as numbered files -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Dump.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <gtest/gtest.h>

#include <fstream>

using namespace terrace;

namespace {

class DumpTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("terrace-dump", folder));
    context.loadDialect<mlir::func::FuncDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f() { return }\nfunc.func @g() { return }", &context);
    ASSERT_TRUE(module);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::vector<std::string> names(const driver::Dump &dump) {
    std::vector<std::string> list;
    for (const std::string &file : dump.files())
      list.push_back(llvm::sys::path::filename(file).str());
    return list;
  }

  llvm::SmallString<128> folder;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(DumpTest, OneFileForEachModulePass) {
  driver::Dump dump(folder);
  ASSERT_TRUE(dump.prepare());
  dump.write("import", *module);
  mlir::PassManager manager(&context);
  manager.addPass(mlir::createSymbolDCEPass());
  // Nested passes run on both functions and are dumped once, together.
  manager.addNestedPass<mlir::func::FuncOp>(mlir::createCanonicalizerPass());
  manager.addNestedPass<mlir::func::FuncOp>(mlir::createCSEPass());
  manager.addPass(mlir::createCanonicalizerPass());
  dump.attach(manager);
  ASSERT_TRUE(mlir::succeeded(manager.run(*module)));
  EXPECT_EQ(dump.error(), "");
  EXPECT_EQ(names(dump),
            (std::vector<std::string>{"00-import.mlir", "01-symbol-dce.mlir",
                                      "02-canonicalize+cse.mlir",
                                      "03-canonicalize.mlir"}));
  for (const std::string &file : dump.files())
    EXPECT_TRUE(mlir::parseSourceFile<mlir::ModuleOp>(file, &context)) << file;
}

TEST_F(DumpTest, RemovesOldDumpsOnly) {
  std::string base = folder.str().str();
  for (const char *name : {"/07-old.mlir", "/notes.txt", "/mine.mlir"})
    std::ofstream(base + name) << "text";
  driver::Dump dump(folder);
  ASSERT_TRUE(dump.prepare());
  EXPECT_FALSE(llvm::sys::fs::exists(base + "/07-old.mlir"));
  EXPECT_TRUE(llvm::sys::fs::exists(base + "/notes.txt"));
  EXPECT_TRUE(llvm::sys::fs::exists(base + "/mine.mlir"));
}

TEST_F(DumpTest, SaysWhyAFolderCannotBeMade) {
  std::string file = (folder + "/file").str();
  std::ofstream(file) << "text";
  driver::Dump dump(file + "/below");
  EXPECT_FALSE(dump.prepare());
  EXPECT_NE(dump.error().find(file), std::string::npos) << dump.error();
}

} // namespace
