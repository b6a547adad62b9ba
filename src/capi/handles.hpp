// SPDX-License-Identifier: MIT
// What the opaque handles of tilewise.h hold, and how their options are read.
#pragma once

#include <memory>
#include <optional>

#include "base/result.hpp"
#include "capi/handle_table.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"
#include "run/executable.hpp"
#include "select/runtime.hpp"
#include "tilewise/tilewise.h"

// In the global namespace, where C declares them.
struct tilewise_context {
    std::shared_ptr<tilewise::Runtime> runtime;
};

struct tilewise_registry {
    tilewise::Registry kernels;
};

struct tilewise_plan {
    std::shared_ptr<tilewise::Runtime> runtime;  // null: a plan for an arch that need not be here
    tilewise::Problem problem;
    tilewise::Selection selection;
    std::string why;  // of the plan, or why there is none
};

struct tilewise_executable {
    std::shared_ptr<tilewise::Runtime> runtime;  // first, so that it goes last: the code below lives on its device
    tilewise::Problem problem;
    tilewise::Plan plan;
    std::shared_ptr<const tilewise::Executable> ready;
};

namespace tilewise::capi {

template <>
struct HandleTraits<tilewise_context> {
    static constexpr HandleKind kind = HandleKind::context;
    static constexpr const char* name = "context";
};
template <>
struct HandleTraits<tilewise_registry> {
    static constexpr HandleKind kind = HandleKind::registry;
    static constexpr const char* name = "registry";
};
template <>
struct HandleTraits<tilewise_plan> {
    static constexpr HandleKind kind = HandleKind::plan;
    static constexpr const char* name = "plan";
};
template <>
struct HandleTraits<tilewise_executable> {
    static constexpr HandleKind kind = HandleKind::executable;
    static constexpr const char* name = "executable";
};

// How to choose, read from the caller's struct. Keeps the caller's registry open as long as it lives.
struct ReadChoice {
    Choice choice;
    std::string arch;  // of a plan without a context
    std::unique_ptr<Pinned<tilewise_registry>> registry;
};
Result<ReadChoice> read_choice(const tilewise_select_options* given);  // NULL: all defaults
Result<Problem> read_problem_argument(const char* text);
Result<KernelConfig> read_config_argument(const char* text);

}  // namespace tilewise::capi
