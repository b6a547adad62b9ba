// SPDX-License-Identifier: MIT
// The common part of the benchmark programs: the words of their command lines, this CPU, the lines and
// the table that they print.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/contest.hpp"

namespace tilewise::bench {

struct Options {
    std::vector<std::string> openblas, onednn;  // shared libraries to compare with
    std::string problems;                       // a file of them
    std::string json;                           // a file to write results to, a line each
    std::size_t skip = 0;                       // of the wanted cases
    bool quick = false;
    CompareOptions compare;
    std::vector<std::string> only;  // texts that a case's title must contain, all of them
};
Result<Options> parse_options(int count, char** arguments, const char* usage);

bool is_wanted(const Case& of, const Options& options);

// At once, so that a long run can be watched through a pipe.
void show(const std::string& text);

// Calls `run` with all of tilewise on this CPU.
Status with_dispatcher(int threads, const std::function<Status(Dispatcher&)>& run);

struct Program {
    std::vector<std::string> peers;    // their names, in the order of the ratios
    std::vector<std::string> details;  // a line about each
    std::vector<std::string> kinds;    // the words of kind_of
    std::function<std::string(const Problem&)> shape;
    std::function<Result<Comparison>(const Case&, Dispatcher&)> compare;
};
// Compares every wanted case and prints the table.
Status run_cases(const std::vector<Case>& cases, const Options& options, const Program& program);

// Before any library counts the CPUs: with one to run on, all of them use one thread.
void stay_on_one_cpu();

}  // namespace tilewise::bench
