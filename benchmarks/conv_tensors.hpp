// SPDX-License-Identifier: MIT
// The three tensors of a convolution, random inputs and a poisoned output, as both tilewise and a peer read them in place.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "measure/guarded_buffer.hpp"
#include "problem/problem.hpp"
#include "run/executable.hpp"

namespace tilewise::bench {

enum class ConvRole : std::uint8_t { x, w, y };

class ConvTensors {
public:
    static Result<ConvTensors> make(const Problem& problem, std::uint64_t seed);

    const Problem& problem() const { return problem_; }
    Operands operands() const;
    std::byte* data(ConvRole role) const { return buffer(role).data(); }
    DType type(ConvRole role) const { return buffer(role).type(); }

    void poison_output();
    std::vector<double> output() const;

private:
    const GuardedBuffer& buffer(ConvRole role) const;

    Problem problem_;
    std::vector<GuardedBuffer> buffers_;  // A, B and C of the GEMM view
};

}  // namespace tilewise::bench
