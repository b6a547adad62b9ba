// SPDX-License-Identifier: MIT
// A program that forks while another of its threads plans and multiplies: the child must be able to do the same.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "run/run_testing.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {
namespace {

using namespace run_testing;

class ForkTest : public RunTest {
protected:
    // Whether a plan, an executable and a checked run of the problem all went well.
    bool multiplies(const Problem& problem) {
        const auto by_model = dispatcher_->plan(problem);
        const auto plan = dispatcher_->named_plan(problem, small_kernel().config);
        if (!by_model || !plan) return false;
        const auto ready = dispatcher_->executable(problem, *plan);
        if (!ready) return false;
        const auto report = checked_run(problem, **ready);
        return report && report->ok;
    }
    void SetUp() override {
        RunTest::SetUp();
        builder_ = std::make_unique<Builder>(settings_);
        tuning_ = std::make_unique<TuningDatabase>(at("tuning.jsonl"));
        dispatcher_ = std::make_unique<Dispatcher>(*device_, *builder_, tuning_.get());
    }

    std::unique_ptr<Builder> builder_;
    std::unique_ptr<TuningDatabase> tuning_;
    std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(ForkTest, AChildMultipliesWhateverTheParentWasDoing) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer cannot follow threads into the child of a fork";
#endif
    // Large enough that all threads of the pool take part.
    const Problem known = *parse_problem("gemm:m=160,n=160,k=120,dtype=fp32,layout=rcr");
    ASSERT_TRUE(multiplies(known));
    std::atomic<bool> stop{false};
    std::atomic<int> failures{0};
    std::thread busy([&] {
        const auto plan = dispatcher_->named_plan(known, small_kernel().config);
        const auto ready = dispatcher_->executable(known, *plan);
        auto tensors = Tensors::make(known, 1);
        auto on_device = DeviceTensors::make(*device_, *tensors);
        auto run = BoundRun::make(*ready, *device_, {&on_device->operands(), 1}, 1.0f, 0.0f);
        Problem fresh = known;
        while (!stop) {
            ++fresh.gemm.k;  // a plan that is not there yet: the tables change while the parent forks
            if (!dispatcher_->plan(fresh) || !run->run()) ++failures;
        }
    });
    for (int i = 0; i < 10; ++i) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(60);  // a hang ends the child, and the test sees it
            Problem fresh = known;
            fresh.gemm.m += i + 1;
            _exit(multiplies(known) && multiplies(fresh) ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    stop = true;
    busy.join();
    EXPECT_EQ(failures, 0);
    EXPECT_TRUE(multiplies(known));
}

}  // namespace
}  // namespace tilewise
