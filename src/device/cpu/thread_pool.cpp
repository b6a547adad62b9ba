// SPDX-License-Identifier: MIT
#include "device/cpu/thread_pool.hpp"

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <system_error>

#include "base/files.hpp"
#include "base/text.hpp"

namespace tilewise {
namespace {

// The CPU quota of a container: "max 100000" or "200000 100000" (cgroup v2).
int cgroup_cpus() {
    const auto text = read_file("/sys/fs/cgroup/cpu.max");
    if (!text) return 1 << 20;
    const auto words = split(trim(*text), ' ');
    const auto quota = parse_integer(words.front()), period = parse_integer(words.back());
    if (words.size() != 2 || !quota || !period || *period <= 0) return 1 << 20;
    return static_cast<int>(std::max<std::int64_t>(1, (*quota + *period - 1) / *period));
}

int affinity_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
}

}  // namespace

int usable_cpus() {
    static const int count = std::min(affinity_cpus(), cgroup_cpus());
    return count;
}

Result<int> default_threads() {
    if (const char* text = secure_getenv("TILEWISE_THREADS"); text && *text) {
        const auto count = parse_integer(text);
        if (!count || *count < 1 || *count > usable_cpus()) {
            return usage_error(fmt::format("TILEWISE_THREADS is '{}'; need 1 to {}, the CPUs that are usable here",
                                           text, usable_cpus()));
        }
        return static_cast<int>(*count);
    }
    // The first number of a list counts; the others are for nested levels. OpenMP ignores what it cannot read, and so do we.
    const char* text = secure_getenv("OMP_NUM_THREADS");
    const auto count = text ? parse_integer(trim(split(text, ',').front())) : std::nullopt;
    return count && *count >= 1 ? static_cast<int>(std::min<std::int64_t>(*count, usable_cpus())) : usable_cpus();
}

ThreadPool& ThreadPool::instance() {
    // Never destroyed: worker threads may still wait on it when static destructors run.
    static ThreadPool* pool = [] {
        auto* made = new ThreadPool;
        pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                       [] { instance().forget_threads(); });
        return made;
    }();
    return *pool;
}

// The threads are gone in a child, and the mutexes may be held by one of them; start afresh in the same place. The old
// thread handles are abandoned, not joined.
void ThreadPool::forget_threads() { new (this) ThreadPool; }

void ThreadPool::start_workers(int wanted) {
    try {
        while (static_cast<int>(workers_.size()) < wanted) {
            workers_.emplace_back([this, seen = generation_] { worker(seen); });
            workers_.back().detach();
        }
    } catch (const std::system_error&) {
        // The system gives no more threads now: those there are do the work, the caller's at least.
    }
}

void ThreadPool::take_tasks(const Job& job) {
    for (int i = next_.fetch_add(1); i < job.count; i = next_.fetch_add(1)) job.task(job.context, i);
}

void ThreadPool::worker(std::uint64_t seen) {
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [&] { return generation_ != seen; });
        seen = generation_;
        if (job_.helpers == 0) continue;
        --job_.helpers;
        ++working_;
        const Job job = job_;
        lock.unlock();
        take_tasks(job);
        lock.lock();
        if (--working_ == 0) done_.notify_one();
    }
}

void ThreadPool::run(int count, int threads, void (*task)(void*, int), void* context) {
    const int helpers = std::min({threads, count, usable_cpus()}) - 1;
    if (helpers <= 0 || !busy_.try_lock()) {
        for (int i = 0; i < count; ++i) task(context, i);
        return;
    }
    const Job job{task, context, count, helpers};
    {
        const std::lock_guard lock(mutex_);
        start_workers(helpers);
        job_ = job;
        next_.store(0);
        ++generation_;
    }
    wake_.notify_all();
    take_tasks(job);
    {
        std::unique_lock lock(mutex_);
        job_.helpers = 0;  // whoever has not joined by now has nothing left to do
        done_.wait(lock, [&] { return working_ == 0; });
    }
    busy_.unlock();
}

}  // namespace tilewise
