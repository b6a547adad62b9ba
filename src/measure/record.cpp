// SPDX-License-Identifier: MIT
#include "measure/record.hpp"

#include <fmt/core.h>

#include "config/family_id.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

// A text as one word of a POSIX shell.
std::string shell_word(const std::string& text) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

}  // namespace

std::string repro_command(const Problem& problem, const Kernel& kernel, const Device& device) {
    std::string command = fmt::format("tilewise bench {} --kernel {} --device {}", shell_word(print_problem(problem)),
                                      shell_word(kernel.name), shell_word(device.name()));
    if (device.arch().is_gpu()) return command;
    return command + fmt::format(" --arch {} --threads {}", shell_word(device.arch().name), device.max_threads());
}

Record record_of(const Problem& problem, const Kernel& kernel, const Device& device, std::string code_digest) {
    Record record;
    record.device = device.identity();
    record.problem = print_problem(problem);
    record.kernel_name = kernel.name;
    record.kernel_id = kernel.id;
    record.family = name_of(family_of(kernel.config));
    record.code_digest = std::move(code_digest);
    record.repro = repro_command(problem, kernel, device);
    return record;
}

void set_time(Record& record, const Problem& problem, double us) {
    record.time_us = us;
    record.tflops = flops(problem) / us / 1e6;
    record.gbps = bytes_moved(problem) / us / 1e3;
}

RecordStatus failure_of(ErrorCode code) {
    if (code == ErrorCode::unsupported) return RecordStatus::unsupported;
    return code == ErrorCode::device ? RecordStatus::launch : RecordStatus::build;
}

}  // namespace tilewise
