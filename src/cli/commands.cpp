// SPDX-License-Identifier: MIT
// The table of subcommands and what they share.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/manual.hpp"
#include "cli/problem_set.hpp"
#include "cli/terminal.hpp"
#include "config/family_id.hpp"
#include "config/rule_set.hpp"
#include "device/cpu/host_cpu.hpp"
#include "select/dispatcher.hpp"
#include "sweep/sweep_plan.hpp"

namespace tilewise::cli {
namespace {

std::vector<std::string> kernel_pool_choices() {
    return {EnumNames<KernelPool>::names.begin(), EnumNames<KernelPool>::names.end()};
}
std::vector<std::string> strategy_choices() {
    return {EnumNames<Strategy>::names.begin(), EnumNames<Strategy>::names.end()};
}
std::vector<std::string> colour_choices() { return {"auto", "always", "never"}; }

constexpr Option kGlobal[] = {
    {"json", "", "print JSON"},
    {"arch-file", "FILE", "add an arch from a file (may be repeated)"},
    {"threads", "N", "CPU threads to use; unless given those of TILEWISE_THREADS, OMP_NUM_THREADS, or every CPU"},
    {"pack", "FILE", "a pack of built kernels to look in (may be repeated)"},
    {"model-dir", "DIR", "a learned selection model, or a folder of them, to ask first (may be repeated)"},
    {"color", "WHEN", "auto, always or never", colour_choices},
    {"help", "", "show help"},
    {"version", "", "show the version"},
};

constexpr Option kArch = {"arch", "ARCH", "target; the CPU of this machine unless given", arch_choices};
constexpr Option kRuleSet = {
    "rule-set", "SET", "default (unless given), profiler, tests, full, full-tests, tiny or builtin", rule_set_choices};

constexpr Option kKernelsOptions[] = {
    {"op", "OP", "gemm, conv_fwd, conv_bwd_data or conv_bwd_weight", op_choices},
    kArch,
    kRuleSet,
    {"dtype", "DTYPE", "fp32, fp16, bf16, fp8, bf8, int8, or a pair such as fp8_bf8", dtype_choices},
    {"count", "", "print only how many there are"},
    {"export", "FILE", "write the registry with statistics to a JSON file"},
    {"fields", "", "explain the fields of a kernel config instead"},
    {"schema", "", "print the JSON schema of a kernel config instead"},
    {"families", "", "list the families of kernels instead, with how many kernels of the rule set each has"},
    {"manifest", "", "print count and digest of every rule set of every arch instead"},
};
constexpr Option kCheckOptions[] = {{"fix", "", "show each correction and its rule, and the corrected config"},
                                    {"rules", "", "list the rules and their reasons instead"}};
constexpr Option kStrategy = {"strategy", "S", "auto, rules, first-fit, measure or model", strategy_choices};
constexpr Option kSelectOptions[] = {
    kArch,
    kRuleSet,
    kStrategy,
    {"top", "N", "show so many candidates (10)"},
    {"explain", "", "say what the time of the chosen kernel is made of, and why each of the others may not run"},
};

constexpr Option kDevice = {"device", "DEVICE",
                            "cpu (unless given), cuda:0, hip:0 and so on, or emulated:ARCH, a slow GPU"};
constexpr Option kCpuArch = {"arch", "ARCH", "kind of CPU to be; the richest this machine is unless given",
                             arch_choices};
constexpr Option kKernel = {"kernel", "NAME|CONFIG.json", "this kernel and no other"};
constexpr Option kProblems = {"problems", "FILE|SET",
                              "problems, one a line, # starts a comment, - reads standard input; or a set",
                              problem_set_names};
constexpr Option kTop = {"top", "N", "number of kernels to measure (8 on a CPU, 16 on a GPU)"};

constexpr Option kAgain = {"again", "", "measure again; only a faster kernel replaces the remembered winner"};

constexpr Option kRunOptions[] = {
    {"validate", "", "check the result against a reference"},
    {"strict", "", "fail instead of making a compromise, such as padding"},
    kStrategy,
    kKernel,
    kRuleSet,
    kTop,
    kAgain,
    kDevice,
    kCpuArch,
};
constexpr Option kBenchOptions[] = {
    kProblems,
    {"all", "", "time every kernel that may run the problem"},
    {"csv", "", "print comma-separated values"},
    {"peer", "NAME[=FILE]", "compare plain products with onednn or openblas (may be repeated)", peer_choices},
    kStrategy,
    kKernel,
    kRuleSet,
    kTop,
    kAgain,
    kDevice,
    kCpuArch,
};
constexpr Option kTuneOptions[] = {kProblems, kRuleSet, kTop, kAgain, kDevice, kCpuArch};
constexpr Option kKernelPool = {
    "kernels", "POOL", "all (unless given), or sample: the best by the model, other kinds, and some of the rest",
    kernel_pool_choices};
constexpr Option kSweepOptions[] = {
    kProblems,
    {"out", "FILE.csv", "where the records go"},
    kRuleSet,
    {"config", "FILE.json", "these kernels, not a rule set: names, or configs with lists of values"},
    kKernelPool,
    {"resume", "", "go on with a file, and measure nothing twice"},
    {"shard", "I/N", "only part I of N, 1/N to N/N, of the problems: for several devices or machines"},
    {"workers", "N", "compilers at a time"},
    {"budget", "TIME", "end after this time, such as 90s, 25m or 2h; the rest is recorded as skipped"},
    {"timeout", "S", "seconds to wait for the answer of a kernel (60)"},
    {"seed", "N", "seed for the order of problems and for samples (0)"},
    kDevice,
    kCpuArch,
};
constexpr Option kWorkerOptions[] = {kDevice, kCpuArch};
constexpr Option kBuildOptions[] = {
    {"arch", "ARCH[,ARCH]", "targets; the CPU of this machine unless given", arch_choices},
    kRuleSet,
    {"op", "OP", "gemm, conv_fwd, conv_bwd_data or conv_bwd_weight", op_choices},
    {"dtype", "DTYPE", "fp32, fp16, bf16, fp8, bf8, int8, or a pair such as fp8_bf8", dtype_choices},
    {"jobs", "N", "compilers at a time"},
    {"epilogues", "LIST", "also build GPU kernels for each of these, such as bias+gelu, or common"},
    {"problems", "FILE|SET", "build the kernels of these problems, not of a rule set; - reads standard input",
     problem_set_names},
    {"top", "N", "with --problems: number of best kernels of each (1)"},
    {"kernels", "POOL", "with --problems: those that a sweep measures, all or sample, not the best",
     kernel_pool_choices},
    {"seed", "N", "with --kernels sample: the seed of the sweep (0)"},
    {"most", "N", "with --problems: at most so many kernels, those that most problems need"},
    {"shard", "I/N", "only part I of N, 1/N to N/N, of the distinct sources: for several machines or sittings"},
    {"pack", "FILE", "also write the kernels into one file (sm_80: with PTX for later GPUs)"},
};
constexpr Option kFitOptions[] = {
    {"chip", "NAME|CHIP.json", "the chip that was measured, whose prices the fit starts from", chip_names},
    {"family", "FAMILY", "only records of this family", family_choices},
    {"hold", "W", "how strongly prices keep their values, such as 1; hardly unless given"},
    {"out", "FILE", "write the chip with the found prices there; to standard output unless given"},
};
constexpr Option kProblemsOptions[] = {
    {"first", "N", "only the first N problems of the set, a fair sample of it"},
    {"dtype", "DTYPE", "the set in another type: fp32, fp16, bf16, fp8, bf8 or int8", dtype_choices},
};
constexpr Option kHelpOptions[] = {{"man", "", "print the manual page, as troff"}};
constexpr Option kDoctorOptions[] = {{"all", "", "also list the environment variables that are not set"}};
constexpr Option kCacheOptions[] = {{"max", "BYTES", "prune: most bytes to keep, such as 512M"}};
constexpr int kManyOperands = 1000;
constexpr std::string_view kProblemSays =
    "PROBLEM is a line such as gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr\n"
    "or conv_fwd:n=64,g=2,c=96,k=96,in=56x56,filter=3x3,pad=1x1,dtype=bf16 (docs/problems.md)";

constexpr std::string_view kProblemsSay =
    "PROBLEM is a line such as gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr\n"
    "or conv_fwd:n=64,g=2,c=96,k=96,in=56x56,filter=3x3,pad=1x1,dtype=bf16 (docs/problems.md).\n"
    "m=64:4096*2 stands for 64, 128, ... 4096, and m=64:256+32 for 64, 96, ... 256.";

constexpr Command verb(std::string_view name, std::string_view operands, std::string_view summary,
                       std::string_view extra) {
    return {name, operands, 0, kManyOperands, summary, "", {}, run_verb, nullptr, extra};
}

const Command kCommands[] = {
    {"run", "PROBLEM", 1, 1, "choose, build and run a kernel for a problem", kProblemSays, kRunOptions, run_run},
    {"kernels", "", 0, 0, "list the kernels of a rule set", "", kKernelsOptions, run_kernels},
    {"check", "CONFIG.json|NAME", 0, 1, "check a kernel config; --fix corrects it",
     "CONFIG is a kernel name, a JSON file, - for JSON on standard input, or the JSON itself.\n"
     "Exit code 0: valid (with --fix: valid once corrected); 1: not.",
     kCheckOptions, run_check},
    {"arch", "[NAME]", 0, 1, "list the targets, or show one", "", {}, run_arch, arch_choices},
    {"select", "PROBLEM", 1, 1, "show which kernels may run a problem, and which is chosen", kProblemSays,
     kSelectOptions, run_select},
    {"build", "", 0, 0, "compile the kernels of a rule set, or of a list of problems, ahead", "", kBuildOptions,
     run_build},
    {"bench", "[PROBLEM…]", 0, kManyOperands, "time kernels on problems", kProblemsSay, kBenchOptions, run_bench},
    {"tune", "[PROBLEM…]", 0, kManyOperands, "measure the best few kernels for problems and remember the winners",
     kProblemsSay, kTuneOptions, run_tune},
    {"sweep", "", 0, 0, "measure many kernels on many problems, and check every result",
     "Each measurement is a record of FILE.csv, also of a failure, written as it comes: whatever ends a sweep, "
     "--resume\n"
     "goes on with it (docs/sweep.md).",
     kSweepOptions, run_sweep},
    {"problems", "[SET]", 0, 1, "list the problem sets, or print one",
     "A set is printed as --problems reads it: a problem a line, and the network or class it comes from behind it.",
     kProblemsOptions, run_problems, problem_set_names},
    {"fit", "RECORDS", 1, 1, "find the prices of a chip from measured times",
     "RECORDS is a table (CSV with a header) with the columns problem, kernel_name, time_us and status, which is ok\n"
     "where the time counts. The prices are those for which predicted times come closest (docs/chips.md).",
     kFitOptions, run_fit},
    verb("cluster", "", "sweep on many devices, here or on other machines", "cluster"),
    verb("convert", "RECORDS…", "merge records into one table, with what their names say as columns", "report"),
    verb("crawl", "MODEL", "list the problems of a model", "onnx"),
    verb("predict", "PROBLEM", "predict the times of kernels by the learned model", "numpy"),
    verb("report", "RECORDS…", "write a page about records, to look at in a browser", "report"),
    verb("train", "", "learn from records which kernel to choose", "train"),
    verb("validate", "CHECK", "judge the learned choice of kernels", "train"),
    {"cache", "ls|stats|verify|prune|clear", 1, 1, "look after the built kernels", "", kCacheOptions, run_cache,
     cache_choices},
    {"doctor", "", 0, 0, "report on this machine and this build",
     "ok: it works; warn: not everybody needs it; FAIL: the library needs it. Exit code 1 where anything is FAIL.",
     kDoctorOptions, run_doctor},
    {"completion",
     "SHELL",
     1,
     1,
     "print completions for bash, zsh or fish",
     "bash: source <(tilewise completion bash)\nzsh:  source <(tilewise completion zsh)\n"
     "fish: tilewise completion fish | source",
     {},
     run_completion,
     shell_choices},
    {"help", "[COMMAND]", 0, 1, "show help; with --json every command, option and variable", "", kHelpOptions, run_help,
     command_choices},
};

// The process of a sweep that touches the device; only a sweep starts one.
const Command kSweepWorker = {"sweep-worker", "", 0, 0, "serve a sweep", "", kWorkerOptions, run_sweep_worker};

template <class E>
std::vector<std::string> names_of() {
    return {EnumNames<E>::names.begin(), EnumNames<E>::names.end()};
}

std::string option_line(const Option& option) {
    const std::string left = fmt::format("--{}{}{}", option.name, option.value.empty() ? "" : " ", option.value);
    constexpr std::size_t kColumn = 27;  // the longest and two spaces
    return fmt::format("  {:<{}}{}\n", left, kColumn, option.help);
}

}  // namespace

std::span<const Command> commands() { return kCommands; }
std::span<const Option> global_options() { return kGlobal; }

std::vector<Option> global_options(const Command& command) {
    std::vector<Option> left;
    for (const Option& option : kGlobal) {
        const bool own = std::any_of(command.options.begin(), command.options.end(),
                                     [&](const Option& other) { return other.name == option.name; });
        if (!own) left.push_back(option);
    }
    return left;
}

const Command* find_command(std::string_view name) {
    for (const Command& command : kCommands) {
        if (command.name == name) return &command;
    }
    if (name == kSweepWorker.name) return &kSweepWorker;
    return nullptr;
}

Result<const ArchSpec*> chosen_arch(const Context& context) {
    if (const auto name = context.arguments.value("arch")) return context.archs.find(*name);
    return host_cpu_arch(context.archs);
}

std::vector<std::string> op_choices() { return names_of<Op>(); }
std::vector<std::string> dtype_choices() { return names_of<DType>(); }
std::vector<std::string> rule_set_choices() { return names_of<RuleSet>(); }
std::vector<std::string> cache_choices() { return {"ls", "stats", "verify", "prune", "clear"}; }
std::vector<std::string> shell_choices() { return {"bash", "zsh", "fish"}; }
std::vector<std::string> command_choices() {
    std::vector<std::string> names;
    for (const Command& command : kCommands) names.emplace_back(command.name);
    return names;
}
std::vector<std::string> family_choices() { return names_of<FamilyId>(); }
std::vector<std::string> arch_choices() {
    std::vector<std::string> names;
    const auto catalog = ArchCatalog::embedded();
    if (!catalog) return names;
    for (const ArchSpec& arch : catalog->archs()) names.push_back(arch.name);
    return names;
}

Error unknown_choice(std::string_view kind, std::string_view word, const std::vector<std::string>& choices) {
    return usage_error(unknown_word(kind, word, std::vector<std::string_view>(choices.begin(), choices.end())));
}

std::string help_text() {
    std::string text =
        "tilewise: selects, builds and runs the fastest tile kernel for a GEMM or grouped convolution\n\n"
        "usage: tilewise COMMAND [operands] [options]\n\ncommands:\n";
    for (const Command& command : kCommands) text += fmt::format("  {:<12}{}\n", command.name, command.summary);
    text += "\noptions of every command:\n";
    for (const Option& option : kGlobal) text += option_line(option);
    return text +
           "\ntilewise COMMAND --help says more. Exit codes: 0 ok, 1 check failed, 2 usage, 3 unsupported problem,\n"
           "4 toolchain, 5 device.";
}

Result<int> run_help(Context& context) {
    const auto& operands = context.arguments.operands();
    if (context.arguments.has("man")) return print(manual_page()), 0;
    if (context.json) return print(commands_json().dump()), 0;
    if (operands.empty()) return print(help_text()), 0;
    if (const Command* command = find_command(operands.front())) return print(help_text(*command)), 0;
    return unknown_choice("command", operands.front(), command_choices());
}

std::string help_text(const Command& command) {
    std::string text =
        fmt::format("tilewise {}: {}\n\nusage: tilewise {} {}{}[options]\n", command.name, command.summary,
                    command.name, command.operands, command.operands.empty() ? "" : " ");
    if (command.is_verb()) {
        return text + fmt::format("\nA program of the Python package; tilewise {} --help says which options it has.",
                                  command.name);
    }
    if (!command.details.empty()) text += fmt::format("\n{}\n", command.details);
    if (!command.options.empty()) text += "\noptions:\n";
    for (const Option& option : command.options) text += option_line(option);
    text += "\noptions of every command:\n";
    for (const Option& option : global_options(command)) text += option_line(option);
    text.pop_back();
    return text;
}

}  // namespace tilewise::cli
