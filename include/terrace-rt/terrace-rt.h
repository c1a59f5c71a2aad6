/*===- terrace-rt.h - C ABI of the Terrace runtime ----------------*- C -*-===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* The one header a trainer includes. C11 and C++ clean; every function has
|* the prefix trc_, returns a status and fills the caller's error struct.
|*
\*===----------------------------------------------------------------------===*/
#ifndef TERRACE_RT_TERRACE_RT_H
#define TERRACE_RT_TERRACE_RT_H

#include "terrace-rt/artifact.h"
#include "terrace-rt/session.h"
#include "terrace-rt/status.h"
#include "terrace-rt/tensor.h"

#endif /* TERRACE_RT_TERRACE_RT_H */
