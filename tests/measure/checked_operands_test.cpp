// SPDX-License-Identifier: MIT
// Results of many kernels on the same operands: the first is judged, on the host or on the device, the others are compared with it
// on the device.
#include "measure/checked_operands.hpp"

#include <cmath>
#include <utility>

#include "measure/float_gemm.hpp"
#include "measure/twin_testing.hpp"

namespace tilewise {
namespace {

constexpr std::uint64_t kSeed = 4;

using CheckedOperandsTest = TwinTest;

// One problem on the twin; results come from the host.
struct Trial {
    Trial(Device& on, Builder& builder, const std::string& text, double full_work)
        : device(on), host(tensors_for(text, kSeed)) {
        options.full_work = full_work;
        how.alpha = suggested_alpha(host.problem());
        how.beta = host.problem().beta ? 0.5f : 0.0f;
        auto made = make_checked_operands(device, builder, host.problem(), kSeed, options);
        if (!made) throw std::runtime_error(made.error().message);
        checked = std::move(*made);
    }
    void compute(int split_k) {
        how.split_k = split_k;
        host.reset_output();
        run_float_gemm(host, how);
        put();
    }
    void put() {
        const GuardedBuffer& c = *host.buffers()[2];
        const auto* whole = static_cast<std::byte*>(checked->operands().c) - c.front_bytes();
        ASSERT_TRUE(device.copy(const_cast<std::byte*>(whole), c.whole(), static_cast<std::size_t>(c.whole_bytes()),
                                kDefaultStream));
    }
    void break_element(std::uint32_t bits) {
        const MatrixView c = host.c();
        std::memcpy(c.at(0, 3, 2), &bits, static_cast<std::size_t>(bytes_of(c.type)));
        put();
    }
    VerifyReport verify() {
        auto report = checked->verify_again(how.alpha, how.beta, options);
        if (!report) throw std::runtime_error(report.error().message);
        return *report;
    }

    Device& device;
    Tensors host;
    std::unique_ptr<CheckedOperands> checked;
    FloatGemm how;
    VerifyOptions options;
};

TEST_F(CheckedOperandsTest, ComparesOnTheDeviceOnceOneResultIsRight) {
    for (const double full_work : {1e9, 1.0}) {
        for (const char* text :
             {"gemm:m=33,n=40,k=300,layout=rcr", "gemm:m=20,n=31,k=257,layout=rrc,dtype=bf16,epilogue=bias",
              "gemm:m=16,n=24,k=64,layout=ccr,dtype=int8", "gemm:m=16,n=24,k=99,layout=rcr,beta=1,batch=2",
              "gemm:m=9,n=17,k=500,layout=rcr,dtype=fp16,epilogue=bias+gelu,ldc=24"}) {
            Trial trial(*device, *builder, text, full_work);
            trial.compute(1);
            const VerifyReport first = trial.verify();
            ASSERT_TRUE(first.ok) << text << ": " << describe(first);
            EXPECT_NE(first.method, VerifyMethod::known_result);

            ASSERT_TRUE(trial.checked->reset());
            EXPECT_FALSE(trial.verify().ok) << text << ": nothing was written";
            trial.compute(4);
            const VerifyReport second = trial.verify();
            EXPECT_TRUE(second.ok) << text << ": " << describe(second);
            EXPECT_EQ(second.method, VerifyMethod::known_result);
            EXPECT_EQ(second.checked, first.checked) << text;

            const DType type = trial.host.c().type;
            const double old = element(trial.host.c(), 0, 3, 2);
            for (const std::uint32_t bits :
                 {encode(type, old < 20 ? 100.0 : -100.0), encode(type, NAN), poison_bits(type)}) {
                if (type == DType::int32 && bits == encode(type, NAN)) continue;
                trial.break_element(bits);
                const VerifyReport broken = trial.verify();
                EXPECT_FALSE(broken.ok) << text << " with bits " << bits;
                EXPECT_EQ(broken.failed, 1) << text;
                EXPECT_GT(broken.max_error, 0) << text;
                ASSERT_TRUE(broken.failure) << text << ": the reference names the element";
                EXPECT_EQ(std::pair(broken.failure->row, broken.failure->col),
                          std::pair(std::int64_t{3}, std::int64_t{2}));
            }
        }
    }
    EXPECT_EQ(device->held(), 0u) << "all memory was given back";
}

TEST_F(CheckedOperandsTest, FindsWritesBetweenRows) {
    for (const double full_work : {1e9, 1.0}) {
        Trial trial(*device, *builder, "gemm:m=12,n=10,k=30,layout=rcr,ldc=16", full_work);
        trial.compute(1);
        ASSERT_TRUE(trial.verify().ok);
        std::memset(trial.host.c().at(0, 0, 10), 0, 4);
        trial.put();
        const VerifyReport stray = trial.verify();
        EXPECT_FALSE(stray.ok);
        EXPECT_FALSE(stray.guards.empty());
    }
}

// The reference looks at a sample of a large problem's rows, and the activation leaves it nothing linear.
TEST_F(CheckedOperandsTest, FindsWhatTheSampleOfTheReferenceMisses) {
    Trial trial(*device, *builder, "gemm:m=200,n=40,k=300,layout=rcr,epilogue=relu", 1e9);
    trial.options.full_work = trial.options.project_work = 1;
    trial.compute(1);
    ASSERT_TRUE(trial.verify().ok);
    int sampled = 0;
    for (std::int64_t row = 0; row < 200; ++row) {
        trial.compute(4);
        const float wrong = 100;
        std::memcpy(trial.host.c().at(0, row, 7), &wrong, sizeof wrong);
        trial.put();
        const VerifyReport report = trial.verify();
        EXPECT_FALSE(report.ok) << row;
        sampled += report.method == VerifyMethod::sampled_rows;
    }
    EXPECT_GT(sampled, 0);
    EXPECT_LT(sampled, 100) << "most rows are outside of the sample";
}

// Else the next kernel would be told that it has changed the input.
TEST_F(CheckedOperandsTest, FindsAnInputThatALaterKernelHasChanged) {
    Trial trial(*device, *builder, "gemm:m=12,n=10,k=30,layout=rcr", 1.0);
    trial.compute(1);
    ASSERT_TRUE(trial.verify().ok);
    const std::byte changed{0x55};
    ASSERT_TRUE(device->copy(const_cast<void*>(trial.checked->operands().a), &changed, 1, kDefaultStream));
    trial.compute(4);
    const VerifyReport report = trial.verify();
    EXPECT_FALSE(report.ok);
    EXPECT_NE(report.guards.find("A is an input"), std::string::npos) << report.guards;
}

TEST_F(CheckedOperandsTest, SaysThatAnInputWasChangedWhereAResultDiffers) {
    Trial trial(*device, *builder, "gemm:m=12,n=10,k=30,layout=rcr", 1e9);
    trial.compute(1);
    ASSERT_TRUE(trial.verify().ok);
    const std::byte changed{0x55};
    ASSERT_TRUE(device->copy(const_cast<void*>(trial.checked->operands().b), &changed, 1, kDefaultStream));
    trial.break_element(encode(DType::fp32, 100.0));
    const VerifyReport report = trial.verify();
    EXPECT_FALSE(report.ok);
    EXPECT_NE(report.guards.find("B is an input"), std::string::npos) << report.guards;
}

TEST_F(CheckedOperandsTest, GivesTheOldCBackForBeta) {
    for (const double full_work : {1e9, 1.0}) {
        Trial trial(*device, *builder, "gemm:m=12,n=10,k=30,layout=rcr,beta=1", full_work);
        trial.compute(1);
        ASSERT_TRUE(trial.verify().ok);
        ASSERT_TRUE(trial.checked->reset());
        trial.host.reset_output();
        const GuardedBuffer& c = *trial.host.buffers()[2];
        std::vector<std::byte> now(static_cast<std::size_t>(c.bytes()));
        ASSERT_TRUE(device->copy(now.data(), trial.checked->operands().c, now.size(), kDefaultStream));
        EXPECT_EQ(std::memcmp(now.data(), c.data(), now.size()), 0);
    }
}

}  // namespace
}  // namespace tilewise
