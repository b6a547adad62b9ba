// SPDX-License-Identifier: MIT
// How far a right result may lie from the exact one. A value is carried with a bound of its error through the steps of
// docs/problems.md, so the bound knows the types, K, split-K, math class, the size of the terms and what is fused.
//
// With u = 2^-24, the roundoff of fp32, and S = sum |a_i b_i|:
//   accumulation   Any order of k additions errs by at most k*u*S. Roundings do not conspire: they act as independent
//                  and centred, and the error stays below c*sqrt(k)*u*S (Higham and Mary 2019). The worst data, all of
//                  one sign and summed one by one, have a standard deviation of 0.24*sqrt(k)*u*S; c = 2 is over 8 such.
//                  Products, and adding up the parts of split-K, round too: k + split_k steps, and 2 more.
//   inputs         tf32 rounds or cuts each input to 10 bits after the point, v = 2^-10: at most 2*v*S. With
//                  Q = sum (a_i b_i)^2, independent errors stay below 6*sqrt(2)*v*sqrt(Q) (Hoeffding), and cutting
//                  shifts by up to 2*v*|sum|; the lesser of the two bounds counts. tf32x3 keeps twice the bits.
//   8-bit floats   In fp32 like others, but for matrix units that add up 32 products at a time and cut the sum to fewer bits,
//                  the arch's fp8_sum_bits: v = 2^-bits, k/32 steps (fast). There strict kernels add up the sums of 256
//                  products in fp32, so that an error is one of a few products and errors are independent: as if inputs
//                  were rounded to as many bits; to one fewer, since products are cut in relation to the largest of the 32
//                  and the sum so far, not each to its own size (of some 10^7 results of an H200, three were up to 15 %
//                  farther off than the bound without that).
//   subnormals     A matrix unit that takes those of fp16 for zero (gfx90a; bf8 is widened to fp16) leaves out products of less than
//                  2^-14. Of operands drawn from -1 to 1 one in 2^14 is that small: with two operands k/2^13 products on average. Twice as
//                  many and 4 more are allowed for.
//   integers       Exact, as long as what follows is.
//   then           Each operation multiplies the error so far by its steepest slope and adds its own: u of a plain
//                  operation's result, 16u of an activation's argument (or of 1, where that bounds it).
//   output         One rounding to the output's type. It is monotone, so a result g is right if and only if
//                  round(x - e) <= g <= round(x + e); that also settles overflow, saturation and subnormals.
// All this costs little sharpness: for random inputs a product left out, tf32 in place of fp32 or a swapped row is far
// outside (tests/measure/tolerance_test.cpp). The arithmetic is in kernels/common/tolerance.hpp, which GPUs share.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "kernels/common/tolerance.hpp"
#include "measure/element.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// How the kernel that is judged adds up products.
struct Summation {
    int split_k = 1;
    int fp8_bits = kFloatBits;        // ArchSpec::fp8_sum_bits
    bool flushes_subnormals = false;  // ArchSpec::flushes_subnormals
};
inline Summation summation_of(const KernelConfig& config, const ArchSpec& arch) {
    return {config.split_k, arch.fp8_sum_bits, arch.flushes_subnormals};
}

ErrorModel error_model(const Problem& problem, const Summation& summation);

// The steps of kernels/common/tolerance.hpp in the words of problems.
inline Bounded apply(EpilogueOp op, Bounded x) { return apply(kernel_op(op), x); }
inline bool agrees(DType out, Bounded expected, double got) { return agrees(kernel_dtype(out), expected, got); }
inline double tolerance_of(DType out, Bounded expected) { return tolerance_of(kernel_dtype(out), expected); }

}  // namespace tilewise
