//===- Signals.h - Signals that end a verb in order -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A signal is only noted: the loops look between two steps, and close what is
// open. A pipe that nobody reads counts as SIGPIPE, once stdout says so.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_SIGNALS_H
#define TERRACE_RUNTIME_MODEL_SIGNALS_H

namespace trc::model {

/// SIGINT, SIGTERM and SIGHUP (unless the caller ignores that one, as nohup
/// does) are noted; writing to a pipe that nobody reads, and beyond the limit
/// of file sizes, are errors of the write.
void watchSignals();
/// As if this signal had come.
void noteSignal(int number);
/// The signal that came, or 0.
int pendingSignal();

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_SIGNALS_H
