// SPDX-License-Identifier: MIT
// A kernel that runs a padded problem in place of the one it was asked for: operands are copied into the workspace with
// zeros around them, the kernel runs on the copies, and what was asked for is cut out of its result. An Executable holds one
// of these where its kernel needs it. Everything goes into the stream, in order; nothing is allocated. A GPU copies by a kernel
// (row_launch.hpp) where it can, else by the driver's copies of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/note.hpp"
#include "base/result.hpp"
#include "device/device.hpp"
#include "family/padded_tensors.hpp"
#include "run/row_launch.hpp"

namespace tilewise {

class Executable;
struct Operands;

class PaddedLaunch {
public:
    // `kernel` is ready for the padded problem. The device must outlive this.
    PaddedLaunch(const PaddedTensors& padded, std::shared_ptr<const Executable> kernel, Device& device,
                 Builder& builder);

    // Why a GPU copies by its driver, which is slow, although a kernel would suit.
    const std::optional<Note>& note() const { return note_; }
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
    void take_rows(std::vector<RowTask> tasks, std::optional<RowLaunch>& to, Builder& builder);
    Status pad(const Operands& given, std::byte* base, Stream stream) const;
    Status crop(const Operands& given, std::byte* base, Stream stream) const;
    Status copy_in(const Step& step, const void* from, std::byte* to, Stream stream) const;

    std::shared_ptr<const Executable> kernel_;
    Device& device_;
    std::vector<Step> steps_;
    std::optional<RowLaunch> pads_,
        crops_;  // where the device does not copy rows itself; the first has a task for each step
    std::optional<Note> note_;
    std::int64_t copies_bytes_ = 0;
};

}  // namespace tilewise
