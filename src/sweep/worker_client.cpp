// SPDX-License-Identifier: MIT
#include "sweep/worker_client.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace tilewise {
namespace {

std::optional<double> number_of(const Json& json, std::string_view key) {
    const Json* found = json.find(key);
    if (!found) return std::nullopt;
    if (found->real()) return *found->real();
    if (found->integer()) return static_cast<double>(*found->integer());
    if (found->string() && *found->string() == "inf") return std::numeric_limits<double>::infinity();
    return std::nullopt;
}

std::string text_of(const Json& json, std::string_view key) {
    const Json* found = json.find(key);
    return found && found->string() ? *found->string() : "";
}

WorkerResult result_of(const Json& json, std::size_t kernel) {
    WorkerResult result;
    result.kernel = kernel;
    const auto status = parse_enum<RecordStatus>(text_of(json, "status"));
    result.status = status ? *status : RecordStatus::crash;
    result.reason = text_of(json, "reason");
    result.time_us = number_of(json, "time_us").value_or(0);
    result.spread = number_of(json, "spread").value_or(0);
    result.samples = static_cast<std::int64_t>(number_of(json, "samples").value_or(0));
    result.time2_us = number_of(json, "time2_us");
    result.max_error = number_of(json, "max_error");
    return result;
}

Json request_of(const std::string& problem, const std::vector<std::string>& kernels) {
    Json names = Json::Array();
    for (const std::string& kernel : kernels) names.push_back(kernel);
    return Json::object({{"problem", problem}, {"kernels", std::move(names)}});
}

}  // namespace

Status WorkerClient::ensure() {
    if (process_) return {};
    auto started = WorkerProcess::start(argv_);
    if (!started) return started.error();
    process_ = std::make_unique<WorkerProcess>(std::move(*started));
    Json hello;
    // However little time there is: without a worker nothing is known of the device, not even what is left out.
    const auto wait = receive(hello, SweepClock::time_point::max());
    const Json* device = hello.find("device");
    if (wait == WorkerProcess::Wait::line && device) return description_ = *device, Status();
    const std::string why = text_of(hello, "failed"), end = process_->end();
    process_.reset();
    if (!why.empty()) return Error{static_cast<ErrorCode>(number_of(hello, "code").value_or(5)), why};
    return Error{ErrorCode::device, fmt::format("the worker of the sweep did not start: {}",
                                                wait == WorkerProcess::Wait::late ? "it did not answer in time" : end)};
}

Result<Json> WorkerClient::open() {
    if (auto status = ensure(); !status) return status.error();
    return description_;
}

WorkerProcess::Wait WorkerClient::receive(Json& json, SweepClock::time_point deadline) {
    std::string line;
    const auto wait = process_->receive(line, std::min(SweepClock::now() + timeout_, deadline));
    if (wait != WorkerProcess::Wait::line) return wait;
    auto parsed = Json::parse(line);
    if (!parsed) return WorkerProcess::Wait::gone;
    json = std::move(*parsed);
    return wait;
}

WorkerEnd WorkerClient::lost(WorkerProcess::Wait wait, std::optional<std::size_t> kernel, const std::string& said) {
    const std::string end = process_->end();
    process_.reset();
    if (wait == WorkerProcess::Wait::late && SweepClock::now() >= deadline_) return {WorkerEnd::Kind::out_of_time};
    if (wait == WorkerProcess::Wait::late) {
        const double seconds = std::chrono::duration<double>(timeout_).count();
        return {WorkerEnd::Kind::timeout, kernel, fmt::format("no answer within {:g} s", seconds)};
    }
    return {WorkerEnd::Kind::crash, kernel,
            said.empty() ? fmt::format("the process that ran it ended with {}", end) : said};
}

Result<WorkerEnd> WorkerClient::measure(const std::string& problem, const std::vector<std::string>& kernels,
                                        const std::function<Status(const WorkerResult&)>& take) {
    if (auto status = ensure(); !status) return status.error();
    std::optional<std::size_t> in_hand;
    std::string said;
    if (!process_->send(request_of(problem, kernels).dump())) return lost(WorkerProcess::Wait::gone, in_hand, said);
    while (true) {
        Json json;
        if (const auto wait = receive(json, deadline_); wait != WorkerProcess::Wait::line)
            return lost(wait, in_hand, said);
        if (json.find("done")) return WorkerEnd{WorkerEnd::Kind::done, std::nullopt, text_of(json, "reason")};
        if (json.find("failed")) said = text_of(json, "failed");
        if (const auto at = number_of(json, "at")) {
            in_hand = *at < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(*at));
        }
        if (const auto at = number_of(json, "result"); at && *at >= 0 && *at < static_cast<double>(kernels.size())) {
            const auto kernel = static_cast<std::size_t>(*at);
            if (auto status = take(result_of(json, kernel)); !status) return status.error();
            if (in_hand == kernel) in_hand.reset();
        }
    }
}

Result<std::optional<double>> WorkerClient::time_reference(const std::string& problem, const std::string& kernel) {
    if (auto status = ensure(); !status) return status.error();
    process_->send(Json::object({{"reference", problem}, {"kernel", kernel}}).dump());
    Json json;
    const auto wait = receive(json, deadline_);
    if (wait == WorkerProcess::Wait::line && json.find("reference_us")) return number_of(json, "reference_us");
    static_cast<void>(lost(wait, std::nullopt, ""));
    return std::optional<double>();
}

}  // namespace tilewise
