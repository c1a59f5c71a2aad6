//===- ArtifactTest.cpp - Artifact, gates and links -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CompiledKernels.h"

#include "Codegen/Link.h"
#include "Codegen/Target.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

#include <cstring>

using namespace terrace;
using namespace terrace::codegen;
using namespace terrace::test;

static std::vector<KernelConfig> someConfigs() {
  return {KernelConfig::gatherPool(16, Pooling::Sum),
          KernelConfig::gatherPool(130, Pooling::Sqrtn, true),
          KernelConfig::gatherPool(9, Pooling::Max),
          KernelConfig::segmentUpdate(16, Optimizer::RowwiseAdagrad),
          KernelConfig::segmentUpdate(1000, Optimizer::RowwiseAdagrad, true),
          KernelConfig::segmentUpdate(130, Optimizer::Adam, true)};
}

static std::string readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Any LLVM module as an object, for stand-ins.
static llvm::Expected<ObjectCode> compileForTest(llvm::Module &module) {
  auto machine = makeTargetMachine("x86-64");
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  return emitObject(module, **machine);
}

static std::string textOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

TEST(Artifact, HoldsPlanAndKernels) {
  const std::string plan = "{\"model\": \"x\\u0000\", \"text\": \"\xc3\xa4\"}";
  auto kernels = CompiledKernels::compile(someConfigs(), plan);
  ASSERT_TRUE(kernels);
  const trc_artifact &artifact = kernels->artifact();
  EXPECT_EQ(artifact.magic, TRC_ARTIFACT_MAGIC);
  EXPECT_EQ(artifact.abi, TRC_ARTIFACT_ABI);
  EXPECT_EQ(std::string(artifact.plan, artifact.plan_bytes), plan);
  EXPECT_EQ(artifact.plan[artifact.plan_bytes], 0);
  ASSERT_EQ(artifact.kernel_count, someConfigs().size());
  for (auto [i, config] : llvm::enumerate(someConfigs())) {
    EXPECT_EQ(artifact.kernels[i].name, config.name());
    EXPECT_NE(artifact.kernels[i].image[TRC_CPU_V3], nullptr);
    EXPECT_NE(artifact.kernels[i].image[TRC_CPU_V4], nullptr);
  }
}

TEST(Artifact, AnImageThatWasNotBuiltIsNull) {
  std::vector<KernelConfig> configs = {
      KernelConfig::gatherPool(4, Pooling::Sum)};
  const Image *v3 = findImage("x86-64-v3");
  ASSERT_TRUE(v3);
  auto object = emitArtifactObject("{}", configs, *v3);
  ASSERT_TRUE(bool(object)) << textOf(object.takeError());
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(
      llvm::StringRef(object->data(), object->size()), "artifact"));
  ASSERT_TRUE(bool(file));
  std::vector<std::string> undefined;
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols())
    if (llvm::cantFail(symbol.getFlags()) &
        llvm::object::SymbolRef::SF_Undefined)
      if (std::string name = llvm::cantFail(symbol.getName()).str();
          !name.empty())
        undefined.push_back(name);
  EXPECT_EQ(undefined, std::vector<std::string>{"gather_pool_4_sum_v3"});
  EXPECT_EQ(findImage("x86-64-v2"), nullptr);
}

TEST(Artifact, RefusesDuplicatesAndBadConfigurations) {
  std::vector<KernelConfig> twice(2, KernelConfig::gatherPool(4, Pooling::Sum));
  std::vector<KernelConfig> bad = {KernelConfig::gatherPool(0, Pooling::Sum)};
  for (auto [configs, why] :
       {std::pair{twice, "gather_pool_4_sum is listed twice"},
        std::pair{bad, "dimension 0 is outside 1..2048"}}) {
    auto objects = emitKernelObjects(configs, allImages());
    ASSERT_FALSE(bool(objects));
    std::string text = textOf(objects.takeError());
    EXPECT_NE(text.find(why), std::string::npos) << text;
    auto artifact = emitArtifactObject("{}", configs, allImages());
    ASSERT_FALSE(bool(artifact));
    text = textOf(artifact.takeError());
    EXPECT_NE(text.find(why), std::string::npos) << text;
    auto llvmText = emitLLVMText(configs, allImages()[0]);
    ASSERT_FALSE(bool(llvmText));
    text = textOf(llvmText.takeError());
    EXPECT_NE(text.find(why), std::string::npos) << text;
  }
}

TEST(Artifact, LibraryExportsTheArtifactAloneAndNeedsNothing) {
  TemporaryFolder folder;
  auto objects = emitKernelObjects(someConfigs(), allImages());
  ASSERT_TRUE(bool(objects)) << textOf(objects.takeError());
  auto artifact = emitArtifactObject("{}", someConfigs(), allImages());
  ASSERT_TRUE(bool(artifact)) << textOf(artifact.takeError());
  objects->push_back(std::move(*artifact));
  std::string path = folder.file("lib.so");
  ASSERT_TRUE(succeeded(linkLibrary(*objects, path)));

  auto file = llvm::object::ObjectFile::createObjectFile(path);
  ASSERT_TRUE(bool(file));
  auto *elf = llvm::cast<llvm::object::ELF64LEObjectFile>(file->getBinary());
  std::vector<std::string> exported;
  for (const auto &symbol : elf->getDynamicSymbolIterators())
    if (std::string name = llvm::cantFail(symbol.getName()).str();
        !name.empty())
      exported.push_back(name);
  EXPECT_EQ(exported, std::vector<std::string>{"terrace_artifact"});
  for (const auto &entry : llvm::cantFail(elf->getELFFile().dynamicEntries()))
    EXPECT_NE(entry.d_tag, llvm::ELF::DT_NEEDED);
}

TEST(Artifact, BytesAreReproducible) {
  TemporaryFolder one, two;
  for (const TemporaryFolder *folder : {&one, &two}) {
    unsigned threads = folder == &one ? 1 : 4;
    auto objects = emitKernelObjects(someConfigs(), allImages(), threads);
    ASSERT_TRUE(bool(objects)) << textOf(objects.takeError());
    auto artifact = emitArtifactObject("{}", someConfigs(), allImages());
    ASSERT_TRUE(bool(artifact)) << textOf(artifact.takeError());
    objects->push_back(std::move(*artifact));
    ASSERT_TRUE(succeeded(linkLibrary(
        *objects, folder->file(folder == &one ? "a.so" : "other.so"))));
  }
  std::string bytes = readFile(one.file("a.so"));
  EXPECT_FALSE(bytes.empty());
  EXPECT_EQ(bytes, readFile(two.file("other.so")));
  EXPECT_EQ(bytes.find("/tmp"), std::string::npos);
}

// The kernels of an executable run no code before main, so a small stand-in
// for the runtime is enough to see the whole chain work.
TEST(Link, ExecutableRunsTheModelMain) {
  TemporaryFolder folder;
  auto objects = emitKernelObjects(someConfigs(), allImages());
  ASSERT_TRUE(bool(objects)) << textOf(objects.takeError());
  ArtifactOptions options;
  options.executable = true;
  auto artifact =
      emitArtifactObject("{\"a\":1}", someConfigs(), allImages(), options);
  ASSERT_TRUE(bool(artifact)) << textOf(artifact.takeError());
  objects->push_back(std::move(*artifact));

  // int trc_model_main(argc, argv, artifact) { puts(artifact->plan);
  //   return argc + artifact->kernel_count; }
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto standIn = llvm::parseAssemblyString(R"(
    declare i32 @puts(ptr)
    define i32 @trc_model_main(i32 %argc, ptr %argv, ptr %artifact) {
      %at = getelementptr i8, ptr %artifact, i64 16
      %plan = load ptr, ptr %at
      %r = call i32 @puts(ptr %plan)
      %countAt = getelementptr i8, ptr %artifact, i64 24
      %count = load i64, ptr %countAt
      %count32 = trunc i64 %count to i32
      %sum = add i32 %argc, %count32
      ret i32 %sum
    })",
                                           diagnostic, context);
  ASSERT_TRUE(standIn) << diagnostic.getMessage().str();
  auto code = compileForTest(*standIn);
  ASSERT_TRUE(bool(code)) << textOf(code.takeError());
  objects->push_back(std::move(*code));

  std::string path = folder.file("model"), out = folder.file("out");
  ASSERT_TRUE(succeeded(linkExecutable(*objects, {}, path)));
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), out, out};
  int status = llvm::sys::ExecuteAndWait(path, {path, "train"}, std::nullopt,
                                         redirects, /*secondsToWait=*/20);
  EXPECT_EQ(status, 2 + int(someConfigs().size()));
  EXPECT_EQ(readFile(out), "{\"a\":1}\n");
}

// With the real runtime: nothing of LLVM comes along, and the program starts
// far enough to refuse an empty plan.
TEST(Link, ExecutableHoldsTheRuntimeAndNothingOfLLVM) {
  auto archives = findRuntimeArchives();
  ASSERT_TRUE(bool(archives)) << textOf(archives.takeError());
  TemporaryFolder folder;
  ArtifactOptions options;
  options.executable = true;
  auto artifact = emitArtifactObject("{}", {}, allImages(), options);
  ASSERT_TRUE(bool(artifact)) << textOf(artifact.takeError());
  std::string path = folder.file("model"), out = folder.file("out");
  ASSERT_TRUE(succeeded(linkExecutable(*artifact, *archives, path)));

  auto file = llvm::object::ObjectFile::createObjectFile(path);
  ASSERT_TRUE(bool(file));
  const auto &elf =
      llvm::cast<llvm::object::ELF64LEObjectFile>(file->getBinary())
          ->getELFFile();
  llvm::StringRef strings;
  for (const auto &section : llvm::cantFail(elf.sections()))
    if (llvm::cantFail(elf.getSectionName(section)) == ".dynstr")
      strings = llvm::cantFail(elf.getStringTable(section));
  for (const auto &entry : llvm::cantFail(elf.dynamicEntries()))
    if (entry.d_tag == llvm::ELF::DT_NEEDED) {
      llvm::StringRef name = strings.drop_front(entry.getVal()).data();
      EXPECT_FALSE(name.contains("LLVM") || name.contains("MLIR"))
          << name.str();
    }
  EXPECT_EQ(readFile(path).find(".debug_info"), std::string::npos);

  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), out, out};
  int status = llvm::sys::ExecuteAndWait(path, {path, "info"}, std::nullopt,
                                         redirects, /*secondsToWait=*/20);
  EXPECT_GT(status, 0);
  EXPECT_NE(readFile(out).find("plan"), std::string::npos) << readFile(out);
}

TEST(Link, OneObjectLinksToTheSameLibrary) {
  TemporaryFolder folder;
  auto objects = emitKernelObjects(someConfigs(), allImages());
  ASSERT_TRUE(bool(objects)) << textOf(objects.takeError());
  auto artifact = emitArtifactObject("{}", someConfigs(), allImages());
  ASSERT_TRUE(bool(artifact)) << textOf(artifact.takeError());
  objects->push_back(std::move(*artifact));
  ASSERT_TRUE(succeeded(linkRelocatable(*objects, folder.file("all.o"))));
  std::string bytes = readFile(folder.file("all.o"));
  EXPECT_TRUE(succeeded(checkKernelObject(bytes)));
  ObjectCode one(bytes.begin(), bytes.end());
  EXPECT_TRUE(succeeded(linkLibrary(one, folder.file("lib.so"))));
}

TEST(Link, FailuresNameTheCauseAndLeaveTheOldOutput) {
  TemporaryFolder folder;
  std::string path = folder.file("model");
  {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << "old";
  }
  ArtifactOptions options;
  options.executable = true;
  auto artifact = emitArtifactObject("{}", {}, allImages(), options);
  ASSERT_TRUE(bool(artifact)) << textOf(artifact.takeError());
  for (int again = 0; again < 2; ++again) {
    std::string text = textOf(linkExecutable(*artifact, {}, path));
    EXPECT_NE(text.find("undefined symbol: trc_model_main"), std::string::npos)
        << text;
    EXPECT_EQ(readFile(path), "old");
  }
  auto library = emitArtifactObject("{}", {}, allImages());
  ASSERT_TRUE(bool(library)) << textOf(library.takeError());
  std::string text = textOf(linkLibrary(*library, folder.file("no/such/lib")));
  EXPECT_NE(text.find("cannot write '"), std::string::npos) << text;
  EXPECT_TRUE(succeeded(linkLibrary(*library, folder.file("lib.so"))));
}

TEST(Link, SaysWhereItLookedForTheRuntime) {
  TemporaryFolder folder;
  setenv("TERRACE_RUNTIME_DIR", folder.file("nothing").c_str(), 1);
  auto archives = findRuntimeArchives();
  unsetenv("TERRACE_RUNTIME_DIR");
  ASSERT_FALSE(bool(archives));
  std::string text = textOf(archives.takeError());
  EXPECT_NE(text.find(folder.file("nothing")), std::string::npos) << text;
  EXPECT_NE(text.find("TERRACE_RUNTIME_DIR"), std::string::npos) << text;
}

TEST(Gate, RefusesWhatWouldChangeBits) {
  struct Case {
    const char *body, *why;
  };
  for (Case c :
       {Case{"%r = fadd fast float %a, %b\n ret float %r", "fast-math"},
        Case{"%r = fadd reassoc float %a, %b\n ret float %r", "fast-math"},
        Case{"%r = fdiv arcp float %a, %b\n ret float %r", "fast-math"},
        Case{"%r = call contract float @llvm.fma.f32(float %a, float %b, "
             "float %a)\n ret float %r",
             "fast-math"},
        Case{"%r = call float @llvm.fmuladd.f32(float %a, float %b, float "
             "%a)\n ret float %r",
             "llvm.fmuladd.f32"},
        Case{"%r = call float @fmaf(float %a, float %b, float %a)\n ret "
             "float %r",
             "calls fmaf"},
        Case{"%r = call float @llvm.exp.f32(float %a)\n ret float %r",
             "llvm.exp.f32"},
        Case{"%r = call float @llvm.fma.f32(float %a, float %b, float %a)\n "
             "ret float %r",
             nullptr}}) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic diagnostic;
    auto module = llvm::parseAssemblyString(
        std::string("declare float @llvm.fmuladd.f32(float, float, float)\n"
                    "declare float @llvm.fma.f32(float, float, float)\n"
                    "declare float @llvm.exp.f32(float)\n"
                    "declare float @fmaf(float, float, float)\n"
                    "define float @f(float %a, float %b) {\n") +
            c.body + "\n}",
        diagnostic, context);
    ASSERT_TRUE(module) << diagnostic.getMessage().str();
    std::string text = textOf(checkKernelIR(*module));
    if (!c.why) {
      EXPECT_EQ(text, "");
      continue;
    }
    EXPECT_NE(text.find(c.why), std::string::npos) << c.body << ": " << text;
  }
}

TEST(Gate, RefusesUndefinedSymbols) {
  ArtifactOptions options;
  options.executable = true;
  auto object = emitArtifactObject("{}", {}, allImages(), options);
  ASSERT_TRUE(bool(object)) << textOf(object.takeError());
  std::string text = textOf(
      checkKernelObject(llvm::StringRef(object->data(), object->size())));
  EXPECT_NE(text.find("trc_model_main"), std::string::npos) << text;
}

TEST(Kernels, AreReadableAndValid) {
  for (const Image &image : allImages()) {
    mlir::MLIRContext context;
    auto module = buildKernels(context, someConfigs(), image);
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    for (const char *part : {"scf.for", "math.fma"})
      EXPECT_NE(text.find(part), std::string::npos) << part;
    const bool wide = text.find("vector<16xf32>") != std::string::npos;
    EXPECT_EQ(wide, image.lanes == 16);
    EXPECT_EQ(text.find("fastmath"), std::string::npos);
    EXPECT_TRUE(succeeded(lowerToLLVMDialect(*module)));
  }
}
