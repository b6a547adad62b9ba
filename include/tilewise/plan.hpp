// SPDX-License-Identifier: MIT
// A Plan is the outcome of a selection, an Executable a plan made ready. Copies share one handle; both may be used by many
// threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewise/device.hpp"
#include "tilewise/problem.hpp"

namespace tilewise {

// The operands of one run: see tilewise_operands. Without any, alpha 1 and beta 0.
struct Operands : tilewise_operands {
    Operands() : tilewise_operands(TILEWISE_OPERANDS_INIT) {}
    Operands(const void* a_, const void* b_, void* c_) : Operands() { a = a_, b = b_, c = c_; }
};

class Executable {
public:
    std::string kernel() const { return tilewise_executable_kernel(get()); }
    std::string source() const { return tilewise_executable_source(get()); }  // what made the choice
    std::string why() const { return tilewise_executable_why(get()); }
    std::int64_t workspace_bytes() const { return tilewise_executable_workspace_bytes(get()); }
    std::int64_t packed_b_bytes() const { return tilewise_executable_packed_b_bytes(get()); }
    Result<std::string> describe() const {
        return detail::text_of([&](char** out) { return tilewise_executable_describe(get(), out); });
    }

    // Launches once; allocates nothing. On a GPU it returns before the result is there.
    Status run(const Operands& operands, void* stream = nullptr) const {
        return Status::of(tilewise_run(get(), &operands, stream));
    }
    Status pack_b(const void* b, void* packed, void* stream = nullptr) const {
        return Status::of(tilewise_pack_b(get(), b, packed, stream));
    }

    tilewise_executable* get() const { return handle_.get(); }

private:
    friend class Plan;
    friend class Dispatcher;
    explicit Executable(tilewise_executable* handle) : handle_(handle, tilewise_executable_destroy) {}

    std::shared_ptr<tilewise_executable> handle_;
};

struct Candidate {
    std::string kernel;
    double predicted_us = -1;  // negative where there is no model
};
struct Rejection {
    std::string kernel, rule, have, need;
};

class Plan {
public:
    bool has_kernel() const { return !kernel().empty(); }
    std::string kernel() const { return tilewise_plan_kernel(get()); }
    std::string source() const { return tilewise_plan_source(get()); }  // what made the choice
    std::string why() const { return tilewise_plan_why(get()); }        // also where there is no kernel

    std::vector<Candidate> candidates() const {  // in the order of preference
        std::vector<Candidate> all;
        for (std::int64_t i = 0; i < tilewise_plan_candidate_count(get()); ++i) {
            const char* name = "";
            double us = -1;
            if (tilewise_plan_candidate(get(), i, &name, &us) == TILEWISE_OK) all.push_back({name, us});
        }
        return all;
    }
    std::vector<Rejection> rejections() const {
        std::vector<Rejection> all;
        for (std::int64_t i = 0; i < tilewise_plan_rejection_count(get()); ++i) {
            const char *name = "", *rule = "", *have = "", *need = "";
            if (tilewise_plan_rejection(get(), i, &name, &rule, &have, &need) == TILEWISE_OK)
                all.push_back({name, rule, have, need});
        }
        return all;
    }
    // {"plan", "candidates", "rejected"}
    Result<std::string> describe() const {
        return detail::text_of([&](char** out) { return tilewise_plan_describe(get(), out); });
    }

    // Builds and loads the kernel of the plan, and no other.
    Result<Executable> prepare() const {
        tilewise_executable* made = nullptr;
        const tilewise_status code = tilewise_plan_prepare(get(), &made);
        if (code != TILEWISE_OK) return Error::last(code);
        return Executable(made);
    }

    tilewise_plan* get() const { return handle_.get(); }

private:
    friend class Dispatcher;
    friend Result<Plan> select_for_arch(const Problem&, const std::string&, const std::string&);
    explicit Plan(tilewise_plan* handle) : handle_(handle, tilewise_plan_destroy) {}

    std::shared_ptr<tilewise_plan> handle_;
};

// The plan for an arch that need not be here; it can be shown, not prepared.
inline Result<Plan> select_for_arch(const Problem& problem, const std::string& arch,
                                    const std::string& rule_set = "default") {
    tilewise_select_options options{};
    options.size = sizeof(options);
    options.arch = arch.c_str();
    options.rule_set = rule_set.c_str();
    tilewise_plan* made = nullptr;
    const tilewise_status code = tilewise_plan_create(nullptr, problem.text().c_str(), &options, &made);
    if (code != TILEWISE_OK) return Error::last(code);
    return Plan(made);
}

}  // namespace tilewise
