// SPDX-License-Identifier: MIT
// A problem whose sums have no terms: the kernel of its stand-in runs on zeros, which are made in the workspace, and its epilogue does
// the rest, beta and bias as ever.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"

namespace tilewise {

class Executable;
struct Operands;

class ZeroedLaunch {
public:
    // `kernel` is ready for the stand-in. The device must outlive this.
    ZeroedLaunch(const Problem& stand_in, std::shared_ptr<const Executable> kernel, Device& device);

    std::int64_t workspace_bytes() const;  // of the zeros, and what the kernel itself needs after them
    Status run(const Operands& given, Stream stream) const;

private:
    std::shared_ptr<const Executable> kernel_;
    Device& device_;
    std::array<std::int64_t, 2> bytes_{};  // of A and B
};

}  // namespace tilewise
