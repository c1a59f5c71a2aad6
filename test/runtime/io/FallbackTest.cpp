//===- FallbackTest.cpp - Where io_uring is forbidden ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers forbid io_uring by a system call filter. A child process does the
// same to itself, and then to Linux AIO.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Device.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace trc;

namespace {

bool forbid(long call) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the call's number
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{4, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

/// The exit status says what went wrong; 77: no filter here.
int inChild() {
  using Backend = DeviceOptions::Backend;
  if (!forbid(SYS_io_uring_setup))
    return 77;
  DeviceOptions options;
  auto device = openDevice(options);
  if (!device.ok())
    return 1;
  std::string text = (*device)->describe();
  if (text.find("Linux AIO; io_uring is not available: ") != 0 ||
      !contains(text, "Operation not permitted"))
    return 2;
  options.backend = Backend::Uring;
  if (openDevice(options).takeStatus().code() != TRC_UNSUPPORTED)
    return 3;
  if (!forbid(SYS_io_setup))
    return 77;
  options.backend = Backend::Aio;
  if (openDevice(options).takeStatus().code() != TRC_UNSUPPORTED)
    return 4;
  options.backend = Backend::Auto;
  device = openDevice(options);
  if (!device.ok())
    return 5;
  text = (*device)->describe();
  return text.find("thread pool; io_uring is not available: ") == 0 &&
                 contains(text, "; Linux AIO is not available: ")
             ? 0
             : 6;
}

TEST(DeviceFallback, AioThenThreadsEachWithTheReason) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    _exit(inChild());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "system call filters are not possible here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
