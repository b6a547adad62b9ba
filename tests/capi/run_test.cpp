// SPDX-License-Identifier: MIT
// Running kernels through the C interface: contexts, executables, runs; what is refused; what may be destroyed when.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/count_allocations.hpp"
#include "capi/last_error.hpp"
#include "tilewise/tilewise.h"

namespace {

constexpr int kM = 5, kN = 7, kK = 9;
const char* const kRunProblem = "gemm:m=5,n=7,k=9,dtype=fp32,layout=rcr";

// A(i, p) and B(p, j) of small whole numbers, so that sums are exact.
std::vector<float> numbers(std::size_t count, int seed) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((static_cast<int>(i) * seed) % 11 - 5);
    return values;
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b) {
    std::vector<float> c(kM * kN);
    for (int i = 0; i < kM; ++i)
        for (int j = 0; j < kN; ++j)
            for (int p = 0; p < kK; ++p) c[i * kN + j] += a[i * kK + p] * b[j * kK + p];
    return c;
}

class CapiRun : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(tilewise_context_create("cpu", nullptr, &context_), TILEWISE_OK) << last_error();
    }
    void TearDown() override {
        tilewise_executable_destroy(executable_);
        tilewise_context_destroy(context_);
    }

    tilewise_status prepare(const char* problem, const tilewise_select_options* options = nullptr) {
        tilewise_executable_destroy(executable_);
        return tilewise_prepare(context_, problem, options, &executable_);
    }

    tilewise_operands operands() {
        tilewise_operands given = TILEWISE_OPERANDS_INIT;
        given.a = a_.data(), given.b = b_.data(), given.c = c_.data();
        return given;
    }

    std::vector<float> a_ = numbers(kM * kK, 3), b_ = numbers(kN * kK, 7), c_ = std::vector<float>(kM * kN, NAN);
    tilewise_context* context_ = nullptr;
    tilewise_executable* executable_ = nullptr;
};

TEST_F(CapiRun, AProductIsRight) {
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error();
    const tilewise_operands given = operands();
    ASSERT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    EXPECT_EQ(c_, product(a_, b_));
}

TEST_F(CapiRun, AnEmptyResultNeedsNoOperands) {
    ASSERT_EQ(prepare("gemm:m=0,n=4,k=8,dtype=fp32"), TILEWISE_OK) << last_error();
    EXPECT_EQ(tilewise_executable_workspace_bytes(executable_), 0);
    const tilewise_operands none = TILEWISE_OPERANDS_INIT;
    EXPECT_EQ(tilewise_run(executable_, &none, nullptr), TILEWISE_OK) << last_error();
}

TEST_F(CapiRun, SumsWithoutTermsLeaveBetaTimesC) {
    ASSERT_EQ(prepare("gemm:m=3,n=5,k=0,dtype=fp32,beta=1"), TILEWISE_OK) << last_error();
    std::vector<float> c(15, 4);
    std::vector<char> scratch(static_cast<std::size_t>(tilewise_executable_workspace_bytes(executable_)) + 64);
    tilewise_operands given = TILEWISE_OPERANDS_INIT;
    given.c = c.data(), given.beta = 0.5f;
    EXPECT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_USAGE) << "the zeros need a workspace";
    given.workspace = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64);
    ASSERT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    EXPECT_EQ(c, std::vector<float>(15, 2));
}

TEST(CapiVerbose, TakesThreeLevels) {
    EXPECT_EQ(tilewise_set_verbose(0), TILEWISE_OK);
    EXPECT_EQ(tilewise_set_verbose(3), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("the level is 3"), std::string::npos);
    EXPECT_EQ(tilewise_set_verbose(-1), TILEWISE_USAGE);
}

TEST_F(CapiRun, EveryOperandArrives) {
    ASSERT_EQ(prepare((std::string(kRunProblem) + ",epilogue=bias,d=add+mul,beta=1,scale=row").c_str()), TILEWISE_OK)
        << last_error();
    const auto bias = numbers(kN, 2), d0 = numbers(kM * kN, 5), d1 = numbers(kM * kN, 4), rows = numbers(kM, 6),
               columns = numbers(kN, 8), before = numbers(kM * kN, 9);
    c_ = before;
    tilewise_operands given = operands();
    given.bias = bias.data(), given.d[0] = d0.data(), given.d[1] = d1.data();
    given.scale_a = rows.data(), given.scale_b = columns.data();
    given.alpha = 2, given.beta = 0.5f;
    ASSERT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    const auto plain = product(a_, b_);
    for (int i = 0; i < kM; ++i) {
        for (int j = 0; j < kN; ++j) {
            const int at = i * kN + j;
            const float sum = 2 * rows[i] * columns[j] * plain[at] + 0.5f * before[at] + bias[j];
            EXPECT_EQ(c_[at], (sum + d0[at]) * d1[at]) << i << ',' << j;
        }
    }
}

TEST_F(CapiRun, AnExecutableSaysWhatItIs) {
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error();
    const std::string kernel = tilewise_executable_kernel(executable_);
    EXPECT_EQ(kernel.find("gemm_fp32_"), 0u);
    EXPECT_STRNE(tilewise_executable_source(executable_), "");
    EXPECT_STRNE(tilewise_executable_why(executable_), "");
    EXPECT_EQ(tilewise_executable_workspace_bytes(executable_), 0);
    EXPECT_EQ(tilewise_executable_packed_b_bytes(executable_), 0);
    char* json = nullptr;
    ASSERT_EQ(tilewise_executable_describe(executable_, &json), TILEWISE_OK) << last_error();
    const std::string text = json;
    tilewise_free(json);
    for (const std::string& part : {"\"kernel\":\"" + kernel, std::string(R"("plan":{"kernel":)"),
                                    std::string(R"("notes":[])"), std::string(R"("workspace_bytes":0)"),
                                    std::string(R"({"name":"b","dtype":"fp32","shape":[7,9],"strides":[9,1]})")}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
    }
}

TEST_F(CapiRun, AKernelCanBeNamed) {
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error();
    const std::string name = tilewise_executable_kernel(executable_);
    tilewise_select_options options = {};
    options.size = sizeof(options);
    options.kernel = name.c_str();
    ASSERT_EQ(prepare(kRunProblem, &options), TILEWISE_OK) << last_error();
    EXPECT_STREQ(tilewise_executable_source(executable_), "named");
    EXPECT_EQ(tilewise_executable_kernel(executable_), name);
    options.kernel = nullptr;
    options.strategy = "first-fit";
    ASSERT_EQ(prepare(kRunProblem, &options), TILEWISE_OK) << last_error();
    EXPECT_STREQ(tilewise_executable_source(executable_), "first-fit");
}

TEST_F(CapiRun, WhatIsMissingIsNamed) {
    ASSERT_EQ(prepare((std::string(kRunProblem) + ",epilogue=bias").c_str()), TILEWISE_OK) << last_error();
    tilewise_operands given = operands();
    EXPECT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("bias"), std::string::npos) << last_error();
    given.b = nullptr;
    EXPECT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(last_error(), "the operand b is null; the problem needs it");
    EXPECT_TRUE(std::isnan(c_[0])) << "nothing was launched";
}

TEST_F(CapiRun, AnOutputThatOverlapsAnOperandIsRefused) {
    ASSERT_EQ(prepare((std::string(kRunProblem) + ",epilogue=bias,d=add").c_str()), TILEWISE_OK) << last_error();
    std::vector<float> memory = numbers(400, 3);
    const auto bias = numbers(kN, 2), d = numbers(kM * kN, 5), before = memory;
    const auto with = [&](const auto& change) {
        tilewise_operands given = operands();
        given.c = memory.data() + 100, given.bias = bias.data(), given.d[0] = d.data();
        change(given);
        return tilewise_run(executable_, &given, nullptr);
    };
    const auto overlaps = [](const char* name) {
        return last_error().find(std::string("the output c overlaps ") + name + ":") != std::string::npos;
    };
    for (const int at : {100 - kM * kK + 1, 100, 101, 100 + kM * kN - 1}) {
        EXPECT_EQ(with([&](auto& o) { o.a = memory.data() + at; }), TILEWISE_USAGE);
        EXPECT_TRUE(overlaps("a")) << last_error();
    }
    EXPECT_EQ(with([&](auto& o) { o.b = memory.data() + 100; }), TILEWISE_USAGE);
    EXPECT_TRUE(overlaps("b")) << last_error();
    EXPECT_EQ(with([&](auto& o) { o.bias = memory.data() + 110; }), TILEWISE_USAGE);
    EXPECT_TRUE(overlaps("bias")) << last_error();
    EXPECT_EQ(with([&](auto& o) { o.d[0] = memory.data() + 101; }), TILEWISE_USAGE);
    EXPECT_TRUE(overlaps("d0")) << last_error();
    EXPECT_EQ(memory, before) << "nothing was launched";
    EXPECT_EQ(with([&](auto& o) { o.a = memory.data() + 100 - kM * kK, o.b = memory.data() + 100 + kM * kN; }),
              TILEWISE_OK)
        << last_error();
}

TEST_F(CapiRun, ADTensorMayBeTheOutput) {
    ASSERT_EQ(prepare((std::string(kRunProblem) + ",d=mul").c_str()), TILEWISE_OK) << last_error();
    const auto before = c_ = numbers(kM * kN, 5);
    tilewise_operands given = operands();
    given.d[0] = c_.data();
    ASSERT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    auto want = product(a_, b_);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] *= before[i];
    EXPECT_EQ(c_, want);
}

TEST_F(CapiRun, ColumnsOfOneArrayAreOperands) {
    ASSERT_EQ(prepare("gemm:m=5,n=7,k=9,dtype=fp32,layout=rcr,lda=19,ldc=19,align=4"), TILEWISE_OK) << last_error();
    constexpr int kWidth = 19;
    std::vector<float> frame(kM * kWidth, 1.0f);
    for (int i = 0; i < kM; ++i) std::copy_n(a_.begin() + i * kK, kK, frame.begin() + i * kWidth + 10);
    tilewise_operands given = operands();
    given.a = frame.data() + 10, given.c = frame.data() + 2;
    ASSERT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    const auto want = product(a_, b_);
    for (int i = 0; i < kM * kWidth; ++i) {
        const int row = i / kWidth, column = i % kWidth;
        const float expected = column >= 10                     ? a_[row * kK + column - 10]
                               : column >= 2 && column < 2 + kN ? want[row * kN + column - 2]
                                                                : 1.0f;
        EXPECT_EQ(frame[i], expected) << row << ',' << column;
    }
    given.c = frame.data() + 4;
    EXPECT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_USAGE) << "the last column of c is the first of a";
}

TEST_F(CapiRun, NullsAreUsageErrors) {
    tilewise_context* context = nullptr;
    EXPECT_EQ(tilewise_context_create(nullptr, nullptr, &context), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_context_create("cpu", nullptr, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_prepare(nullptr, kRunProblem, nullptr, &executable_), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_prepare(context_, nullptr, nullptr, &executable_), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_prepare(context_, kRunProblem, nullptr, nullptr), TILEWISE_USAGE);
    const tilewise_operands given = operands();
    EXPECT_EQ(tilewise_run(nullptr, &given, nullptr), TILEWISE_USAGE);
    EXPECT_NE(last_error(), "");
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK);
    EXPECT_EQ(tilewise_run(executable_, nullptr, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_pack_b(executable_, nullptr, nullptr, nullptr), TILEWISE_USAGE);
    char* json = nullptr;
    EXPECT_EQ(tilewise_executable_describe(nullptr, &json), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_bench(nullptr, kRunProblem, nullptr, 0, &json), TILEWISE_USAGE);
    EXPECT_EQ(json, nullptr);
    EXPECT_STREQ(tilewise_executable_kernel(nullptr), "");
    EXPECT_EQ(tilewise_executable_workspace_bytes(nullptr), 0);
    tilewise_context_destroy(nullptr);
    tilewise_executable_destroy(nullptr);
}

TEST_F(CapiRun, StatusCodesOfPrepare) {
    EXPECT_EQ(prepare("nonsense"), TILEWISE_USAGE);
    EXPECT_EQ(executable_, nullptr);
    EXPECT_EQ(prepare("gemm:m=-1,n=1,k=1,dtype=fp32"), TILEWISE_UNSUPPORTED);
    tilewise_select_options options = {};
    options.size = sizeof(options);
    options.strategy = "guess";
    EXPECT_EQ(prepare(kRunProblem, &options), TILEWISE_USAGE);
    options.strategy = nullptr, options.rule_set = "nonsense";
    EXPECT_EQ(prepare(kRunProblem, &options), TILEWISE_USAGE);
    options.rule_set = nullptr, options.top = -1;
    EXPECT_EQ(prepare(kRunProblem, &options), TILEWISE_USAGE);
    options.top = 0, options.kernel = "nonsense";
    EXPECT_EQ(prepare(kRunProblem, &options), TILEWISE_USAGE);
}

TEST_F(CapiRun, ADeviceThatIsNotThereIsADeviceError) {
    tilewise_context* context = context_;
    EXPECT_EQ(tilewise_context_create("abacus:0", nullptr, &context), TILEWISE_DEVICE);
    EXPECT_EQ(context, nullptr);
    EXPECT_NE(last_error().find("abacus:0"), std::string::npos) << last_error();
    tilewise_context_options options = {};
    options.size = sizeof(options);
    options.threads = 100000;
    EXPECT_EQ(tilewise_context_create("cpu", &options, &context), TILEWISE_USAGE);
    options.threads = 0, options.arch = "z80";
    EXPECT_EQ(tilewise_context_create("cpu", &options, &context), TILEWISE_USAGE);
    options.arch = nullptr, options.packs = "/nonexistent/a.pack";
    EXPECT_NE(tilewise_context_create("cpu", &options, &context), TILEWISE_OK);
    options.packs = nullptr, options.threads = 1;
    ASSERT_EQ(tilewise_context_create("cpu", &options, &context), TILEWISE_OK) << last_error();
    tilewise_context_destroy(context);
}

// An older client's struct is shorter, a newer one's is longer; both are fine as long as they say no more than is known.
TEST_F(CapiRun, StructsMayGrow) {
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error();
    tilewise_operands given = operands();
    given.size = 0;
    EXPECT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("size"), std::string::npos) << last_error();

    given.alpha = 77;  // beyond the size below, thus not read: alpha is 1
    given.size = offsetof(tilewise_operands, alpha);
    EXPECT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    EXPECT_EQ(c_, product(a_, b_));

    struct Newer {
        tilewise_operands known;
        void* more;
    } newer = {operands(), nullptr};
    newer.known.size = sizeof(newer);
    EXPECT_EQ(tilewise_run(executable_, &newer.known, nullptr), TILEWISE_OK) << last_error();
    newer.more = &newer;
    EXPECT_EQ(tilewise_run(executable_, &newer.known, nullptr), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("newer"), std::string::npos) << last_error();
}

TEST_F(CapiRun, AnExecutableOutlivesItsContext) {
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error();
    tilewise_context_destroy(context_);
    context_ = nullptr;
    const tilewise_operands given = operands();
    ASSERT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    EXPECT_EQ(c_, product(a_, b_));
}

TEST_F(CapiRun, ARunAllocatesNothing) {
    using tilewise::allocations_in;
    EXPECT_GT(allocations_in([&] { ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error(); }), 0u)
        << "the counter counts";
    const tilewise_operands given = operands();
    const auto run = [&] { return tilewise_run(executable_, &given, nullptr); };
    ASSERT_EQ(run(), TILEWISE_OK) << last_error();  // the first sets up what a thread needs
    EXPECT_EQ(allocations_in([&] {
                  for (int i = 0; i < 100; ++i) ASSERT_EQ(run(), TILEWISE_OK) << last_error();
              }),
              0u);
}

// A kernel by name that takes whole tiles only: the problem is padded, which the description says, and still a run
// allocates nothing.
TEST_F(CapiRun, AKernelThatNeedsAlignedSizesPadsTheProblem) {
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error();
    std::string name = tilewise_executable_kernel(executable_);
    std::size_t at = name.find("_intrawave_");
    for (int shape = 0; shape < 4; ++shape) at = name.find_first_of("_@", at + 1);
    name.insert(at, "_pad-none");
    tilewise_select_options options = {};
    options.size = sizeof options;
    options.kernel = name.c_str();
    ASSERT_EQ(prepare(kRunProblem, &options), TILEWISE_OK) << last_error();
    char* json = nullptr;
    ASSERT_EQ(tilewise_executable_describe(executable_, &json), TILEWISE_OK) << last_error();
    const std::string described = json;
    tilewise_free(json);
    EXPECT_NE(described.find(R"("notes":[{"kind":"padding","message":"the kernel does not take the problem as it is)"),
              std::string::npos)
        << described;
    EXPECT_EQ(described.find("padding\"", described.find("padding\"") + 1), std::string::npos) << "said once";
    std::vector<char> workspace(static_cast<std::size_t>(tilewise_executable_workspace_bytes(executable_)));
    EXPECT_GT(workspace.size(), 0u);
    tilewise_operands given = operands();
    given.workspace = workspace.data();
    const auto run = [&] { return tilewise_run(executable_, &given, nullptr); };
    ASSERT_EQ(run(), TILEWISE_OK) << last_error();
    EXPECT_EQ(c_, product(a_, b_));
    EXPECT_EQ(tilewise::allocations_in([&] {
                  for (int i = 0; i < 100; ++i) ASSERT_EQ(run(), TILEWISE_OK) << last_error();
              }),
              0u);
    given.a = workspace.data() + workspace.size() / 16 * 16 - 16;
    EXPECT_EQ(run(), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("the workspace overlaps a"), std::string::npos) << last_error();
}

TEST_F(CapiRun, ManyThreadsRunOneExecutable) {
    ASSERT_EQ(prepare(kRunProblem), TILEWISE_OK) << last_error();
    const auto want = product(a_, b_);
    std::vector<int> right(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < right.size(); ++t) {
        threads.emplace_back([&, t] {
            std::vector<float> c(kM * kN);
            tilewise_operands given = operands();
            given.c = c.data(), given.alpha = static_cast<float>(t + 1);
            bool good = true;
            for (int i = 0; i < 200; ++i) {
                good &= tilewise_run(executable_, &given, nullptr) == TILEWISE_OK;
                for (std::size_t e = 0; e < c.size(); ++e) good &= c[e] == want[e] * given.alpha;
            }
            right[t] = good ? 1 : 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int good : right) EXPECT_EQ(good, 1);
}

TEST_F(CapiRun, BPackedAhead) {
    ASSERT_EQ(prepare((std::string(kRunProblem) + ",packed_b=1").c_str()), TILEWISE_OK) << last_error();
    const auto bytes = tilewise_executable_packed_b_bytes(executable_);
    ASSERT_GT(bytes, 0);
    std::vector<char> packed(static_cast<std::size_t>(bytes));
    ASSERT_EQ(tilewise_pack_b(executable_, b_.data(), packed.data(), nullptr), TILEWISE_OK) << last_error();
    tilewise_operands given = operands();
    given.b = packed.data();
    ASSERT_EQ(tilewise_run(executable_, &given, nullptr), TILEWISE_OK) << last_error();
    EXPECT_EQ(c_, product(a_, b_));
    EXPECT_EQ(tilewise_pack_b(executable_, packed.data(), packed.data(), nullptr), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("overlaps b"), std::string::npos) << last_error();
}

TEST_F(CapiRun, BenchAnswersInJson) {
    char* json = nullptr;
    ASSERT_EQ(tilewise_bench(context_, kRunProblem, nullptr, 0, &json), TILEWISE_OK) << last_error();
    const std::string text = json;
    tilewise_free(json);
    for (const char* part :
         {R"("device":")", R"("results":[{"problem":")", R"("us":)", R"("roof":)", R"("failures":[])"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << '\n' << text;
    }
}

}  // namespace
