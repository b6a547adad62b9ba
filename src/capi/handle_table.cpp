// SPDX-License-Identifier: MIT
#include "capi/handle_table.hpp"

#include <array>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "base/fork_safe_mutex.hpp"

namespace tilewise::capi {

struct HandleTable::Slot {
    // generation << kStateBits | whether it is open | how many use it now
    std::atomic<std::uint64_t> state{0};
    void* object = nullptr;
    void (*destroy)(void*) = nullptr;
    HandleKind kind{};
    std::uint64_t index = 0;
};

namespace {

using Slot = HandleTable::Slot;

// A handle has, from the lowest bit: its kind, its place, its generation.
constexpr int kKindBits = 4, kIndexBits = 24, kGenerationBits = 36;
constexpr int kUserBits = 23, kStateBits = kUserBits + 1;
constexpr std::uint64_t kOpen = std::uint64_t{1} << kUserBits;
constexpr std::uint64_t kUsers = kOpen - 1;
constexpr std::uint64_t kGenerations = (std::uint64_t{1} << kGenerationBits) - 1;
constexpr std::uint64_t kChunkSlots = 1024, kChunks = (std::uint64_t{1} << kIndexBits) / kChunkSlots;
static_assert(kKindBits + kIndexBits + kGenerationBits == 8 * sizeof(std::uintptr_t));

struct Table {
    std::array<std::atomic<Slot*>, kChunks> chunks{};  // read without a lock; a chunk is never moved
    // Under fork_safe_mutex:
    std::uint64_t used = 0;
    std::vector<Slot*> free;
};

Table& table() {
    static auto* made = new Table;  // never destroyed: handles may be used while the process ends
    return *made;
}

Slot* new_slot() {
    Table& all = table();
    const std::scoped_lock lock(fork_safe_mutex());
    if (!all.free.empty()) {
        Slot* slot = all.free.back();
        all.free.pop_back();
        return slot;
    }
    if (all.used == kChunks * kChunkSlots) throw std::runtime_error("too many handles are open");
    auto& chunk = all.chunks[all.used / kChunkSlots];
    if (!chunk.load(std::memory_order_relaxed)) chunk.store(new Slot[kChunkSlots], std::memory_order_release);
    if (all.free.capacity() <= all.used) all.free.reserve(2 * all.used + 1);  // so that giving a place back never fails
    Slot* slot = &chunk.load(std::memory_order_relaxed)[all.used % kChunkSlots];
    slot->index = all.used++;
    return slot;
}

// Nobody uses the object any more, and nobody can begin to.
void retire(Slot& slot) {
    slot.destroy(slot.object);
    slot.object = nullptr;
    const std::uint64_t generation = ((slot.state.load() >> kStateBits) + 1) & kGenerations;
    slot.state.store(generation << kStateBits);
    const std::scoped_lock lock(fork_safe_mutex());
    table().free.push_back(&slot);
}

Slot* find(std::uintptr_t handle) {
    const std::uint64_t index = (handle >> kKindBits) & ((std::uint64_t{1} << kIndexBits) - 1);
    Slot* chunk = table().chunks[index / kChunkSlots].load(std::memory_order_acquire);
    return chunk ? &chunk[index % kChunkSlots] : nullptr;
}

// Whether the slot is open under this very handle.
bool is_open(std::uint64_t state, std::uintptr_t handle) {
    return (state & kOpen) && state >> kStateBits == handle >> (kKindBits + kIndexBits);
}

bool has_kind(HandleKind kind, std::uintptr_t handle) {
    return (handle & ((1 << kKindBits) - 1)) == static_cast<std::uintptr_t>(kind);
}

}  // namespace

const char* handle_name(HandleKind kind) {
    switch (kind) {
        case HandleKind::context: return "context";
        case HandleKind::registry: return "registry";
        case HandleKind::plan: return "plan";
        case HandleKind::executable: return "executable";
    }
    return "handle";
}

std::uintptr_t HandleTable::add(HandleKind kind, void* object, void (*destroy)(void*)) {
    Slot& slot = *new_slot();
    slot.object = object;
    slot.destroy = destroy;
    slot.kind = kind;
    const std::uint64_t generation = slot.state.load() >> kStateBits;
    slot.state.store(generation << kStateBits | kOpen, std::memory_order_release);
    return static_cast<std::uintptr_t>(generation << (kKindBits + kIndexBits) | slot.index << kKindBits |
                                       static_cast<std::uint64_t>(kind));
}

HandleTable::Slot* HandleTable::pin(HandleKind kind, std::uintptr_t handle) {
    Slot* slot = has_kind(kind, handle) ? find(handle) : nullptr;
    if (!slot) return nullptr;
    std::uint64_t state = slot->state.load(std::memory_order_acquire);
    do {
        if (!is_open(state, handle)) return nullptr;
    } while (!slot->state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
    if (slot->kind == kind) return slot;
    unpin(*slot);
    return nullptr;
}

void HandleTable::unpin(Slot& slot) {
    const std::uint64_t state = slot.state.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (!(state & kOpen) && (state & kUsers) == 0) retire(slot);
}

void* HandleTable::object(const Slot& slot) { return slot.object; }

bool HandleTable::remove(HandleKind kind, std::uintptr_t handle) {
    Slot* slot = pin(kind, handle);
    if (!slot) return false;
    const std::uint64_t before = slot->state.fetch_and(~kOpen, std::memory_order_acq_rel);
    unpin(*slot);
    return before & kOpen;  // else another thread was first
}

}  // namespace tilewise::capi
