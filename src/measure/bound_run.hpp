// SPDX-License-Identifier: MIT
// An executable bound to sets of operands: with a packed B where the kernel reads one, and the workspace. A run is then one
// call, which is what timing and verifying want.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "run/executable.hpp"

namespace tilewise {

class BoundRun {
public:
    // The operands' memory stays the caller's and must outlive this, as must the device. B is packed here, once.
    // A workspace that is given must be large enough for the executable, and outlive this as well.
    static Result<BoundRun> make(std::shared_ptr<const Executable> executable, Device& device,
                                 std::span<const Operands> sets, float alpha, float beta, void* workspace = nullptr);

    Status run(std::size_t set = 0, Stream stream = kDefaultStream) const {
        return executable_->launch(operands_[set], stream);
    }
    std::size_t sets() const { return operands_.size(); }
    const Executable& executable() const { return *executable_; }

private:
    BoundRun() = default;

    std::shared_ptr<const Executable> executable_;
    std::vector<Operands> operands_;
    std::vector<std::shared_ptr<void>> memory_;  // packed B of each set, and the workspace
};

}  // namespace tilewise
