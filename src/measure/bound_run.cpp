// SPDX-License-Identifier: MIT
#include "measure/bound_run.hpp"

#include "measure/device_memory.hpp"

namespace tilewise {

Result<BoundRun> BoundRun::make(std::shared_ptr<const Executable> executable, Device& device,
                                std::span<const Operands> sets, float alpha, float beta, void* workspace) {
    BoundRun bound;
    bound.executable_ = std::move(executable);
    if (!workspace && bound.executable_->workspace_bytes() > 0) {
        auto memory = device_memory(device, bound.executable_->workspace_bytes());
        if (!memory) return memory.error();
        workspace = memory->get();
        bound.memory_.push_back(std::move(*memory));
    }
    for (Operands o : sets) {
        o.alpha = alpha, o.beta = beta;
        o.workspace = workspace;
        if (bound.executable_->packed_b_bytes() > 0) {
            auto packed = device_memory(device, bound.executable_->packed_b_bytes());
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
