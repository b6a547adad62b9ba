// SPDX-License-Identifier: MIT
#include "device/emulated/fiber_stack.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace tilewise {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStackBytes = std::size_t{128} << 10;  // with the page before it
constexpr std::size_t kChunkStacks = 128;

}  // namespace

#if defined(__x86_64__)
// The registers that a function must keep, by the calling convention; the rest its caller has put away.
asm(R"(
    .text
    .globl tilewise_switch_stack
    .hidden tilewise_switch_stack
    .type tilewise_switch_stack, @function
tilewise_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size tilewise_switch_stack, . - tilewise_switch_stack
)");
#else
extern "C" void tilewise_switch_stack(void**, void*) {}
#endif

FiberStacks::~FiberStacks() {
    for (void* chunk : chunks_) munmap(chunk, kChunkStacks * kStackBytes);
}

void* FiberStacks::take() {
    if (free_.empty()) {
        void* chunk = mmap(nullptr, kChunkStacks * kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (chunk == MAP_FAILED) return nullptr;
        chunks_.push_back(chunk);
        for (std::size_t i = 0; i < kChunkStacks; ++i) {
            char* const stack = static_cast<char*>(chunk) + i * kStackBytes;
            mprotect(stack, kPage, PROT_NONE);
            free_.push_back(stack);
        }
    }
    void* const stack = free_.back();
    free_.pop_back();
    return stack;
}

void* FiberStacks::prepare(void* stack, void (*entry)()) {
    constexpr int kSaved = 6;  // registers that the switch takes off, then the address it returns to
    auto* const place = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(stack) + kStackBytes) - 8;
    for (int i = 0; i < kSaved; ++i) place[i] = 0;
    place[kSaved] = reinterpret_cast<std::uintptr_t>(entry);
    place[kSaved + 1] = 0;  // where entry would return to
    return place;
}

}  // namespace tilewise
