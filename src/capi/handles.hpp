// SPDX-License-Identifier: MIT
// What the opaque handles of tilewise.h hold, and how their options are read.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "problem/problem.hpp"
#include "run/executable.hpp"
#include "select/runtime.hpp"
#include "tilewise/tilewise.h"

// In the global namespace, where C declares them.
struct tilewise_context {
    std::shared_ptr<tilewise::Runtime> runtime;
};

struct tilewise_executable {
    std::shared_ptr<tilewise::Runtime> runtime;  // first, so that it goes last: the code below lives on its device
    tilewise::Problem problem;
    tilewise::Plan plan;
    std::shared_ptr<const tilewise::Executable> ready;
};

namespace tilewise::capi {

Result<Choice> read_choice(const tilewise_select_options* given);  // NULL: all defaults
Result<Problem> read_problem_argument(const char* text);

}  // namespace tilewise::capi
