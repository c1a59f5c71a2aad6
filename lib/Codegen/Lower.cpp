//===- Lower.cpp - Kernels to LLVM IR ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR to the llvm dialect in one dialect conversion, translation, and the few
// scalar passes that the kernels profit from. Vectors are final when they
// leave KernelBuilder; nothing here may vectorise, unroll or reassociate.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Codegen.h"
#include "Codegen/Target.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace terrace::codegen;

/// Runs `work` and turns a failure with its diagnostics into one Error.
static llvm::Error collect(MLIRContext *context, llvm::StringRef what,
                           llvm::function_ref<LogicalResult()> work) {
  std::string text;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && text.empty())
      text = diagnostic.str();
    return success();
  });
  if (succeeded(work()))
    return llvm::Error::success();
  return llvm::createStringError("code generation: " + what + ": " +
                                 (text.empty() ? "failed" : text));
}

llvm::Error terrace::codegen::lowerToLLVMDialect(ModuleOp module) {
  MLIRContext *context = module.getContext();
  context->loadDialect<cf::ControlFlowDialect>();
  return collect(context, "cannot lower the kernels", [&]() -> LogicalResult {
    LLVMTypeConverter converter(context);
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(*context);
    target.addLegalOp<ModuleOp>();
    return applyFullConversion(module, target, std::move(patterns));
  });
}

static void setAttributes(llvm::Module &module, const Image &image) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    // Called through the artifact's table alone, from the same image.
    function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (image.isObjectOnly())
      continue; // the target machine's
    function.addFnAttr("target-cpu", image.cpu);
    // x86-64-v4 prefers 256 bits unless told otherwise.
    function.addFnAttr("prefer-vector-width", std::to_string(32 * image.lanes));
  }
}

static llvm::Error optimize(llvm::Module &module,
                            llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(
          passes, "function(simplifycfg,early-cse,loop-mssa(licm),"
                  "instcombine<no-verify-fixpoint>)"))
    return error;
  passes.run(module, modules);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<llvm::Module>>
terrace::codegen::emitLLVM(llvm::LLVMContext &llvmContext,
                           llvm::ArrayRef<KernelConfig> configs,
                           const Image &image) {
  if (llvm::Error error = checkConfigs(configs))
    return error;
  auto machine = makeTargetMachine(image.cpu);
  if (!machine)
    return machine.takeError();

  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> kernels = buildKernels(context, configs, image);
  if (llvm::Error error = lowerToLLVMDialect(*kernels))
    return error;
  std::unique_ptr<llvm::Module> module;
  llvm::Error error = collect(&context, "cannot translate the kernels", [&] {
    module = translateModuleToLLVMIR(*kernels, llvmContext, image.cpu);
    return success(module != nullptr);
  });
  if (error)
    return error;
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  setAttributes(*module, image);
  if (llvm::Error error = optimize(*module, **machine))
    return error;
  if (llvm::Error error = checkKernelIR(*module))
    return error;
  return module;
}

llvm::Expected<std::string>
terrace::codegen::emitLLVMText(llvm::ArrayRef<KernelConfig> configs,
                               const Image &image) {
  llvm::LLVMContext context;
  auto module = emitLLVM(context, configs, image);
  if (!module)
    return module.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream, nullptr);
  return text;
}
