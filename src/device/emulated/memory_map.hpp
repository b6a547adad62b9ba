// SPDX-License-Identifier: MIT
// Which memory of the process is the emulated device's, so that an access elsewhere is told as an error instead of ending
// the process, or worse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tilewise::emulated {

class MemoryMap {
public:
    void add(const void* memory, std::size_t bytes) { sizes_[address(memory)] = bytes; }
    void remove(const void* memory) {
        sizes_.erase(address(memory));
        last_begin_ = last_end_ = 0;
    }
    bool holds(const void* memory, std::size_t bytes) const {
        const std::uintptr_t at = address(memory);
        if (at >= last_begin_ && at + bytes <= last_end_) return true;
        auto after = sizes_.upper_bound(at);
        if (after == sizes_.begin()) return false;
        --after;
        last_begin_ = after->first, last_end_ = after->first + after->second;
        return at + bytes <= last_end_;
    }

private:
    static std::uintptr_t address(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

    std::map<std::uintptr_t, std::size_t> sizes_;
    mutable std::uintptr_t last_begin_ = 0, last_end_ = 0;  // accesses come in runs
};

}  // namespace tilewise::emulated
