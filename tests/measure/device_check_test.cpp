// SPDX-License-Identifier: MIT
// Threads run what checks results on a GPU (gpu_twin.hpp): operands are the host's bit for bit, the
// verdict is the host's, and whatever a kernel may do wrong is found. tests/gpu/verify_test.cpp does the same on a GPU.
#include "measure/device_check.hpp"

#include "measure/checked_operands.hpp"
#include "measure/device_check_cases.hpp"
#include "measure/twin_testing.hpp"

namespace tilewise {
namespace {

using DeviceCheckTest = TwinTest;

TEST_F(DeviceCheckTest, OperandsAreTheHostsBitForBit) {
    operands_are_the_hosts(*device, *builder, draws(40));
    EXPECT_EQ(device->held(), 0u) << "all memory was given back";
}

TEST_F(DeviceCheckTest, SaysWhatTheHostSays) { verdicts_are_the_hosts(*device, *builder, 32); }

TEST_F(DeviceCheckTest, EveryDamagedGuardAndChangedInputIsFound) { damage_is_found(*device, *builder, 19); }

TEST_F(DeviceCheckTest, LargeProblemsAreCheckedOnTheDeviceOthersOnTheHost) {
    const auto method = [&](const std::string& text, double full_work) {
        VerifyOptions options;
        options.full_work = full_work;
        auto operands = make_checked_operands(*device, *builder, problem_of(text), 1, options);
        EXPECT_TRUE(operands.ok());
        const auto report = (*operands)->verify(1, 0, options);
        EXPECT_TRUE(report.ok());
        EXPECT_FALSE(report->ok) << "nothing was computed";
        EXPECT_TRUE(report->failure && report->failure->unwritten);
        return report->method;
    };
    const std::string plain = "gemm:m=20,n=20,k=20", folded = plain + ",batch=4,lda=90,batch_stride_a=21";
    EXPECT_EQ(method(plain, 1e9), VerifyMethod::every_element);
    EXPECT_EQ(method(plain, 1), VerifyMethod::on_device);
    EXPECT_NE(method(folded, 1), VerifyMethod::on_device) << "matrices within each other's gaps";
    EXPECT_EQ(method("conv_bwd_weight:n=2,c=6,k=5,in=7x8,filter=3x3", 1), VerifyMethod::on_device);
    settings_.nvrtc = "/nonexistent/libnvrtc.so.13";
    settings_.cache_dir = at("another");
    builder = std::make_unique<Builder>(settings_);
    EXPECT_NE(method(plain, 1), VerifyMethod::on_device) << "no compiler";
}

}  // namespace
}  // namespace tilewise
