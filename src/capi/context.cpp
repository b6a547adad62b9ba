// SPDX-License-Identifier: MIT
// The C functions on a context: opening a device, and timing problems on it.
#include "base/text.hpp"
#include "capi/archs.hpp"
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "config/config_json.hpp"
#include "problem/problem_text.hpp"
#include "select/bench.hpp"

namespace tilewise::capi {

Result<Choice> read_choice(const tilewise_select_options* given) {
    tilewise_select_options from{};
    if (given) {
        if (auto status = read_sized(given, "tilewise_select_options", from); !status) return status.error();
    }
    Choice choice;
    if (from.kernel) {
        auto config = read_config(from.kernel);
        if (!config) return config.error();
        choice.kernel = std::move(*config);
    }
    if (from.strategy) {
        const auto strategy = parse_enum<Strategy>(from.strategy);
        if (!strategy) return strategy.error();
        choice.options.strategy = *strategy;
    }
    if (from.rule_set) {
        const auto set = parse_enum<RuleSet>(from.rule_set);
        if (!set) return set.error();
        choice.options.rule_set = *set;
    }
    if (from.top < 0) return usage_error("tilewise_select_options: top is negative; need 0 or more");
    choice.options.stream = from.stream;
    if (from.top > 0) choice.options.measure_top = static_cast<std::size_t>(from.top);
    return choice;
}

Result<Problem> read_problem_argument(const char* text) {
    if (!text) return usage_error("the problem is NULL");
    return read_problem(text);
}

namespace {

Result<RuntimeOptions> read_context_options(const char* device, const tilewise_context_options* given) {
    if (!device) return usage_error("the device is NULL; need a name such as cpu");
    tilewise_context_options from{};
    if (given) {
        if (auto status = read_sized(given, "tilewise_context_options", from); !status) return status.error();
    }
    RuntimeOptions options;
    options.device = device;
    if (from.arch) options.device_options.arch = from.arch;
    options.device_options.threads = from.threads;
    for (const std::string_view pack : split(from.packs ? from.packs : "", ':')) {
        if (!pack.empty()) options.packs.emplace_back(pack);
    }
    return options;
}

Status create(const char* device, const tilewise_context_options* given, tilewise_context** out) {
    if (!out) return usage_error("the output pointer is NULL");
    *out = nullptr;
    if (!archs()) return archs().error();
    const auto options = read_context_options(device, given);
    if (!options) return options.error();
    auto runtime = open_runtime(*options, *archs());
    if (!runtime) return runtime.error();
    *out = new tilewise_context{std::make_shared<Runtime>(std::move(*runtime))};
    return {};
}

Result<std::string> bench(tilewise_context* context, const char* text, const tilewise_select_options* given, bool all) {
    if (!context) return usage_error("the context is NULL");
    const auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    const auto choice = read_choice(given);
    if (!choice) return choice.error();
    const auto outcome = bench_problem(*context->runtime, *problem, *choice, all);
    if (!outcome) return outcome.error();
    Json::Array results, failures;
    for (const BenchRow& row : outcome->rows) results.push_back(bench_row_to_json(*problem, row));
    for (const Failed& failed : outcome->failed) failures.push_back(bench_failure_to_json(*problem, failed));
    return bench_to_json(*context->runtime->device, std::move(results), std::move(failures)).dump();
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_context_create(const char* device, const tilewise_context_options* options,
                                        tilewise_context** context) {
    return tilewise::capi::guarded([&] { return tilewise::capi::create(device, options, context); });
}

void tilewise_context_destroy(tilewise_context* context) { delete context; }

tilewise_status tilewise_bench(tilewise_context* context, const char* problem, const tilewise_select_options* options,
                               int all, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::bench(context, problem, options, all != 0); });
}

}  // extern "C"
