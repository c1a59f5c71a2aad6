//===- Child.h - A variant in a process of its own --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Its CPU time, memory and page cache are then its own. Construct it while
// this process has one thread: it forks without exec.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_CHILD_H
#define TERRACE_TEST_BENCH_STORE_CHILD_H

#include "test/bench/store/MemoryLimit.h"
#include "test/bench/store/Variant.h"

#include <sys/types.h>

namespace trc::bench {

class Child final : public Variant {
public:
  /// `make` is called in the child; the limit must outlive this object.
  Child(const MemoryLimit &limit, const MakeVariant &make);
  /// Ends the child and waits for it.
  ~Child() override;

  Status prepare(std::string &note) override;
  Status run(uint64_t batch, Measured &sum) override;
  Status endRound(Measured &sum) override;

private:
  enum class Verb : uint32_t { Prepare, Run, EndRound };
  struct Request {
    Verb verb;
    uint64_t batch;
  };
  struct Reply {
    Measured sum;
    trc_status code;
    uint32_t text; // bytes that follow: the note, or what went wrong
  };

  static void serve(int socket, const MakeVariant &make);
  Status ask(Verb verb, uint64_t batch, Measured &sum, std::string &text);
  /// How the child ended.
  std::string obituary();

  pid_t pid = -1;
  int socket = -1;
};

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_CHILD_H
