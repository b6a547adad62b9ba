// SPDX-License-Identifier: MIT
#include "device/cpu/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tilewise {
namespace {

struct Tally {
    std::vector<std::atomic<int>> done = std::vector<std::atomic<int>>(64);
};

void mark(void* context, int index) { ++static_cast<Tally*>(context)->done[static_cast<std::size_t>(index)]; }

void run_all(int threads) {
    Tally tally;
    ThreadPool::instance().run(64, threads, mark, &tally);
    for (const auto& count : tally.done) ASSERT_EQ(count.load(), 1);
}

TEST(ThreadPool, DoesEveryTaskOnce) {
    for (int threads = 1; threads <= 8; ++threads) {
        for (int i = 0; i < 200; ++i) run_all(threads);
    }
}

TEST(ThreadPool, ServesTwoCallersAtOnce) {
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i) {
        callers.emplace_back([] {
            for (int j = 0; j < 200; ++j) run_all(4);
        });
    }
    for (std::thread& caller : callers) caller.join();
}

// A child has none of the parent's threads; it must neither hang nor lose work.
TEST(ThreadPool, WorksInTheChildOfAFork) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer cannot follow threads into the child of a fork";
#endif
    run_all(4);
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) run_all(4);
    });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(20);  // a hang ends the child, and the test sees it
            Tally tally;
            ThreadPool::instance().run(64, 4, mark, &tally);
            int sum = 0;
            for (const auto& count : tally.done) sum += count.load();
            _exit(sum == 64 ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    stop = true;
    busy.join();
}

TEST(ThreadPool, KnowsHowManyCpusItMayUse) {
    EXPECT_GE(usable_cpus(), 1);
    EXPECT_LE(usable_cpus(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace tilewise
