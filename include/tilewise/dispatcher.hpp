// SPDX-License-Identifier: MIT
// Chooses kernels on a device: from a rule set or a registry, by a strategy or a heuristic of the caller's own. A
// Dispatcher that is not being changed may be used by many threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tilewise/plan.hpp"
#include "tilewise/registry.hpp"

namespace tilewise {

class Dispatcher {
public:
    // Gets the candidates in the order of the library's model and returns the names of those it wants, best first. One
    // that throws, or names none of them, leaves the problem without a kernel.
    using Heuristic = std::function<std::vector<std::string>(const Problem&, const std::vector<Candidate>&)>;

    explicit Dispatcher(Device device) : device_(std::move(device)) {}  // of the rule set "default"
    Dispatcher(Device device, Registry registry) : device_(std::move(device)), registry_(std::move(registry)) {}

    Dispatcher& set_strategy(std::string word) { return strategy_ = std::move(word), *this; }  // "measure", ...
    Dispatcher& set_rule_set(std::string word) { return rule_set_ = std::move(word), *this; }
    Dispatcher& set_top(int count) { return top_ = count, *this; }            // strategy measure: how many to time
    Dispatcher& set_stream(void* stream) { return stream_ = stream, *this; }  // of the runs
    Dispatcher& set_heuristic(Heuristic heuristic) { return heuristic_ = std::move(heuristic), *this; }

    const Device& device() const { return device_; }

    // Everything about the choice. A problem that no kernel may run gives a plan without one, which says why.
    Result<Plan> select(const Problem& problem) const {
        const Call call(*this, problem);
        tilewise_plan* made = nullptr;
        const tilewise_status code = tilewise_plan_create(device_.get(), problem.text().c_str(), &call.options, &made);
        if (code != TILEWISE_OK) return Error::last(code);
        return Plan(made);
    }

    // The kernel chosen, built and loaded. With a rule set and no heuristic, a problem prepared before costs a look-up.
    Result<Executable> prepare(const Problem& problem) const { return prepared(problem, nullptr); }
    // This kernel and no other.
    Result<Executable> prepare(const Problem& problem, const KernelConfig& config) const {
        return prepared(problem, config.name().c_str());
    }

    // Prepares, runs once on operands in memory of the device and waits for the result.
    Status run(const Problem& problem, Operands operands) const {
        const auto executable = prepare(problem);
        if (!executable) return executable.error();
        std::optional<Buffer> workspace;
        if (executable->workspace_bytes() > 0 && !operands.workspace) {
            auto made = Buffer::make(device_, static_cast<std::size_t>(executable->workspace_bytes()));
            if (!made) return made.error();
            workspace.emplace(std::move(*made));
            operands.workspace = workspace->data();
        }
        if (auto status = executable->run(operands, stream_); !status) return status;
        return device_.synchronize(stream_);
    }

    // Times the kernel that is chosen, or every candidate, as JSON: see tilewise_bench.
    Result<std::string> bench(const Problem& problem, bool all = false) const {
        const Call call(*this, problem);
        return detail::text_of([&](char** out) {
            return tilewise_bench(device_.get(), problem.text().c_str(), &call.options, all ? 1 : 0, out);
        });
    }
    // Runs on random tensors and judges the result, as JSON: see tilewise_validate.
    Result<std::string> validate(const Problem& problem) const {
        const Call call(*this, problem);
        return detail::text_of(
            [&](char** out) { return tilewise_validate(device_.get(), problem.text().c_str(), &call.options, out); });
    }

private:
    // The options for the C interface; they live as long as the call.
    struct Call {
        Call(const Dispatcher& from, const Problem& asked) : dispatcher(from), problem(asked) {
            options.size = sizeof(options);
            if (!from.strategy_.empty()) options.strategy = from.strategy_.c_str();
            if (!from.rule_set_.empty()) options.rule_set = from.rule_set_.c_str();
            options.top = from.top_;
            options.stream = from.stream_;
            if (from.registry_) options.registry = from.registry_->get();
            if (!from.heuristic_) return;
            options.rank = rank;
            options.rank_user = this;
        }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

        static std::int32_t rank(void* user, const char*, const char* const* kernels, const double* predicted_us,
                                 std::int32_t count, std::int32_t* order) {
            const Call& call = *static_cast<const Call*>(user);
            std::int32_t written = 0;
            try {
                std::vector<Candidate> candidates;
                for (std::int32_t i = 0; i < count; ++i) candidates.push_back({kernels[i], predicted_us[i]});
                for (const std::string& name : call.dispatcher.heuristic_(call.problem, candidates)) {
                    for (std::int32_t i = 0; i < count && written < count; ++i) {
                        if (name == candidates[static_cast<std::size_t>(i)].kernel) order[written++] = i;
                    }
                }
            } catch (...) {
                return 0;  // nothing may be thrown through C
            }
            return written;
        }

        const Dispatcher& dispatcher;
        const Problem& problem;
        tilewise_select_options options{};
    };

    Result<Executable> prepared(const Problem& problem, const char* kernel) const {
        Call call(*this, problem);
        call.options.kernel = kernel;
        tilewise_executable* made = nullptr;
        const tilewise_status code = tilewise_prepare(device_.get(), problem.text().c_str(), &call.options, &made);
        if (code != TILEWISE_OK) return Error::last(code);
        return Executable(made);
    }

    Device device_;
    std::optional<Registry> registry_;
    std::string strategy_, rule_set_;
    int top_ = 0;
    void* stream_ = nullptr;
    Heuristic heuristic_;
};

}  // namespace tilewise
