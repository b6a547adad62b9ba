// SPDX-License-Identifier: MIT
#include "select/background_builds.hpp"

#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/fork_safe_mutex.hpp"
#include "base/signals_blocked.hpp"
#include "build/builder.hpp"

namespace tilewise {

class BackgroundBuilds::Worker {
public:
    Worker(Device& device, BuildSettings settings) : device_(device), builder_(stoppable(std::move(settings), stop_)) {}
    ~Worker() { end(); }

    bool is_ours() const { return pid_ == getpid(); }
    void add(BackgroundJob job) {
        const std::scoped_lock lock(mutex_);
        if (stop_) return;
        jobs_.push_back(std::move(job));
        if (is_working_) return;
        if (thread_.joinable()) thread_.join();  // it has done its last job
        const SignalsBlocked blocked;
        try {
            thread_ = std::thread([this] { work(); });
            is_working_ = true;
        } catch (const std::system_error&) {
            jobs_.clear();  // no threads to be had: what serves goes on serving
        }
    }
    void end() {
        stop_ = true;
        const std::scoped_lock ending(ending_);  // who comes second waits, too
        std::thread last;
        {
            const std::scoped_lock lock(mutex_);
            last.swap(thread_);
        }
        if (last.joinable()) last.join();
    }

private:
    static BuildSettings stoppable(BuildSettings settings, const std::atomic<bool>& stop) {
        settings.stop = &stop;
        return settings;
    }
    void work() {
        while (true) {
            BackgroundJob job;
            {
                const std::scoped_lock lock(mutex_);
                if (jobs_.empty() || stop_) {
                    is_working_ = false;
                    return;
                }
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            try {
                auto ready = Executable::prepare(job.problem, *job.kernel, device_, builder_);
                if (ready) job.result->set(std::make_shared<const Executable>(std::move(*ready)));
            } catch (const std::exception&) {  // out of memory, say; what serves goes on serving
            }
        }
    }

    const pid_t pid_ = getpid();
    std::atomic<bool> stop_ = false;
    Device& device_;
    Builder builder_;
    std::mutex mutex_, ending_;
    std::deque<BackgroundJob> jobs_;
    bool is_working_ = false;
    std::thread thread_;
};

namespace {

// All workers, for the end of the process. Never destroyed: it may be asked for after the destructors of static objects.
template <class Worker>
std::vector<std::weak_ptr<Worker>>& all_workers() {
    static auto* const list = new std::vector<std::weak_ptr<Worker>>;
    return *list;
}

template <class Worker>
void end_all_workers() {
    std::vector<std::weak_ptr<Worker>> all;
    {
        const std::scoped_lock lock(fork_safe_mutex());
        all = all_workers<Worker>();
    }
    for (const auto& one : all) {
        if (const auto worker = one.lock(); worker && worker->is_ours()) worker->end();
    }
}

}  // namespace

void BackgroundBuilds::add(BackgroundJob job) {
    const auto ours = [&] {
        const std::scoped_lock lock(fork_safe_mutex());
        return worker_ && worker_->is_ours() ? worker_ : nullptr;
    };
    if (const auto worker = ours()) return worker->add(std::move(job));
    // That of the parent of a fork has a thread and locks that are not here: a child never destroys it.
    const std::shared_ptr<Worker> fresh(new Worker(device_, settings_), [](Worker* worker) {
        if (worker->is_ours()) delete worker;
    });
    {
        const std::scoped_lock lock(fork_safe_mutex());
        if (!worker_ || !worker_->is_ours()) {
            worker_ = fresh;
            all_workers<Worker>().push_back(fresh);
            static const bool is_registered = std::atexit(end_all_workers<Worker>) == 0;
            static_cast<void>(is_registered);
        }
    }
    ours()->add(std::move(job));
}

BackgroundBuilds::~BackgroundBuilds() {
    if (worker_ && worker_->is_ours()) worker_->end();
}

}  // namespace tilewise
