// SPDX-License-Identifier: MIT
#include "measure/tensors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "measure/element.hpp"
#include "measure/random_fill.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

void poison(const GuardedBuffer& buffer) {
    const StoredRows& shape = buffer.shape();
    const std::int64_t size = bytes_of(buffer.type());
    const std::uint32_t bits = poison_bits(buffer.type());
    for (std::int64_t r = 0; r < shape.matrices * shape.rows; ++r) {
        std::byte* row = buffer.row(r / shape.rows, r % shape.rows);
        for (std::int64_t i = 0; i < shape.row_length; ++i) {
            std::memcpy(row + i * size, &bits, static_cast<std::size_t>(size));  // little-endian, as all targets are
        }
    }
}

void copy_rows(const GuardedBuffer& from, const GuardedBuffer& to) {
    const StoredRows& shape = from.shape();
    const auto bytes = static_cast<std::size_t>(shape.row_length * bytes_of(from.type()));
    for (std::int64_t r = 0; r < shape.matrices * shape.rows; ++r) {
        std::memcpy(to.row(r / shape.rows, r % shape.rows), from.row(r / shape.rows, r % shape.rows), bytes);
    }
}

}  // namespace

Result<Tensors> Tensors::make(const Problem& p, std::uint64_t seed) {
    if (auto bad = check_problem(p)) {
        return usage_error(fmt::format("{}: {}; it takes {}", bad->rule, bad->have, bad->need));
    }
    auto c = GuardedBuffer::make("C", p.dtype_out, stored_rows(p, 2), p.align_bytes);
    if (!c) return c.error();
    const std::vector<PlannedInput> plan = planned_inputs(p, seed);
    std::vector<GuardedBuffer> inputs;
    for (const PlannedInput& input : plan) {
        auto buffer = GuardedBuffer::make(input.name, input.type, input.shape, p.align_bytes);
        if (!buffer) return buffer.error();
        fill_random(*buffer, input.range, input.seed);
        inputs.push_back(std::move(*buffer));
    }
    Tensors tensors(p, std::move(inputs[0]), std::move(inputs[1]), std::move(*c));
    for (std::size_t i = 2; i < plan.size(); ++i) tensors.put(plan[i].role, std::move(inputs[i]));
    tensors.seal_inputs();
    tensors.reset_output();
    return tensors;
}

void Tensors::put(OperandRole role, GuardedBuffer buffer) {
    switch (role) {
        case OperandRole::a: a_ = std::move(buffer); break;
        case OperandRole::b: b_ = std::move(buffer); break;
        case OperandRole::original_c: original_c_ = std::move(buffer); break;
        case OperandRole::bias: bias_ = std::move(buffer); break;
        case OperandRole::scale_a: scale_a_ = std::move(buffer); break;
        case OperandRole::scale_b: scale_b_ = std::move(buffer); break;
        case OperandRole::d: d_.push_back(std::move(buffer));
    }
}

const void* Tensors::bias(std::int64_t batch) const {
    if (!bias_) return nullptr;
    const std::int64_t first = is_conv(problem_.op) ? batch * gemm_view(problem_).n : 0;
    return bias_->data() + first * bytes_of(bias_->type());
}

MatrixView Tensors::conv_view(const GuardedBuffer& buffer, int operand) const {
    MatrixView matrix{.data = buffer.data(), .type = buffer.type()};
    if (operand != 2) return matrix;
    const GemmView view = gemm_view(problem_);
    if (is_weight(problem_.op, operand)) {
        matrix.row_stride = view.n, matrix.col_stride = 1, matrix.batch_stride = view.m * view.n;
        return matrix;
    }
    const std::int64_t pixels = view.m / problem_.conv.n, channels = view.n * view.batch;
    const bool last = is_channels_last(problem_.layout);
    matrix.row_stride = last ? channels : 1;
    matrix.col_stride = last ? 1 : pixels;
    matrix.batch_stride = last ? view.n : view.n * pixels;
    matrix.image_rows = pixels;
    matrix.image_stride = pixels * channels;
    return matrix;
}

MatrixView Tensors::view(const GuardedBuffer& buffer, int operand) const {
    if (is_conv(problem_.op)) return conv_view(buffer, operand);
    const bool row = is_row(problem_.layout, operand);
    const std::int64_t leading = leading_stride(problem_, operand);
    return {.data = buffer.data(),
            .row_stride = row ? leading : 1,
            .col_stride = row ? 1 : leading,
            .batch_stride = batch_stride(problem_, operand),
            .type = buffer.type()};
}

std::int64_t Tensors::bytes() const {
    std::int64_t total = a_.bytes() + b_.bytes() + c_.bytes();
    for (const auto* buffer : {&bias_, &scale_a_, &scale_b_}) total += *buffer ? (*buffer)->bytes() : 0;
    for (const GuardedBuffer& d : d_) total += d.bytes();
    return total;
}

std::vector<const GuardedBuffer*> Tensors::buffers() const {
    std::vector<const GuardedBuffer*> all = {&a_, &b_, &c_};
    for (const auto* buffer : {&bias_, &scale_a_, &scale_b_}) all.push_back(*buffer ? &**buffer : nullptr);
    for (const GuardedBuffer& d : d_) all.push_back(&d);
    return all;
}

void Tensors::reset_output() {
    if (original_c_) {
        copy_rows(*original_c_, c_);
    } else {
        poison(c_);
    }
}

Status Tensors::check_guards() const {
    std::vector<const GuardedBuffer*> all = {&c_, &a_, &b_};
    for (const auto* buffer : {&bias_, &scale_a_, &scale_b_, &original_c_}) {
        if (*buffer) all.push_back(&**buffer);
    }
    for (const GuardedBuffer& d : d_) all.push_back(&d);
    for (const GuardedBuffer* buffer : all) {
        if (auto damage = buffer->damage()) return Error{ErrorCode::check_failed, *damage};
    }
    return {};
}

void Tensors::seal_inputs() {
    for (GuardedBuffer* buffer : inputs()) buffer->seal();
}

std::vector<GuardedBuffer*> Tensors::inputs() {
    std::vector<GuardedBuffer*> all = {&a_, &b_};
    for (auto* buffer : {&original_c_, &bias_, &scale_a_, &scale_b_}) {
        if (*buffer) all.push_back(&**buffer);
    }
    for (GuardedBuffer& d : d_) all.push_back(&d);
    return all;
}

float suggested_alpha(const Problem& p) {
    if (p.dtype_a != DType::int8 || p.dtype_out == DType::int32 || p.dtype_out == DType::fp32) return 1;
    // A product of two uniform values of -127..127 has a standard deviation of 127^2/3; a third of int8's range is
    // aimed at.
    const double deviation = 127.0 * 127.0 / 3 * std::sqrt(std::max(1.0, static_cast<double>(gemm_view(p).k)));
    return static_cast<float>(40.0 / deviation);
}

}  // namespace tilewise
