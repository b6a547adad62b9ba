// SPDX-License-Identifier: MIT
// Planning a problem that was planned before costs little: it is paid on every call of a program that does not keep its
// plans. The best of many batches is taken, so that a busy machine does not matter; the limit is far above what is
// expected (0.1 us), for builds with sanitizers there is none.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "base/sanitized.hpp"
#include "build/build_testing.hpp"
#include "config/archs.hpp"
#include "device/cpu/cpu_device.hpp"
#include "problem/problem_text.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {
namespace {

class PlanCost : public build_testing::BuildTest {
protected:
    void SetUp() override {
        BuildTest::SetUp();
        auto device = make_cpu_device(**embedded_archs().find("cpu-generic"));
        ASSERT_TRUE(device.ok()) << device.error().message;
        device_ = std::move(*device);
        builder_ = std::make_unique<Builder>(settings_);
        dispatcher_ = std::make_unique<Dispatcher>(*device_, *builder_, nullptr);
        // A table with as many others as a real program has.
        for (int i = 0; i < kOthers; ++i) {
            ASSERT_TRUE(dispatcher_->plan(problem("gemm:m=" + std::to_string(i + 1) + ",n=64,k=64,dtype=fp32")).ok());
        }
    }

    static Problem problem(const std::string& text) { return *parse_problem(text); }

    // Times call(), which says whether it went well.
    template <class Call>
    static double best_ns(Call call) {
        constexpr int kBatches = 200, kCalls = 500;
        double best = 1e9;
        for (int batch = 0; batch < kBatches; ++batch) {
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < kCalls; ++i) {
                if (!call()) return 1e9;
            }
            const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
            best = std::min(best, took.count() / kCalls);
        }
        return best;
    }

    static void expect_cheap(const std::string& name, double ns) {
        RecordProperty("ns of " + name, static_cast<int>(ns));
        std::printf("%s costs %.0f ns\n", name.c_str(), ns);
        constexpr double kMostNs = 2000;
        if (!is_sanitized()) {
            EXPECT_LT(ns, kMostNs) << name;
        }
    }

    static constexpr int kOthers = 200;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Builder> builder_;
    std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(PlanCost, ARepeatedProblemCostsALookUp) {
    const std::pair<const char*, std::string> cases[] = {
        {"plan of a plain problem", "gemm:m=33,n=65,k=17,dtype=fp32,layout=rcr"},
        {"plan of a fused problem",
         "gemm:m=33,n=65,k=17,dtype=fp32,layout=rcr,epilogue=bias+gelu,d=add+mul,beta=1,lda=64"},
    };
    for (const auto& [name, text] : cases) {
        const Problem p = problem(text);
        ASSERT_TRUE(dispatcher_->plan(p).ok());
        expect_cheap(name, best_ns([&] { return dispatcher_->plan(p).ok(); }));
    }
}

TEST_F(PlanCost, SoDoesItsExecutable) {
    const Problem p = problem("gemm:m=33,n=65,k=17,dtype=fp32,layout=rcr");
    const auto plan = dispatcher_->plan(p);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto first = dispatcher_->executable(p, **plan);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_EQ(*dispatcher_->executable(p, **plan), *first);
    expect_cheap("executable", best_ns([&] { return dispatcher_->executable(p, **plan).ok(); }));
}

}  // namespace
}  // namespace tilewise
