// SPDX-License-Identifier: MIT
// Stacks for fibers, and the switch between two of them: the one piece of assembly of the emulation. Only on x86-64, and
// not under sanitizers, which keep accounts of stacks; elsewhere there is no emulated device.
#pragma once

#include <cstddef>
#include <vector>

namespace tilewise {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kHasFibers = true;
#else
inline constexpr bool kHasFibers = false;
#endif

// Leaves the running stack, whose place goes to `*from`, for the one at `to`; returns when somebody switches back.
extern "C" void tilewise_switch_stack(void** from, void* to);

// Stacks of equal size, each with a page before it that may not be touched; they are used again and again.
class FiberStacks {
public:
    FiberStacks() = default;
    ~FiberStacks();
    FiberStacks(const FiberStacks&) = delete;
    FiberStacks& operator=(const FiberStacks&) = delete;

    // A stack whose first switch calls `entry`, which must never return. Null where memory is out.
    void* take();
    void give_back(void* stack) { free_.push_back(stack); }
    static void* prepare(void* stack, void (*entry)());

private:
    std::vector<void*> chunks_;
    std::vector<void*> free_;
};

}  // namespace tilewise
