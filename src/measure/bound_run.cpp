// SPDX-License-Identifier: MIT
#include "measure/bound_run.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>

namespace tilewise {
namespace {

// Written once, so that the first run does not pay for fresh pages.
Result<std::shared_ptr<void>> touched_memory(std::int64_t bytes) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t whole = (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    std::shared_ptr<void> memory(std::aligned_alloc(kAlignment, whole), std::free);
    if (!memory) return Error{ErrorCode::device, fmt::format("cannot allocate {} bytes of scratch memory", bytes)};
    std::memset(memory.get(), 0, whole);
    return memory;
}

}  // namespace

Result<BoundRun> BoundRun::make(std::shared_ptr<const Executable> executable, std::span<const GemmTensors> sets,
                                float alpha, float beta) {
    BoundRun bound;
    bound.executable_ = std::move(executable);
    void* workspace = nullptr;
    if (bound.executable_->workspace_bytes() > 0) {
        auto memory = touched_memory(bound.executable_->workspace_bytes());
        if (!memory) return memory.error();
        workspace = memory->get();
        bound.memory_.push_back(std::move(*memory));
    }
    for (const GemmTensors& tensors : sets) {
        Operands o;
        o.a = tensors.a().data, o.b = tensors.b().data, o.c = tensors.c().data;
        o.bias = tensors.bias();
        for (std::size_t i = 0; i < tensors.problem().d_ops.size(); ++i) o.d[i] = tensors.d(i).data;
        o.scale_a = tensors.scale_a(), o.scale_b = tensors.scale_b();
        o.alpha = alpha, o.beta = beta;
        o.workspace = workspace;
        if (bound.executable_->packed_b_bytes() > 0) {
            auto packed = touched_memory(bound.executable_->packed_b_bytes());
            if (!packed) return packed.error();
            if (auto status = bound.executable_->pack_b(o.b, packed->get()); !status) return status.error();
            o.b = packed->get();
            bound.memory_.push_back(std::move(*packed));
        }
        bound.operands_.push_back(o);
    }
    return bound;
}

}  // namespace tilewise
