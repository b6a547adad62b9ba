// SPDX-License-Identifier: MIT
// Padding and cropping of tensors on a GPU by a kernel of our own (kernels/gpu/pad_rows.hpp): one launch for up to four tensors, where
// a driver's copies of rows that end anywhere take one each for bytes and zeros, at a fraction of the memory's speed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "family/padded_tensors.hpp"
#include "kernels/common/row_tasks.hpp"

namespace tilewise {

// The two tensors of a task. No narrow one: the task has nothing to do this time.
struct RowPointers {
    void* narrow = nullptr;
    void* wide = nullptr;
};

// Nothing where the kernel does not suit: sizes from 2^31 on, gaps between rows that are written.
std::optional<RowTask> padding_task(const PaddedTensor& tensor);
std::optional<RowTask> cropping_task(const PaddedTensor& tensor);

// The kernel, as one of code_suffixes(arch) or emulated: a pack for machines without a compiler carries it.
BuildRequest row_kernel_request(const ArchSpec& arch, std::string_view suffix);

class RowLaunch {
public:
    // For a GPU, which must outlive this. An error says why the kernel can neither be found nor compiled.
    static Result<RowLaunch> make(std::vector<RowTask> tasks, Device& device, Builder& builder);

    // One for each task.
    Status run(std::span<const RowPointers> pointers, Stream stream) const;

private:
    RowLaunch() = default;

    std::vector<RowTask> tasks_;
    std::unique_ptr<const Launch> launch_;
};

}  // namespace tilewise
