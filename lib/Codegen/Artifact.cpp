//===- Artifact.cpp - The object that defines terrace_artifact --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// trc_artifact and trc_kernel of include/terrace-rt/artifact.h as constants,
// and for executables the entry point. Built for any x86-64, so that an
// unsuitable CPU reaches the runtime's own message.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Codegen.h"
#include "Codegen/Target.h"

#include "terrace-rt/artifact.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;
using namespace terrace::codegen;

// The layouts below are those of the header on x86-64.
static_assert(sizeof(trc_kernel) == 8 + 8 * TRC_CPU_COUNT);
static_assert(sizeof(trc_artifact) == 40 && TRC_ARTIFACT_ABI == 4);

namespace {
class ArtifactBuilder {
public:
  ArtifactBuilder(Module &module)
      : module(module), context(module.getContext()),
        pointer(PointerType::get(context, 0)), i32(Type::getInt32Ty(context)),
        i64(Type::getInt64Ty(context)) {}

  GlobalVariable *artifact(StringRef plan, ArrayRef<KernelConfig> configs,
                           ArrayRef<Image> images);
  void entryPoint(GlobalVariable *artifact);

private:
  GlobalVariable *constantOf(Constant *value, const Twine &name) {
    auto *global = new GlobalVariable(module, value->getType(), true,
                                      GlobalValue::PrivateLinkage, value, name);
    global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return global;
  }
  Constant *text(StringRef value, const Twine &name) {
    auto *global =
        constantOf(ConstantDataArray::getString(context, value), name);
    global->setAlignment(Align(1));
    return global;
  }
  Constant *kernel(const KernelConfig &config, ArrayRef<Image> images);

  Module &module;
  LLVMContext &context;
  PointerType *pointer;
  IntegerType *i32, *i64;
};
} // namespace

Constant *ArtifactBuilder::kernel(const KernelConfig &config,
                                  ArrayRef<Image> images) {
  std::string name = config.name();
  SmallVector<Constant *> addresses(TRC_CPU_COUNT,
                                    ConstantPointerNull::get(pointer));
  for (const Image &image : images) {
    auto *function = Function::Create(
        FunctionType::get(Type::getVoidTy(context), false),
        GlobalValue::ExternalLinkage, name + image.suffix, module);
    function->setVisibility(GlobalValue::HiddenVisibility);
    addresses[image.index] = function;
  }
  SmallVector<Constant *> fields{text(name, "name")};
  fields.append(addresses);
  return ConstantStruct::getAnon(context, fields);
}

GlobalVariable *ArtifactBuilder::artifact(StringRef plan,
                                          ArrayRef<KernelConfig> configs,
                                          ArrayRef<Image> images) {
  SmallVector<Constant *> kernels;
  for (const KernelConfig &config : configs)
    kernels.push_back(kernel(config, images));
  Constant *table = ConstantPointerNull::get(pointer);
  if (!kernels.empty())
    table = constantOf(
        ConstantArray::get(
            ArrayType::get(kernels[0]->getType(), kernels.size()), kernels),
        "kernels");
  Constant *value = ConstantStruct::getAnon(
      context, {ConstantInt::get(i32, TRC_ARTIFACT_MAGIC),
                ConstantInt::get(i32, TRC_ARTIFACT_ABI),
                ConstantInt::get(i64, plan.size()), text(plan, "plan"),
                ConstantInt::get(i64, configs.size()), table});
  return new GlobalVariable(module, value->getType(), true,
                            GlobalValue::ExternalLinkage, value,
                            "terrace_artifact");
}

void ArtifactBuilder::entryPoint(GlobalVariable *artifact) {
  auto *modelMain =
      Function::Create(FunctionType::get(i32, {i32, pointer, pointer}, false),
                       GlobalValue::ExternalLinkage, "trc_model_main", module);
  auto *main = Function::Create(FunctionType::get(i32, {i32, pointer}, false),
                                GlobalValue::ExternalLinkage, "main", module);
  IRBuilder<> b(BasicBlock::Create(context, "entry", main));
  b.CreateRet(
      b.CreateCall(modelMain, {main->getArg(0), main->getArg(1), artifact}));

  // Static destructors are registered with it. It belongs to gcc's crtbegin,
  // and a compiled model needs no gcc.
  auto *handle =
      new GlobalVariable(module, pointer, false, GlobalValue::ExternalLinkage,
                         ConstantPointerNull::get(pointer), "__dso_handle");
  handle->setVisibility(GlobalValue::HiddenVisibility);
}

Expected<ObjectCode> terrace::codegen::emitArtifactObject(
    StringRef planJson, ArrayRef<KernelConfig> configs, ArrayRef<Image> images,
    const ArtifactOptions &options) {
  if (Error error = checkConfigs(configs))
    return error;
  auto machine = makeTargetMachine("x86-64");
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  Module module("artifact", context);
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  module.setPICLevel(PICLevel::BigPIC);
  ArtifactBuilder builder(module);
  GlobalVariable *artifact = builder.artifact(planJson, configs, images);
  if (options.executable)
    builder.entryPoint(artifact);
  return emitObject(module, **machine);
}
