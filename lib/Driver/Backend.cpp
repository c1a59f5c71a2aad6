//===- Backend.cpp - From a planned module to code ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Backend.h"
#include "Driver/LibHeader.h"

#include "Codegen/Link.h"
#include "Conversion/PlanToArtifact/PlanToArtifact.h"
#include "Spec/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

namespace terrace::driver {

bool Backend::failed(llvm::Error error, Outcome outcome) {
  return frontend.fail(outcome, llvm::toString(std::move(error)));
}

/// `--cpu`, else target.arch of the spec. `native` is resolved here, so that
/// the artifact does not depend on what the word meant.
bool Backend::chooseImages() {
  std::vector<std::string> names = options.cpus;
  if (names.empty())
    for (const spec::Str &arch : frontend.spec().target.arch)
      names.push_back(*arch);
  std::vector<llvm::StringRef> known{"native"};
  for (const codegen::Image &image : codegen::allImages())
    known.push_back(image.cpu);
  known.push_back("aarch64");
  for (std::string &name : names) {
    if (name == "native") {
      __builtin_cpu_init();
      name = __builtin_cpu_supports("x86-64-v4") ? "x86-64-v4" : "x86-64-v3";
    }
    const codegen::Image *image = codegen::findImage(name);
    if (!image)
      return frontend.fail(Outcome::Usage,
                           "--cpu: '" + name + "' is not known" +
                               spec::didYouMean(name, known) +
                               " (allowed: " + spec::listOf(known) + ")");
    if (llvm::none_of(images, [&](const codegen::Image &other) {
          return other.index == image->index;
        }))
      images.push_back(*image);
  }
  auto foreign = llvm::find_if(
      images, [](const codegen::Image &image) { return image.isObjectOnly(); });
  if (foreign != images.end() && images.size() > 1)
    return frontend.fail(Outcome::Usage,
                         std::string("--cpu: '") + foreign->cpu +
                             "' stands alone: one object is for one kind of "
                             "machine");
  if (foreign != images.end() &&
      (options.emit == Emit::Lib || options.emit == Emit::Exe))
    return frontend.fail(
        Outcome::Usage,
        std::string("--cpu: kernels for '") + foreign->cpu +
            "' are object code only (--emit=obj, --emit=llvm): the runtime "
            "that libraries and executables are linked with runs on x86-64");
  llvm::sort(images, [](const codegen::Image &a, const codegen::Image &b) {
    return a.index < b.index;
  });
  return true;
}

bool Backend::check() {
  if (!spec::checkExecutable(frontend.spec(), result.diagnostics))
    return frontend.fail(Outcome::Error);
  // Such an executable still verifies, benches and informs.
  if (options.emit == Emit::Exe && !frontend.spec().head)
    result.diagnostics.warning(
        {0, 1, 1}, "the model has no head: the executable can verify, bench "
                   "and inform, but not train; --emit=lib makes a library for "
                   "a trainer, head: {kind: fm, label: COLUMN} a model that "
                   "trains alone");
  return chooseImages();
}

bool Backend::emitLlvm() {
  frontend.stage("kernels");
  std::string text;
  for (const codegen::Image &image : images) {
    auto ir = codegen::emitLLVMText(configs, image);
    if (!ir)
      return failed(ir.takeError(), Outcome::Error);
    // One module per image, told apart as split-file does.
    if (images.size() > 1)
      text += std::string(";--- ") + image.cpu + ".ll\n";
    text += *ir;
  }
  return frontend.emitText(std::move(text));
}

bool Backend::link(llvm::ArrayRef<codegen::ObjectCode> objects) {
  llvm::StringRef suffix = options.emit == Emit::Exe   ? ""
                           : options.emit == Emit::Lib ? ".so"
                                                       : ".o";
  std::string output = options.output.empty()
                           ? *frontend.spec().model + suffix.str()
                           : options.output;
  if (!frontend.checkOutput(output))
    return false;
  llvm::SmallString<128> header(output);
  llvm::sys::path::replace_extension(header, ".h");
  if (options.emit == Emit::Lib && !frontend.checkOutput(header.c_str()))
    return false;
  if (options.emit == Emit::Exe) {
    auto archives = codegen::findRuntimeArchives();
    if (!archives)
      return failed(archives.takeError(), Outcome::Environment);
    if (llvm::Error error = codegen::linkExecutable(objects, *archives, output))
      return failed(std::move(error), Outcome::Environment);
  } else if (options.emit == Emit::Lib) {
    if (llvm::Error error = codegen::linkLibrary(objects, output))
      return failed(std::move(error), Outcome::Environment);
  } else if (llvm::Error error = codegen::linkRelocatable(
                 objects, output, images.front().isObjectOnly())) {
    return failed(std::move(error), Outcome::Environment);
  }
  result.files.push_back(output);
  if (options.emit != Emit::Lib)
    return true;
  return frontend.writeFile(
      header.c_str(),
      libraryHeader(frontend.spec(), llvm::sys::path::filename(header)));
}

bool Backend::emitBinary(const std::string &plan) {
  frontend.stage("kernels");
  Dump &dump = frontend.dump();
  if (dump.enabled())
    for (const codegen::Image &image : images) {
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      auto module = codegen::buildKernels(context, configs, image);
      dump.write(std::string("kernels-") + image.cpu, *module);
    }
  if (!dump.error().empty())
    return frontend.fail(Outcome::Environment, dump.error());
  auto objects = codegen::emitKernelObjects(configs, images);
  if (!objects)
    return failed(objects.takeError(), Outcome::Error);
  if (!images.front().isObjectOnly()) { // else the kernels are all there is
    codegen::ArtifactOptions artifactOptions;
    artifactOptions.executable = options.emit == Emit::Exe;
    auto artifact =
        codegen::emitArtifactObject(plan, configs, images, artifactOptions);
    if (!artifact)
      return failed(artifact.takeError(), Outcome::Error);
    objects->push_back(std::move(*artifact));
  }
  frontend.stage("link");
  bool good = link(*objects);
  frontend.endStage();
  return good;
}

bool Backend::run() {
  frontend.stage("artifact");
  auto artifact =
      planToArtifact(frontend.module(), frontend.spec(), frontend.reference());
  if (mlir::failed(artifact))
    return frontend.fail(Outcome::Error);
  if (options.emit == Emit::Artifact)
    return frontend.emitText(artifact->json);
  for (const std::string &name : artifact->kernels) {
    auto config = codegen::KernelConfig::parse(name);
    if (!config)
      return failed(config.takeError(), Outcome::Error);
    configs.push_back(*config);
  }
  result.kernels = configs.size();
  return options.emit == Emit::Llvm ? emitLlvm() : emitBinary(artifact->json);
}

} // namespace terrace::driver
