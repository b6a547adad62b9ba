// SPDX-License-Identifier: MIT
// A record is one measurement of a kernel on a problem, also one that failed: what was measured, where, with which code, what
// came of it, and the command that repeats it. record_csv.hpp has the form that records are kept in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/enum_names.hpp"
#include "base/result.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"

namespace tilewise {

inline constexpr std::int64_t kRecordSchema = 2;

// ok, or what came instead: the compiler failed; no answer in time; a fault of the process or the device; a result that is not right;
// left out; refused by a rule.
enum class RecordStatus : std::uint8_t { ok, build_failed, timeout, crash, wrong, skipped, rejected };
template <>
struct EnumNames<RecordStatus> {
    static constexpr std::string_view kind = "status";
    static constexpr std::array<std::string_view, 7> names = {"ok",    "build_failed", "timeout", "crash",
                                                              "wrong", "skipped",      "rejected"};
};

// A field for each column, in their order.
struct Record {
    std::int64_t schema = kRecordSchema;
    std::string set;      // the problem set and the hash of its problems, "NAME@HASH"; empty outside of a sweep
    std::string network;  // that the problem comes from, where the set says so
    std::string device;   // Device::identity()
    std::string chip;
    std::string arch;
    std::string driver;  // its version; empty on a CPU
    std::optional<double> clock_mhz;
    std::string problem;  // its text
    std::string kernel_name;
    std::string kernel_id;
    std::string kernel_family;
    std::string code_digest;  // of the binary; empty where there is none
    RecordStatus status = RecordStatus::ok;
    std::string reason;  // of a failure
    std::optional<double> predicted_us;
    double time_us = 0;  // of one call, as are the rates; 0 where nothing was timed
    double spread = 0;   // of the samples, relative
    std::int64_t samples = 0;
    std::optional<double> time2_us;   // timed once more, independently; only where it was among the fastest
    std::optional<double> max_error;  // of a result that was judged
    double tflops = 0;
    double gbps = 0;
    double roof = 0;                     // the part of the roof that is reached
    std::optional<double> reference_us;  // of the sweep's reference kernel when it was timed last
    std::string started;                 // when measuring it began, in UTC
    std::string repro;                   // a command line

    bool operator==(const Record&) const = default;
};

// A record without an outcome: what is known before anything is measured.
Record record_of(const Problem& problem, const Kernel& kernel, const Device& device, std::string code_digest);
// The least time that a device could take: the larger of arithmetic at the arch's peak and bytes at its memory bandwidth.
double roof_us(const Problem& problem, const ArchSpec& arch, int threads);
// Sets the time of one call, the rates that follow from it and the part of the roof.
void set_time(Record& record, const Problem& problem, const Device& device, double us);
// "2026-11-18T16:40:00Z"
std::string utc_now();

// The class of an error that getting a kernel ready for a problem ended in.
RecordStatus failure_of(ErrorCode code);

// The command line that times the kernel on the problem again.
std::string repro_command(const Problem& problem, const Kernel& kernel, const Device& device);

}  // namespace tilewise
