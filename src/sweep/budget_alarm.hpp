// SPDX-License-Identifier: MIT
// Rings when the time of a sweep is up, for compilers that would work on.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/signals_blocked.hpp"

namespace tilewise {

class BudgetAlarm {
public:
    explicit BudgetAlarm(std::chrono::steady_clock::time_point deadline) {
        if (deadline == std::chrono::steady_clock::time_point::max()) return;  // never
        const SignalsBlocked blocked;
        thread_ = std::thread([this, deadline] {
            std::unique_lock lock(mutex_);
            changed_.wait_until(lock, deadline, [&] { return ended_; });
            rings_ = true;
        });
    }
    ~BudgetAlarm() {
        {
            const std::scoped_lock lock(mutex_);
            ended_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) thread_.join();
    }
    BudgetAlarm(const BudgetAlarm&) = delete;
    BudgetAlarm& operator=(const BudgetAlarm&) = delete;

    const std::atomic<bool>* rings() const { return &rings_; }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::atomic<bool> rings_{false};
    std::thread thread_;
};

}  // namespace tilewise
