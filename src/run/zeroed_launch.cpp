// SPDX-License-Identifier: MIT
#include "run/zeroed_launch.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <utility>

#include "base/rounding.hpp"
#include "problem/facts.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kAlignment = 256;  // a multiple of whatever a kernel may ask of its workspace

}  // namespace

ZeroedLaunch::ZeroedLaunch(const Problem& stand_in, std::shared_ptr<const Executable> kernel, Device& device)
    : kernel_(std::move(kernel)), device_(device) {
    const auto elements = operand_elements(stand_in);
    bytes_ = {round_up(elements[0] * bytes_of(stand_in.dtype_a), kAlignment),
              round_up(elements[1] * bytes_of(stand_in.dtype_b), kAlignment)};
}

std::int64_t ZeroedLaunch::workspace_bytes() const { return bytes_[0] + bytes_[1] + kernel_->workspace_bytes(); }

Status ZeroedLaunch::run(const Operands& given, Stream stream) const {
    if (!given.workspace) {
        return usage_error(fmt::format("the workspace is null; the kernel needs {} bytes", workspace_bytes()));
    }
    auto* const zeros = static_cast<std::byte*>(given.workspace);
    const std::int64_t bytes = bytes_[0] + bytes_[1];
    if (auto status = device_.clear_rows(zeros, bytes, bytes, 1, stream); !status) return status;
    Operands o = given;
    o.a = zeros;
    o.b = zeros + bytes_[0];
    o.workspace = zeros + bytes;
    return kernel_->launch(o, stream);
}

}  // namespace tilewise
