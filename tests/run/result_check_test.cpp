// SPDX-License-Identifier: MIT
// The judge of a sweep: what one kernel leaves behind does not count for the next.
#include "measure/result_check.hpp"

#include "device/forwarding_device.hpp"
#include "run/run_testing.hpp"

namespace tilewise {
namespace {

// Writes to an input after the kernel.
class DamagingLaunch : public Launch {
public:
    explicit DamagingLaunch(std::unique_ptr<const Launch> launch) : launch_(std::move(launch)) {}
    Status run(const KernelArgs& args, Stream stream) const override {
        auto status = launch_->run(args, stream);
        *static_cast<unsigned char*>(args.a.data) ^= 1;
        return status;
    }
    Status pack_b(const KernelArgs& args, void* packed, Stream stream) const override {
        return launch_->pack_b(args, packed, stream);
    }

private:
    std::unique_ptr<const Launch> launch_;
};

class DamagingDevice : public ForwardingDevice {
public:
    using ForwardingDevice::ForwardingDevice;
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs& args,
                                                  LaunchPlan plan) override {
        auto launch = ForwardingDevice::prepare(std::move(code), args, std::move(plan));
        if (!launch) return launch.error();
        return std::unique_ptr<const Launch>(std::make_unique<DamagingLaunch>(std::move(*launch)));
    }
};

using ResultCheckTest = run_testing::RunTest;

TEST_F(ResultCheckTest, AKernelThatWritesToAnInputHarmsNoOther) {
    const Problem problem = *parse_problem("gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr");
    Builder builder(settings_);
    DamagingDevice damaging(*device_);
    std::vector<std::shared_ptr<const Executable>> kernels;
    for (Device* device : {device_.get(), static_cast<Device*>(&damaging)}) {
        auto ready = Executable::prepare(problem, small_kernel(), *device, builder);
        ASSERT_TRUE(ready.ok()) << ready.error().message;
        kernels.push_back(std::make_shared<const Executable>(std::move(*ready)));
    }
    auto check = ResultCheck::make(*device_, builder, problem, 1);
    ASSERT_TRUE(check.ok()) << check.error().message;
    for (const std::size_t place : {1, 0, 0, 1, 1, 0}) {
        const auto verdict = check->check(kernels[place], small_kernel().config, nullptr);
        ASSERT_TRUE(verdict.ok()) << verdict.error().message;
        EXPECT_EQ(verdict->ok, place == 0) << verdict->reason;
    }
}

}  // namespace
}  // namespace tilewise
