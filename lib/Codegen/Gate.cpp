//===- Gate.cpp - What generated code may contain ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bits are only equal across images and the interpreter while no pass may
// contract or reassociate, and an artifact only loads anywhere while kernels
// call nothing. Both are checked on every compile, not assumed.
//
//===----------------------------------------------------------------------===//
#include "Codegen/Codegen.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Object/ObjectFile.h"

using namespace llvm;
using namespace terrace::codegen;

static bool isAllowed(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::fma:
  case Intrinsic::sqrt:
  case Intrinsic::fabs: // what masks of the sign bit become
  case Intrinsic::copysign:
  case Intrinsic::prefetch:
  case Intrinsic::smin:
  case Intrinsic::smax:
  case Intrinsic::umin:
  case Intrinsic::umax:
  case Intrinsic::memcpy:
  case Intrinsic::memmove:
  case Intrinsic::memset:
  case Intrinsic::assume:
    return true;
  default:
    return false;
  }
}

static Error broken(const Twine &what) {
  return createStringError("generated code failed its check: " + what +
                           " (a bug of this compiler)");
}

Error terrace::codegen::checkKernelIR(const Module &module) {
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function)) {
      if (auto *fp = dyn_cast<FPMathOperator>(&instruction))
        if (fp->getFastMathFlags().any())
          return broken(function.getName() + " has a fast-math flag on " +
                        instruction.getOpcodeName());
      auto *call = dyn_cast<CallBase>(&instruction);
      if (!call)
        continue;
      const Function *callee = call->getCalledFunction();
      if (!callee || !callee->isIntrinsic() ||
          !isAllowed(callee->getIntrinsicID()))
        return broken(function.getName() + " calls " +
                      (callee ? callee->getName() : "a pointer"));
    }
  return Error::success();
}

Error terrace::codegen::checkKernelObject(StringRef object) {
  auto file =
      object::ObjectFile::createObjectFile(MemoryBufferRef(object, "kernels"));
  if (!file)
    return file.takeError();
  for (const object::SymbolRef &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & object::SymbolRef::SF_Undefined))
      continue;
    auto name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!name->empty() && *name != "memcpy" && *name != "memset" &&
        *name != "memmove")
      return broken("the kernels need the symbol " + *name);
  }
  return Error::success();
}
