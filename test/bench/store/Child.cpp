//===- Child.cpp - A variant in a process of its own ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Child.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace trc;
using namespace trc::bench;

static bool sendAll(int fd, const void *data, size_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t n = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

static bool receiveAll(int fd, void *data, size_t bytes) {
  char *at = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t n = ::recv(fd, at, bytes, 0);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

Child::Child(const MemoryLimit &limit, const MakeVariant &make) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return;
  std::fflush(stdout);
  pid_t parent = ::getpid();
  pid = ::fork();
  if (pid == 0) {
    ::close(pair[0]);
    // Nobody is left behind when the parent is killed.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent && (!limit.why().empty() || limit.enter()))
      serve(pair[1], make);
    ::_exit(0);
  }
  ::close(pair[1]);
  socket = pair[0];
}

Child::~Child() {
  if (socket >= 0) {
    // The child sees the end, cleans up and leaves. Closing alone would not do:
    // children that were started later hold copies of this end.
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
  }
  if (pid > 0)
    ::waitpid(pid, nullptr, 0);
}

void Child::serve(int socket, const MakeVariant &make) {
  std::unique_ptr<Variant> variant = make();
  Request request{};
  while (receiveAll(socket, &request, sizeof request)) {
    Reply reply{};
    std::string text;
    Status status;
    if (request.verb == Verb::Prepare)
      status = variant->prepare(text);
    else if (request.verb == Verb::Run)
      status = variant->run(request.batch, reply.sum);
    else
      status = variant->endRound(reply.sum);
    reply.code = status.code();
    if (!status.ok())
      text = status.message();
    reply.text = static_cast<uint32_t>(text.size());
    if (!sendAll(socket, &reply, sizeof reply) ||
        !sendAll(socket, text.data(), text.size()))
      return;
  }
}

Status Child::ask(Verb verb, uint64_t batch, Measured &sum, std::string &text) {
  if (pid < 0)
    return Status(TRC_IO, "cannot start a child process");
  Request request{verb, batch};
  Reply reply{};
  if (!sendAll(socket, &request, sizeof request) ||
      !receiveAll(socket, &reply, sizeof reply))
    return Status(TRC_IO, obituary());
  text.resize(reply.text);
  if (!receiveAll(socket, text.data(), text.size()))
    return Status(TRC_IO, obituary());
  if (reply.code != TRC_OK)
    return Status(reply.code, text);
  sum += reply.sum;
  return {};
}

std::string Child::obituary() {
  int how = 0;
  if (::waitpid(pid, &how, 0) != pid)
    return "the child process is gone";
  pid = -1;
  if (WIFSIGNALED(how))
    return "the child process was ended by signal " +
           std::to_string(WTERMSIG(how)) +
           (WTERMSIG(how) == SIGKILL
                ? " (the memory limit may be too small; see --memory)"
                : "");
  return "the child process left early; it may not enter its control group";
}

Status Child::prepare(std::string &note) {
  Measured ignored;
  return ask(Verb::Prepare, 0, ignored, note);
}

Status Child::run(uint64_t batch, Measured &sum) {
  std::string ignored;
  return ask(Verb::Run, batch, sum, ignored);
}

Status Child::endRound(Measured &sum) {
  std::string ignored;
  return ask(Verb::EndRound, 0, sum, ignored);
}
