// SPDX-License-Identifier: MIT
#include "run/padded_launch.hpp"

#include <fmt/core.h>

#include <array>
#include <span>
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

PaddedLaunch::PaddedLaunch(const PaddedTensors& padded, std::shared_ptr<const Executable> kernel, Device& device,
                           Builder& builder)
    : kernel_(std::move(kernel)), device_(device), copies_bytes_(padded.bytes) {
    std::vector<RowTask> pads, crops;
    for (const PaddedTensor& tensor : padded.tensors) {
        steps_.push_back(make_step(tensor));
        if (auto task = padding_task(tensor)) pads.push_back(*task);
        if (tensor.role != TensorRole::c) continue;
        if (auto task = cropping_task(tensor)) crops.push_back(*task);
    }
    if (pads.size() == steps_.size()) take_rows(std::move(pads), pads_, builder);
    take_rows(std::move(crops), crops_, builder);
}

void PaddedLaunch::take_rows(std::vector<RowTask> tasks, std::optional<RowLaunch>& to, Builder& builder) {
    if (tasks.empty() || !device_.arch().is_gpu()) return;
    if (auto rows = RowLaunch::make(std::move(tasks), device_, builder)) {
        to = std::move(*rows);
    } else {
        note_ = {"padding", rows.error().code,
                 fmt::format("padded tensors are copied by the driver, which is slow: {}", rows.error().message)};
    }
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

Status PaddedLaunch::pad(const Operands& given, std::byte* base, Stream stream) const {
    std::array<RowPointers, kMaxPaddedTensors> pointers{};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const Step& step = steps_[i];
        if (step.role == TensorRole::c && given.beta == 0) continue;  // it is not read
        const void* const from = pointer_of(given, step.role, step.index);
        if (pads_) {
            pointers[i] = {const_cast<void*>(from), base + step.offset};
        } else if (auto status = copy_in(step, from, base + step.offset, stream); !status) {
            return status;
        }
    }
    return pads_ ? pads_->run(std::span(pointers).first(steps_.size()), stream) : Status();
}

Status PaddedLaunch::crop(const Operands& given, std::byte* base, Stream stream) const {
    for (const Step& step : steps_) {
        if (step.role != TensorRole::c) continue;
        if (crops_) {
            const RowPointers pointers{given.c, base + step.offset};
            return crops_->run({&pointers, 1}, stream);
        }
        RowCopy out = reversed(step.in);
        out.from = base + step.offset;
        out.to = given.c;
        return device_.copy_rows(out, stream);
    }
    return {};
}

Status PaddedLaunch::run(const Operands& given, Stream stream) const {
    std::byte* const base = aligned(given.workspace);
    Operands padded = given;
    padded.workspace = base + (copies_bytes_ - kPaddedAlignment);  // the room for aligning lies before the base
    for (const Step& step : steps_) set_pointer(padded, step.role, step.index, base + step.offset);
    if (auto status = pad(given, base, stream); !status) return status;
    if (auto status = kernel_->launch(padded, stream); !status) return status;
    return crop(given, base, stream);
}

}  // namespace tilewise
