// SPDX-License-Identifier: MIT
// The host pays for these on a machine with a GPU: building the largest kernel, loading it from the cache, a repeated launch.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "device/make_device.hpp"
#include "measure/bound_run.hpp"
#include "measure/operand_arena.hpp"
#include "measure/timing.hpp"
#include "problem/problem_text.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

constexpr const char* kLargest =
    "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_cluster2x1_pw1@sm_90a";
// At most, on hosts of half the speed of a desktop: NVRTC takes 0.7 s there and has taken 1.45 s beside an H200, whose driver takes 3.1
// us of a launch for itself.
constexpr double kBuildSeconds = 2.0, kLoadSeconds = 2e-3, kLaunchSeconds = 5e-6;

double seconds_of(const std::function<void()>& work) {
    const double begin = monotonic_seconds();
    work();
    return monotonic_seconds() - begin;
}

TEST(GpuCost, BuildLoadAndLaunch) {
    auto device = make_device("cuda:0", embedded_archs());
    if (!device) GTEST_SKIP() << device.error().message;
    if ((*device)->arch().name != "sm_90a") GTEST_SKIP() << "the kernel is for sm_90a";
    BuildSettings settings = build_settings().value();
    settings.cache_dir = std::filesystem::temp_directory_path() / ("tilewise-cost-" + std::to_string(getpid()));
    const KernelConfig config = parse_kernel_name(kLargest).value();
    const Kernel kernel = make_kernel(config);
    const Problem problem = parse_problem("gemm:m=256,n=256,k=64,dtype=bf16,layout=rcr").value();

    // NVRTC itself starts with the first kernel, which must not be the one that is timed.
    Builder warm(settings);
    const KernelConfig other =
        parse_kernel_name("gemm_bf16_rcr_compv3_default_intrawave_64x64x32_2x2x1_16x8x16@sm_90a").value();
    ASSERT_TRUE(warm.build(build_request(other, **device).value()).ok());
    const double build = seconds_of([&] { ASSERT_TRUE(warm.build(build_request(config, **device).value()).ok()); });
    double load = 1;
    std::shared_ptr<const Executable> ready;
    for (int i = 0; i < 5; ++i) {
        Builder fresh(settings);
        load = std::min(load, seconds_of([&] {
                            auto made = Executable::prepare(problem, kernel, **device, fresh);
                            ASSERT_TRUE(made.ok()) << made.error().message;
                            ready = std::make_shared<const Executable>(std::move(*made));
                        }));
    }
    OperandArena arena(**device);
    const auto sets = arena.sets(problem, {.most_sets = 1});
    ASSERT_TRUE(sets.ok());
    auto run = BoundRun::make(ready, **device, *sets, 1, 0);
    ASSERT_TRUE(run.ok());
    constexpr int kBurst = 256;  // the queue must not fill up
    double launch = 1;
    for (int i = 0; i < 20; ++i) {
        launch = std::min(launch, seconds_of([&] {
                                      for (int j = 0; j < kBurst; ++j) ASSERT_TRUE(run->run().ok());
                                  }) / kBurst);
        ASSERT_TRUE((*device)->synchronize(kDefaultStream).ok());
    }
    std::printf("build %.2f s, load from the cache %.2f ms, launch %.2f us\n", build, load * 1e3, launch * 1e6);
    EXPECT_LE(build, kBuildSeconds);
    EXPECT_LE(load, kLoadSeconds);
    EXPECT_LE(launch, kLaunchSeconds);
    std::filesystem::remove_all(settings.cache_dir);
}

}  // namespace
}  // namespace tilewise
