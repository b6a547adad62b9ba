// SPDX-License-Identifier: MIT
// Timing the kernels of a problem and setting the times against the roof: the larger of arithmetic at the arch's peak and
// bytes at its memory bandwidth.
#pragma once

#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "select/measure_candidates.hpp"
#include "select/runtime.hpp"

namespace tilewise {

struct BenchRow {
    KernelPtr kernel;
    double us = 0;
    double spread = 0;  // relative
    double tflops = 0, gbps = 0;
    double roof = 0;                       // the part of the roof that is reached
    std::optional<double> predicted_us{};  // by the analytic model, for the problem as it is
    std::vector<Note> notes{};             // what is not as it should be about the kernel, such as padding
};
struct BenchOutcome {
    std::vector<BenchRow> rows;  // fastest first
    std::vector<Failed> failed;
    std::vector<Note> notes;  // about recording them
};

// Every candidate with `all`, else the one that is chosen.
Result<BenchOutcome> bench_problem(Runtime& runtime, const Problem& problem, const Choice& choice, bool all);

// "device,problem,kernel,us,…", the names of a line's cells.
std::string bench_csv_header();
std::string bench_row_to_csv(const Device& device, const Problem& problem, const BenchRow& row);
Json bench_row_to_json(const Problem& problem, const BenchRow& row);
Json bench_failure_to_json(const Problem& problem, const Failed& failed);
// {device, results, failures, notes}
Json bench_to_json(const Device& device, Json::Array results, Json::Array failures, std::span<const Note> notes);

}  // namespace tilewise
