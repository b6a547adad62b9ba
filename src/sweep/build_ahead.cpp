// SPDX-License-Identifier: MIT
#include "sweep/build_ahead.hpp"

#include <utility>

#include "base/signals_blocked.hpp"
#include "select/needed_code.hpp"

namespace tilewise {

std::vector<ReadyKernel> build_kernels(const Problem& problem, std::vector<PlannedKernel> kernels,
                                       Dispatcher& dispatcher, int jobs) {
    std::vector<ReadyKernel> ready;
    std::vector<BuildRequest> requests;
    std::vector<std::size_t> owners;  // of each request
    for (PlannedKernel& planned : kernels) {
        ReadyKernel& one = ready.emplace_back(ReadyKernel{std::move(planned)});
        if (one.planned.rejected) continue;
        auto needed = launch_requests(problem, one.planned.kernel->config, dispatcher.device(), dispatcher.builder());
        if (!needed) {
            one.failure = needed.error();
            continue;
        }
        for (BuildRequest& request : *needed) {
            owners.push_back(ready.size() - 1);
            requests.push_back(std::move(request));
        }
    }
    const auto built = dispatcher.builder().build_all(requests, jobs);
    for (std::size_t i = 0; i < built.size(); ++i) {
        ReadyKernel& owner = ready[owners[i]];
        if (!built[i]) {
            if (!owner.failure) owner.failure = built[i].error();
        } else if (owner.digest.empty()) {
            owner.digest = built[i]->digest;
        }
    }
    return ready;
}

BuildAhead::BuildAhead(std::vector<std::size_t> order, std::size_t depth, Make make)
    : order_(std::move(order)), depth_(depth), make_(std::move(make)) {
    if (depth_ == 0) return;
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { work(); });
}

BuildAhead::~BuildAhead() {
    {
        const std::scoped_lock lock(mutex_);
        stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void BuildAhead::work() {
    for (const std::size_t index : order_) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopped_ || ready_.size() < depth_; });
            if (stopped_) return;
        }
        auto made = make_(index);
        const std::scoped_lock lock(mutex_);
        ready_.push_back(std::move(made));
        changed_.notify_all();
    }
}

std::optional<Result<ReadyProblem>> BuildAhead::next() {
    if (taken_ == order_.size()) return std::nullopt;
    const std::size_t index = order_[taken_++];
    if (depth_ == 0) return make_(index);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    auto made = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return made;
}

}  // namespace tilewise
