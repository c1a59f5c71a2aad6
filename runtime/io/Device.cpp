//===- Device.cpp - Chooses a backend -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Device.h"
#include "runtime/io/Files.h"

#include <algorithm>

using namespace trc;

static DeviceOpener &deviceOpener() {
  static DeviceOpener opener;
  return opener;
}

void trc::setDeviceOpener(DeviceOpener opener) {
  deviceOpener() = std::move(opener);
}

Result<std::unique_ptr<Device>> trc::openDevice(const DeviceOptions &given) {
  if (deviceOpener())
    return deviceOpener()(given);
  DeviceOptions options = given;
  options.depth = std::clamp(options.depth, 1u, 4096u);
  options.bufferBytes =
      (std::max(options.bufferBytes, 1u) + 4095) / 4096 * 4096;
  bool direct = options.features & IoDirect;

  std::string reasons;
  switch (options.backend) {
  case DeviceOptions::Backend::Memory:
    return openThreadDevice(std::make_unique<MemoryFiles>(), options, "memory");
  case DeviceOptions::Backend::Uring:
    return openUringDevice(options);
  case DeviceOptions::Backend::Aio:
    return openAioDevice(options);
  case DeviceOptions::Backend::Pmem:
    return openPmemDevice(options);
  case DeviceOptions::Backend::Auto: {
    auto uring = openUringDevice(options);
    if (uring.ok())
      return uring;
    reasons = "; " + uring.takeStatus().message();
    auto aio = openAioDevice(options, reasons);
    if (aio.ok()) {
      return aio;
    }
    reasons += "; " + aio.takeStatus().message();
    break;
  }
  case DeviceOptions::Backend::Threads:
    break;
  }
  return openThreadDevice(std::make_unique<PosixFiles>(direct), options,
                          "thread pool" + reasons);
}
