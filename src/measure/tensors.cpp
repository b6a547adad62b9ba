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

StoredRows vector_of(std::int64_t length) { return {1, 1, length, length, length}; }

Status put(std::optional<GuardedBuffer>& to, Result<GuardedBuffer> made) {
    if (!made) return made.error();
    to = std::move(*made);
    return {};
}

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

StoredRows stored_rows(const Problem& p, int operand) {
    const std::int64_t between = batch_stride(p, operand);
    const bool shared = p.gemm.batch > 1 && between == 0;  // one matrix serves the whole batch
    StoredRows shape;
    shape.matrices = shared ? 1 : p.gemm.batch;
    shape.row_length = contiguous_length(p, operand);
    const std::int64_t elements[] = {p.gemm.m * p.gemm.k, p.gemm.k * p.gemm.n, p.gemm.m * p.gemm.n};
    shape.rows = elements[operand] / shape.row_length;
    shape.leading = leading_stride(p, operand);
    shape.between = between;
    return shape;
}

Result<GemmTensors> GemmTensors::make(const Problem& p, std::uint64_t seed) {
    if (p.op != Op::gemm) return unsupported_error(fmt::format("no test tensors for {}; only gemm", name_of(p.op)));
    if (auto bad = check_problem(p)) {
        return usage_error(fmt::format("{}: {}; it takes {}", bad->rule, bad->have, bad->need));
    }
    auto a = GuardedBuffer::make("A", p.dtype_a, stored_rows(p, 0), p.align_bytes);
    if (!a) return a.error();
    auto b = GuardedBuffer::make("B", p.dtype_b, stored_rows(p, 1), p.align_bytes);
    if (!b) return b.error();
    auto c = GuardedBuffer::make("C", p.dtype_out, stored_rows(p, 2), p.align_bytes);
    if (!c) return c.error();
    GemmTensors tensors(p, std::move(*a), std::move(*b), std::move(*c));
    if (auto status = tensors.add_optional_buffers(); !status) return status.error();
    tensors.fill(seed);
    return tensors;
}

Status GemmTensors::add_optional_buffers() {
    const Problem& p = problem_;
    const DType out = p.dtype_out;
    const std::int64_t align = p.align_bytes;
    Status status;
    for (std::size_t i = 0; i < p.d_ops.size(); ++i) {
        auto d = GuardedBuffer::make(fmt::format("D{}", i), out, stored_rows(p, 2), align);
        if (!d) return d.error();
        d_.push_back(std::move(*d));
    }
    if (p.beta) status = put(original_c_, GuardedBuffer::make("copy of C", out, stored_rows(p, 2), align));
    if (status && std::find(p.epilogue.begin(), p.epilogue.end(), EpilogueOp::bias) != p.epilogue.end()) {
        status = put(bias_, GuardedBuffer::make("bias", out, vector_of(p.gemm.n), align));
    }
    if (p.scale == Scale::none) return status;
    const bool per_row = p.scale == Scale::row;
    const StoredRows a = vector_of(per_row ? p.gemm.m : 1), b = vector_of(per_row ? p.gemm.n : 1);
    if (status) status = put(scale_a_, GuardedBuffer::make("scale of A", DType::fp32, a, align));
    if (status) status = put(scale_b_, GuardedBuffer::make("scale of B", DType::fp32, b, align));
    return status;
}

void GemmTensors::fill(std::uint64_t seed) {
    std::uint64_t stream = 0;  // each buffer draws its own numbers, whatever the sizes of those before it
    for (GuardedBuffer* buffer : inputs()) {
        const bool is_scale = (scale_a_ && buffer == &*scale_a_) || (scale_b_ && buffer == &*scale_b_);
        fill_random(*buffer, is_scale ? kScaleRange : operand_range(buffer->type()), random_bits(seed, stream++));
    }
    seal_inputs();
    reset_output();
}

MatrixView GemmTensors::view(const GuardedBuffer& buffer, int operand) const {
    const bool row = is_row(problem_.layout, operand);
    const std::int64_t leading = leading_stride(problem_, operand);
    return {buffer.data(), row ? leading : 1, row ? 1 : leading, batch_stride(problem_, operand), buffer.type()};
}

std::int64_t GemmTensors::bytes() const {
    std::int64_t total = a_.bytes() + b_.bytes() + c_.bytes();
    for (const auto* buffer : {&bias_, &scale_a_, &scale_b_}) total += *buffer ? (*buffer)->bytes() : 0;
    for (const GuardedBuffer& d : d_) total += d.bytes();
    return total;
}

std::vector<const GuardedBuffer*> GemmTensors::buffers() const {
    std::vector<const GuardedBuffer*> all = {&a_, &b_, &c_};
    for (const auto* buffer : {&bias_, &scale_a_, &scale_b_}) all.push_back(*buffer ? &**buffer : nullptr);
    for (const GuardedBuffer& d : d_) all.push_back(&d);
    return all;
}

void GemmTensors::reset_output() {
    if (original_c_) {
        copy_rows(*original_c_, c_);
    } else {
        poison(c_);
    }
}

Status GemmTensors::check_guards() const {
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

void GemmTensors::seal_inputs() {
    for (GuardedBuffer* buffer : inputs()) buffer->seal();
}

std::vector<GuardedBuffer*> GemmTensors::inputs() {
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
    const double deviation = 127.0 * 127.0 / 3 * std::sqrt(static_cast<double>(gemm_view(p).k));
    return static_cast<float>(40.0 / deviation);
}

}  // namespace tilewise
