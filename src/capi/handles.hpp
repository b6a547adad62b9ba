// SPDX-License-Identifier: MIT
// The opaque handles of tilewise.h hold these objects; their options are read here, too.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

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
struct HandleKindOf<tilewise_context> : std::integral_constant<HandleKind, HandleKind::context> {};
template <>
struct HandleKindOf<tilewise_registry> : std::integral_constant<HandleKind, HandleKind::registry> {};
template <>
struct HandleKindOf<tilewise_plan> : std::integral_constant<HandleKind, HandleKind::plan> {};
template <>
struct HandleKindOf<tilewise_executable> : std::integral_constant<HandleKind, HandleKind::executable> {};

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
