// SPDX-License-Identifier: MIT
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/signals_blocked.hpp"
#include "build/builder.hpp"

namespace tilewise {
namespace {

struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t next = 0;              // the first request that nobody has taken
    std::deque<std::size_t> finished;  // and not yet reported
    bool stopped = false;
};

}  // namespace

std::vector<Result<BuiltKernel>> Builder::build_all(std::span<const BuildRequest> requests, int jobs,
                                                    const std::function<void(const BuildProgress&)>& progress) {
    std::vector<Result<BuiltKernel>> results(requests.size(), Error{ErrorCode::toolchain, "not built"});
    Queue queue;
    const auto work_once = [&] {
        std::size_t index = 0;
        {
            const std::scoped_lock lock(queue.mutex);
            if (queue.stopped || queue.next == requests.size()) return false;
            index = queue.next++;
        }
        results[index] = build(requests[index]);
        {
            const std::scoped_lock lock(queue.mutex);
            queue.finished.push_back(index);
        }
        queue.changed.notify_one();
        return true;
    };

    std::vector<std::jthread> workers;
    // However this ends (the callback may throw), no worker is left waiting or begins another kernel.
    const auto stop = [&](void*) {
        const std::scoped_lock lock(queue.mutex);
        queue.stopped = true;
    };
    const std::unique_ptr<void, decltype(stop)> stopper(&queue, stop);
    {
        const SignalsBlocked blocked;
        const auto wanted = std::min<std::size_t>(static_cast<std::size_t>(std::max(jobs, 1)), requests.size());
        try {
            for (std::size_t i = 0; i < wanted; ++i)
                workers.emplace_back([&] {
                    while (work_once()) {
                    }
                });
        } catch (const std::system_error&) {
            // The system gives no more threads: those we have do, or this one alone.
        }
    }

    BuildProgress report;
    report.total = requests.size();
    while (report.done < report.total) {
        if (workers.empty()) work_once();
        std::size_t index = 0;
        {
            std::unique_lock lock(queue.mutex);
            queue.changed.wait(lock, [&] { return !queue.finished.empty(); });
            index = queue.finished.front();
            queue.finished.pop_front();
        }
        ++report.done;
        if (!results[index]) ++report.failed;
        report.kernel = requests[index].name;
        if (progress) progress(report);
    }
    return results;
}

}  // namespace tilewise
