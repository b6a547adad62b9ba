// SPDX-License-Identifier: MIT
// Random problems on random kernels of the host's arch, built by the host's compiler, against the reference: every type,
// layout, option and odd size meets every pipeline and micro-kernel over time. TILEWISE_TEST_CONFIGS says how many kernels
// (the default keeps the suite quick; `make test-full` asks for more), TILEWISE_TEST_ARCH another CPU arch that the host is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/random.hpp"
#include "config/archs.hpp"
#include "config/fit.hpp"
#include "config/rule_set.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/random_problem.hpp"
#include "registry/registry.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

int config_count() {
    const char* text = std::getenv("TILEWISE_TEST_CONFIGS");
    return text ? std::atoi(text) : 40;
}

BuildSettings settings_in(const std::string& folder) {
    auto settings = build_settings();
    BuildSettings result = settings ? *settings : BuildSettings{};
    result.cache_dir = folder;
    return result;
}

// A problem for the kernel: its types, a layout of its own, small odd sizes, any options that it takes.
Problem problem_for(Random& random, const KernelConfig& config) {
    Problem types;
    types.dtype_a = config.dtype;
    types.dtype_b = config.dtype_b;
    types.dtype_out = config.dtype_out;
    // Small enough for the reference, also under a sanitizer; larger than any micro-kernel and, at times, than a tile.
    constexpr double kMostFlops = 8e5;
    Problem p;
    do {
        p = types;
        randomize_gemm(random, p, random.chance(70) ? 70 : 300);
    } while (flops(p) > kMostFlops);
    randomize_options(random, p);
    p.packed_b = config.pipeline == Pipeline::preshuffle;
    p.math = Math::strict;
    p.align_bytes = kDefaultAlignBytes;
    p.workspace_bytes = kNoWorkspaceLimit;
    return p;
}

TEST(GemmProperty, RandomProblemsOnRandomKernelsMatchTheReference) {
    const char* wanted = std::getenv("TILEWISE_TEST_ARCH");
    const auto arch = wanted ? embedded_archs().find(wanted) : host_cpu_arch(embedded_archs());
    ASSERT_TRUE(arch.ok());
    const std::string folder =
        std::filesystem::temp_directory_path() / ("tilewise-property-" + std::to_string(getpid()));
    auto device = make_cpu_device(**arch);
    ASSERT_TRUE(device.ok()) << device.error().message;
    Builder builder(settings_in(folder));
    Random random(2026);
    int kernels = 0, runs = 0;
    for (int i = 0; i < config_count(); ++i) {
        const auto pairs = pairs_of(**arch);
        const DTypePair pair = pairs[static_cast<std::size_t>(i) % pairs.size()];
        std::optional<DType> out;
        if (random.chance(30)) out = random.pick(std::array{DType::fp32, DType::bf16, DType::fp16});
        const auto configs = expand(**arch, Op::gemm, pair, RuleSet::full, out);
        ASSERT_TRUE(configs.ok() && !configs->empty());
        const Kernel kernel = make_kernel(random.pick(*configs));
        if ((*device)->refuses(kernel.config)) continue;
        ++kernels;
        for (int j = 0; j < 25; ++j) {
            const Problem problem = problem_for(random, kernel.config);
            if (check_problem(problem) || first_misfit(ProblemView(problem), kernel.config, **arch)) continue;
            auto ready = Executable::prepare(problem, kernel, **device, builder);
            ASSERT_TRUE(ready.ok()) << ready.error().message;
            auto tensors = GemmTensors::make(problem, random.bits());
            ASSERT_TRUE(tensors.ok()) << tensors.error().message;
            const float alpha = suggested_alpha(problem), beta = problem.beta ? 0.5f : 0.0f;
            auto on_device = DeviceTensors::make(**device, *tensors);
            ASSERT_TRUE(on_device.ok()) << on_device.error().message;
            auto run = BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), **device,
                                      {&on_device->operands(), 1}, alpha, beta);
            ASSERT_TRUE(run.ok() && run->run().ok() && on_device->fetch().ok());
            VerifyOptions options;
            options.split_k = kernel.config.split_k;
            const VerifyReport report = verify_gemm(*tensors, alpha, beta, options);
            ASSERT_TRUE(report.ok) << kernel.name << "\n" << print_problem(problem) << "\n" << describe(report);
            ++runs;
        }
    }
    std::filesystem::remove_all(folder);
    EXPECT_GT(kernels, 0);
    EXPECT_GT(runs, kernels);
}

}  // namespace
}  // namespace tilewise
