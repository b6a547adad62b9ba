// SPDX-License-Identifier: MIT
// The commands that run kernels share this way: from the options every such command has to a runtime, a choice of kernel and
// problems.
#pragma once

#include "base/result.hpp"
#include "cli/command.hpp"
#include "select/runtime.hpp"

namespace tilewise::cli {

// --threads; 0 when it is not given: every CPU this process may use.
Result<int> threads_option(const Context& context);
// --device, --arch, --threads, --pack
Result<Runtime> open_runtime(const Context& context);

// --strategy, --rule-set, --top
Result<SelectOptions> select_options(const Context& context);

// --kernel NAME|CONFIG.json if given, and the options above
Result<Choice> read_choice(const Context& context);

// A bar for the i-th of the problems, each of which is measured in steps.
MeasureProgress progress_of(std::size_t i, std::size_t problems);

// Problems of the operands and of --problems FILE (one a line, # starts a comment); at least one.
Result<std::vector<Problem>> read_problems(const Context& context);

// A config given as a file that exists, - for standard input, a kernel name or JSON.
Result<KernelConfig> read_config_operand(const std::string& operand);

}  // namespace tilewise::cli
