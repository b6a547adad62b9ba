// SPDX-License-Identifier: MIT
#include "sweep/injected_fault.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

std::string_view fault_text() {
    const char* text = secure_getenv("TILEWISE_SWEEP_FAULT");
    return text ? text : "";
}

}  // namespace

bool has_injected_faults() { return !fault_text().empty(); }

std::optional<Fault> injected_fault(const Problem& problem, const Kernel& kernel) {
    const std::string_view text = fault_text();
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto fault = parse_enum<Fault>(text.substr(0, colon));
    const std::string_view where = text.substr(colon + 1);
    const bool is_here =
        kernel.name.find(where) != std::string::npos || print_problem(problem).find(where) != std::string::npos;
    return fault && is_here ? std::optional(*fault) : std::nullopt;
}

void commit(Fault fault) {
    if (fault == Fault::crash) raise(SIGSEGV);
    while (fault == Fault::hang) pause();
}

}  // namespace tilewise
