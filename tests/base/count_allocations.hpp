// SPDX-License-Identifier: MIT
// Counts allocations: every one of the program that includes this, in exactly one of its files, goes through the operators
// below, those of the libraries it loads as well.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace tilewise::counting {

inline std::atomic<std::size_t> allocations = 0;

inline void* counted_or_null(std::size_t size, std::size_t align) noexcept {
    ++allocations;
    if (size == 0) size = 1;
    return align == 0 ? std::malloc(size) : std::aligned_alloc(align, (size + align - 1) / align * align);
}

inline void* counted(std::size_t size, std::size_t align) {
    void* memory = counted_or_null(size, align);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace tilewise::counting

// The plain, nothrow and aligned forms; the array forms call these. Not inlined: where g++ sees only one of a pair inside
// a caller, it takes free() for a mismatch.
#define NOT_INLINED __attribute__((noinline))
NOT_INLINED void* operator new(std::size_t size) { return tilewise::counting::counted(size, 0); }
NOT_INLINED void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return tilewise::counting::counted_or_null(size, 0);
}
NOT_INLINED void* operator new(std::size_t size, std::align_val_t align) {
    return tilewise::counting::counted(size, static_cast<std::size_t>(align));
}
NOT_INLINED void* operator new(std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
    return tilewise::counting::counted_or_null(size, static_cast<std::size_t>(align));
}
NOT_INLINED void operator delete(void* memory) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
NOT_INLINED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tilewise {

template <class Body>
std::size_t allocations_in(const Body& body) {
    const std::size_t before = counting::allocations;
    body();
    return counting::allocations - before;
}

}  // namespace tilewise
