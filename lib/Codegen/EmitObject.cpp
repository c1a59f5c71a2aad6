//===- EmitObject.cpp - LLVM IR to relocatable objects ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels are split into objects of a fixed number, each compiled in a context
// of its own, so that threads share nothing and bytes do not depend on them.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Codegen.h"
#include "Codegen/Target.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace terrace::codegen;

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
terrace::codegen::makeTargetMachine(llvm::StringRef cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
  const bool arm = cpu == "aarch64";
  llvm::Triple triple(arm ? "aarch64-unknown-linux-gnu"
                          : "x86_64-unknown-linux-gnu");
  std::string why;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!target)
    return llvm::createStringError("this LLVM cannot generate " +
                                   triple.getArchName() + ": " + why);
  llvm::TargetOptions options;
  // An fma is written where one is meant (docs/numerics.md).
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, arm ? "generic" : cpu, /*Features=*/"", options,
      llvm::Reloc::PIC_,
      /*CM=*/std::nullopt, llvm::CodeGenOptLevel::Default));
}

llvm::Expected<ObjectCode>
terrace::codegen::emitObject(llvm::Module &module,
                             llvm::TargetMachine &machine) {
  ObjectCode code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("LLVM cannot write object files for " +
                                   machine.getTargetTriple().str());
  passes.run(module);
  return code;
}

llvm::Expected<ObjectCode>
terrace::codegen::emitKernelObject(llvm::ArrayRef<KernelConfig> configs,
                                   const Image &image) {
  auto machine = makeTargetMachine(image.cpu);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto module = emitLLVM(context, configs, image);
  if (!module)
    return module.takeError();
  auto code = emitObject(**module, **machine);
  if (!code)
    return code.takeError();
  if (llvm::Error error =
          checkKernelObject(llvm::StringRef(code->data(), code->size())))
    return error;
  return code;
}

llvm::Error
terrace::codegen::checkConfigs(llvm::ArrayRef<KernelConfig> configs) {
  llvm::StringSet<> names;
  for (const KernelConfig &config : configs) {
    if (llvm::Error error = config.verify())
      return error;
    if (!names.insert(config.name()).second)
      return llvm::createStringError("kernel " + config.name() +
                                     " is listed twice");
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<ObjectCode>>
terrace::codegen::emitKernelObjects(llvm::ArrayRef<KernelConfig> configs,
                                    llvm::ArrayRef<Image> images,
                                    unsigned threads) {
  if (llvm::Error error = checkConfigs(configs))
    return error;
  constexpr size_t perObject = 8;
  struct Job {
    llvm::ArrayRef<KernelConfig> configs;
    const Image *image;
  };
  std::vector<Job> jobs;
  for (const Image &image : images)
    for (size_t i = 0; i < configs.size(); i += perObject)
      jobs.push_back(
          {configs.slice(i, std::min(perObject, configs.size() - i)), &image});

  std::vector<ObjectCode> objects(jobs.size());
  llvm::Error failure = llvm::Error::success();
  std::mutex mutex;
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(threads));
  for (size_t i = 0; i < jobs.size(); ++i)
    pool.async([&, i] {
      auto code = emitKernelObject(jobs[i].configs, *jobs[i].image);
      if (code) {
        objects[i] = std::move(*code);
        return;
      }
      std::lock_guard<std::mutex> lock(mutex);
      failure = llvm::joinErrors(std::move(failure), code.takeError());
    });
  pool.wait();
  if (failure)
    return failure;
  return objects;
}
