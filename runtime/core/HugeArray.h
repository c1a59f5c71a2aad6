//===- HugeArray.h - A zeroed array, huge pages where it is large -*- C++ -*-=//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Directories are read at random, so address translation counts. Pages that
// are never touched take no memory. Fails with false instead of throwing.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_HUGEARRAY_H
#define TERRACE_RUNTIME_CORE_HUGEARRAY_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

namespace trc {

template <typename T> class HugeArray {
  // Zero bytes are a T already: made by no constructor, ended by none.
  static_assert(std::is_trivially_destructible_v<T>);

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

/// For vectors that are made by their size and never grow: fresh memory is zero
/// as it is, so elements are not written, and take no memory, until they are.
template <typename T> struct ZeroedAllocator {
  static_assert(std::is_arithmetic_v<T>);
  using value_type = T;
  ZeroedAllocator() = default;
  template <typename U> ZeroedAllocator(const ZeroedAllocator<U> &) {}

  T *allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    void *p;
    if (bytes < large) {
      p = std::calloc(count, sizeof(T));
    } else {
      p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (p == MAP_FAILED)
        p = nullptr;
      else
        madvise(p, bytes, MADV_HUGEPAGE);
    }
    if (!p)
      throw std::bad_alloc();
    return static_cast<T *>(p);
  }
  void deallocate(T *p, size_t count) {
    if (count * sizeof(T) < large)
      std::free(p);
    else
      munmap(p, count * sizeof(T));
  }
  /// By size: zero already.
  void construct(T *) {}
  template <typename... Args> void construct(T *at, Args &&...args) {
    ::new (at) T(std::forward<Args>(args)...);
  }
  template <typename U> bool operator==(const ZeroedAllocator<U> &) const {
    return true;
  }
  template <typename U> bool operator!=(const ZeroedAllocator<U> &) const {
    return false;
  }

private:
  static constexpr size_t large = size_t(4) << 20; // two huge pages
};

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_HUGEARRAY_H
