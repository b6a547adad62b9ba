// SPDX-License-Identifier: MIT
// This table stands behind the handles of tilewise.h. A handle is no address but a place in a table and the number of times the
// place was given out, so that one that was destroyed, or never was one, is told apart without reading memory that may be
// gone. Using a handle takes no lock and allocates nothing; what is destroyed while other threads use it goes when the
// last of them is done. Usable in the child of a fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace tilewise::capi {

enum class HandleKind : std::uint8_t { context = 1, registry, plan, executable };  // 0 is NULL

const char* handle_name(HandleKind kind);  // what messages call it

// Which kind a struct of handles.hpp is: its `value`.
template <class T>
struct HandleKindOf;

class HandleTable {
public:
    struct Slot;

    // The object is destroyed with `destroy`. Returns the handle's value, never 0.
    static std::uintptr_t add(HandleKind kind, void* object, void (*destroy)(void*));
    // Keeps the object until unpin. Null when the handle is not open.
    static Slot* pin(HandleKind kind, std::uintptr_t handle);
    static void unpin(Slot& slot);
    static void* object(const Slot& slot);
    static bool remove(HandleKind kind, std::uintptr_t handle);  // false when the handle is not open
};

// A use of a handle. Empty when it is not open.
template <class T>
class Pinned {
public:
    explicit Pinned(const T* handle)
        : slot_(HandleTable::pin(HandleKindOf<T>::value, reinterpret_cast<std::uintptr_t>(handle))) {}
    ~Pinned() {
        if (slot_) HandleTable::unpin(*slot_);
    }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

    explicit operator bool() const { return slot_ != nullptr; }
    T* operator->() const { return static_cast<T*>(HandleTable::object(*slot_)); }
    T& operator*() const { return *operator->(); }

private:
    HandleTable::Slot* slot_;
};

template <class T>
T* open_handle(std::unique_ptr<T> object) {
    const auto destroy = [](void* it) { delete static_cast<T*>(it); };
    const std::uintptr_t handle = HandleTable::add(HandleKindOf<T>::value, object.get(), destroy);
    static_cast<void>(object.release());  // the table has it now
    return reinterpret_cast<T*>(handle);
}

// Why a handle that is not open cannot be used.
template <class T>
Error not_open(const T* handle) {
    const std::string name = handle_name(HandleKindOf<T>::value);
    return usage_error(handle ? "the " + name + " is not open: it was destroyed, or this never was one"
                              : "the " + name + " is NULL");
}

}  // namespace tilewise::capi
