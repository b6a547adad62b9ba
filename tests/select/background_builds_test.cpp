// SPDX-License-Identifier: MIT
#include "select/background_builds.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "config/archs.hpp"
#include "device/cpu/cpu_device.hpp"
#include "problem/problem_text.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {
namespace {

// This program has no built-in kernels: one of that rule set in the cache is as good.
class BackgroundTest : public testing::Test {
protected:
    BackgroundTest()
        : folder_(std::filesystem::temp_directory_path() / ("tilewise-background-" + std::to_string(getpid()))) {
        settings_.cache_dir = folder_;
        device_ = std::move(*make_cpu_device(**embedded_archs().find("cpu-generic"), 1));
    }
    // The thread that compiles ends with its dispatcher; until then it works in the folder.
    ~BackgroundTest() override {
        dispatcher_.reset();
        std::filesystem::remove_all(folder_);
    }
    static void TearDownTestSuite() { std::filesystem::remove_all(kept()); }
    // The cache as it is with what serves alone, which is compiled once for all tests.
    static std::string kept() {
        return std::filesystem::temp_directory_path() / ("tilewise-background-kept-" + std::to_string(getpid()));
    }

    // Something that serves is there, and a plan for something better that is not.
    void open() {
        settings_.background = true;
        const auto copy = std::filesystem::copy_options::recursive;
        if (std::filesystem::exists(kept())) std::filesystem::copy(kept(), folder_, copy);
        builder_ = std::make_unique<Builder>(settings_);
        dispatcher_ = std::make_unique<Dispatcher>(*device_, *builder_, nullptr);
        SelectOptions options;
        options.strategy = Strategy::rules;
        options.rule_set = RuleSet::builtin;
        const auto serving = dispatcher_->plan(problem_, options);
        ASSERT_TRUE(serving.ok()) << serving.error().message;
        ASSERT_TRUE(dispatcher_->executable(problem_, **serving).ok());
        if (!std::filesystem::exists(kept())) std::filesystem::copy(folder_, kept(), copy);
        const auto all = dispatcher_->select(problem_);
        ASSERT_TRUE(all.ok());
        for (const Candidate& candidate : all->candidates) {
            const auto code = choose_code(problem_, candidate.kernel->config, *device_, *builder_);
            if (code && builder_->needs_compiler(code->request) && !candidate.padding) {
                better_ = Plan{candidate.kernel, PlanSource::rules, "better"};
                return;
            }
        }
        FAIL() << "no kernel is left to be compiled";
    }
    float result_of(const Executable& executable) const {
        std::vector<float> a(33 * 17, 1), b(65 * 17, 2), c(33 * 65, 0);
        std::vector<std::byte> workspace(static_cast<std::size_t>(executable.workspace_bytes()) + 64);
        Operands operands;
        operands.a = a.data(), operands.b = b.data(), operands.c = c.data(), operands.workspace = workspace.data();
        EXPECT_TRUE(executable.launch(operands).ok());
        return c.back();
    }

    std::string folder_;
    Problem problem_ = *parse_problem("gemm:m=33,n=65,k=17,dtype=fp32,layout=rcr");
    BuildSettings settings_;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Builder> builder_;
    std::unique_ptr<Dispatcher> dispatcher_;
    std::optional<Plan> better_;
};

TEST_F(BackgroundTest, OneServesUntilTheOtherIsThere) {
    ASSERT_NO_FATAL_FAILURE(open());
    const auto executable = dispatcher_->executable_now(problem_, *better_);
    ASSERT_TRUE(executable.ok()) << executable.error().message;
    const Executable& ready = **executable;
    ASSERT_TRUE(ready.is_serving());
    ASSERT_EQ(ready.notes().size(), 1U);
    EXPECT_EQ(ready.notes()[0].kind, "background");
    EXPECT_NE(ready.notes()[0].message.find(better_->kernel->name), std::string::npos);
    EXPECT_EQ(result_of(ready), 34);
    const std::int64_t workspace = ready.workspace_bytes();
    const std::string first = ready.built().digest;
    for (int i = 0; i < 30000 && ready.is_serving(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_FALSE(ready.is_serving());
    EXPECT_NE(ready.built().digest, first);
    EXPECT_TRUE(ready.notes().empty());
    EXPECT_EQ(ready.workspace_bytes(), workspace) << "callers asked before";
    EXPECT_EQ(result_of(ready), 34);
    EXPECT_EQ(dispatcher_->executable_now(problem_, *better_)->get(), &ready);
}

TEST_F(BackgroundTest, WhoWaitsGetsTheBetterOne) {
    ASSERT_NO_FATAL_FAILURE(open());
    ASSERT_TRUE((*dispatcher_->executable_now(problem_, *better_))->is_serving());
    const auto waited = dispatcher_->executable(problem_, *better_);
    ASSERT_TRUE(waited.ok()) << waited.error().message;
    EXPECT_FALSE((*waited)->is_serving());
    EXPECT_TRUE((*waited)->notes().empty());
}

TEST_F(BackgroundTest, AKernelThatCannotBeCompiledLeavesTheOtherServing) {
    ASSERT_NO_FATAL_FAILURE(open());
    std::filesystem::create_directories(folder_);
    settings_.compile_limit = std::chrono::milliseconds(1);
    Builder hurried(settings_);
    Dispatcher dispatcher(*device_, hurried, nullptr);
    const auto executable = dispatcher.executable_now(problem_, *better_);
    ASSERT_TRUE(executable.ok()) << executable.error().message;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_TRUE((*executable)->is_serving());
    EXPECT_EQ(result_of(**executable), 34);
}

TEST_F(BackgroundTest, TheEndOfADispatcherStopsItsCompiler) {
    ASSERT_NO_FATAL_FAILURE(open());
    const auto executable = *dispatcher_->executable_now(problem_, *better_);
    dispatcher_.reset();
    EXPECT_EQ(result_of(*executable), 34) << "what serves outlives it";
}

TEST_F(BackgroundTest, SomeWait) {
    ASSERT_NO_FATAL_FAILURE(open());
    better_->source = PlanSource::named;
    EXPECT_FALSE((*dispatcher_->executable_now(problem_, *better_))->is_serving()) << "asked for by name";
}

}  // namespace
}  // namespace tilewise
