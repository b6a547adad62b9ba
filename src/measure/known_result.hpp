// SPDX-License-Identifier: MIT
// A result that was judged right, to compare those of other kernels with: every element, in a fraction of the time that the
// reference takes. Both may err, each by as much as the reference allows for a sample of rows.
#pragma once

#include <vector>

#include "measure/tensors.hpp"
#include "measure/verify.hpp"

namespace tilewise {

// How far two right results may be apart before they are rounded, by the bounds of the reference in a few rows.
double apart_at_most(const Tensors& tensors, float alpha, float beta, const Summation& summation);

class KnownResult {
public:
    // `tensors` hold what a kernel left that was judged right, run with this alpha and beta; others add up as it does.
    KnownResult(const Tensors& tensors, float alpha, float beta, const Summation& summation = {});

    // The same tensors after another kernel's run.
    VerifyReport compare(const Tensors& tensors) const;

private:
    std::vector<double> values_;  // batch x m x n of the GEMM view
    double apart_ = 0;
};

}  // namespace tilewise
