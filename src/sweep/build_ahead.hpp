// SPDX-License-Identifier: MIT
// Plans the problems of a sweep and builds their kernels, some problems ahead of who measures them, on threads of its own. On a CPU,
// where compiling would disturb what is measured, each problem is made ready only when it is asked for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "build/builder.hpp"
#include "select/dispatcher.hpp"
#include "sweep/sweep_plan.hpp"

namespace tilewise {

// A kernel that is to be measured: its binary, or why there is none.
struct ReadyKernel {
    PlannedKernel planned;
    std::string digest{};
    std::optional<Error> failure{};
};
struct ReadyProblem {
    std::size_t index = 0;  // in the list of problems
    std::vector<ReadyKernel> kernels;
};

// Builds what a problem's kernels need, with so many compilers at a time.
std::vector<ReadyKernel> build_kernels(const Problem& problem, std::vector<PlannedKernel> kernels,
                                       Dispatcher& dispatcher, int jobs);

class BuildAhead {
public:
    using Make = std::function<Result<ReadyProblem>(std::size_t index)>;

    // `depth` problems are made ready ahead, by `make`, which is then called on another thread; 0: none, and on no other.
    BuildAhead(std::vector<std::size_t> order, std::size_t depth, Make make);
    ~BuildAhead();
    BuildAhead(const BuildAhead&) = delete;
    BuildAhead& operator=(const BuildAhead&) = delete;

    std::optional<Result<ReadyProblem>> next();  // in the order; nothing when there are no more

private:
    void work();

    std::vector<std::size_t> order_;
    std::size_t depth_;
    Make make_;
    std::size_t taken_ = 0;
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::deque<Result<ReadyProblem>> ready_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace tilewise
