// SPDX-License-Identifier: MIT
// A matrix product of an example: the problem, random operands in memory of the device, and the check of the result.
#pragma once

#include "reference.hpp"

namespace example {

class GemmCase {
public:
    GemmCase(const tilewise::Device& device, std::int64_t m, std::int64_t n, std::int64_t k,
             const std::string& dtype = "fp32", unsigned seed = 1)
        : problem(need(tilewise::Gemm(m, n, k).dtype(dtype).layout("rcr").build(), "problem")),
          m_(m),
          n_(n),
          k_(k),
          a_(random_values(dtype, m * k, seed)),
          b_(random_values(dtype, n * k, seed + 1)),
          a_there_(need(tilewise::Buffer::of(device, a_.stored()), "A")),
          b_there_(need(tilewise::Buffer::of(device, b_.stored()), "B")),
          c_there_(need(tilewise::Buffer::of(device, poison()), "C")) {}

    tilewise::Operands operands() const { return {a_there_.data(), b_there_.data(), c_there_.data()}; }

    // After a run that is done.
    bool is_right(const std::string& what) const {
        std::vector<std::uint8_t> bytes(c_there_.bytes());
        need(c_there_.read(bytes), "reading C");
        return agrees(what, Values::read(a_.dtype, bytes), reference_gemm(a_, b_, m_, n_, k_), static_cast<double>(k_));
    }

    const tilewise::Problem problem;

private:
    std::vector<std::uint8_t> poison() const {  // NaN in every type, so that what is not written is seen
        return std::vector<std::uint8_t>(static_cast<std::size_t>(m_ * n_) * (a_.dtype == "bf16" ? 2 : 4), 0xff);
    }

    std::int64_t m_, n_, k_;
    Values a_, b_;
    tilewise::Buffer a_there_, b_there_, c_there_;
};

}  // namespace example
