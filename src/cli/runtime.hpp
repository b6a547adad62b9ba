// SPDX-License-Identifier: MIT
// What the commands that run kernels share: from the options every such command has to a runtime, a choice of kernel and
// problems.
#pragma once

#include "base/result.hpp"
#include "cli/command.hpp"
#include "select/runtime.hpp"

namespace tilewise::cli {

// --device, --arch, --threads, --pack
Result<Runtime> open_runtime(const Context& context);

// --strategy, --rule-set, --top
Result<SelectOptions> select_options(const Context& context);

// --kernel NAME|CONFIG.json if given, and the options above
Result<Choice> read_choice(const Context& context);

// Problems of the operands and of --problems FILE (one a line, # starts a comment); at least one.
Result<std::vector<Problem>> read_problems(const Context& context);

// A config given as a file that exists, - for standard input, a kernel name or JSON.
Result<KernelConfig> read_config_operand(const std::string& operand);

}  // namespace tilewise::cli
