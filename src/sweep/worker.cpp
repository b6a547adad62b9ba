// SPDX-License-Identifier: MIT
#include "sweep/worker.hpp"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "config/config_name.hpp"
#include "device/described_device.hpp"
#include "measure/record.hpp"
#include "measure/result_check.hpp"
#include "measure/time_kernels.hpp"
#include "problem/problem_text.hpp"
#include "registry/registry.hpp"
#include "sweep/injected_fault.hpp"

namespace tilewise {
namespace {

constexpr std::uint64_t kOperandSeed = 1;

class Lines {
public:
    Lines(int input, int output) : input_(input), output_(output) {}

    std::optional<std::string> next() {
        while (true) {
            if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
                std::string line = unread_.substr(0, end);
                unread_.erase(0, end + 1);
                return line;
            }
            char buffer[1 << 14];
            const ssize_t count = read(input_, buffer, sizeof buffer);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return std::nullopt;
            unread_.append(buffer, static_cast<std::size_t>(count));
        }
    }

    // A parent that is gone ends the process: nobody wants the rest.
    void say(const Json& json) const {
        const std::string text = json.dump() + '\n';
        for (std::size_t done = 0; done < text.size();) {
            const ssize_t count = write(output_, text.data() + done, text.size() - done);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) _exit(1);
            done += static_cast<std::size_t>(count);
        }
    }

private:
    int input_, output_;
    std::string unread_;
};

struct Task {
    Problem problem;
    std::vector<Kernel> kernels;
};

Result<Task> read_task(const std::string& problem, const std::vector<std::string>& names) {
    auto parsed = parse_problem(problem);
    if (!parsed) return parsed.error();
    Task task{std::move(*parsed), {}};
    for (const std::string& name : names) {
        auto config = parse_kernel_name(name);
        if (!config) return config.error();
        task.kernels.push_back(make_kernel(std::move(*config), Priority::normal, true));
    }
    return task;
}

// JSON has no infinity.
Json error_json(double error) { return std::isfinite(error) ? Json(error) : Json("inf"); }

// A kernel whose result is right, ready to be timed.
struct Checked {
    std::size_t index = 0;
    std::shared_ptr<const Executable> executable;
    double max_error = 0;
};

class SweepWorker {
public:
    SweepWorker(Runtime& runtime, Lines& lines)
        : device_(*runtime.device), builder_(*runtime.builder), arena_(device_), lines_(lines) {}

    Status measure(const Task& task) {
        at(-1);
        auto check = ResultCheck::make(device_, builder_, task.problem, kOperandSeed);
        if (!check) return check.error();
        std::vector<Checked> right;
        for (std::size_t i = 0; i < task.kernels.size(); ++i) {
            at(static_cast<int>(i));
            if (auto status = check_one(task, i, *check, right); !status) return status;
        }
        return time(task, right);
    }

    Result<double> time_reference(const Task& task) {
        auto executable = Executable::prepare(task.problem, task.kernels.front(), device_, builder_);
        if (!executable) return executable.error();
        const auto shared = std::make_shared<const Executable>(std::move(*executable));
        const auto times = time_kernels(task.problem, {&shared, 1}, device_, arena_, usual_timing(device_));
        if (!times) return times.error();
        const KernelTime& time = times->front();
        if (!time.status) return time.status.error();
        return time.us_again.value_or(time.us);
    }

    // A device that has failed may be good for nothing any more: the process ends, and another goes on.
    bool is_lost(const Error& error) const { return error.code == ErrorCode::device && !device_.shares_host_memory(); }

private:
    void at(int kernel) const { lines_.say(Json::object({{"at", kernel}})); }

    void fail(std::size_t kernel, RecordStatus status, const std::string& reason,
              std::optional<double> max_error = {}) const {
        lines_.say(Json::object({{"result", kernel},
                                 {"status", name_of(status)},
                                 {"reason", reason},
                                 {"max_error", max_error ? error_json(*max_error) : Json()}}));
    }

    Status after(std::size_t kernel, const Error& error) const {
        fail(kernel, failure_of(error.code), error.message);
        return is_lost(error) ? Status(error) : Status();
    }

    Status check_one(const Task& task, std::size_t i, ResultCheck& check, std::vector<Checked>& right) {
        const Kernel& kernel = task.kernels[i];
        auto executable = Executable::prepare(task.problem, kernel, device_, builder_);
        if (!executable) return after(i, executable.error());
        const auto workspace = arena_.workspace(executable->workspace_bytes());
        if (!workspace) return after(i, workspace.error());
        const auto shared = std::make_shared<const Executable>(std::move(*executable));
        const auto fault = injected_fault(task.problem, kernel);
        if (fault == Fault::crash || fault == Fault::hang) commit(*fault);
        auto verdict = check.check(shared, kernel.config, *workspace);
        if (!verdict) return after(i, verdict.error());
        if (fault == Fault::wrong) *verdict = {false, 1, "wrong: a test made it so"};
        if (!verdict->ok) return fail(i, RecordStatus::wrong, verdict->reason, verdict->max_error), Status();
        right.push_back({i, shared, verdict->max_error});
        return {};
    }

    Status time(const Task& task, const std::vector<Checked>& right) {
        at(-1);
        std::vector<std::shared_ptr<const Executable>> executables;
        executables.reserve(right.size());
        for (const Checked& one : right) executables.push_back(one.executable);
        ShortTimingOptions options = usual_timing(device_);
        options.before = [&](std::size_t i) { at(static_cast<int>(right[i].index)); };
        if (has_injected_faults()) {
            options.clock = [&](std::size_t i, double seconds) {
                return injected_fault(task.problem, task.kernels[right[i].index]) == Fault::clock ? -1.0 : seconds;
            };
        }
        const auto times = time_kernels(task.problem, executables, device_, arena_, options);
        if (!times) return times.error();
        for (std::size_t i = 0; i < right.size(); ++i) {
            const KernelTime& time = (*times)[i];
            if (!time.status) {
                const bool is_clock = time.status.error().code == ErrorCode::check_failed;
                if (is_clock) {
                    fail(right[i].index, RecordStatus::skipped, time.status.error().message, right[i].max_error);
                } else if (auto status = after(right[i].index, time.status.error()); !status) {
                    return status;
                }
                continue;
            }
            lines_.say(Json::object({{"result", right[i].index},
                                     {"status", name_of(RecordStatus::ok)},
                                     {"time_us", time.us},
                                     {"spread", time.spread},
                                     {"samples", time.samples},
                                     {"time2_us", time.us_again ? Json(*time.us_again) : Json()},
                                     {"max_error", right[i].max_error}}));
        }
        return {};
    }

    Device& device_;
    Builder& builder_;
    OperandArena arena_;
    Lines& lines_;
};

std::vector<std::string> texts_of(const Json* list) {
    std::vector<std::string> texts;
    if (!list || !list->array()) return texts;
    for (const Json& one : *list->array()) texts.push_back(one.string() ? *one.string() : "");
    return texts;
}

// An error ends the worker.
Status serve_line(const Json& request, SweepWorker& worker, Lines& lines) {
    const Json *problem = request.find("problem"), *reference = request.find("reference");
    if (reference && reference->string()) {
        const Json* kernel = request.find("kernel");
        const auto task = read_task(*reference->string(), {kernel && kernel->string() ? *kernel->string() : ""});
        if (!task) return task.error();
        const auto us = worker.time_reference(*task);
        if (!us && worker.is_lost(us.error())) return us.error();
        lines.say(Json::object({{"reference_us", us ? Json(*us) : Json()}}));
        return {};
    }
    if (!problem || !problem->string()) return usage_error("a request to a worker names a problem");
    const auto task = read_task(*problem->string(), texts_of(request.find("kernels")));
    if (!task) return task.error();
    auto status = worker.measure(*task);
    if (!status && status.error().code == ErrorCode::device) return status;
    lines.say(Json::object({{"done", true}, {"reason", status ? "" : status.error().message}}));
    return {};
}

}  // namespace

Status serve_sweep(Runtime& runtime, const ArchCatalog& archs, int input, int output) {
    Lines lines(input, output);
    lines.say(Json::object({{"device", describe_device(*runtime.device, archs)}}));
    SweepWorker worker(runtime, lines);
    while (const auto line = lines.next()) {
        const auto request = Json::parse(*line);
        if (!request) return request.error();
        if (auto status = serve_line(*request, worker, lines); !status) {
            lines.say(Json::object({{"failed", status.error().message}}));
            return status;
        }
    }
    return {};
}

}  // namespace tilewise
