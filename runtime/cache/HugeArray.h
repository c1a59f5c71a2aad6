//===- HugeArray.h - A zeroed array, huge pages where it is large -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Directories are read at random, so address translation counts. Pages that
// are never touched take no memory. Fails with false instead of throwing.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CACHE_HUGEARRAY_H
#define TERRACE_RUNTIME_CACHE_HUGEARRAY_H

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <type_traits>

namespace trc {

template <typename T> class HugeArray {
  static_assert(std::is_trivial_v<T>);

public:
  HugeArray() = default;
  ~HugeArray() {
    if (data)
      munmap(data, bytes);
  }
  HugeArray(const HugeArray &) = delete;
  HugeArray &operator=(const HugeArray &) = delete;

  /// Zeroed; once per array.
  [[nodiscard]] bool allocate(uint64_t count) {
    if (count == 0)
      return true;
    bytes = count * sizeof(T);
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      return false;
    if (bytes >= (uint64_t(4) << 20))
      madvise(p, bytes, MADV_HUGEPAGE);
    data = static_cast<T *>(p);
    return true;
  }
  T &operator[](uint64_t i) { return data[i]; }
  const T &operator[](uint64_t i) const { return data[i]; }
  void prefetch(uint64_t i) const { __builtin_prefetch(data + i); }

private:
  T *data = nullptr;
  uint64_t bytes = 0;
};

} // namespace trc

#endif // TERRACE_RUNTIME_CACHE_HUGEARRAY_H
