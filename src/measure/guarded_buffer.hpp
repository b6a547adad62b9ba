// SPDX-License-Identifier: MIT
// Memory for one operand, set out so that a kernel's mistakes show: the pointer is exactly as aligned as promised,
// bytes the kernel must not touch (before, behind, between rows and between matrices) hold a pattern that is a NaN in
// every float type, and an input remembers its contents. A stray read turns the result to NaN; a stray write is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "problem/types.hpp"

namespace tilewise {

// Rows of neighbouring elements as they lie in memory; all numbers are elements.
struct StoredRows {
    std::int64_t matrices = 1;
    std::int64_t rows = 1;
    std::int64_t row_length = 1;
    std::int64_t leading = 1;  // between rows
    std::int64_t between = 0;  // between matrices

    std::int64_t matrix_span() const { return (rows - 1) * leading + row_length; }
    std::int64_t span() const { return (matrices - 1) * between + matrix_span(); }
    std::int64_t row_begin(std::int64_t matrix, std::int64_t row) const { return matrix * between + row * leading; }
};

class GuardedBuffer {
public:
    static constexpr std::int64_t kGuardBytes = 256;
    static constexpr std::byte kGuard{0xff};

    // `align`: what the pointer is a multiple of; below 64 it is a multiple of no more than that, or than the element.
    static Result<GuardedBuffer> make(std::string name, DType type, const StoredRows& shape, std::int64_t align);

    // The guard before a tensor, which places it.
    static std::int64_t front_bytes(DType type, std::int64_t align);
    // The words for a guard byte (counted from the tensor) that holds something else.
    static std::string damage_text(const std::string& name, std::int64_t byte, const char* place, std::byte found);

    std::byte* data() const { return memory_.get() + front_; }
    std::byte* row(std::int64_t matrix, std::int64_t row) const {
        return data() + shape_.row_begin(matrix, row) * bytes_of(type_);
    }
    const StoredRows& shape() const { return shape_; }
    DType type() const { return type_; }
    std::int64_t bytes() const { return shape_.span() * bytes_of(type_); }

    // All of it, guards included, and where in it the tensor begins: for a copy of it in other memory.
    std::byte* whole() const { return memory_.get(); }
    std::int64_t whole_bytes() const { return front_ + bytes() + kGuardBytes; }
    std::int64_t front_bytes() const { return front_; }

    void seal();  // from now on the contents must not change
    // Which byte that should be as it was is not; nothing when all is well.
    std::optional<std::string> damage() const;

private:
    struct Free {
        std::size_t align;
        void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{align}); }
    };

    GuardedBuffer() = default;
    std::optional<std::string> damaged_between(std::int64_t begin, std::int64_t end, const char* place) const;
    std::optional<std::string> damaged_gap() const;
    std::uint64_t checksum() const;

    std::string name_;
    DType type_ = DType::fp32;
    StoredRows shape_;
    std::unique_ptr<std::byte, Free> memory_;
    std::int64_t front_ = 0;
    std::optional<std::uint64_t> sealed_;
};

}  // namespace tilewise
