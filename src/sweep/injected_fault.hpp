// SPDX-License-Identifier: MIT
// Faults that tests inject into the worker of a sweep, by TILEWISE_SWEEP_FAULT: "KIND:TEXT" makes kernels fail whose problem or
// name contains the text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/enum_names.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"

namespace tilewise {

enum class Fault : std::uint8_t { crash, hang, wrong, clock };
template <>
struct EnumNames<Fault> {
    static constexpr std::string_view kind = "fault";
    static constexpr std::array<std::string_view, 4> names = {"crash", "hang", "wrong", "clock"};
};

bool has_injected_faults();
std::optional<Fault> injected_fault(const Problem& problem, const Kernel& kernel);
void commit(Fault fault);  // a crash or a hang

}  // namespace tilewise
