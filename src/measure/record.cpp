// SPDX-License-Identifier: MIT
#include "measure/record.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

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
    const ArchSpec& arch = device.arch();
    record.device = device.identity();
    record.chip = arch.chip;
    record.arch = arch.name;
    if (const auto driver = device.driver_version())
        record.driver = fmt::format("{}.{}", *driver / 1000, *driver % 1000 / 10);
    record.clock_mhz = device.clock_mhz();
    record.started = utc_now();
    record.problem = print_problem(problem);
    record.kernel_name = kernel.name;
    record.kernel_id = kernel.id;
    record.kernel_family = name_of(family_of(kernel.config));
    record.code_digest = std::move(code_digest);
    record.repro = repro_command(problem, kernel, device);
    return record;
}

double roof_us(const Problem& problem, const ArchSpec& arch, int threads) {
    double tflops = 0;
    for (const Peak& peak : arch.peaks) {
        if (peak.dtype == problem.dtype_a) tflops = peak.tflops;
    }
    const double compute = tflops > 0 ? flops(problem) / (tflops * 1e6 * threads) : 0;
    return std::max(compute, bytes_moved(problem) / (arch.memory_gbps * 1e3));
}

void set_time(Record& record, const Problem& problem, const Device& device, double us) {
    record.time_us = us;
    record.tflops = flops(problem) / us / 1e6;
    record.gbps = bytes_moved(problem) / us / 1e3;
    record.roof = roof_us(problem, device.arch(), device.max_threads()) / us;
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

// A fault of a device counts as a crash: what it was doing is lost, as it would be with the process.
RecordStatus failure_of(ErrorCode code) {
    if (code == ErrorCode::unsupported) return RecordStatus::rejected;
    return code == ErrorCode::device ? RecordStatus::crash : RecordStatus::build_failed;
}

}  // namespace tilewise
