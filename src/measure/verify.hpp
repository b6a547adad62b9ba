// SPDX-License-Identifier: MIT
// Judges a result against the reference. Small problems: every element. Large ones: a random projection that covers every
// element (projection.hpp), rows that look wrong in it and a sample of others being computed in full; with an activation, or
// where gathering the pixels of a convolution is most of the work, a larger sample. Any NaN, unwritten element or damaged
// guard fails. Large results on a GPU are judged there, every element (device_check.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "measure/tensors.hpp"
#include "measure/tolerance.hpp"

namespace tilewise {

enum class VerifyMethod : std::uint8_t { every_element, projection_and_rows, sampled_rows, on_device, known_result };
template <>
struct EnumNames<VerifyMethod> {
    static constexpr std::string_view kind = "verification method";
    static constexpr std::array<std::string_view, 5> names = {"every element", "random projection and sampled rows",
                                                              "sampled rows", "every element, on the device",
                                                              "every element, beside a result that is right"};
};

struct VerifyOptions {
    Summation summation;        // of the kernel that ran
    double full_work = 2e9;     // up to about this many multiply-adds every element is computed
    double project_work = 2e9;  // multiply-adds the projection may take; less makes it coarser
    int sample_rows = 16;       // computed in full next to a projection
    std::uint64_t seed = 1;     // of the projection and the sample
};

// The multiply-adds that computing every element takes, finishing and comparing included.
double full_work(const Problem& problem);

struct VerifyFailure {
    std::int64_t batch = 0, row = 0, col = 0;
    double expected = 0, got = 0, tolerance = 0;
    bool unwritten = false;  // it still holds the poison
};

struct VerifyReport {
    bool ok = false;
    VerifyMethod method = VerifyMethod::every_element;
    // These are of the element that is worst in relation to what it may be off by. The error is infinite if a NaN is where none should be.
    double max_error = 0;
    double tolerance = 0;
    double max_ratio = 0;                  // max_error / tolerance; beyond 1 where there is a failure
    std::int64_t checked = 0;              // elements compared with the reference, one by one
    std::int64_t projected = 0;            // elements covered by the projection
    std::int64_t failed = 0;               // of those checked; a large problem stops at the first tile with a failure
    std::optional<VerifyFailure> failure;  // the first by batch, row, column
    std::string guards;                    // what was overwritten; empty when nothing was
};

// `tensors` hold what a kernel left; alpha and beta are what it was given.
VerifyReport verify_result(const Tensors& tensors, float alpha, float beta, const VerifyOptions& options = {});

// A sentence or two: what was checked and how it went, with the failing element.
std::string describe(const VerifyReport& report);

}  // namespace tilewise
