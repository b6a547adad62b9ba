// SPDX-License-Identifier: MIT
// The common part of comparing matrix products and convolutions: tilewise's two kernels for a problem, the check that
// all results agree, and the timing of all of them on the same tensors in alternating blocks. Times of one thread are the
// fastest block's CPU time of the process: on a busy machine, other programs' turns do not count.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "benchmarks/cases.hpp"
#include "measure/bound_run.hpp"
#include "measure/tensors.hpp"
#include "measure/timing.hpp"
#include "select/dispatcher.hpp"

namespace tilewise::bench {

struct OurTimes {
    std::string kernel;   // the fastest of the model's first few
    double us = 0;        // of that kernel
    double rules_us = 0;  // of the kernel the analytic model puts first
};

struct Comparison {
    Case of;
    std::optional<OurTimes> ours;                 // unset where only the peers were asked for
    std::vector<std::optional<double>> peers_us;  // unset where a peer has no such operation
    std::string peer_code;                        // what the fastest peer ran, where it says that
};

struct CompareOptions {
    double seconds = 0.12;  // of timing, for each of those that are compared
    bool peers_only = false;
    std::size_t top = 8;  // how many of the model's best are timed to find the fastest
    int threads = 1;
};

struct OurKernel {
    std::string kernel;
    BoundRun run;
};
// The model's first choice and the fastest of its first few, which are timed for that, ready to run on the operands. (The
// strategy `measure` does the same with cold operands and the clock on the wall, which a busy machine disturbs.) Of several
// problems, which must differ in packed_b alone, the best of all.
struct OurKernels {
    OurKernel fastest, modelled;
};
Result<OurKernels> bind_ours(Dispatcher& dispatcher, std::span<const Problem> problems, const Operands& operands,
                             const CompareOptions& compare);

Operands operands_of(const Tensors& tensors);
// The values of C as they lie in memory, without the gaps of its strides.
std::vector<double> output_of(const Tensors& tensors);

// Fails with the largest difference where two results lie further apart than roundings explain.
Status check_same(const std::vector<double>& expected, const std::vector<double>& found, DType out);

// In microseconds, one for each call: of one thread the CPU time, of several the time that passes.
std::vector<double> fastest_us(std::span<const TimedCall> calls, const CompareOptions& options);

}  // namespace tilewise::bench
