// SPDX-License-Identifier: MIT
// Finds the code that problems need, to build it ahead: that of the kernels that would be chosen, for the problem's own epilogue, and the
// kernel that pads where they pad. For an arch that need not be here, or on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "build/build_request.hpp"
#include "config/arch_spec.hpp"
#include "config/rule_set.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"
#include "select/runtime.hpp"
#include "select/shortlist.hpp"
#include "select/tuning_database.hpp"

namespace tilewise {

// The requests for one kernel on a problem, as one of code_suffixes(arch).
Result<std::vector<BuildRequest>> launch_requests(const Problem& problem, const KernelConfig& config,
                                                  const ArchSpec& arch, std::string_view suffix);

// The same on a device, as the builder's settings and what is there already say.
Result<std::vector<BuildRequest>> launch_requests(const Problem& problem, const KernelConfig& config,
                                                  const Device& device, Builder& builder);
// The kernels of one problem on a runtime's device: the one that is chosen, or all that would be measured.
Result<KernelList> needed_kernels(Runtime& runtime, const Problem& problem, const SelectOptions& options);

struct NeededKernel {
    KernelPtr kernel;
    std::size_t problem = 0;  // the first that needs it, with its epilogue
    std::size_t uses = 0;     // how many need it with that epilogue
};

struct NeedOptions {
    RuleSet rule_set = RuleSet::standard;
    int threads = 1;      // of a CPU
    std::size_t top = 1;  // so many of the best of each problem
    // A pool that a sweep would measure, in place of the best.
    std::optional<KernelPool> pool{};
    std::uint64_t seed = 0;  // of a sample
    // Kernels that were measured on a device of the arch are needed, too.
    std::span<const TuningRecord> tuned{};
};

// Kernels that most problems need come first. A problem that no kernel may run is an error, unless a sweep leaves it out.
Result<std::vector<NeededKernel>> needed_kernels(std::span<const Problem> problems, const ArchSpec& arch,
                                                 const NeedOptions& options);

}  // namespace tilewise
