// SPDX-License-Identifier: MIT
// The threads that share one launch. The caller takes part; there are never more threads at work than CPUs this process
// may use (affinity mask and cgroup quota), because a second caller that finds the pool busy does its own tasks alone. The
// pool survives a fork: a child starts with none of the parent's threads and makes its own when it first needs them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

int usable_cpus();  // by affinity and cgroup, at least 1
// How many threads a launch takes where nobody says: TILEWISE_THREADS, else OMP_NUM_THREADS as far as there are CPUs, else all of
// them. A TILEWISE_THREADS that makes no sense is an error.
Result<int> default_threads();

class ThreadPool {
public:
    static ThreadPool& instance();

    // Calls task(context, 0) … task(context, count - 1), each once, on at most `threads` threads; returns when all are
    // done. Allocates only when it starts threads, which is the first time so many are wanted.
    void run(int count, int threads, void (*task)(void* context, int index), void* context);

private:
    struct Job {
        void (*task)(void*, int) = nullptr;
        void* context = nullptr;
        int count = 0;
        int helpers = 0;  // workers that may still join
    };

    void start_workers(int wanted);
    void worker(std::uint64_t seen);
    void take_tasks(const Job& job);
    void forget_threads();  // in the child of a fork

    std::mutex busy_;  // held by the caller whose job it is
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable done_;
    Job job_;
    std::uint64_t generation_ = 0;
    int working_ = 0;  // workers inside the job
    std::atomic<int> next_{0};
    std::vector<std::thread> workers_;
};

}  // namespace tilewise
