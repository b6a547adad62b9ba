// SPDX-License-Identifier: MIT
#include "cli/runtime.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <limits>

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/problem_set.hpp"
#include "cli/terminal.hpp"
#include "device/cpu/thread_pool.hpp"
#include "problem/problem_ranges.hpp"
#include "problem/problem_text.hpp"
#include "registry/read_kernel.hpp"

namespace tilewise::cli {
namespace {

std::string read_standard_input() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

}  // namespace

Result<std::int64_t> read_number(const Context& context, std::string_view option, std::int64_t otherwise,
                                 std::int64_t least) {
    const auto text = context.arguments.value(option);
    if (!text) return otherwise;
    const auto number = parse_integer(*text);
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    if (!number || *number < least || *number > kMost) {
        return usage_error(
            fmt::format("--{} takes a whole number from {} to {}, not '{}'", option, least, kMost, *text));
    }
    return *number;
}

Result<GivenShard> read_shard(const Context& context) {
    const auto given = context.arguments.value("shard");
    if (!given) return GivenShard{};
    const auto parts = split(*given, '/');
    const auto index = parse_integer(parts[0]), count = parse_integer(parts.back());
    if (parts.size() != 2 || !index || !count || *index < 1 || *index > *count) {
        return usage_error(fmt::format("--shard takes I/N with I from 1 to N, such as 2/8, not '{}'", *given));
    }
    return GivenShard{*index, *count};
}

Result<int> threads_option(const Context& context) {
    auto threads = read_number(context, "threads", 0, 0);
    if (!threads) return threads.error();
    return static_cast<int>(*threads);
}

Result<int> chosen_threads(const Context& context) {
    const auto threads = threads_option(context);
    return threads && *threads == 0 ? default_threads() : threads;
}

Result<std::vector<std::string>> model_dirs(const Context& context) {
    std::vector<std::string> folders = context.arguments.values("model-dir");
    for (const std::string& folder : folders) {
        if (auto status = check_model_folder(folder); !status) return status.error();
    }
    return folders;
}

Result<std::unique_ptr<ModelStore>> given_models(const Context& context) {
    auto folders = model_dirs(context);
    if (!folders) return folders.error();
    for (std::string& folder : ModelStore::usual_folders()) folders->push_back(std::move(folder));
    return std::make_unique<ModelStore>(std::move(*folders));
}

Result<Runtime> open_runtime(const Context& context) {
    RuntimeOptions options;
    options.device = context.arguments.value("device").value_or(options.device);
    const auto threads = threads_option(context);
    if (!threads) return threads.error();
    options.device_options = {context.arguments.value("arch").value_or(""), *threads};
    options.packs = context.arguments.values("pack");
    auto folders = model_dirs(context);
    if (!folders) return folders.error();
    options.model_dirs = std::move(*folders);
    return tilewise::open_runtime(options, context.archs);
}

Result<SelectOptions> select_options(const Context& context) {
    SelectOptions options;
    const auto strategy = parse_enum<Strategy>(context.arguments.value("strategy").value_or("auto"));
    if (!strategy) return strategy.error();
    options.strategy = *strategy;
    const auto set = parse_enum<RuleSet>(context.arguments.value("rule-set").value_or("default"));
    if (!set) return set.error();
    options.rule_set = *set;
    const auto top = read_number(context, "top", static_cast<std::int64_t>(options.measure_top), 1);
    if (!top) return top.error();
    options.measure_top = static_cast<std::size_t>(*top);
    options.again = context.arguments.has("again");
    return options;
}

Result<Choice> read_choice(const Context& context) {
    Choice choice;
    if (const auto named = context.arguments.value("kernel")) {
        if (context.arguments.has("strategy")) {
            return usage_error("--kernel names the kernel, --strategy chooses one: give one of them");
        }
        auto config = read_config_operand(context, *named);
        if (!config) return config.error();
        choice.kernel = std::move(*config);
    }
    auto options = select_options(context);
    if (!options) return options.error();
    options->progress = progress_of(0, 1);
    choice.options = std::move(*options);
    return choice;
}

MeasureProgress progress_of(std::size_t i, std::size_t problems) {
    return [=](std::size_t done, std::size_t total, std::string_view doing) {
        show_progress(i * total + done, problems * total, doing);
    };
}

namespace {

// Adds the problems of one line; `place` stands before what is wrong with it.
Status add_problems(std::string_view line, const std::string& place, std::vector<GivenProblem>& given) {
    const auto wrong = [&](const Error& error) { return Error{error.code, place + error.message}; };
    const auto texts = expand_ranges(line);
    if (!texts) return wrong(texts.error());
    for (const std::string& text : *texts) {
        auto problem = read_problem(text);
        if (!problem && problem.error().code != ErrorCode::unsupported) return wrong(problem.error());
        given.push_back({text, problem ? std::move(problem) : Result<Problem>(wrong(problem.error()))});
    }
    return {};
}

Status add_file(const std::string& path, std::vector<GivenProblem>& given) {
    const auto text = path == "-" ? Result<std::string>(read_standard_input()) : read_problem_list(path);
    if (!text) return text.error();
    const std::string name = path == "-" ? "standard input" : path;
    int line_number = 0;
    for (const std::string_view line : split(*text, '\n')) {
        ++line_number;
        const std::string_view body = trim(line.substr(0, line.find('#')));
        if (body.empty()) continue;
        if (auto status = add_problems(body, fmt::format("{}:{}: ", name, line_number), given); !status) return status;
    }
    return {};
}

}  // namespace

Result<std::vector<GivenProblem>> read_given_problems(const Context& context) {
    std::vector<GivenProblem> given;
    for (const std::string& text : context.arguments.operands()) {
        if (auto status = add_problems(text, "", given); !status) return status.error();
    }
    for (const std::string& path : context.arguments.values("problems")) {
        if (auto status = add_file(path, given); !status) return status.error();
    }
    if (!given.empty()) return given;
    const auto files = context.arguments.values("problems");
    if (files.empty()) return usage_error("no problem given: name one, or a file or set with --problems");
    return usage_error(fmt::format("there is no problem in '{}'; need one in a line", files.front()));
}

Result<std::vector<Problem>> read_problems(const Context& context) {
    auto given = read_given_problems(context);
    if (!given) return given.error();
    std::vector<Problem> problems;
    for (GivenProblem& one : *given) {
        if (!one.problem) return one.problem.error();
        problems.push_back(std::move(*one.problem));
    }
    return problems;
}

Result<KernelConfig> read_config_operand(const Context& context, const std::string& operand) {
    if (operand == "-") {
        return read_kernel(read_standard_input(), context.archs);
    }
    auto text = read_file(operand);
    if (text) {
        auto config = read_kernel(*text, context.archs);
        if (!config) return Error{config.error().code, fmt::format("{}: {}", operand, config.error().message)};
        return config;
    }
    const bool is_config = operand.find('@') != std::string::npos || operand.starts_with('{') || is_kernel_id(operand);
    if (is_config) return read_kernel(operand, context.archs);
    return usage_error(
        fmt::format("{}; a kernel's name ends in @arch, such as …_32x32x16@gfx942, its id has 16 hex digits: tilewise "
                    "kernels lists them",
                    text.error().message));
}

}  // namespace tilewise::cli
