// SPDX-License-Identifier: MIT
// A kernel that runs a padded problem in place of the one it was asked for: operands are copied into the workspace with
// zeros around them, the kernel runs on the copies, and what was asked for is cut out of its result. An Executable holds one
// of these where its kernel needs it. Everything goes into the stream, in order; nothing is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "family/padded_tensors.hpp"

namespace tilewise {

class Executable;
struct Operands;

class PaddedLaunch {
public:
    // `kernel` is ready for the padded problem. The device must outlive this.
    PaddedLaunch(const PaddedTensors& padded, std::shared_ptr<const Executable> kernel, Device& device);

    std::int64_t workspace_bytes() const;  // of the copies, and what the kernel itself needs after them
    Status run(const Operands& given, Stream stream) const;

private:
    // One operand's way in and out: the copy from the caller's memory, and what is set to zero around it.
    struct Zeros {
        std::int64_t offset = 0, pitch = 0, row_bytes = 0, rows = 0;  // offset from the start of the tensor
    };
    struct Step {
        TensorRole role;
        std::size_t index;
        std::int64_t offset;
        RowCopy in;  // no pointers yet
        std::vector<Zeros> zeros;
    };
    static Step make_step(const PaddedTensor& tensor);
    Status copy_in(const Step& step, const void* from, std::byte* to, Stream stream) const;

    std::shared_ptr<const Executable> kernel_;
    Device& device_;
    std::vector<Step> steps_;
    std::int64_t copies_bytes_ = 0;
};

}  // namespace tilewise
