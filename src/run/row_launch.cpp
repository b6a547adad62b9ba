// SPDX-License-Identifier: MIT
#include "run/row_launch.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>

#include "base/rounding.hpp"
#include "build/gpu_request.hpp"
#include "kernels/common/to_int.hpp"

namespace tilewise {
namespace {

bool are_small(std::initializer_list<std::int64_t> values) {
    return std::all_of(values.begin(), values.end(),
                       [](std::int64_t x) { return x >= 0 && x <= std::numeric_limits<int>::max() - kRowChunkBytes; });
}

bool is_dense(const RowNest& nest) {
    return (nest.rows == 1 || nest.row_pitch == nest.row_bytes) &&
           (nest.blocks == 1 || nest.block_pitch == nest.rows * nest.row_bytes);
}

// What elements there are at the ends of all rows; also where the tensor begins on a multiple of less.
int element_bytes(std::int64_t multiple) { return static_cast<int>(std::gcd(multiple, std::int64_t{4})); }

// Fills in the fields that padding and cropping share.
std::optional<RowTask> row_task(const RowNest& narrow, const RowNest& wide) {
    const std::int64_t pitches[] = {narrow.rows > 1 ? narrow.row_pitch : 0, narrow.blocks > 1 ? narrow.block_pitch : 0};
    const std::int64_t whole = wide.blocks * wide.rows * wide.row_bytes;
    if (!is_dense(wide) || !are_small({whole, narrow.row_bytes, pitches[0], pitches[1]})) return {};
    RowTask task{};
    task.element_bytes =
        element_bytes(std::gcd(std::gcd(narrow.row_bytes, wide.row_bytes), std::gcd(pitches[0], pitches[1])));
    task.row_bytes = to_int(narrow.row_bytes), task.rows = to_int(narrow.rows), task.blocks = to_int(narrow.blocks);
    task.row_pitch = to_int(pitches[0]), task.block_pitch = to_int(pitches[1]);
    task.wide_row_bytes = to_int(wide.row_bytes), task.wide_rows = to_int(wide.rows);
    return task;
}

LaunchDivisor divisor(std::int64_t by) { return LaunchDivisor(static_cast<unsigned>(by)); }

RowAddress address_of(const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return {static_cast<unsigned>(address), static_cast<unsigned>(std::uint64_t{address} >> 32)};
}

// Each thread of a full device writes some chunks; a small tensor gets one for each.
int blocks_for(const std::vector<RowTask>& tasks, const ArchSpec& arch) {
    constexpr std::int64_t kBlocksPerUnit = 8;
    std::int64_t bytes = 1;
    for (const RowTask& task : tasks) bytes = std::max<std::int64_t>(bytes, task.bytes);
    return to_int(std::min(ceil_div(bytes, std::int64_t{kRowThreads} * kRowChunkBytes), kBlocksPerUnit * arch.units));
}

}  // namespace

std::optional<RowTask> padding_task(const PaddedTensor& tensor) {
    auto task = row_task(tensor.given, tensor.padded);
    if (!task) return {};
    const bool has_chunks = tensor.padded.row_bytes % kRowChunkBytes == 0;
    task->action = has_chunks ? RowAction::pad_chunks : RowAction::pad_elements;
    task->bytes = to_int(tensor.padded.blocks * tensor.padded.rows * tensor.padded.row_bytes);
    task->by_row = divisor(has_chunks ? tensor.padded.row_bytes / kRowChunkBytes : tensor.padded.row_bytes);
    task->by_rows = divisor(tensor.padded.rows);
    return task;
}

std::optional<RowTask> cropping_task(const PaddedTensor& tensor) {
    const RowNest& to = tensor.given;
    auto task = is_dense(to) ? row_task(to, tensor.padded) : std::nullopt;
    if (!task) return {};
    task->action = RowAction::crop;
    task->bytes = to_int(to.blocks * to.rows * to.row_bytes);
    task->by_row = divisor(to.row_bytes);
    task->by_rows = divisor(to.rows);
    return task;
}

BuildRequest row_kernel_request(const ArchSpec& arch, std::string_view suffix) {
    return gpu_request(arch, suffix, "pad_rows", "#include \"gpu/pad_rows.hpp\"\n\nTILEWISE_GPU_PAD_ROWS()\n");
}

Result<RowLaunch> RowLaunch::make(std::vector<RowTask> tasks, Device& device, Builder& builder) {
    const auto built = builder.build(row_kernel_request(device.arch(), device.code_suffix()));
    if (!built) return built.error();
    auto code = device.load(*built);
    if (!code) return code.error();
    GpuGrid grid;
    grid.blocks = blocks_for(tasks, device.arch());
    grid.block.threads = kRowThreads;
    auto launch = device.prepare(std::move(*code), KernelArgs{}, grid);
    if (!launch) return launch.error();
    RowLaunch ready;
    ready.tasks_ = std::move(tasks);
    ready.launch_ = std::move(*launch);
    return ready;
}

Status RowLaunch::run(std::span<const RowPointers> pointers, Stream stream) const {
    KernelArgs args{};
    RowTasks batch{};
    const auto launch = [&]() -> Status {
        if (batch.count == 0) return {};
        FamilyArgs words;
        words.set(batch);
        args.set_family_args(words);
        batch.count = 0;
        return launch_->run(args, stream);
    };
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (!pointers[i].narrow) continue;
        RowTask& task = batch.task[batch.count++] = tasks_[i];
        task.narrow = address_of(pointers[i].narrow), task.wide = address_of(pointers[i].wide);
        task.element_bytes =
            element_bytes(std::gcd(task.element_bytes, static_cast<int>(task.narrow.low % kRowChunkBytes)));
        if (batch.count < kMaxRowTasks) continue;
        if (auto status = launch(); !status) return status;
    }
    return launch();
}

}  // namespace tilewise
