// SPDX-License-Identifier: MIT
// The work of a sweep: which problems, in which order, and which kernels on each. The same for the same problems, seed and
// kernels, whoever asks, so that a sweep that goes on and the parts of one that is shared out agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/rejected.hpp"
#include "base/result.hpp"
#include "config/kernel_config.hpp"
#include "config/rule_set.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"
#include "select/dispatcher.hpp"
#include "select/shortlist.hpp"

namespace tilewise {

struct SweepProblem {
    Problem problem;
    std::string network;  // that it comes from; may be empty
};

struct Shard {
    std::size_t index = 0, count = 1;  // part index of 0 .. count - 1
};

// Indices of the shard's problems, shuffled by the seed: whenever a sweep ends, what it has is a fair part of all.
std::vector<std::size_t> sweep_order(std::size_t problems, std::uint64_t seed, const Shard& shard);

struct PlannedKernel {
    KernelPtr kernel;
    std::optional<double> predicted_us;
    std::optional<Rejected> rejected{};  // only of one that was named
};

struct PoolOptions {
    RuleSet rule_set = RuleSet::standard;
    const std::vector<KernelConfig>* configs = nullptr;  // in place of a rule set
    KernelPool pool = KernelPool::all;
    std::uint64_t seed = 0;
};

// In the model's order, best first.
Result<std::vector<PlannedKernel>> planned_kernels(Dispatcher& dispatcher, const Problem& problem,
                                                   const PoolOptions& options);

// Configs of a file: a kernel's name, an object of config fields, each with one value or a list of values that all are tried, or a
// list of these. An error names the file and line.
Result<std::vector<KernelConfig>> read_sweep_configs(const std::string& path);

}  // namespace tilewise
