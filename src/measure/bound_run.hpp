// SPDX-License-Identifier: MIT
// An executable bound to tensors: the operands of each set, a packed B where the kernel reads one, the workspace. A run is
// then one call, which is what timing and verifying want.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "measure/tensors.hpp"
#include "run/executable.hpp"

namespace tilewise {

class BoundRun {
public:
    // The tensors stay the caller's and must outlive this. B is packed here, once.
    static Result<BoundRun> make(std::shared_ptr<const Executable> executable, std::span<const GemmTensors> sets,
                                 float alpha, float beta);

    Status run(std::size_t set = 0) const { return executable_->launch(operands_[set]); }
    const Executable& executable() const { return *executable_; }

private:
    BoundRun() = default;

    std::shared_ptr<const Executable> executable_;
    std::vector<Operands> operands_;
    std::vector<std::shared_ptr<void>> memory_;  // packed B of each set, and the workspace
};

}  // namespace tilewise
