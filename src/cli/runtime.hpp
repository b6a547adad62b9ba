// SPDX-License-Identifier: MIT
// The commands that run kernels share this way: from the options every such command has to a runtime, a choice of kernel and
// problems.
#pragma once

#include "base/result.hpp"
#include "cli/command.hpp"
#include "select/runtime.hpp"

namespace tilewise::cli {

// --NAME as a whole number from `least` on; `otherwise` where it is not given.
Result<std::int64_t> read_number(const Context& context, std::string_view option, std::int64_t otherwise,
                                 std::int64_t least);
// --shard I/N; 1/1 where it is not given.
struct GivenShard {
    std::int64_t index = 1, count = 1;
};
Result<GivenShard> read_shard(const Context& context);
// --threads; 0 when it is not given.
Result<int> threads_option(const Context& context);
// The same; where it is not given, as many as a launch on this CPU would take.
Result<int> chosen_threads(const Context& context);
// --model-dir, then what the environment says. A folder without models is refused; models that cannot be used become notes.
Result<std::vector<std::string>> model_dirs(const Context& context);
Result<std::unique_ptr<ModelStore>> given_models(const Context& context);
// --device, --arch, --threads, --pack, --model-dir
Result<Runtime> open_runtime(const Context& context);

// --strategy, --rule-set, --top
Result<SelectOptions> select_options(const Context& context);

// --kernel NAME|CONFIG.json if given, and the options above
Result<Choice> read_choice(const Context& context);

// A bar for the i-th of the problems, each of which is measured in steps.
MeasureProgress progress_of(std::size_t i, std::size_t problems);

// A problem that was given, or why it is impossible.
struct GivenProblem {
    std::string text;
    Result<Problem> problem;
};
// Problems of the operands and of --problems FILE|SET (one a line, # starts a comment; - is standard input), ranges expanded; at
// least one. What cannot be read ends it.
Result<std::vector<GivenProblem>> read_given_problems(const Context& context);
// The same, of which each must be possible.
Result<std::vector<Problem>> read_problems(const Context& context);

// A config given as a file that exists, - for standard input, a kernel's name or id, or JSON.
Result<KernelConfig> read_config_operand(const Context& context, const std::string& operand);

}  // namespace tilewise::cli
