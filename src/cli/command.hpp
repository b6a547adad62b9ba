// SPDX-License-Identifier: MIT
// A subcommand is a value: its words, and the function that runs it. The parser, the help and the shell completions
// all read these tables, so a flag is declared once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "cli/arguments.hpp"
#include "config/arch_catalog.hpp"

namespace tilewise::cli {

struct Option {
    std::string_view name;   // without the dashes
    std::string_view value;  // what stands for its value in the help; empty for a flag
    std::string_view help;
    std::vector<std::string> (*choices)() = nullptr;  // for completions
};

// Every command gets one.
struct Context {
    const Arguments& arguments;
    ArchCatalog archs;
    bool json = false;
};

struct Command {
    std::string_view name;
    std::string_view operands;  // "PROBLEM", "[NAME]" or empty
    int min_operands;
    int max_operands;
    std::string_view summary;
    std::string_view details;  // a few lines more for its own help; may be empty
    std::span<const Option> options;
    Result<int> (*run)(Context&);                             // the exit code
    std::vector<std::string> (*operand_choices)() = nullptr;  // for completions
    // A program of its own (verbs.cpp), which reads its words itself: the extra of the Python package that has what it needs.
    std::string_view extra{};

    bool is_verb() const { return !extra.empty(); }
};

std::span<const Command> commands();
std::span<const Option> global_options();
std::vector<Option> global_options(const Command& command);  // without those that the command has an own meaning for
const Command* find_command(std::string_view name);

// The arch of --arch, or that of the host's CPU.
Result<const ArchSpec*> chosen_arch(const Context& context);

// Choices for completions.
std::vector<std::string> op_choices();
std::vector<std::string> dtype_choices();
std::vector<std::string> rule_set_choices();
std::vector<std::string> arch_choices();
std::vector<std::string> family_choices();
std::vector<std::string> command_choices();
std::vector<std::string> cache_choices();
std::vector<std::string> shell_choices();
std::vector<std::string> peer_choices();
// "unknown KIND 'WORD'; …", with those there are.
Error unknown_choice(std::string_view kind, std::string_view word, const std::vector<std::string>& choices);

Result<int> run_kernels(Context& context);
Result<int> run_check(Context& context);
Result<int> run_arch(Context& context);
Result<int> run_select(Context& context);
Result<int> run_doctor(Context& context);
Result<int> run_run(Context& context);
Result<int> run_bench(Context& context);
Result<int> run_build(Context& context);
Result<int> run_tune(Context& context);
Result<int> run_sweep(Context& context);
Result<int> run_sweep_worker(Context& context);
Result<int> run_problems(Context& context);
Result<int> run_fit(Context& context);
Result<int> run_cache(Context& context);
Result<int> run_completion(Context& context);
Result<int> run_verb(Context& context);
Result<int> run_help(Context& context);

std::string help_text();
std::string help_text(const Command& command);

}  // namespace tilewise::cli
