// SPDX-License-Identifier: MIT
// Operands for timing, in the device's memory: several sets that together exceed its cache, so that taking turns finds none of
// them there. Values are random (arithmetic on zeros draws less power and runs faster) but repeat, which no kernel notices and
// which makes filling cheap. Results are not checked here: nothing guards these.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"
#include "run/executable.hpp"

namespace tilewise {

class ScratchSets {
public:
    // As many sets as exceed `cache_bytes`, but at most `most_sets`, and never more than `max_bytes` beyond the first.
    static Result<ScratchSets> make(const Problem& problem, Device& device, std::int64_t cache_bytes,
                                    std::int64_t max_bytes, int most_sets);

    std::span<const Operands> sets() const { return sets_; }

private:
    std::vector<Operands> sets_;
    std::vector<std::shared_ptr<void>> memory_;
};

}  // namespace tilewise
