//===- FakeRuntime.h - The C ABI over the reference, as a double -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Implements what the executable's main calls of the C ABI with the reference
// interpreter, so that the main is tested without tiers. States live in a map
// by folder. Faults can be planted that verify must find.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_MODEL_FAKERUNTIME_H
#define TERRACE_TEST_RUNTIME_MODEL_FAKERUNTIME_H

#include <cstdint>
#include <string>
#include <vector>

namespace trc::fake {

/// Which lowest bit the runtime gets wrong.
enum class Fault { None, Output, Weight, State, Bias, UntouchedRow };

struct Control {
  Fault fault = Fault::None;
  int64_t faultAtForward = 3; // for Output: which forward
  std::vector<double> lrScales;
  std::vector<int64_t> checkpoints; // step of each
  bool failCheckpoints = false;
  int failCloses = 0; // so many find no space and leave the session open
  int64_t releases = 0;
  int raiseAtStep = -1; // sends SIGINT to itself in that backward
};
Control &control();
void forgetStates();

} // namespace trc::fake

#endif // TERRACE_TEST_RUNTIME_MODEL_FAKERUNTIME_H
