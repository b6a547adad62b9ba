// SPDX-License-Identifier: MIT
#include "measure/guarded_buffer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace tilewise {
namespace {

// Pointers are placed relative to a line of this many bytes: wide enough to be off every vector's alignment.
constexpr std::int64_t kLine = 64;

}  // namespace

std::int64_t GuardedBuffer::front_bytes(DType type, std::int64_t align) {
    const std::int64_t base = std::max(align, kLine);
    const std::int64_t offset = align < kLine ? std::max(align, bytes_of(type)) : 0;
    return (kGuardBytes + base - 1) / base * base + offset;
}

std::string GuardedBuffer::damage_text(const std::string& name, std::int64_t byte, const char* place, std::byte found) {
    return fmt::format("{}: the guard at byte {} ({}) was overwritten with {:#04x}", name, byte, place,
                       static_cast<unsigned>(found));
}

Result<GuardedBuffer> GuardedBuffer::make(std::string name, DType type, const StoredRows& shape, std::int64_t align) {
    GuardedBuffer buffer;
    buffer.name_ = std::move(name);
    buffer.type_ = type;
    buffer.shape_ = shape;
    const std::int64_t base = std::max(align, kLine);
    buffer.front_ = front_bytes(type, align);
    const auto total = static_cast<std::size_t>(buffer.front_ + buffer.bytes() + kGuardBytes);
    const auto base_align = static_cast<std::size_t>(base);
    buffer.memory_ = {static_cast<std::byte*>(::operator new (total, std::align_val_t{base_align}, std::nothrow)),
                      Free{base_align}};
    if (!buffer.memory_) {
        return Error{ErrorCode::device, fmt::format("no memory for {} bytes of {}; try a smaller problem or fewer sets",
                                                    total, buffer.name_)};
    }
    std::memset(buffer.memory_.get(), static_cast<int>(kGuard), total);
    return buffer;
}

void GuardedBuffer::seal() { sealed_ = checksum(); }

std::optional<std::string> GuardedBuffer::damage() const {
    if (auto found = damaged_between(-front_, 0, "before the tensor")) return found;
    if (auto found = damaged_between(bytes(), bytes() + kGuardBytes, "behind the tensor")) return found;
    if (auto found = damaged_gap()) return found;
    if (sealed_ && *sealed_ != checksum()) return fmt::format("{} is an input and was changed", name_);
    return {};
}

std::optional<std::string> GuardedBuffer::damaged_between(std::int64_t begin, std::int64_t end,
                                                          const char* place) const {
    const std::byte *const first = data() + begin, *const last = data() + end;
    const std::byte* const found = std::find_if(first, last, [](std::byte b) { return b != kGuard; });
    if (found == last) return {};
    return damage_text(name_, found - data(), place, *found);
}

std::optional<std::string> GuardedBuffer::damaged_gap() const {
    // Matrices of an input may lie within each other's gaps; what is left between them is covered by the checksum.
    const bool apart = shape_.matrices == 1 || shape_.between >= shape_.matrix_span();
    const bool rows_touch = shape_.leading == shape_.row_length || shape_.rows == 1;
    if (!apart) return {};
    const std::int64_t size = bytes_of(type_);
    for (std::int64_t matrix = 0; matrix < shape_.matrices; ++matrix) {
        for (std::int64_t row = 0; row + 1 < shape_.rows && !rows_touch; ++row) {
            const std::int64_t end = shape_.row_begin(matrix, row) + shape_.row_length;
            const std::int64_t next = shape_.row_begin(matrix, row + 1);
            if (auto found = damaged_between(end * size, next * size, "between rows")) return found;
        }
        if (matrix + 1 == shape_.matrices) break;
        const std::int64_t end = shape_.row_begin(matrix, 0) + shape_.matrix_span();
        const std::int64_t next = shape_.row_begin(matrix + 1, 0);
        if (auto found = damaged_between(end * size, next * size, "between matrices")) return found;
    }
    return {};
}

// Four independent chains, as one would wait for its multiplication most of the time.
std::uint64_t GuardedBuffer::checksum() const {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    const std::byte* at = data();
    const std::byte* const end = at + bytes();
    std::uint64_t lanes[4] = {1, 2, 3, 4};
    for (; end - at >= 32; at += 32) {
        std::uint64_t words[4];
        std::memcpy(words, at, sizeof words);
        for (int i = 0; i < 4; ++i) lanes[i] = ((lanes[i] ^ words[i]) * kOdd) ^ (lanes[i] >> 29);
    }
    std::uint64_t sum = ((lanes[0] * kOdd ^ lanes[1]) * kOdd ^ lanes[2]) * kOdd ^ lanes[3];
    for (; at != end; ++at) sum = (sum ^ static_cast<std::uint64_t>(*at)) * kOdd;
    return sum;
}

}  // namespace tilewise
