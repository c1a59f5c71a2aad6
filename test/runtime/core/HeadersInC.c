/*===- HeadersInC.c - The public headers are C11, the library exports C ---===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* Compiled as strict C11 with all warnings as errors; linked with the shared
|* library only.
|*
\*===----------------------------------------------------------------------===*/
#include "terrace-rt/terrace-rt.h"

#include <string.h>

int main(void) {
  trc_error error;
  trc_session *session = NULL;
  trc_open_options options;
  memset(&error, 0, sizeof(error));
  memset(&options, 0, sizeof(options));
  error.struct_size = sizeof(error);
  options.struct_size = sizeof(options);
  /* Neither an artifact nor a path to one. */
  if (trc_open(&options, &session, &error) != TRC_BAD_ARGUMENT || session)
    return 1;
  if (error.status != TRC_BAD_ARGUMENT || error.sample != -1 ||
      !error.message[0])
    return 2;
  if (strcmp(trc_status_name(TRC_OK), "ok") != 0)
    return 3;
  options.artifact_path = "/nonexistent/model.so";
  if (trc_open(&options, &session, &error) != TRC_NOT_FOUND)
    return 4;
  return trc_hash_string("a", 1) == trc_hash_string("b", 1) ? 5 : 0;
}
