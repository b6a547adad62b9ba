// SPDX-License-Identifier: MIT
// The C++ interface, of which the examples show the usual way: what the builders print, how errors come back, and who owns
// what.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tilewise/tilewise.hpp"

namespace {

using namespace tilewise;

TEST(CppProblem, BuildersPrintTheText) {
    const auto gemm = Gemm(2, 3, 4).dtype("bf16").layout("crr").batch(5).epilogue("bias+gelu").with_beta().build();
    ASSERT_TRUE(gemm) << gemm.error().message;
    EXPECT_EQ(gemm->text(), "gemm:m=2,n=3,k=4,dtype=bf16,layout=crr,batch=5,epilogue=bias+gelu,beta=1");
    EXPECT_EQ(gemm->flops(), 2.0 * 2 * 3 * 4 * 5);
    const auto conv = Conv(Direction::backward_weight)
                          .images(2)
                          .groups(2)
                          .channels(4, 6)
                          .input({9, 8, 7})
                          .filter({3, 2, 1})
                          .stride({2, 1, 1})
                          .padding({1, 0, 0}, {0, 1, 0})
                          .dtype("fp16")
                          .build();
    ASSERT_TRUE(conv) << conv.error().message;
    EXPECT_EQ(conv->text(),
              "conv_bwd_weight:n=2,g=2,c=4,k=6,in=9x8x7,filter=3x2x1,stride=2x1x1,pad=1:0x0:1x0:0,dilation=1x1x1,"
              "dtype=fp16,layout=ndhwgc");
    EXPECT_EQ(conv->operand("c")->shape, (std::vector<std::int64_t>{2, 3, 3, 2, 1, 2}));
    EXPECT_EQ(*Problem::parse(R"({"op": "gemm", "m": 2, "n": 2, "k": 2, "dtype": "fp32"})"), *Gemm(2, 2, 2).build());
}

TEST(CppProblem, AnOptionIsOneValue) {
    EXPECT_EQ(Gemm(2, 3, 4).option("math", "fast,lda=99").build().error().code, TILEWISE_USAGE);
    EXPECT_EQ(Gemm(2, 3, 4).option("beta=1,math", "fast").build().error().code, TILEWISE_USAGE);
    EXPECT_EQ(Gemm(2, 3, 4).option("math", "fast\", \"lda\": \"99").build().error().code, TILEWISE_USAGE);
    EXPECT_EQ(Gemm(2, 3, 4).option("math", std::string("fast\0", 5)).build().error().code, TILEWISE_USAGE);
    EXPECT_EQ(Gemm(2, 3, 4).option("m", "9").build().error().code, TILEWISE_USAGE);
    EXPECT_EQ(Gemm(2, 3, 4).option("math", "fast").option("lda", "99").align(4).build()->text(),
              "gemm:m=2,n=3,k=4,dtype=fp32,layout=rcr,lda=99,math=fast,align=4");
    KernelQuery query;
    query.dtype = "fp32\", \"rule_set\": \"full";
    EXPECT_EQ(Registry::create()->add(query).error().code, TILEWISE_USAGE);
}

TEST(CppProblem, ErrorsAreValues) {
    const auto none = Gemm(-1, 1, 1).build();
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, TILEWISE_UNSUPPORTED);
    EXPECT_EQ(Gemm(1, 1, 1).dtype("fp31").build().error().code, TILEWISE_USAGE);
    EXPECT_FALSE(Conv(Direction::forward).input({1, 2, 3, 4}).build());
    EXPECT_FALSE(Gemm(1, 1, 1).build()->operand("bias"));
    EXPECT_EQ(Device::open("abacus").error().code, TILEWISE_DEVICE);
    DeviceOptions options;
    options.packs = {"/nonexistent/a:b.pack"};
    EXPECT_NE(Device::open("cpu", options).error().message.find("/nonexistent/a:b.pack"), std::string::npos);
    EXPECT_NE(none.error().message.find("impossible problem"), std::string::npos) << none.error().message;
}

class Cpp : public testing::Test {
protected:
    Device device_ = *Device::open("cpu");
    Problem problem_ = *Gemm(3, 5, 7).build();
};

TEST_F(Cpp, ConfigsAreValues) {
    const auto plan = *Dispatcher(device_).select(problem_);
    const auto config = *KernelConfig::parse(plan.kernel());
    EXPECT_EQ(config.name(), plan.kernel());
    EXPECT_TRUE(config.is_valid());
    EXPECT_EQ(*config.get("dtype"), "fp32");
    const auto odd = *config.with("warp_tile", "5x5x1");
    EXPECT_FALSE(odd.is_valid());
    EXPECT_TRUE(odd.corrected()->is_valid());
    EXPECT_NE(odd.check()->find("violations"), std::string::npos);
    EXPECT_FALSE(config.with("warp_tile", "?"));
    EXPECT_FALSE(KernelConfig::parse("nonsense"));
}

TEST_F(Cpp, RunsAndOutlives) {
    std::vector<float> a(3 * 7, 1.0f), b(5 * 7, 2.0f), c(3 * 5, -1.0f);
    auto executable = [&] {
        const Dispatcher gone(*Device::open("cpu"));
        return *gone.select(problem_)->prepare();
    }();
    ASSERT_TRUE(executable.run({a.data(), b.data(), c.data()}).ok());
    EXPECT_EQ(c, std::vector<float>(15, 14.0f));
    const auto status = executable.run({nullptr, b.data(), c.data()});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, TILEWISE_USAGE);
    Operands scaled(a.data(), b.data(), c.data());
    scaled.alpha = 0.5f;
    ASSERT_TRUE(Dispatcher(device_).run(problem_, scaled));
    EXPECT_EQ(c, std::vector<float>(15, 7.0f));
}

TEST_F(Cpp, BuffersMove) {
    const std::vector<int> values = {1, 2, 3};
    auto first = *Buffer::of(device_, values);
    auto second = *Buffer::make(device_, 4);
    second = std::move(first);
    std::vector<int> back(3);
    ASSERT_TRUE(second.read(back));
    EXPECT_EQ(back, values);
    std::vector<int> more(4);
    EXPECT_FALSE(second.read(more)) << "there is not that much";
}

TEST_F(Cpp, HeuristicsChooseAndMayThrow) {
    Dispatcher dispatcher(device_);
    dispatcher.set_heuristic([](const Problem&, const std::vector<Candidate>& candidates) {
        return std::vector<std::string>{"unknown", candidates.back().kernel};
    });
    const auto plan = *dispatcher.select(problem_);
    EXPECT_EQ(plan.kernel(), plan.candidates().back().kernel);
    dispatcher.set_heuristic(
        [](const auto&, const auto&) -> std::vector<std::string> { throw std::runtime_error("no"); });
    EXPECT_EQ(dispatcher.prepare(problem_).error().code, TILEWISE_UNSUPPORTED);
}

TEST_F(Cpp, RegistriesShareAndDiffer) {
    auto one = *Registry::create("one");
    KernelQuery query;
    query.arch = device_.arch(), query.op = "gemm", query.dtype = "fp32";
    ASSERT_GT(*one.add(query), 0);
    Registry same = one;
    EXPECT_EQ(same.size(), one.size());
    auto two = *Registry::create("two");
    EXPECT_EQ(two.size(), 0);
    EXPECT_EQ(*two.import_json(*one.export_json()), one.size());
    EXPECT_EQ(two.names(), one.names());
    ASSERT_TRUE(same.clear());
    EXPECT_EQ(one.size(), 0);
    EXPECT_GT(two.size(), 0);
    query.rule_set = "nonsense";
    EXPECT_FALSE(one.add(query));
    EXPECT_FALSE(Dispatcher(device_, one).select(problem_)->has_kernel());
}

TEST_F(Cpp, PlansForOtherArchs) {
    const auto plan = *select_for_arch(*Gemm(256, 256, 256).dtype("bf16").build(), "gfx942");
    EXPECT_NE(plan.kernel().find("@gfx942"), std::string::npos);
    EXPECT_FALSE(plan.prepare());
    EXPECT_FALSE(select_for_arch(problem_, "z80"));
}

}  // namespace
