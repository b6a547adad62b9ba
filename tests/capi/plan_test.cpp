// SPDX-License-Identifier: MIT
// Problems as structs, registries, plans, memory, packs and tuning records through the C interface.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "capi/last_error.hpp"
#include "tilewise/tilewise.h"

namespace {

constexpr const char* kPlannedProblem = "gemm:m=20,n=30,k=40,dtype=fp32,layout=rcr";

template <class Call>
std::string text_of(const Call& call) {
    char* text = nullptr;
    EXPECT_EQ(call(&text), TILEWISE_OK) << last_error();
    std::string copy = text ? text : "";
    tilewise_free(text);
    return copy;
}

template <class T>
T sized() {
    T value = {};
    value.size = sizeof(T);
    return value;
}

TEST(CapiProblem, AStructBecomesItsText) {
    auto gemm = sized<tilewise_gemm>();
    gemm.m = 2, gemm.n = 3, gemm.k = 4, gemm.batch = 5, gemm.dtype = "bf16", gemm.layout = "crr";
    gemm.options = "beta=1";
    EXPECT_EQ(text_of([&](char** out) { return tilewise_gemm_text(&gemm, out); }),
              "gemm:m=2,n=3,k=4,dtype=bf16,layout=crr,batch=5,beta=1");
    auto conv = sized<tilewise_conv>();
    conv.op = "conv_bwd_data";
    conv.n = 2, conv.g = 2, conv.c = 4, conv.k = 6, conv.dims = 2, conv.dtype = "fp32";
    for (const int i : {0, 1}) conv.in[i] = 9, conv.filter[i] = 3, conv.pad_before[i] = 1, conv.pad_after[i] = i;
    EXPECT_EQ(text_of([&](char** out) { return tilewise_conv_text(&conv, out); }),
              "conv_bwd_data:n=2,g=2,c=4,k=6,in=9x9,filter=3x3,stride=1x1,pad=1:0x1:1,dilation=1x1,dtype=fp32,"
              "layout=nhwgc");
}

// A text in a struct is one value; what it would say as further fields of a problem's text is no concern of it.
TEST(CapiProblem, ATextInAStructIsOneValue) {
    char* text = nullptr;
    auto gemm = sized<tilewise_gemm>();
    gemm.m = 8, gemm.n = 8, gemm.k = 8;
    const auto refused = [&](const char* part) {
        return tilewise_gemm_text(&gemm, &text) == TILEWISE_USAGE && last_error().find(part) != std::string::npos;
    };
    gemm.dtype = "fp32,lda=99";
    EXPECT_TRUE(refused("unknown dtype 'fp32,lda=99'")) << last_error();
    gemm.dtype = "fp32", gemm.layout = "rcr,ldc=99";
    EXPECT_TRUE(refused("unknown layout 'rcr,ldc=99'")) << last_error();
    gemm.layout = "rcr";
    for (const char* options : {"m=9", "dtype=fp16", "layout=rrr", "beta=1,beta=0", R"({"n": 9})"}) {
        gemm.options = options;
        EXPECT_TRUE(refused("given twice")) << options << '\n' << last_error();
        EXPECT_NE(last_error().find("tilewise_gemm: options"), std::string::npos) << last_error();
    }
    gemm.options = R"({"math": "fast,lda=99"})";
    EXPECT_TRUE(refused("unknown math class 'fast,lda=99'")) << last_error();
    gemm.options = R"({"lda": 99, "epilogue": "relu"})";
    EXPECT_EQ(text_of([&](char** out) { return tilewise_gemm_text(&gemm, out); }),
              "gemm:m=8,n=8,k=8,dtype=fp32,layout=rcr,lda=99,epilogue=relu");
    auto conv = sized<tilewise_conv>();
    conv.n = conv.c = conv.k = conv.dims = 1, conv.in[0] = 5, conv.filter[0] = 3, conv.dtype = "fp32,out=fp16";
    EXPECT_EQ(tilewise_conv_text(&conv, &text), TILEWISE_USAGE);
    conv.dtype = "fp32", conv.options = "pad=7";
    EXPECT_EQ(tilewise_conv_text(&conv, &text), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("'pad' (tilewise_conv: options, column 1): given twice"), std::string::npos)
        << last_error();
    EXPECT_EQ(text, nullptr);
}

TEST(CapiProblem, ABadStructIsRefused) {
    char* text = nullptr;
    auto gemm = sized<tilewise_gemm>();
    EXPECT_EQ(tilewise_gemm_text(&gemm, &text), TILEWISE_USAGE);
    gemm.dtype = "fp32";
    EXPECT_EQ(tilewise_gemm_text(&gemm, &text), TILEWISE_UNSUPPORTED) << "no sizes";
    gemm.size = std::size_t{1} << 40;  // as an uninitialised struct may have it
    EXPECT_EQ(tilewise_gemm_text(&gemm, &text), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_gemm_text(nullptr, &text), TILEWISE_USAGE);
    auto conv = sized<tilewise_conv>();
    conv.dtype = "fp32";
    for (const int dims : {0, 4, -1}) {
        conv.dims = dims;
        EXPECT_EQ(tilewise_conv_text(&conv, &text), TILEWISE_USAGE);
    }
    conv.dims = 1, conv.op = "gemm";
    EXPECT_EQ(tilewise_conv_text(&conv, &text), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_conv_text(nullptr, &text), TILEWISE_USAGE);
    EXPECT_EQ(text, nullptr);
}

TEST(CapiProblem, OperandsAndWork) {
    auto tensor = sized<tilewise_tensor>();
    ASSERT_EQ(tilewise_problem_operand("conv_fwd:n=2,g=2,c=8,k=6,in=5x7,filter=3x3,dtype=bf16", "a", &tensor),
              TILEWISE_OK)
        << last_error();
    EXPECT_STREQ(tensor.dtype, "bf16");
    EXPECT_EQ(std::vector<std::int64_t>(tensor.shape, tensor.shape + tensor.rank),
              (std::vector<std::int64_t>{2, 5, 7, 2, 4}));
    EXPECT_EQ(tensor.bytes, 2 * 5 * 7 * 8 * 2);
    ASSERT_EQ(tilewise_problem_operand("gemm:m=3,n=5,k=7,dtype=fp32,lda=11", "a", &tensor), TILEWISE_OK);
    EXPECT_EQ(tensor.bytes, (2 * 11 + 7) * 4) << "from the first element to the end of the last";
    EXPECT_EQ(tilewise_problem_operand(kPlannedProblem, "bias", &tensor), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("a, b, c"), std::string::npos) << last_error();
    EXPECT_EQ(tilewise_problem_operand(kPlannedProblem, "a", nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_problem_operand(kPlannedProblem, nullptr, &tensor), TILEWISE_USAGE);
    double flops = 0;
    ASSERT_EQ(tilewise_problem_work(kPlannedProblem, &flops, nullptr), TILEWISE_OK);
    EXPECT_EQ(flops, 2.0 * 20 * 30 * 40);
    EXPECT_EQ(text_of([](char** out) {
                  return tilewise_problem_text(R"({"op": "gemm", "m": 20, "n": 30, "k": 40, "dtype": "fp32"})", out);
              }),
              kPlannedProblem);
}

class CapiPlan : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(tilewise_context_create("cpu", nullptr, &context_), TILEWISE_OK) << last_error();
        ASSERT_EQ(tilewise_registry_create("mine", &registry_), TILEWISE_OK) << last_error();
        const std::string query =
            std::string(R"({"op": "gemm", "dtype": "fp32", "arch": ")") + tilewise_context_arch(context_) + "\"}";
        ASSERT_EQ(tilewise_registry_add_rule_set(registry_, query.c_str(), nullptr), TILEWISE_OK) << last_error();
    }
    void TearDown() override {
        tilewise_plan_destroy(plan_);
        tilewise_registry_destroy(registry_);
        tilewise_context_destroy(context_);
    }
    tilewise_status plan(const tilewise_select_options* options, const char* problem = kPlannedProblem) {
        tilewise_plan_destroy(plan_);
        return tilewise_plan_create(context_, problem, options, &plan_);
    }
    std::string kernel() const { return tilewise_plan_kernel(plan_); }
    std::string name_at(std::int64_t i) const {
        return text_of([&](char** out) { return tilewise_registry_name_at(registry_, i, out); });
    }

    tilewise_context* context_ = nullptr;
    tilewise_registry* registry_ = nullptr;
    tilewise_plan* plan_ = nullptr;
};

TEST_F(CapiPlan, SaysEverythingAboutTheChoice) {
    ASSERT_EQ(plan(nullptr), TILEWISE_OK) << last_error();
    EXPECT_STRNE(tilewise_plan_why(plan_), "");
    const char* first = nullptr;
    double us = -1;
    ASSERT_EQ(tilewise_plan_candidate(plan_, 0, &first, &us), TILEWISE_OK);
    EXPECT_EQ(first, kernel());
    EXPECT_GT(us, 0);
    EXPECT_EQ(tilewise_plan_candidate(plan_, tilewise_plan_candidate_count(plan_), nullptr, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_plan_candidate(plan_, -1, nullptr, nullptr), TILEWISE_USAGE);
    ASSERT_GT(tilewise_plan_rejection_count(plan_), 0);
    const char *rule = nullptr, *need = nullptr;
    ASSERT_EQ(tilewise_plan_rejection(plan_, 0, nullptr, &rule, nullptr, &need), TILEWISE_OK);
    EXPECT_EQ(std::string(rule).find("fit_"), 0u);
    EXPECT_STRNE(need, "");
}

TEST_F(CapiPlan, WithoutAKernelItSaysWhy) {
    ASSERT_EQ(tilewise_registry_clear(registry_), TILEWISE_OK);
    auto options = sized<tilewise_select_options>();
    options.registry = registry_;
    ASSERT_EQ(plan(&options), TILEWISE_OK) << last_error();
    EXPECT_EQ(kernel(), "");
    EXPECT_STRNE(tilewise_plan_why(plan_), "");
    tilewise_executable* executable = nullptr;
    EXPECT_EQ(tilewise_plan_prepare(plan_, &executable), TILEWISE_UNSUPPORTED);
    EXPECT_EQ(tilewise_prepare(context_, kPlannedProblem, &options, &executable), TILEWISE_UNSUPPORTED);
    EXPECT_EQ(executable, nullptr);
}

TEST_F(CapiPlan, ChoosesFromTheRegistryOnly) {
    const std::string one = [&] {
        EXPECT_EQ(plan(nullptr), TILEWISE_OK);
        const char* name = nullptr;
        EXPECT_EQ(tilewise_plan_candidate(plan_, 3, &name, nullptr), TILEWISE_OK);
        return std::string(name);
    }();
    ASSERT_EQ(tilewise_registry_clear(registry_), TILEWISE_OK);
    std::int64_t added = 0;
    ASSERT_EQ(tilewise_registry_add(registry_, one.c_str(), nullptr, &added), TILEWISE_OK) << last_error();
    EXPECT_EQ(added, 1);
    auto options = sized<tilewise_select_options>();
    options.registry = registry_;
    ASSERT_EQ(plan(&options), TILEWISE_OK) << last_error();
    EXPECT_EQ(kernel(), one);
    tilewise_executable* executable = nullptr;
    ASSERT_EQ(tilewise_prepare(context_, kPlannedProblem, &options, &executable), TILEWISE_OK) << last_error();
    EXPECT_EQ(tilewise_executable_kernel(executable), one);
    tilewise_executable_destroy(executable);
    ASSERT_EQ(tilewise_prepare(context_, kPlannedProblem, nullptr, &executable), TILEWISE_OK);
    EXPECT_NE(tilewise_executable_kernel(executable), one) << "the registry's choice was not remembered for others";
    tilewise_executable_destroy(executable);
}

std::int32_t take_second(void* user, const char* problem, const char* const*, const double* predicted_us,
                         std::int32_t count, std::int32_t* order) {
    auto& seen = *static_cast<std::string*>(user);
    seen = problem;
    if (count < 2 || predicted_us[0] > predicted_us[1]) return 0;
    order[0] = count + 5, order[1] = -3, order[2] = 1;  // what is no place is passed over
    return 3;
}
std::int32_t take_none(void*, const char*, const char* const*, const double*, std::int32_t, std::int32_t*) { return 0; }

TEST_F(CapiPlan, RanksByTheCallersFunction) {
    auto rules = sized<tilewise_select_options>();
    rules.strategy = "rules";  // the order that the function is given, whatever learned models there are
    ASSERT_EQ(plan(&rules), TILEWISE_OK);
    const char* second = nullptr;
    ASSERT_EQ(tilewise_plan_candidate(plan_, 1, &second, nullptr), TILEWISE_OK);
    const std::string expected = second;
    std::string seen;
    auto options = sized<tilewise_select_options>();
    options.rank = take_second, options.rank_user = &seen;
    ASSERT_EQ(plan(&options), TILEWISE_OK) << last_error();
    EXPECT_EQ(kernel(), expected);
    EXPECT_EQ(seen, kPlannedProblem);
    EXPECT_STREQ(tilewise_plan_source(plan_), "callback");
    options.rank = take_none;
    EXPECT_EQ(plan(&options), TILEWISE_UNSUPPORTED);
    EXPECT_EQ(plan_, nullptr);
}

TEST_F(CapiPlan, ForAnArchThatIsNotHere) {
    auto options = sized<tilewise_select_options>();
    options.arch = "gfx942";
    EXPECT_EQ(plan(&options), TILEWISE_USAGE) << "a context has its own arch";
    ASSERT_EQ(tilewise_plan_create(nullptr, "gemm:m=256,n=256,k=256,dtype=bf16", &options, &plan_), TILEWISE_OK);
    EXPECT_NE(kernel().find("@gfx942"), std::string::npos);
    tilewise_executable* executable = nullptr;
    EXPECT_EQ(tilewise_plan_prepare(plan_, &executable), TILEWISE_USAGE);
    tilewise_plan_destroy(plan_);
    options.strategy = "measure";
    EXPECT_EQ(tilewise_plan_create(nullptr, kPlannedProblem, &options, &plan_), TILEWISE_USAGE);
    options.strategy = nullptr, options.arch = "z80";
    EXPECT_EQ(tilewise_plan_create(nullptr, kPlannedProblem, &options, &plan_), TILEWISE_USAGE);
}

TEST_F(CapiPlan, RegistriesGoOutAndComeBack) {
    const std::string json = text_of([&](char** out) { return tilewise_registry_export(registry_, 1, out); });
    tilewise_registry* other = nullptr;
    ASSERT_EQ(tilewise_registry_create("other", &other), TILEWISE_OK);
    std::int64_t added = 0;
    ASSERT_EQ(tilewise_registry_import(other, json.c_str(), &added), TILEWISE_OK) << last_error();
    EXPECT_EQ(added, tilewise_registry_size(registry_));
    ASSERT_EQ(tilewise_registry_merge(other, registry_, &added), TILEWISE_OK);
    EXPECT_EQ(added, 0) << "they are there already";
    ASSERT_EQ(tilewise_registry_merge(other, other, &added), TILEWISE_OK) << "also with itself";
    EXPECT_EQ(tilewise_registry_import(other, "{}", nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_registry_import(other, nullptr, nullptr), TILEWISE_USAGE);
    const char* no_kernel = R"({"kernels": [{"config": {"op": "gemm", "dtype": "bf16", "layout": "rcr",
        "pipeline": "compv3", "epilogue": "default", "scheduler": "intrawave", "tile": "0x0x0", "wave": "1x1x1",
        "warp_tile": "16x8x16", "arch": "sm_90a"}}]})";
    EXPECT_EQ(tilewise_registry_import(other, no_kernel, nullptr), TILEWISE_CHECK_FAILED) << "its tile is 0x0x0";
    const std::string name = name_at(0);
    ASSERT_EQ(tilewise_registry_add(other, name.c_str(), "high", &added), TILEWISE_OK);
    EXPECT_EQ(added, 1) << "a higher priority replaces";
    EXPECT_EQ(tilewise_registry_add(other, name.c_str(), "urgent", &added), TILEWISE_USAGE);
    EXPECT_NE(text_of([&](char** out) { return tilewise_registry_find(other, name.c_str(), out); }).find(R"("high")"),
              std::string::npos);
    char* text = nullptr;
    EXPECT_EQ(tilewise_registry_find(other, "nothing", &text), TILEWISE_UNSUPPORTED);
    EXPECT_EQ(tilewise_registry_name_at(other, 1 << 20, &text), TILEWISE_USAGE);
    tilewise_registry_destroy(other);
}

TEST_F(CapiPlan, ConfigsFieldByField) {
    const std::string name = name_at(0);
    const auto get = [&](const char* field) {
        return text_of([&](char** out) { return tilewise_config_get(name.c_str(), field, out); });
    };
    EXPECT_EQ(get("dtype"), "fp32");
    EXPECT_NE(name.find("_" + get("tile") + "_"), std::string::npos);
    const std::string same =
        text_of([&](char** out) { return tilewise_config_set(name.c_str(), "tile", get("tile").c_str(), out); });
    EXPECT_EQ(same, name);
    const std::string odd =
        text_of([&](char** out) { return tilewise_config_set(name.c_str(), "warp_tile", "5x5x1", out); });
    EXPECT_NE(odd, name);
    EXPECT_EQ(tilewise_registry_add(registry_, odd.c_str(), nullptr, nullptr), TILEWISE_CHECK_FAILED);
    const std::string corrected = text_of([&](char** out) { return tilewise_correct(odd.c_str(), out); });
    EXPECT_EQ(tilewise_registry_add(registry_, corrected.c_str(), nullptr, nullptr), TILEWISE_OK) << last_error();
    char* text = nullptr;
    EXPECT_EQ(tilewise_config_get(name.c_str(), "colour", &text), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_config_get(name.c_str(), nullptr, &text), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_config_set(name.c_str(), "tile", "wide", &text), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_config_set(name.c_str(), "tile", nullptr, &text), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_correct(nullptr, &text), TILEWISE_USAGE);
    const std::string found = text_of([&](char** out) { return tilewise_find_kernel(name.c_str(), nullptr, out); });
    const std::string id = found.substr(found.find(R"("id":")") + 6, 16);
    const std::string by_id = text_of(
        [&](char** out) { return tilewise_find_kernel(id.c_str(), R"({"op": "gemm", "dtype": "fp32"})", out); });
    EXPECT_EQ(by_id, found);
    const char* no_waves = "gemm_fp32_rcr_compv3_default_intrawave_64x64x8_2x2x0_32x64x1@sm_90a";
    EXPECT_NE(
        text_of([&](char** out) { return tilewise_find_kernel(no_waves, nullptr, out); }).find(R"("available":false)"),
        std::string::npos);
    EXPECT_EQ(tilewise_find_kernel("0123456789abcdef", R"({"op": "gemm", "dtype": "fp32"})", &text), TILEWISE_USAGE);
}

TEST_F(CapiPlan, TuningRecordsCount) {
    ASSERT_EQ(plan(nullptr), TILEWISE_OK);
    const std::string path = testing::TempDir() + "capi_tuning.jsonl";
    std::ofstream(path) << "nonsense\n";
    EXPECT_EQ(tilewise_load_tuning(context_, path.c_str(), nullptr), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("line 1"), std::string::npos) << last_error();
    const std::string described = text_of([&](char** out) { return tilewise_context_describe(context_, out); });
    const auto begin = described.find(R"("identity":")") + 12;
    const std::string identity = described.substr(begin, described.find('"', begin) - begin);
    const char* other = nullptr;
    ASSERT_EQ(tilewise_plan_candidate(plan_, 2, &other, nullptr), TILEWISE_OK);
    std::ofstream(path) << R"({"schema": 1, "device": ")" << identity << R"(", "problem": ")" << kPlannedProblem
                        << R"(", "kernel": ")" << other << R"(", "code_digest": "of another build", "us": 1.5})"
                        << '\n';
    std::int64_t added = 0;
    ASSERT_EQ(tilewise_load_tuning(context_, path.c_str(), &added), TILEWISE_OK) << last_error();
    EXPECT_EQ(added, 1);
    const std::string before = kernel();
    ASSERT_EQ(plan(nullptr), TILEWISE_OK);
    EXPECT_EQ(kernel(), before);
    const std::string json = text_of([&](char** out) { return tilewise_plan_describe(plan_, out); });
    EXPECT_NE(json.find("its code has changed"), std::string::npos) << "the record was seen: " << json.substr(0, 400);
    EXPECT_EQ(tilewise_load_tuning(context_, "/nonexistent", nullptr), TILEWISE_USAGE);
    EXPECT_NE(tilewise_load_pack(context_, path.c_str()), TILEWISE_OK);
    EXPECT_EQ(tilewise_load_pack(context_, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_load_models(context_, "x"), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("'x' has no model"), std::string::npos) << last_error();
    std::remove(path.c_str());
}

TEST_F(CapiPlan, MemoryAndValidation) {
    void* memory = nullptr;
    ASSERT_EQ(tilewise_allocate(context_, 64, &memory), TILEWISE_OK) << last_error();
    const std::vector<char> given(64, 'x');
    std::vector<char> back(64);
    EXPECT_EQ(tilewise_copy(context_, memory, given.data(), 64, nullptr), TILEWISE_OK);
    EXPECT_EQ(tilewise_copy(context_, back.data(), memory, 64, nullptr), TILEWISE_OK);
    EXPECT_EQ(tilewise_synchronize(context_, nullptr), TILEWISE_OK);
    EXPECT_EQ(back, given);
    EXPECT_EQ(tilewise_copy(context_, nullptr, memory, 64, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_copy(context_, back.data(), memory, SIZE_MAX, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_copy(context_, back.data(), back.data() + 32, 33, nullptr), TILEWISE_USAGE) << "they overlap";
    EXPECT_EQ(tilewise_copy(context_, back.data(), back.data() + 32, 32, nullptr), TILEWISE_OK) << last_error();
    EXPECT_EQ(tilewise_release(context_, memory), TILEWISE_OK);
    EXPECT_EQ(tilewise_release(context_, nullptr), TILEWISE_OK);
    EXPECT_EQ(tilewise_allocate(context_, 64, nullptr), TILEWISE_USAGE);
    for (const char* problem : {kPlannedProblem, "conv_bwd_weight:n=1,g=2,c=4,k=4,in=6x6,filter=3x3,dtype=fp32"}) {
        const std::string json =
            text_of([&](char** out) { return tilewise_validate(context_, problem, nullptr, out); });
        EXPECT_NE(json.find(R"("ok":true)"), std::string::npos) << json;
    }
}

TEST_F(CapiPlan, MoreMemoryThanThereIsIsAnError) {
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 63, SIZE_MAX - 64, SIZE_MAX / 2 + 1}) {
        int something = 0;
        void* memory = &something;
        EXPECT_EQ(tilewise_allocate(context_, bytes, &memory), TILEWISE_DEVICE) << bytes;
        EXPECT_EQ(memory, nullptr);
        EXPECT_NE(last_error().find(std::to_string(bytes)), std::string::npos) << last_error();
    }
}

TEST(CapiVersions, AnotherAbiIsTold) {
    EXPECT_EQ(tilewise_check_abi(TILEWISE_ABI_VERSION), TILEWISE_OK);
    EXPECT_EQ(tilewise_check_abi(TILEWISE_ABI_VERSION + 1), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("ABI " + std::to_string(TILEWISE_ABI_VERSION + 1)), std::string::npos) << last_error();
    for (int status = TILEWISE_OK; status <= TILEWISE_INTERNAL; ++status) {
        EXPECT_STRNE(tilewise_status_name(static_cast<tilewise_status>(status)), "unknown");
    }
}

}  // namespace
