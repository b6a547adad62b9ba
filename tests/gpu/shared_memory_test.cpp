// SPDX-License-Identifier: MIT
// Launches of one kernel for several problems, each with shared memory of its own size.
#include "config/config_name.hpp"
#include "gpu/gpu_testing.hpp"

namespace tilewise {
namespace {

class GpuSharedMemory : public GpuTest {
protected:
    struct Ready {
        std::unique_ptr<Tensors> tensors;  // stay where they are
        DeviceTensors on_device;
        std::shared_ptr<const Executable> executable;
    };
    Result<Ready> prepare(const Kernel& kernel, const std::string& text) const {
        const Problem problem = parse_problem(text).value();
        auto executable = Executable::prepare(problem, kernel, *device, *builder);
        if (!executable) return executable.error();
        auto made = Tensors::make(problem, 1);
        if (!made) return made.error();
        auto tensors = std::make_unique<Tensors>(std::move(*made));
        auto on_device = DeviceTensors::make(*device, *tensors);
        if (!on_device) return on_device.error();
        return Ready{std::move(tensors), std::move(*on_device),
                     std::make_shared<const Executable>(std::move(*executable))};
    }
    void expect_right(Ready& ready, const KernelConfig& config) const {
        auto bound = BoundRun::make(ready.executable, *device, {&ready.on_device.operands(), 1}, 1.0f, 0.0f);
        ASSERT_TRUE(bound.ok()) << bound.error().message;
        const auto status = bound->run();
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_TRUE(ready.on_device.fetch().ok());
        VerifyOptions options;
        options.summation = summation_of(config, device->arch());
        const VerifyReport report = verify_result(*ready.tensors, 1.0f, 0.0f, options);
        EXPECT_TRUE(report.ok) << describe(report);
    }
};

// Patches are as large as the problem lets them be; the second launch is content with less, and must not take the first one's
// leave to use more.
TEST_F(GpuSharedMemory, ASmallerLaunchLeavesALargerOneItsShare) {
    if (device->arch().backend != Backend::cuda) GTEST_SKIP() << "the kernel is CUDA's";
    KernelConfig config = parse_kernel_name(
                              "grouped_conv_fwd_bf16_nhwgc_2d_comp_async_cshuffle_intrawave_256x32x16_"
                              "4x2x1_16x8x16_va8_vb8_vc8_dsb_stages2_pers_gather-halo_merge2_bpu2@sm_90a")
                              .value();
    config.arch = device->arch().name;
    const auto kernel = make_kernel(config, Priority::normal, true);
    const std::string options = ",filter=3x3,stride=1x1,pad=1x1,dtype=bf16,layout=nhwgc";
    auto large = prepare(kernel, "conv_fwd:n=1,g=2,c=64,k=32,in=30x30" + options);
    ASSERT_TRUE(large.ok()) << large.error().message;
    auto small = prepare(kernel, "conv_fwd:n=1,g=2,c=16,k=16,in=5x5" + options);
    ASSERT_TRUE(small.ok()) << small.error().message;
    expect_right(*large, config);
    expect_right(*small, config);
}

}  // namespace
}  // namespace tilewise
