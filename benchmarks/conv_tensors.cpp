// SPDX-License-Identifier: MIT
#include "benchmarks/conv_tensors.hpp"

#include <cstring>

#include "measure/element.hpp"
#include "measure/random_fill.hpp"
#include "problem/facts.hpp"

namespace tilewise::bench {

Result<ConvTensors> ConvTensors::make(const Problem& problem, std::uint64_t seed) {
    constexpr std::int64_t kAlign = 64;  // what frameworks give their tensors
    ConvTensors tensors;
    tensors.problem_ = problem;
    const auto elements = operand_elements(problem);
    const std::array<DType, 3> types = {problem.dtype_a, problem.dtype_b, problem.dtype_out};
    const std::array<const char*, 3> names = {"A", "B", "C"};
    for (std::size_t i = 0; i < elements.size(); ++i) {
        auto buffer = GuardedBuffer::make(names[i], types[i], {1, 1, elements[i], elements[i], 0}, kAlign);
        if (!buffer) return buffer.error();
        tensors.buffers_.push_back(std::move(*buffer));
        if (i < 2) fill_random(tensors.buffers_[i], operand_range(types[i]), seed + i);
    }
    tensors.poison_output();
    return tensors;
}

Operands ConvTensors::operands() const {
    Operands operands;
    operands.a = buffers_[0].data(), operands.b = buffers_[1].data(), operands.c = buffers_[2].data();
    return operands;
}

const GuardedBuffer& ConvTensors::buffer(ConvRole role) const {
    const bool weight_is_c = problem_.op == Op::conv_bwd_weight;
    if (role == ConvRole::w) return buffers_[weight_is_c ? 2 : 1];
    if (problem_.op == Op::conv_fwd) return buffers_[role == ConvRole::x ? 0 : 2];
    return role == ConvRole::y ? buffers_[0] : buffers_[weight_is_c ? 1 : 2];
}

void ConvTensors::poison_output() {
    constexpr int kPoison = 0xff;  // NaN in every float
    std::memset(buffers_[2].data(), kPoison, static_cast<std::size_t>(buffers_[2].bytes()));
}

std::vector<double> ConvTensors::output() const {
    const GuardedBuffer& c = buffers_[2];
    const std::int64_t count = c.shape().row_length;
    std::vector<double> values(static_cast<std::size_t>(count));
    decode(c.type(), c.data(), 1, count, values.data());
    return values;
}

}  // namespace tilewise::bench
