// SPDX-License-Identifier: MIT
// Times calls: warm up, then blocks of as many calls as make a block long enough for the clock, until the blocks agree
// or the time is used up. The answer is the median over blocks, which a few interruptions do not move. Callables that
// are to be compared are timed in alternating blocks, so that a change of clock speed or load meets all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tilewise {

// A call of this is timed; `set` says which of the rotating tensor sets to use.
using TimedCall = std::function<void(int set)>;

// The seconds that so many calls take together, beginning with tensor set `first_set`; for what has a clock of its own.
using TimedBlock = std::function<double(std::int64_t calls, int first_set)>;

double monotonic_seconds();

struct TimingOptions {
    int sets = 1;  // tensor sets to take turns with, call by call
    double warmup_seconds = 0.02;
    double block_seconds = 0.002;
    int min_blocks = 11;
    int max_blocks = 200;
    double max_seconds = 0.5;     // for each callable, without the warm-up; one block is always timed
    double target_spread = 0.01;  // enough blocks agree this well: stop
    std::function<double()> clock = monotonic_seconds;
};

struct TimingResult {
    double seconds = 0;  // of one call: the median over blocks
    double fastest = 0;  // of one call: the fastest block
    double spread = 0;   // relative_spread of the blocks
    std::int64_t calls_per_block = 1;
    std::vector<double> samples;  // seconds of one call, block by block
};

TimingResult time_calls(const TimedCall& call, const TimingOptions& options = {});

// One result each, in the order given.
std::vector<TimingResult> interleave(std::span<const TimedCall> calls, const TimingOptions& options = {});
std::vector<TimingResult> interleave_blocks(std::span<const TimedBlock> blocks, const TimingOptions& options = {});

}  // namespace tilewise
