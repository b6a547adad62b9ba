// SPDX-License-Identifier: MIT
// A guarded buffer (guarded_buffer.hpp) that lives on a device alone: guards, contents and checks as the host's, made and
// looked at by the kernel of kernels/gpu/fill.hpp, so that a large one never crosses to the host.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "measure/check_kernel.hpp"
#include "measure/guarded_buffer.hpp"
#include "measure/random_fill.hpp"

namespace tilewise {

class DeviceBuffer {
public:
    // Matrices of the shape must not overlap. All of it holds the guard pattern at first.
    static Result<DeviceBuffer> make(Device& device, const CheckKernel& fill, std::string name, DType type,
                                     const StoredRows& shape, std::int64_t align);

    std::byte* data() const { return static_cast<std::byte*>(memory_.get()) + task_.front_bytes; }
    std::byte* whole() const { return static_cast<std::byte*>(memory_.get()); }
    std::int64_t whole_bytes() const { return task_.whole_bytes; }

    Status fill_random(const CheckKernel& fill, Range range, std::uint64_t seed) const;
    Status poison(const CheckKernel& fill) const;
    Status seal(const CheckKernel& fill);  // from now on the contents must not change
    // Which byte that should be as it was is not; nothing when all is well.
    Result<std::optional<std::string>> damage(Device& device, const CheckKernel& fill) const;
    // Compares the rows with those of `known`, a copy of all of it, by BufferAction::compare.
    Result<BufferTask> compare(const CheckKernel& fill, const void* known, double apart) const;

private:
    DeviceBuffer() = default;
    Result<BufferTask> done(const CheckKernel& fill, BufferAction action) const;

    std::string name_;
    DType type_ = DType::fp32;
    BufferTask task_{};
    std::shared_ptr<void> memory_;
    std::optional<CheckBits> sealed_;
};

// Whether a shape is one that this takes.
bool is_apart(const StoredRows& shape);

}  // namespace tilewise
