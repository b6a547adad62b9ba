// SPDX-License-Identifier: MIT
#include "measure/device_buffer.hpp"

#include <fmt/core.h>

#include "measure/device_memory.hpp"
#include "problem/kernel_words.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kWord = 8;  // the kernel goes over guards by words
static_assert(GuardedBuffer::kGuard == std::byte{kGuardWord & 0xff});

const char* words_for(BytePlace place) {
    switch (place) {
        case BytePlace::before: return "before the tensor";
        case BytePlace::behind: return "behind the tensor";
        case BytePlace::between_matrices: return "between matrices";
        case BytePlace::between_rows:
        case BytePlace::in_a_row: break;
    }
    return "between rows";
}

}  // namespace

bool is_apart(const StoredRows& shape) { return shape.matrices == 1 || shape.between >= shape.matrix_span(); }

Result<DeviceBuffer> DeviceBuffer::make(Device& device, const CheckKernel& fill, std::string name, DType type,
                                        const StoredRows& shape, std::int64_t align) {
    DeviceBuffer buffer;
    buffer.name_ = std::move(name);
    buffer.type_ = type;
    BufferTask& task = buffer.task_;
    task.type = kernel_dtype(type);
    task.front_bytes = GuardedBuffer::front_bytes(type, align);
    const std::int64_t end = task.front_bytes + shape.span() * bytes_of(type) + GuardedBuffer::kGuardBytes;
    task.whole_bytes = (end + kWord - 1) / kWord * kWord;
    task.matrices = shape.matrices, task.rows = shape.rows, task.row_length = shape.row_length;
    task.leading = shape.leading, task.between = shape.between;
    auto memory = device_memory(device, task.whole_bytes);
    if (!memory) return memory.error();
    buffer.memory_ = std::move(*memory);
    task.memory = static_cast<unsigned char*>(buffer.memory_.get());
    if (auto guarded = buffer.done(fill, BufferAction::guard); !guarded) return guarded.error();
    return buffer;
}

Result<BufferTask> DeviceBuffer::done(const CheckKernel& fill, BufferAction action) const {
    BufferTask task = task_;
    task.action = action;
    task.checksum = 0;
    task.first_damage = kNowhere;
    task.failed = 0;
    task.least_flipped_error = kNowhere;
    if (auto status = fill.run({}, task); !status) return status.error();
    return task;
}

Status DeviceBuffer::fill_random(const CheckKernel& fill, Range range, std::uint64_t seed) const {
    BufferTask task = task_;
    const Draw draw = draw_of(type_, range);
    task.action = BufferAction::random;
    task.low = draw.low, task.width = draw.width, task.whole_numbers = draw.whole ? 1 : 0;
    task.seed = seed;
    return fill.run({}, task);
}

Status DeviceBuffer::poison(const CheckKernel& fill) const {
    const auto task = done(fill, BufferAction::poison);
    return task ? Status{} : task.error();
}

Status DeviceBuffer::seal(const CheckKernel& fill) {
    const auto task = done(fill, BufferAction::inspect);
    if (!task) return task.error();
    sealed_ = task->checksum;
    return {};
}

Result<std::optional<std::string>> DeviceBuffer::damage(Device& device, const CheckKernel& fill) const {
    const auto task = done(fill, BufferAction::inspect);
    if (!task) return task.error();
    if (task->first_damage != kNowhere) {
        const auto byte = static_cast<std::int64_t>(task->first_damage);
        std::byte found{};
        if (auto status = device.copy(&found, whole() + byte, 1, kDefaultStream); !status) return status.error();
        return std::optional(
            GuardedBuffer::damage_text(name_, byte - task_.front_bytes, words_for(byte_place(task_, byte)), found));
    }
    if (sealed_ && *sealed_ != task->checksum) return std::optional(name_ + " is an input and was changed");
    return std::optional<std::string>();
}

Result<BufferTask> DeviceBuffer::compare(const CheckKernel& fill, const void* known, double apart) const {
    DeviceBuffer beside = *this;
    beside.task_.known = static_cast<const unsigned char*>(known);
    beside.task_.apart = apart;
    return beside.done(fill, BufferAction::compare);
}

}  // namespace tilewise
