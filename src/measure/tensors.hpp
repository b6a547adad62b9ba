// SPDX-License-Identifier: MIT
// The operands of a problem on the host, owned: strides, layouts and alignment as the problem says, guards around
// and between, random inputs, a poisoned output. Measuring, verifying and the tests run kernels on these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "measure/guarded_buffer.hpp"
#include "measure/operand_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// A matrix as kernels see it (KernelMatrix of kernels/common/args.hpp), and its type. The rows of a convolution's output
// are the pixels of one image after the other.
struct MatrixView {
    void* data = nullptr;
    std::int64_t row_stride = 0, col_stride = 0, batch_stride = 0;
    DType type = DType::fp32;
    std::int64_t image_rows = std::numeric_limits<std::int64_t>::max(), image_stride = 0;

    void* at(std::int64_t batch, std::int64_t row, std::int64_t col) const {
        const std::int64_t image = row / image_rows;
        return static_cast<std::byte*>(data) + (batch * batch_stride + image * image_stride +
                                                (row - image * image_rows) * row_stride + col * col_stride) *
                                                   bytes_of(type);
    }
};

class Tensors {
public:
    static Result<Tensors> make(const Problem& problem, std::uint64_t seed);

    const Problem& problem() const { return problem_; }
    // C, D and the inputs of a GEMM are matrices. The inputs of a convolution are not: their views have data and type only.
    MatrixView a() const { return view(a_, 0); }
    MatrixView b() const { return view(b_, 1); }
    MatrixView c() const { return view(c_, 2); }
    MatrixView d(std::size_t i) const { return view(d_[i], 2); }
    // C as it was before the kernel ran; only where the problem has beta.
    MatrixView original_c() const { return view(original_c_ ? *original_c_ : c_, 2); }

    // Tensors that the problem does not have are null. Bias is of the output's type; a convolution has one for each group.
    const void* bias(std::int64_t batch = 0) const;
    const float* scale_a() const { return floats(scale_a_); }
    const float* scale_b() const { return floats(scale_b_); }

    std::int64_t bytes() const;  // of the operands a kernel touches, with the gaps of their strides

    // Every buffer a kernel gets a pointer to, in the order A, B, C, bias, scale of A, scale of B, D; absent ones are null.
    std::vector<const GuardedBuffer*> buffers() const;

    // Before a further run: C is poisoned, or with beta gets its first contents back.
    void reset_output();
    // Fails with the buffer and byte where a kernel wrote and must not have.
    Status check_guards() const;
    // After changing an input on purpose: what it holds now is what must stay.
    void seal_inputs();

private:
    explicit Tensors(const Problem& problem, GuardedBuffer a, GuardedBuffer b, GuardedBuffer c)
        : problem_(problem), a_(std::move(a)), b_(std::move(b)), c_(std::move(c)) {}

    MatrixView view(const GuardedBuffer& buffer, int operand) const;
    MatrixView conv_view(const GuardedBuffer& buffer, int operand) const;
    static const float* floats(const std::optional<GuardedBuffer>& buffer) {
        return buffer ? reinterpret_cast<const float*>(buffer->data()) : nullptr;
    }
    void put(OperandRole role, GuardedBuffer buffer);
    std::vector<GuardedBuffer*> inputs();

    Problem problem_;
    GuardedBuffer a_, b_, c_;
    std::optional<GuardedBuffer> original_c_, bias_, scale_a_, scale_b_;
    std::vector<GuardedBuffer> d_;
};

// An alpha under which the results of random tensors use the range of the output's type instead of saturating: sums of
// int8 products are far beyond int8 and fp16. 1 for all other types.
float suggested_alpha(const Problem& problem);

}  // namespace tilewise
