// SPDX-License-Identifier: MIT
// Times many kernels on one problem in little time. Each is called once to see how long that takes, then in blocks, all of them in
// turns, so that a change of clock speed or load meets every one. A kernel that is far from the fastest gets one block; those that
// are near it are timed once more, independently, which tells how far times can be trusted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

// The seconds that so many calls take together. A kernel is asked for one number of calls besides 1.
using TimedCalls = std::function<Result<double>(std::int64_t calls)>;

struct ShortTimingOptions {
    int sets = 1;                   // operand sets to take turns with, call by call
    double block_seconds = 0.4e-3;  // a longer call is a block by itself
    int blocks = 3;                 // of which the median counts
    int blocks_again = 5;           // of those that are near
    double near = 1.25;             // times the fastest
    double far = 3;
    double long_seconds = 0.1;  // one block of so long a call says enough
    // Told before a kernel is called, whenever it is.
    std::function<void(std::size_t kernel)> before{};
    // Makes of the seconds that were measured what a clock that is wrong would say; for tests.
    std::function<double(std::size_t kernel, double seconds)> clock{};
};

struct ShortTime {
    Status status;       // the others count only where this is well
    double seconds = 0;  // of one call
    double spread = 0;   // relative_spread of the blocks
    std::int64_t samples = 0;
    std::int64_t calls = 1;                 // of a block
    std::optional<double> seconds_again{};  // of one call, by the second timing
};

// One result for each, in the order given.
std::vector<ShortTime> time_shortly(std::span<const TimedCalls> kernels, const ShortTimingOptions& options);

}  // namespace tilewise
