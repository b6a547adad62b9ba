// SPDX-License-Identifier: MIT
// One problem, from the choice of a kernel to the judged result, on random operands of its own. What `tilewise run`,
// the C interface and gpu_helper show.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "measure/verify.hpp"
#include "select/runtime.hpp"

namespace tilewise {

struct CheckedRunOptions {
    bool strict = false;    // a plan or executable with a note is an error, before anything is built for it or run
    bool validate = false;  // judge the result
};

struct CheckedRun {
    Plan plan;
    std::shared_ptr<const Executable> executable;
    std::vector<Note> notes;  // of both
    double us = 0;            // of this first run, by the device's clock
    double tflops = 0;
    std::optional<VerifyReport> report;
};
Result<CheckedRun> run_checked(Runtime& runtime, const Problem& problem, const Choice& choice,
                               const CheckedRunOptions& options);

// {problem, kernel, plan, time_us, tflops, and where the result was judged: validation}
Json checked_run_to_json(const Problem& problem, const CheckedRun& run);

}  // namespace tilewise
