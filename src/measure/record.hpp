// SPDX-License-Identifier: MIT
// A record is one measurement of a kernel on a problem, also one that failed: what was measured, where, with which code, what
// came of it, and the command that repeats it. record_csv.hpp has the form that records are kept in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_names.hpp"
#include "base/result.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"

namespace tilewise {

inline constexpr std::int64_t kRecordSchema = 1;

// ok, or the class of the failure.
enum class RecordStatus : std::uint8_t { ok, wrong_result, unsupported, build, launch };
template <>
struct EnumNames<RecordStatus> {
    static constexpr std::string_view kind = "status";
    static constexpr std::array<std::string_view, 5> names = {"ok", "wrong-result", "unsupported", "build", "launch"};
};

// A field for each column, in their order.
struct Record {
    std::int64_t schema = kRecordSchema;
    std::string device;   // Device::identity()
    std::string problem;  // its text
    std::string kernel_name;
    std::string kernel_id;
    std::string family;
    std::string code_digest;  // of the binary; empty where there is none
    RecordStatus status = RecordStatus::ok;
    std::string reason;  // of a failure
    double time_us = 0;  // of one call, as are the rates; 0 where nothing was timed
    double spread = 0;   // of the samples, relative
    std::int64_t samples = 0;
    double tflops = 0;
    double gbps = 0;
    std::string repro;  // a command line

    bool operator==(const Record&) const = default;
};

// A record without an outcome: what is known before anything is measured.
Record record_of(const Problem& problem, const Kernel& kernel, const Device& device, std::string code_digest);
// Sets the time of one call and the rates that follow from it.
void set_time(Record& record, const Problem& problem, double us);

// The class of an error that getting a kernel ready for a problem ended in.
RecordStatus failure_of(ErrorCode code);

// The command line that times the kernel on the problem again.
std::string repro_command(const Problem& problem, const Kernel& kernel, const Device& device);

}  // namespace tilewise
