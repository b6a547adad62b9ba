// SPDX-License-Identifier: MIT
#include "run/padded_launch.hpp"

#include <utility>

#include "run/executable.hpp"

namespace tilewise {
namespace {

// Rows that follow each other on both sides without a gap are one row; fewer and longer ones are moved faster.
RowCopy joined(RowCopy c) {
    for (int level = 0; level < 2; ++level) {
        if (c.to_row_pitch == c.row_bytes && c.from_row_pitch == c.row_bytes) {
            c.row_bytes *= c.rows;
            c.rows = std::exchange(c.blocks, 1);
            c.to_row_pitch = c.to_block_pitch, c.from_row_pitch = c.from_block_pitch;
            c.to_block_pitch = c.rows * c.to_row_pitch, c.from_block_pitch = c.rows * c.from_row_pitch;
        }
    }
    if (c.to_block_pitch == c.rows * c.to_row_pitch && c.from_block_pitch == c.rows * c.from_row_pitch) {
        c.rows *= std::exchange(c.blocks, 1);
    }
    return c;
}

RowCopy reversed(const RowCopy& c) {
    RowCopy back = c;
    std::swap(back.to_row_pitch, back.from_row_pitch);
    std::swap(back.to_block_pitch, back.from_block_pitch);
    return back;
}

std::byte* aligned(void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    constexpr auto kUnit = static_cast<std::uintptr_t>(kPaddedAlignment);
    return static_cast<std::byte*>(memory) + (kUnit - address % kUnit) % kUnit;
}

// Where an operand's pointer is kept.
const void* pointer_of(const Operands& o, TensorRole role, std::size_t index) {
    switch (role) {
        case TensorRole::a: return o.a;
        case TensorRole::b: return o.b;
        case TensorRole::c: return o.c;
        case TensorRole::bias: return o.bias;
        case TensorRole::scale_a: return o.scale_a;
        case TensorRole::scale_b: return o.scale_b;
        case TensorRole::d: return o.d[index];
    }
    return nullptr;
}

void set_pointer(Operands& o, TensorRole role, std::size_t index, void* to) {
    switch (role) {
        case TensorRole::a: o.a = to; break;
        case TensorRole::b: o.b = to; break;
        case TensorRole::c: o.c = to; break;
        case TensorRole::bias: o.bias = to; break;
        case TensorRole::scale_a: o.scale_a = static_cast<const float*>(to); break;
        case TensorRole::scale_b: o.scale_b = static_cast<const float*>(to); break;
        case TensorRole::d: o.d[index] = to; break;
    }
}

}  // namespace

PaddedLaunch::Step PaddedLaunch::make_step(const PaddedTensor& tensor) {
    const RowNest &from = tensor.given, &to = tensor.padded;
    Step step{tensor.role, tensor.index, tensor.offset, {}, {}};
    step.in.row_bytes = from.row_bytes, step.in.rows = from.rows, step.in.blocks = from.blocks;
    step.in.from_row_pitch = from.row_pitch, step.in.from_block_pitch = from.block_pitch;
    step.in.to_row_pitch = to.row_pitch, step.in.to_block_pitch = to.block_pitch;
    step.in = joined(step.in);
    // The ends of all rows, the last rows of all blocks, the last blocks.
    if (from.row_bytes < to.row_bytes) {
        step.zeros.push_back({from.row_bytes, to.row_pitch, to.row_bytes - from.row_bytes, to.blocks * to.rows});
    }
    if (from.rows < to.rows) {
        step.zeros.push_back(
            {from.rows * to.row_pitch, to.block_pitch, (to.rows - from.rows) * to.row_pitch, to.blocks});
    }
    if (from.blocks < to.blocks) {
        const std::int64_t bytes = (to.blocks - from.blocks) * to.block_pitch;
        step.zeros.push_back({from.blocks * to.block_pitch, bytes, bytes, 1});
    }
    return step;
}

PaddedLaunch::PaddedLaunch(const PaddedTensors& padded, std::shared_ptr<const Executable> kernel, Device& device)
    : kernel_(std::move(kernel)), device_(device), copies_bytes_(padded.bytes) {
    for (const PaddedTensor& tensor : padded.tensors) steps_.push_back(make_step(tensor));
}

std::int64_t PaddedLaunch::workspace_bytes() const { return copies_bytes_ + kernel_->workspace_bytes(); }

Status PaddedLaunch::copy_in(const Step& step, const void* from, std::byte* to, Stream stream) const {
    RowCopy copy = step.in;
    copy.from = from;
    copy.to = to;
    if (auto status = device_.copy_rows(copy, stream); !status) return status;
    for (const Zeros& zeros : step.zeros) {
        auto status = device_.clear_rows(to + zeros.offset, zeros.pitch, zeros.row_bytes, zeros.rows, stream);
        if (!status) return status;
    }
    return {};
}

Status PaddedLaunch::run(const Operands& given, Stream stream) const {
    std::byte* const base = aligned(given.workspace);
    Operands padded = given;
    padded.workspace = base + (copies_bytes_ - kPaddedAlignment);  // the room for aligning lies before the base
    for (const Step& step : steps_) {
        std::byte* const to = base + step.offset;
        set_pointer(padded, step.role, step.index, to);
        if (step.role == TensorRole::c && given.beta == 0) continue;  // it is not read
        auto status = copy_in(step, pointer_of(given, step.role, step.index), to, stream);
        if (!status) return status;
    }
    if (auto status = kernel_->launch(padded, stream); !status) return status;
    for (const Step& step : steps_) {
        if (step.role != TensorRole::c) continue;
        RowCopy out = reversed(step.in);
        out.from = base + step.offset;
        out.to = given.c;
        if (auto status = device_.copy_rows(out, stream); !status) return status;
    }
    return {};
}

}  // namespace tilewise
