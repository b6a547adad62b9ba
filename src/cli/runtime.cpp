// SPDX-License-Identifier: MIT
#include "cli/runtime.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <limits>

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/terminal.hpp"
#include "config/config_json.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::cli {
namespace {

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

}  // namespace

Result<int> threads_option(const Context& context) {
    auto threads = read_number(context, "threads", 0, 0);
    if (!threads) return threads.error();
    return static_cast<int>(*threads);
}

Result<Runtime> open_runtime(const Context& context) {
    RuntimeOptions options;
    options.device = context.arguments.value("device").value_or(options.device);
    const auto threads = threads_option(context);
    if (!threads) return threads.error();
    options.device_options = {context.arguments.value("arch").value_or(""), *threads};
    options.packs = context.arguments.values("pack");
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
    return options;
}

Result<Choice> read_choice(const Context& context) {
    Choice choice;
    if (const auto named = context.arguments.value("kernel")) {
        if (context.arguments.has("strategy")) {
            return usage_error("--kernel names the kernel, --strategy chooses one: give one of them");
        }
        auto config = read_config_operand(*named);
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

Result<std::vector<Problem>> read_problems(const Context& context) {
    std::vector<Problem> problems;
    for (const std::string& text : context.arguments.operands()) {
        auto problem = read_problem(text);
        if (!problem) return problem.error();
        problems.push_back(std::move(*problem));
    }
    for (const std::string& path : context.arguments.values("problems")) {
        auto text = read_file(path);
        if (!text) return text.error();
        int line_number = 0;
        for (const std::string_view line : split(*text, '\n')) {
            ++line_number;
            const std::string_view body = trim(line.substr(0, line.find('#')));
            if (body.empty()) continue;
            auto problem = parse_problem(body);
            if (!problem) {
                return Error{problem.error().code,
                             fmt::format("{}:{}: {}", path, line_number, problem.error().message)};
            }
            problems.push_back(std::move(*problem));
        }
    }
    if (problems.empty()) return usage_error("no problem given: name one, or a file with --problems");
    return problems;
}

Result<KernelConfig> read_config_operand(const std::string& operand) {
    if (operand == "-") {
        const std::string text(std::istreambuf_iterator<char>(std::cin), {});
        return read_config(text);
    }
    auto text = read_file(operand);
    if (text) {
        auto config = read_config(*text);
        if (!config) return Error{config.error().code, fmt::format("{}: {}", operand, config.error().message)};
        return config;
    }
    const bool is_config = operand.find('@') != std::string::npos || operand.starts_with('{');
    if (is_config) return read_config(operand);
    return usage_error(fmt::format("{}; a kernel name ends in @arch, such as …_32x32x16@gfx942", text.error().message));
}

}  // namespace tilewise::cli
