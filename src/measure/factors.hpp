// SPDX-License-Identifier: MIT
// The two factors of the product that a problem amounts to (its GEMM view, problem/facts.hpp), decoded to double for the
// reference: stretches of rows of A and of columns of B. Those of a GEMM lie in memory; those of a convolution are gathered
// from its activations by index arithmetic written down plainly, which shares nothing with the kernels' own. A tap that
// falls into the padding, or that no output pixel meets, is a 0.
#pragma once

#include <cstdint>
#include <memory>

#include "measure/tensors.hpp"

namespace tilewise {

class Factors {
public:
    virtual ~Factors() = default;
    // Elements [first, first + depth) of a row of A, or of a column of B. Both count k the same way.
    virtual void read_row(std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t depth,
                          double* to) const = 0;
    virtual void read_column(std::int64_t batch, std::int64_t col, std::int64_t first, std::int64_t depth,
                             double* to) const = 0;
};

// The tensors must outlive this.
std::unique_ptr<Factors> make_factors(const Tensors& tensors);
std::unique_ptr<Factors> make_conv_factors(const Tensors& tensors);

}  // namespace tilewise
