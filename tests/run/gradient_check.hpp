// SPDX-License-Identifier: MIT
// The three directions are gradients of each other: for any x, w and dy
//     <forward(x, w), dy> = <x, backward data(dy, w)> = <w, backward weight(dy, x)>
// to rounding. Through the kernels that selection picks, and without the reference: what both it and a kernel might get
// wrong alike shows here.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/element.hpp"
#include "run/conv_problems.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {

// On a CPU one in so many chooses among all kernels that selection has; the others among few, which need compiling only once.
inline constexpr int kWideChoice = 5;

inline void copy_operand(const GuardedBuffer& from, const GuardedBuffer& to) {
    ASSERT_EQ(from.bytes(), to.bytes());
    std::memcpy(to.data(), from.data(), static_cast<std::size_t>(from.bytes()));
}

struct InnerProduct {
    double sum = 0, magnitude = 0, squares = 0;
};

inline InnerProduct inner_product(const GuardedBuffer& left, const GuardedBuffer& right) {
    const std::int64_t count = left.shape().span();
    EXPECT_EQ(count, right.shape().span());
    std::vector<double> a(static_cast<std::size_t>(count)), b(a);
    decode(left.type(), left.data(), 1, count, a.data());
    decode(right.type(), right.data(), 1, count, b.data());
    InnerProduct result;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double term = a[i] * b[i];
        result.sum += term;
        result.magnitude += std::abs(term);
        result.squares += term * term;
    }
    return result;
}

inline Problem random_geometry(Random& random, DType type) {
    KernelConfig any;
    any.dtype = any.dtype_b = any.dtype_out = type;
    any.op = Op::conv_fwd;
    Problem p;
    do {
        any.ndim = static_cast<int>(random.between(1, kMaxSpatialDims));
        p = random_conv_problem(random, any, false);
        p.epilogue.clear();
        p.beta = false;
        p.scale = Scale::none;
    } while (check_problem(p) || reference_flops(p) > 1e6);
    return p;
}

class GradientCheck {
public:
    GradientCheck(Device& device, Builder& builder) : device_(&device), dispatcher_(device, builder, nullptr) {}

    // So many random geometries.
    void check(DType type, int geometries);

private:
    void run(const Problem& problem, RuleSet choice, Tensors& tensors) {
        tensors.seal_inputs();
        SelectOptions options;
        options.rule_set = choice;
        const auto plan = dispatcher_.plan(problem, options);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const auto executable = dispatcher_.executable(problem, **plan);
        ASSERT_TRUE(executable.ok()) << executable.error().message;
        auto on_device = DeviceTensors::make(*device_, tensors);
        ASSERT_TRUE(on_device.ok());
        auto bound = BoundRun::make(*executable, *device_, {&on_device->operands(), 1}, 1, 0);
        ASSERT_TRUE(bound.ok()) << bound.error().message;
        ASSERT_TRUE(bound->run().ok() && on_device->fetch().ok());
        const Status guards = tensors.check_guards();
        EXPECT_TRUE(guards.ok()) << guards.error().message;
    }

    Device* device_;
    Dispatcher dispatcher_;
};

inline void GradientCheck::check(DType type, int geometries) {
    Random random(99);
    for (int i = 0; i < geometries && !testing::Test::HasFatalFailure(); ++i) {
        const bool wide = device_->arch().is_gpu() || i % kWideChoice == 0;
        const RuleSet choice = wide ? RuleSet::standard : RuleSet::builtin;
        Problem problems[3];
        std::vector<Tensors> made;
        for (int op = 0; op < 3; ++op) {
            problems[op] = op == 0 ? random_geometry(random, type) : problems[0];
            problems[op].op = static_cast<Op>(static_cast<int>(Op::conv_fwd) + op);
            auto tensors = Tensors::make(problems[op], random.bits());
            ASSERT_TRUE(tensors.ok()) << tensors.error().message;
            made.push_back(std::move(*tensors));
        }
        const auto operand = [&](std::size_t op, std::size_t at) -> const GuardedBuffer& {
            return *made[op].buffers()[at];
        };
        const GuardedBuffer &x = operand(0, 0), &w = operand(0, 1), &dy = operand(1, 0);
        copy_operand(w, operand(1, 1));
        copy_operand(dy, operand(2, 0));
        copy_operand(x, operand(2, 1));
        for (std::size_t op = 0; op < 3; ++op) run(problems[op], choice, made[op]);
        if (testing::Test::HasFailure()) return;
        const InnerProduct products[] = {inner_product(operand(0, 2), dy), inner_product(operand(1, 2), x),
                                         inner_product(operand(2, 2), w)};
        // Each element of an output is rounded once to its type, each of these sums in fp32.
        const double depth = static_cast<double>(gemm_view(problems[1]).k + gemm_view(problems[2]).k);
        double allowed = 0;
        for (const InnerProduct& one : products) {
            allowed += 6 * unit_roundoff(type) * std::sqrt(one.squares) +
                       0x1p-24 * (2 + std::sqrt(depth)) * one.magnitude + 1e-7;
        }
        EXPECT_NEAR(products[1].sum, products[0].sum, allowed) << "backward data: " << print_problem(problems[0]);
        EXPECT_NEAR(products[2].sum, products[0].sum, allowed) << "backward weight: " << print_problem(problems[0]);
    }
}

}  // namespace tilewise
