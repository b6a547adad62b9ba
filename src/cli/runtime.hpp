// SPDX-License-Identifier: MIT
// What the commands that run kernels share: the device, the builder, the tuning database and a dispatcher over them, made
// from the options every such command has.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "cli/command.hpp"
#include "select/dispatcher.hpp"

namespace tilewise::cli {

struct Runtime {
    std::unique_ptr<Device> device;
    std::unique_ptr<Builder> builder;
    std::unique_ptr<TuningDatabase> tuning;
    std::unique_ptr<Dispatcher> dispatcher;
};
// --threads; 0 when it is not given: every CPU this process may use.
Result<int> threads_option(const Context& context);
// --device, --threads, --pack
Result<Runtime> open_runtime(const Context& context);

// --strategy, --rule-set, --top
Result<SelectOptions> select_options(const Context& context);

// The plan for the problem: --kernel NAME|CONFIG.json if given, else by the options.
Result<Plan> choose_plan(const Context& context, Runtime& runtime, const Problem& problem);

// A bar for the i-th of the problems, each of which is measured in steps.
MeasureProgress progress_of(std::size_t i, std::size_t problems);

// Problems of the operands and of --problems FILE (one a line, # starts a comment); at least one.
Result<std::vector<Problem>> read_problems(const Context& context);

// A config given as a file that exists, - for standard input, a kernel name or JSON.
Result<KernelConfig> read_config_operand(const std::string& operand);

}  // namespace tilewise::cli
