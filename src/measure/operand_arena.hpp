// SPDX-License-Identifier: MIT
// Memory of a device for timing: filled once, with one random pattern for each type, and handed out as sets of operands that are
// mere offsets into it. Several sets exceed the device's cache together, so that taking turns finds none of them there. Values
// are random (arithmetic on zeros draws less power and runs faster) but repeat, which no kernel notices. What kernels write is apart
// from what they read, so that inputs stay as they are. Results are not checked here: nothing guards these.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"
#include "run/executable.hpp"

namespace tilewise {

struct ArenaLimits {
    std::int64_t cache_bytes = 0;                    // that the sets are to exceed
    std::int64_t max_bytes = std::int64_t{1} << 30;  // of all sets beyond the first
    int most_sets = 64;
};

class OperandArena {
public:
    explicit OperandArena(Device& device) : device_(device) {}  // which must outlive this
    OperandArena(const OperandArena&) = delete;
    OperandArena& operator=(const OperandArena&) = delete;

    // At least one; they hold until the next call. A larger problem than any before makes the arena grow.
    Result<std::vector<Operands>> sets(const Problem& problem, const ArenaLimits& limits);
    // Serves all kernels that run one after the other; holds until the next call.
    Result<void*> workspace(std::int64_t bytes);

private:
    enum class Use : std::uint8_t { input, scale, output };
    using Key = std::pair<DType, Use>;
    struct Region {
        std::shared_ptr<void> memory;
        std::int64_t bytes = 0;
    };
    struct Piece {
        Key key;
        std::int64_t bytes = 0;
    };

    static std::vector<Piece> pieces_of(const Problem& problem);
    Result<std::byte*> region(const Key& key, std::int64_t bytes);
    Status fill(const Key& key, const Region& region);

    Device& device_;
    std::map<Key, Region> regions_;
    std::map<Key, std::vector<std::byte>> patterns_;
    Region workspace_;
};

}  // namespace tilewise
