// SPDX-License-Identifier: MIT
// The C function that compiles what a list of problems needs on a device, before the first of them is prepared.
#include <fmt/core.h>

#include <set>
#include <utility>

#include "build/builder.hpp"
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "device/cpu/thread_pool.hpp"
#include "problem/problem_list.hpp"
#include "problem/problem_text.hpp"
#include "select/needed_code.hpp"

namespace tilewise::capi {
namespace {

struct Stopped {};  // thrown out of the queue of compilers by the caller's answer

struct ProgressOf {
    tilewise_progress tell = nullptr;
    void* user = nullptr;

    void operator()(const BuildProgress& progress) const {
        if (!tell) return;
        const auto done = static_cast<std::int64_t>(progress.done), total = static_cast<std::int64_t>(progress.total);
        if (tell(user, done, total, std::string(progress.kernel).c_str()) != 0) throw Stopped();
    }
};

Json problem_error(const Error& error) {
    return Json::object({{"code", static_cast<int>(error.code)}, {"message", error.message}});
}

// Adds what the problem needs and nobody has yet; the name of its kernel.
Result<std::string> add_needed(Runtime& runtime, const Problem& problem, const SelectOptions& options,
                               std::set<std::string>& seen, std::vector<BuildRequest>& requests) {
    const auto kernels = needed_kernels(runtime, problem, options);
    if (!kernels) return kernels.error();
    for (const KernelPtr& kernel : *kernels) {
        auto needed = launch_requests(problem, kernel->config, *runtime.device, *runtime.builder);
        if (!needed) return needed.error();
        for (BuildRequest& request : *needed) {
            if (!seen.insert(request.source).second || !runtime.builder->needs_compiler(request)) continue;
            requests.push_back(std::move(request));
        }
    }
    return kernels->front()->name;
}

Result<std::string> build_problems(Runtime& runtime, const char* text, const tilewise_select_options* given, int jobs,
                                   const ProgressOf& progress) {
    if (!text) return usage_error("the list of problems is NULL");
    if (jobs < 0) return usage_error(fmt::format("jobs is {}; need 0 (one for each CPU) or more", jobs));
    const auto problems = parse_problem_list(text, "the list of problems");
    if (!problems) return problems.error();
    const auto read = read_choice(given);
    if (!read) return read.error();
    if (read->choice.kernel) return usage_error("tilewise_build compiles kernels by name; problems choose theirs");
    Json::Array list, failures;
    std::vector<BuildRequest> requests;
    std::set<std::string> seen;
    for (const Problem& problem : *problems) {
        const auto kernel = add_needed(runtime, problem, read->choice.options, seen, requests);
        Json item = Json::object({{"problem", print_problem(problem)}});
        if (kernel)
            item.set("kernel", *kernel);
        else
            item.set("error", problem_error(kernel.error()));
        list.push_back(std::move(item));
    }
    std::vector<Result<BuiltKernel>> built;
    try {
        built = runtime.builder->build_all(requests, jobs == 0 ? usable_cpus() : jobs, progress);
    } catch (const Stopped&) {
        return Error{ErrorCode::check_failed, "stopped by the caller; what was compiled is kept"};
    }
    std::size_t compiled = 0;
    for (std::size_t i = 0; i < built.size(); ++i) {
        if (built[i]) {
            ++compiled;
        } else {
            failures.push_back(
                Json::object({{"kernel", requests[i].name}, {"error", problem_error(built[i].error())}}));
        }
    }
    return Json::object(
               {{"problems", Json(std::move(list))}, {"compiled", compiled}, {"failures", Json(std::move(failures))}})
        .dump();
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_build_problems(tilewise_context* context, const char* problems,
                                        const tilewise_select_options* options, int32_t jobs,
                                        tilewise_progress progress, void* user, char** json) {
    return tilewise::capi::give_text_of(context, json, [&](tilewise_context& c) {
        return tilewise::capi::build_problems(*c.runtime, problems, options, jobs, {progress, user});
    });
}

}  // extern "C"
