// SPDX-License-Identifier: MIT
#include "sweep/sweep.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "build/build_settings.hpp"
#include "device/described_device.hpp"
#include "problem/problem_text.hpp"
#include "sweep/budget_alarm.hpp"
#include "sweep/build_ahead.hpp"
#include "sweep/device_lock.hpp"
#include "sweep/record_file.hpp"
#include "sweep/worker_client.hpp"

namespace tilewise {
namespace {

constexpr int kMostFaults = 3;             // in one problem
constexpr std::size_t kProblemsAhead = 8;  // made ready while others are measured
constexpr auto kReferenceEvery = std::chrono::seconds(30);
constexpr double kMostDrift = 0.03;

double seconds_since(SweepClock::time_point begin) {
    return std::chrono::duration<double>(SweepClock::now() - begin).count();
}

// The kernel whose time tells whether the machine is as fast as it was: the first that was measured well.
struct ReferenceKernel {
    std::string problem, kernel;
    std::optional<double> first_us, last_us;
    SweepClock::time_point timed{};
};

class SweepParent {
public:
    SweepParent(const SweepOptions& options, Dispatcher& dispatcher, RecordFile& file, WorkerClient& worker,
                SweepClock::time_point begin)
        : options_(options), dispatcher_(dispatcher), file_(file), worker_(worker), begin_(begin) {
        summary_.device = dispatcher.device().identity();
        summary_.kept = file.found().size();
        for (const Record& record : file.found()) {
            before_.insert({record.problem, record.kernel_name});
            if (record.reference_us && !reference_.first_us) reference_.first_us = record.reference_us;
            choose_reference(record);
        }
    }

    Result<SweepSummary> run() {
        const std::vector<std::size_t> order =
            sweep_order(options_.problems.size(), options_.pool.seed, options_.shard);
        total_ = order.size();
        const bool overlaps = dispatcher_.device().arch().is_gpu();
        Status status;
        {
            BuildAhead ahead(order, overlaps ? kProblemsAhead : 0, [&](std::size_t index) { return make(index); });
            while (status) {
                auto next = ahead.next();
                if (!next) break;
                status = *next ? sweep_problem(**next) : Status(next->error());
                if (is_over()) break;
            }
        }
        if (status && done_ < order.size())
            status = leave_out({order.begin() + static_cast<std::ptrdiff_t>(done_), order.end()});
        if (!status) return status.error();
        summary_.seconds = seconds_since(begin_);
        summary_.without_kernels = without_kernels_.size();
        summary_.reference_us = reference_.last_us;
        if (reference_.first_us && reference_.last_us) {
            summary_.reference_drift = *reference_.last_us / *reference_.first_us - 1;
        }
        return summary_;
    }

private:
    bool is_over() const { return options_.budget && SweepClock::now() >= begin_ + *options_.budget; }

    // Runs beside the rest: only what does not change is used.
    Result<ReadyProblem> make(std::size_t index) {
        auto left = left_of(index);
        if (!left) return left.error();
        const Problem& problem = options_.problems[index].problem;
        return ReadyProblem{index, build_kernels(problem, std::move(*left), dispatcher_, options_.workers)};
    }

    // The kernels of a problem that had no record when the sweep began.
    Result<std::vector<PlannedKernel>> left_of(std::size_t index) {
        const Problem& problem = options_.problems[index].problem;
        auto planned = planned_kernels(dispatcher_, problem, options_.pool);
        if (!planned) return planned.error();
        if (planned->empty()) without_kernels_.insert(index);
        const std::string text = print_problem(problem);
        std::erase_if(*planned, [&](const PlannedKernel& one) { return before_.contains({text, one.kernel->name}); });
        return planned;
    }

    Record record_for(std::size_t index, const PlannedKernel& planned, const std::string& digest) const {
        const SweepProblem& of = options_.problems[index];
        Record record = record_of(of.problem, *planned.kernel, dispatcher_.device(), digest);
        record.set = options_.set;
        record.network = of.network;
        record.predicted_us = planned.predicted_us;
        record.reference_us = reference_.last_us;
        return record;
    }

    Status write(Record record, RecordStatus status, std::string reason = "") {
        record.status = status;
        record.reason = std::move(reason);
        if (auto written = file_.append(record); !written) return written;
        ++summary_.records[static_cast<std::size_t>(status)];
        choose_reference(record);
        show();
        return {};
    }

    void show() const {
        if (!options_.progress) return;
        const auto records = std::accumulate(summary_.records.begin(), summary_.records.end(), std::size_t{0});
        options_.progress({done_, total_, records, seconds_since(begin_)});
    }

    Status sweep_problem(ReadyProblem& ready) {
        if (is_over()) return {};  // what is not built was not tried to the end
        std::vector<ReadyKernel> left;
        for (ReadyKernel& one : ready.kernels) {
            Record record = record_for(ready.index, one.planned, one.digest);
            Status written;
            if (const auto& why = one.planned.rejected) {
                written = write(std::move(record), RecordStatus::rejected,
                                fmt::format("rule {}: have {}; need {}", why->rule, why->have, why->need));
            } else if (one.failure) {
                written = write(std::move(record), failure_of(one.failure->code), one.failure->message);
            } else {
                left.push_back(std::move(one));
            }
            if (!written) return written;
        }
        if (auto status = measure(ready.index, left); !status) return status;
        if (!left.empty()) return {};  // the time is up
        ++done_;
        ++summary_.problems;
        show();
        return time_reference();
    }

    // Takes those that got a record out of `left`; some stay only when the time is up.
    Status measure(std::size_t index, std::vector<ReadyKernel>& left) {
        const std::string text = print_problem(options_.problems[index].problem);
        int faults = faults_before(text);
        std::string why;
        while (!left.empty() && faults < kMostFaults) {
            std::vector<std::string> names;
            names.reserve(left.size());
            for (const ReadyKernel& one : left) names.push_back(one.planned.kernel->name);
            std::set<std::size_t> finished;
            const std::string started = utc_now();
            const auto end = worker_.measure(text, names, [&](const WorkerResult& result) {
                finished.insert(result.kernel);
                if (result.status == RecordStatus::crash) ++faults;
                return take(index, left[result.kernel], result, started);
            });
            if (!end) return end.error();
            if (end->kind == WorkerEnd::Kind::crash || end->kind == WorkerEnd::Kind::timeout) {
                const bool is_known = end->kernel.has_value() && !finished.contains(*end->kernel);
                if (is_known) {
                    finished.insert(*end->kernel);
                    WorkerResult fault{*end->kernel};
                    const bool crashed = end->kind == WorkerEnd::Kind::crash;
                    fault.status = crashed ? RecordStatus::crash : RecordStatus::timeout;
                    fault.reason = end->reason;
                    if (auto status = take(index, left[*end->kernel], fault, started); !status) return status;
                }
                if (is_known || finished.empty()) ++faults;
            }
            if (!end->reason.empty()) why = end->reason;
            std::vector<ReadyKernel> rest;
            for (std::size_t i = 0; i < left.size(); ++i) {
                if (!finished.contains(i)) rest.push_back(std::move(left[i]));
            }
            left = std::move(rest);
            if (end->kind == WorkerEnd::Kind::out_of_time) return {};
            if (end->kind == WorkerEnd::Kind::done) break;  // what is left could not be measured
        }
        for (const ReadyKernel& one : left) {
            const std::string reason =
                faults < kMostFaults
                    ? why
                    : fmt::format("{} kernels of this problem crashed or hung; the last: {}", faults, why);
            auto status = write(record_for(index, one.planned, one.digest), RecordStatus::skipped, reason);
            if (!status) return status;
        }
        left.clear();
        return {};
    }

    int faults_before(const std::string& problem) const {
        const auto& found = file_.found();
        return static_cast<int>(std::count_if(found.begin(), found.end(), [&](const Record& record) {
            const bool is_fault = record.status == RecordStatus::crash || record.status == RecordStatus::timeout;
            return is_fault && record.problem == problem;
        }));
    }

    Status take(std::size_t index, const ReadyKernel& kernel, const WorkerResult& result, const std::string& started) {
        Record record = record_for(index, kernel.planned, kernel.digest);
        record.started = started;
        record.max_error = result.max_error;
        if (result.status == RecordStatus::ok) {
            set_time(record, options_.problems[index].problem, dispatcher_.device(), result.time_us);
            record.spread = result.spread;
            record.samples = result.samples;
            record.time2_us = result.time2_us;
        }
        return write(std::move(record), result.status, result.reason);
    }

    void choose_reference(const Record& record) {
        if (record.status != RecordStatus::ok || !reference_.kernel.empty()) return;
        reference_.problem = record.problem;
        reference_.kernel = record.kernel_name;
    }

    Status time_reference() {
        if (reference_.kernel.empty() || is_over()) return {};
        const bool is_first = reference_.timed == SweepClock::time_point();
        if (!is_first && SweepClock::now() < reference_.timed + kReferenceEvery) return {};
        reference_.timed = SweepClock::now();
        const auto us = worker_.time_reference(reference_.problem, reference_.kernel);
        if (!us) return us.error();
        if (!*us) return {};
        reference_.last_us = **us;
        if (!reference_.first_us) reference_.first_us = **us;
        const double drift = **us / *reference_.first_us - 1;
        if (std::abs(drift) > kMostDrift && options_.say) {
            options_.say(
                fmt::format("the reference kernel takes {:.2f} us, {:+.1f} % beside the first time: the device's "
                            "clock or load has changed",
                            **us, 100 * drift));
        }
        return {};
    }

    // Nothing is built or run for these.
    Status leave_out(const std::vector<std::size_t>& indices) {
        for (const std::size_t index : indices) {
            const auto left = left_of(index);
            if (!left) return left.error();
            const std::string text = print_problem(options_.problems[index].problem);
            for (const PlannedKernel& planned : *left) {
                if (file_.has(text, planned.kernel->name)) continue;
                const auto budget = std::chrono::duration<double>(*options_.budget).count();
                auto status = write(record_for(index, planned, ""), RecordStatus::skipped,
                                    fmt::format("{}the budget of {:g} s was over", kLeftOut, budget));
                if (!status) return status;
                ++summary_.left_out;
            }
        }
        return {};
    }

    const SweepOptions& options_;
    Dispatcher& dispatcher_;
    RecordFile& file_;
    WorkerClient& worker_;
    SweepClock::time_point begin_;
    std::set<std::pair<std::string, std::string>> before_;
    ReferenceKernel reference_;
    SweepSummary summary_;
    std::size_t total_ = 0, done_ = 0;
    std::set<std::size_t>
        without_kernels_;  // problems; who makes them ready, and only then what is left out, adds to it
};

}  // namespace

Result<SweepSummary> run_sweep(const SweepOptions& options, const ArchCatalog& archs) {
    const auto begin = SweepClock::now();
    const auto never = SweepClock::time_point::max();
    WorkerClient worker(options.worker, options.timeout, options.budget ? begin + *options.budget : never);
    const auto description = worker.open();
    if (!description) return description.error();
    const auto device = make_described_device(*description, archs);
    if (!device) return device.error();
    auto settings = build_settings();
    if (!settings) return settings.error();
    settings->driver_version = (*device)->driver_version();
    settings->packs.insert(settings->packs.end(), options.packs.begin(), options.packs.end());
    const std::string& folder = settings->cache_dir.empty() ? settings->temp_dir : settings->cache_dir;
    const auto lock = DeviceLock::acquire(folder, (*device)->name(), "which writes " + options.out);
    if (!lock) return lock.error();
    auto file = options.resume ? RecordFile::resume(options.out, (*device)->identity(), options.set)
                               : RecordFile::begin(options.out);
    if (!file) return file.error();
    BudgetAlarm alarm(options.budget ? begin + *options.budget : never);
    settings->stop = alarm.rings();
    Builder builder(std::move(*settings));
    if (!builder.pack_errors().empty()) return builder.pack_errors().front();
    Dispatcher dispatcher(**device, builder, nullptr);
    SweepParent parent(options, dispatcher, *file, worker, begin);
    return parent.run();
}

}  // namespace tilewise
