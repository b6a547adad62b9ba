// SPDX-License-Identifier: MIT
// Checking must do the same on every device: the twin of tests/measure or a GPU. Operands are the host's bit
// for bit, the verdict is the host's, and whatever a kernel may do wrong is found.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "measure/device_check.hpp"
#include "measure/float_gemm.hpp"
#include "measure/reference.hpp"
#include "problem/facts.hpp"

namespace tilewise {

inline DeviceCheck made(Device& device, Builder& builder, const Problem& problem, std::uint64_t seed) {
    auto check = DeviceCheck::make(device, builder, problem, seed);
    if (!check) throw std::runtime_error(check.error().message);
    return std::move(*check);
}

inline void expect_same(Device& device, const void* have, const GuardedBuffer* want, const std::string& text) {
    if (!want) {
        EXPECT_EQ(have, nullptr) << text;
        return;
    }
    std::vector<std::byte> whole(static_cast<std::size_t>(want->whole_bytes()));
    const auto* begin = static_cast<const std::byte*>(have) - want->front_bytes();
    ASSERT_TRUE(device.copy(whole.data(), begin, whole.size(), kDefaultStream).ok());
    EXPECT_EQ(std::memcmp(whole.data(), want->whole(), whole.size()), 0) << text;
}

inline void put_result(Device& device, const Tensors& tensors, const DeviceCheck& check) {
    const GuardedBuffer* c = tensors.buffers()[2];
    const auto bytes = static_cast<std::size_t>(c->bytes());
    ASSERT_TRUE(device.copy(check.operands().c, c->data(), bytes, kDefaultStream).ok());
}

inline void expect_same_verdict(const VerifyReport& have, const VerifyReport& want, const std::string& text) {
    EXPECT_EQ(have.ok, want.ok) << text << "\n" << describe(have) << "\n" << describe(want);
    EXPECT_EQ(have.method, VerifyMethod::on_device);
    EXPECT_EQ(have.checked, want.checked) << text;
    EXPECT_EQ(have.failed, want.failed) << text;
    EXPECT_EQ(have.guards, want.guards) << text;
    // Sums are added up in another order.
    const auto close = [](double x, double y) { return x == y || std::abs(x - y) <= 1e-6 * std::abs(y) + 1e-12; };
    EXPECT_PRED2(close, have.max_ratio, want.max_ratio) << text;
    EXPECT_PRED2(close, have.max_error, want.max_error) << text;
    EXPECT_PRED2(close, have.tolerance, want.tolerance) << text;
    ASSERT_EQ(have.failure.has_value(), want.failure.has_value()) << text;
    if (!have.failure) return;
    EXPECT_EQ(std::tuple(have.failure->batch, have.failure->row, have.failure->col, have.failure->unwritten),
              std::tuple(want.failure->batch, want.failure->row, want.failure->col, want.failure->unwritten))
        << text;
    EXPECT_PRED2(close, have.failure->expected, want.failure->expected) << text;
    EXPECT_PRED2(close, have.failure->tolerance, want.failure->tolerance) << text;
}

inline const std::vector<std::string> kExtras = {
    "",
    ",beta=1",
    ",scale=tensor",
    ",scale=row,epilogue=bias",
    ",d=add+mul",
    ",epilogue=bias+relu,d=add+mul+add+mul",
    ",d=add,beta=1",
    ",batch=3,batch_stride_a=0",
    ",batch=2,lda=190,ldb=195,ldc=191",
    ",epilogue=bias+gelu,d=mul,beta=1,scale=row",
    ",epilogue=gelu_tanh+hardswish,align=1",
    ",epilogue=silu+bias+sigmoid",
    ",epilogue=relu6+tanh,batch=2,batch_stride_b=0",
};
inline const std::vector<std::string> kLayouts = {"rcr", "rrr", "crr", "ccr", "rcc", "rrc", "crc", "ccc"};
inline const std::vector<std::string> kDtypes = {"fp32",          "fp16",          "bf16",          "fp32,math=tf32",
                                                 "fp16,out=fp32", "bf16,out=fp16", "fp8",           "fp8,b=bf8,out=bf8",
                                                 "int8",          "int8,out=int8", "int8,out=fp16", "fp32,math=tf32x3"};

// Every other one is a convolution.
inline std::string random_conv(Random& random, std::size_t i) {
    const int rank = static_cast<int>(random.between(1, 3));
    const auto extents = [&](std::int64_t least, std::int64_t most, const char* between = "x") {
        std::string text;
        for (int d = 0; d < rank; ++d) text += (d > 0 ? between : "") + std::to_string(random.between(least, most));
        return text;
    };
    static const std::vector<std::string> ops = {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"};
    static const std::vector<std::string> last = {"nwgc", "nhwgc", "ndhwgc"}, first = {"ngcw", "ngchw", "ngcdhw"};
    static const std::vector<std::string> dtypes = {"fp32", "bf16", "fp16", "fp32,math=tf32", "bf16,out=fp32"};
    static const std::vector<std::string> chains = {"", ",epilogue=bias+relu", ",epilogue=bias+gelu,d=add", ",beta=1"};
    const std::string& op = ops[i % ops.size()];
    const std::int64_t groups = random.chance(40) ? random.between(2, 4) : 1;
    const auto channels = [&] { return std::to_string(groups * random.between(1, 24)); };
    const std::string sizes = op + ":n=" + std::to_string(random.between(1, 4)) + ",g=" + std::to_string(groups) +
                              ",c=" + channels() + ",k=" + channels() + ",in=" + extents(5, rank == 1 ? 60 : 9) +
                              ",filter=" + extents(1, 3) + ",stride=" + extents(1, 3) + ",pad=" + extents(0, 2) +
                              ",dilation=" + extents(1, 2);
    const auto at = static_cast<std::size_t>(rank - 1);
    return sizes + ",layout=" + (random.chance(50) ? last : first)[at] + ",dtype=" + dtypes[i % dtypes.size()] +
           (op == "conv_bwd_weight" ? "" : chains[i % chains.size()]);
}

inline std::string random_text(Random& random, std::size_t i) {
    if (i % 2 == 1) return random_conv(random, i / 2);
    i /= 2;
    return "gemm:m=" + std::to_string(random.between(1, 150)) + ",n=" + std::to_string(random.between(1, 150)) +
           ",k=" + std::to_string(random.between(1, 90)) + ",layout=" + random.pick(kLayouts) +
           ",dtype=" + kDtypes[i % kDtypes.size()] + kExtras[i % kExtras.size()];
}

// A result that is right: of a GEMM as a plain kernel would find it, of a convolution the reference's own, rounded.
inline void put_right_result(const Tensors& host, const FloatGemm& how, const VerifyOptions& options) {
    if (host.problem().op == Op::gemm) return run_float_gemm(host, how);
    const GemmView view = gemm_view(host.problem());
    const std::vector<double> values = reference_result(host, {how.alpha, how.beta, options.summation});
    std::size_t at = 0;
    for (std::int64_t batch = 0; batch < view.batch; ++batch)
        for (std::int64_t row = 0; row < view.m; ++row)
            for (std::int64_t col = 0; col < view.n; ++col) set_element(host.c(), batch, row, col, values[at++]);
}

inline void operands_are_the_hosts(Device& device, Builder& builder, std::size_t problems) {
    Random random(5);
    for (std::size_t i = 0; i < problems; ++i) {
        const std::string text = random_text(random, i);
        const Tensors host = tensors_for(text, i);
        const DeviceCheck check = made(device, builder, host.problem(), i);
        const Operands& o = check.operands();
        const auto want = host.buffers();
        const void* have[] = {o.a, o.b, o.c, o.bias, o.scale_a, o.scale_b};
        for (std::size_t b = 0; b < std::size(have); ++b) expect_same(device, have[b], want[b], text);
        for (std::size_t d = 6; d < want.size(); ++d) expect_same(device, o.d[d - 6], want[d], text);
    }
}

inline void verdicts_are_the_hosts(Device& device, Builder& builder, std::size_t problems) {
    Random random(6);
    for (std::size_t i = 0; i < problems; ++i) {
        const std::string text = random_text(random, i);
        const Tensors host = tensors_for(text, i);
        const Problem& p = host.problem();
        FloatGemm how;
        how.alpha = random.chance(50) ? suggested_alpha(p) : -0.7f * suggested_alpha(p);
        how.beta = p.beta ? 1.25f : 0;
        how.split_k = random.chance(30) ? 3 : 1;
        VerifyOptions options;
        options.summation.split_k = how.split_k;
        put_right_result(host, how, options);
        const DeviceCheck check = made(device, builder, p, i);
        put_result(device, host, check);
        const auto right = check.verify(how.alpha, how.beta, options);
        ASSERT_TRUE(right.ok()) << right.error().message;
        EXPECT_TRUE(right->ok) << text << ": " << describe(*right);
        expect_same_verdict(*right, verify_result(host, how.alpha, how.beta, options), text);

        // One element wrong, one a NaN, one never written, anywhere.
        const auto somewhere = [&](int kind) {
            const MatrixView c = host.c();
            const GemmView view = gemm_view(p);
            const std::int64_t batch = random.between(0, view.batch - 1), row = random.between(0, view.m - 1),
                               col = random.between(0, view.n - 1);
            const std::uint32_t bits = kind == 0   ? encode(c.type, element(c, batch, row, col) < 20 ? 100 : -100)
                                       : kind == 1 ? encode(c.type, NAN)
                                                   : poison_bits(c.type);
            std::memcpy(c.at(batch, row, col), &bits, static_cast<std::size_t>(bytes_of(c.type)));
        };
        for (const int kind : {0, 1, 2}) {
            somewhere(kind);
            put_result(device, host, check);
            const auto wrong = check.verify(how.alpha, how.beta, options);
            ASSERT_TRUE(wrong.ok()) << wrong.error().message;
            EXPECT_FALSE(wrong->ok) << text << ": " << describe(*wrong);
            expect_same_verdict(*wrong, verify_result(host, how.alpha, how.beta, options), text);
        }
    }
}

// Every step-th byte of the guards, gaps, inputs and the result.
inline void damage_is_found(Device& device, Builder& builder, std::int64_t step) {
    const Tensors host = tensors_for("gemm:m=9,n=7,k=5,batch=2,lda=8,ldb=6,ldc=11,batch_stride_c=110,dtype=bf16");
    run_float_gemm(host);
    const DeviceCheck check = made(device, builder, host.problem(), 1);
    put_result(device, host, check);
    ASSERT_TRUE(check.verify(1, 0)->ok);
    const Operands& o = check.operands();
    std::byte* const starts[] = {static_cast<std::byte*>(const_cast<void*>(o.a)),
                                 static_cast<std::byte*>(const_cast<void*>(o.b)), static_cast<std::byte*>(o.c)};
    for (std::size_t i = 0; i < 3; ++i) {
        const GuardedBuffer& buffer = *host.buffers()[i];
        for (std::int64_t at = -buffer.front_bytes(); at < buffer.bytes() + GuardedBuffer::kGuardBytes; at += step) {
            std::byte& ours = buffer.data()[at];
            const std::byte before = ours;
            ours ^= std::byte{1};
            ASSERT_TRUE(device.copy(starts[i] + at, &ours, 1, kDefaultStream).ok());
            const auto report = check.verify(1, 0);
            ASSERT_TRUE(report.ok());
            const Status want = host.check_guards();
            EXPECT_EQ(report->guards, want ? "" : want.error().message) << i << ' ' << at;
            EXPECT_TRUE(i == 2 || !report->ok) << "no byte of an input may change";
            ours = before;
            ASSERT_TRUE(device.copy(starts[i] + at, &ours, 1, kDefaultStream).ok());
        }
    }
}

}  // namespace tilewise
