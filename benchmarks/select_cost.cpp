// SPDX-License-Identifier: MIT
// select_cost: what a choice costs that was not made before, and what it spends its time on. Asks a dispatcher for the plans of distinct
// problems, those of the test sets, as a program that meets them for the first time does, on a device that runs nothing; kernels of the
// types are listed beforehand. Times are CPU time of the thread, each the least of a few rounds. Where there is a learned model, a second
// line has what the choice costs that it makes.
//   select_cost [FOLDER] [MODELS]    with the problem sets, problems/ otherwise; a folder of learned models beside the library's own
#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "build/build_settings.hpp"
#include "config/arch_catalog.hpp"
#include "device/null/null_device.hpp"
#include "problem/problem.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "select/choice_table.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {
namespace {

constexpr int kRounds = 5;
struct Set {
    Op op;
    const char* file;
};
constexpr Set kSets[] = {{Op::gemm, "gemm_test.txt"},
                         {Op::conv_fwd, "forward_test.txt"},
                         {Op::conv_bwd_data, "bwd_data_test.txt"},
                         {Op::conv_bwd_weight, "bwd_weight_test.txt"}};

std::vector<Problem> problems_of(const std::filesystem::path& path) {
    std::vector<Problem> problems;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        auto problem = parse_problem(line.substr(0, line.find("  #")));
        if (problem) problems.push_back(std::move(*problem));
    }
    return problems;
}

double cpu_us() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Microseconds of each choice; those of problems that no kernel takes count as well.
std::vector<double> times_of(Dispatcher& dispatcher, const std::vector<Problem>& problems, Strategy strategy) {
    SelectOptions options;
    options.strategy = strategy;
    std::vector<double> times(problems.size(), 1e9);
    for (int round = 0; round < kRounds; ++round) {
        dispatcher.forget_plans();
        for (std::size_t i = 0; i < problems.size(); ++i) {
            const double begin = cpu_us();
            static_cast<void>(dispatcher.plan(problems[i], options));
            times[i] = std::min(times[i], cpu_us() - begin);
        }
    }
    std::sort(times.begin(), times.end());
    return times;
}

// Where the time of a choice goes, in the mean.
struct Parts {
    ChoiceCost search;
    double features_us = 0, trees_us = 0;
};

// What a model does with the candidates of a problem.
void add_learned(const Model& model, const Problem& problem, const ArchSpec& arch,
                 const std::vector<Candidate>& candidates, Parts& parts) {
    const double begin = cpu_us();
    const WorkProblem work(problem, arch, 1);
    const ProblemFeatures features(work);
    std::vector<double> rows(candidates.size() * model.forest().column_count()), sums(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const Candidate& one = candidates[i];
        features.fill(one.kernel->config, *one.predicted_us, *one.parts, &rows[i * model.forest().column_count()]);
    }
    const double filled = cpu_us();
    model.forest().score(rows, sums);
    parts.features_us += filled - begin, parts.trees_us += cpu_us() - filled;
}

// Of a model, or without one.
Parts cost_of(const std::vector<Problem>& problems, const ArchSpec& arch, const Model* model) {
    Parts parts;
    ChoiceCost& cost = parts.search;
    auto kernels = list_kernels(query_for(problems.front(), arch, RuleSet::standard));
    if (!kernels) return parts;
    Registry registry;
    registry.add(std::move(*kernels));
    const ChoiceTable table(*registry.kernels(), arch);
    for (const Problem& problem : problems) {
        const auto found = model ? table.to_learn(problem, 1, &cost) : table.first(problem, 1, 1, &cost);
        if (model) add_learned(*model, problem, arch, found, parts);
    }
    const auto count = static_cast<double>(problems.size());
    for (double* us : {&cost.bounds_us, &cost.plans_us, &cost.analytic_us, &parts.features_us, &parts.trees_us})
        *us /= count;
    return parts;
}

void print_line(std::string_view arch, Op op, const std::vector<double>& times, const Parts& parts, bool is_learned) {
    const ChoiceCost& cost = parts.search;
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    const double rest = mean - cost.bounds_us - cost.plans_us - cost.analytic_us - parts.features_us - parts.trees_us;
    std::puts(fmt::format("{:11} {:16} {:8} {:9.1f} {:8.1f} {:8.1f} {:18.1f} {:8.1f} {:8.1f} {:8.1f} {:8.1f} {:8.1f}",
                          arch, name_of(op), is_learned ? "model" : "rules", times[times.size() / 2],
                          times[times.size() * 99 / 100], times.back(), cost.bounds_us, cost.plans_us, cost.analytic_us,
                          parts.features_us, parts.trees_us, std::max(0.0, rest))
                  .c_str());
}

void measure(Dispatcher& dispatcher, Op op, const std::vector<Problem>& problems, ModelStore& models) {
    const ArchSpec& arch = dispatcher.device().arch();
    print_line(arch.name, op, times_of(dispatcher, problems, Strategy::rules), cost_of(problems, arch, nullptr), false);
    const auto& model = models.find(problems.front(), arch).model;
    if (!model) return;
    print_line(arch.name, op, times_of(dispatcher, problems, Strategy::model), cost_of(problems, arch, &*model), true);
}

int run(const std::filesystem::path& folder, const std::vector<std::string>& model_dirs) {
    const auto archs = ArchCatalog::embedded();
    auto settings = build_settings();
    if (!archs || !settings) return 1;
    settings->cache_dir = std::filesystem::temp_directory_path() / fmt::format("tilewise-select-cost-{}", getpid());
    ModelStore models(model_dirs);
    std::puts(
        "arch        operation        by       median us   P99 us  most us    mean us: bounds    plans analytic "
        "features    trees     rest");
    for (const char* name : {"cpu-avx2", "cpu-avx512", "cpu-amx", "sm_80", "sm_90a", "gfx90a", "gfx942", "gfx950"}) {
        NullDevice device(**archs->find(name));
        Builder builder(*settings);
        Dispatcher dispatcher(device, builder, nullptr);
        dispatcher.use_models(models);
        for (const auto& [op, file] : kSets) {
            const std::vector<Problem> problems = problems_of(folder / file);
            if (problems.empty()) {
                std::fputs(fmt::format("no problems in {}\n", (folder / file).string()).c_str(), stderr);
                return 1;
            }
            measure(dispatcher, op, problems, models);
        }
    }
    std::filesystem::remove_all(settings->cache_dir);
    return 0;
}

}  // namespace
}  // namespace tilewise

int main(int count, char** words) {
    std::vector<std::string> models;
    if (count > 2) models.emplace_back(words[2]);
    return tilewise::run(count > 1 ? words[1] : "problems", models);
}
