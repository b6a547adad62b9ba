// SPDX-License-Identifier: MIT
// The C interface as a client sees it: the shared library and tilewise.h, nothing else.
#include <gtest/gtest.h>
#include <tilewise/tilewise.h>

#include <string>
#include <thread>
#include <vector>

namespace {

constexpr const char* kProblem = "gemm:m=256,n=256,k=256,dtype=bf16,layout=rcr";
constexpr const char* kKernel = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942";
constexpr const char* kBadKernel =
    "gemm_bf16_rcr_compv3_cshuffle_interwave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942";

// Takes what a call gave: the text is copied and freed, so that the address sanitizer sees both sides of the contract.
struct Answer {
    tilewise_status status = TILEWISE_INTERNAL;
    bool has_text = false;
    std::string text;
    std::string error;

    bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
    bool error_has(const std::string& part) const { return error.find(part) != std::string::npos; }
};

template <class Call>
Answer ask(const Call& call) {
    Answer answer;
    char sentinel = 'x';
    char* text = &sentinel;  // must be overwritten, also on failure
    answer.status = call(&text);
    EXPECT_NE(text, &sentinel) << "the output pointer was left alone";
    answer.has_text = text != nullptr && text != &sentinel;
    if (answer.has_text) {
        answer.text = text;
        tilewise_free(text);
    }
    answer.error = tilewise_last_error();
    EXPECT_EQ(answer.status == TILEWISE_OK, answer.error.empty()) << answer.error;
    EXPECT_EQ(answer.status == TILEWISE_OK, answer.has_text);
    return answer;
}

Answer kernels(const char* query) {
    return ask([&](char** out) { return tilewise_kernels(query, out); });
}
Answer select(const char* problem, const char* options) {
    return ask([&](char** out) { return tilewise_select(problem, options, out); });
}
Answer check(const char* config, int fix) {
    return ask([&](char** out) { return tilewise_check(config, fix, out); });
}

TEST(Capi, ArchsAreListedAndFound) {
    const Answer all = ask([](char** out) { return tilewise_archs(nullptr, out); });
    EXPECT_TRUE(all.has("\"name\":\"sm_90a\"") && all.has("\"name\":\"gfx942\""));
    const Answer one = ask([](char** out) { return tilewise_archs("sm_90a", out); });
    EXPECT_TRUE(one.has("\"count\":1,") && one.has("\"warp_tiles\"") && !one.has("gfx942"));
    const Answer none = ask([](char** out) { return tilewise_archs("sm_1", out); });
    EXPECT_EQ(none.status, TILEWISE_USAGE);
    EXPECT_TRUE(none.error_has("sm_1") && none.error_has("sm_80")) << none.error;
}

TEST(Capi, OnlyGpusAreEmulated) {
    const auto build = [](const char* order) { return ask([&](char** out) { return tilewise_build(order, 1, out); }); };
    const char* order =
        "{\"emulated\": true, \"kernels\": "
        "[\"gemm_fp32_any_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1@cpu-generic\"]}";
    EXPECT_TRUE(build(order).has("there is no emulation of cpu-generic"));
    EXPECT_EQ(build("{\"kernels\": [], \"emulated\": true}").text, "{\"kernels\":[]}");
    EXPECT_TRUE(build("{\"kernels\": 7}").error_has("no list"));
    EXPECT_TRUE(build("{\"kernels\": [], \"colour\": 1}").error_has("colour"));
}

TEST(Capi, VersionsAreThoseOfTheHeader) {
    EXPECT_EQ(tilewise_abi_version(), TILEWISE_ABI_VERSION);
    ASSERT_NE(tilewise_version(), nullptr);
    const std::string version = tilewise_version();  // 0.2.0, or 0.2.0+g0123456789ab
    EXPECT_EQ(version.substr(0, version.find('+')).find_first_not_of("0123456789."), std::string::npos) << version;
}

TEST(Capi, KernelsOfAnArch) {
    const Answer all = kernels(R"({"arch": "gfx942", "rule_set": "tiny"})");
    ASSERT_EQ(all.status, TILEWISE_OK) << all.error;
    for (const char* part : {R"({"count":)", R"("kernels":[)", R"("name":")", R"("id":")", R"("available":false)",
                             R"("config":{)", "@gfx942", R"("op":"gemm")", R"("op":"conv_fwd")"}) {
        EXPECT_TRUE(all.has(part)) << part;
    }
    const Answer some = kernels(R"({"arch": "gfx942", "rule_set": "tiny", "op": "gemm", "dtype": "bf16"})");
    EXPECT_FALSE(some.has(R"("op":"conv_fwd")"));
    EXPECT_FALSE(some.has(R"("dtype":"fp16")"));
    EXPECT_TRUE(some.has(R"("dtype":"bf16")"));
    EXPECT_LT(some.text.size(), all.text.size());
}

TEST(Capi, WithoutAQueryItIsTheHostsCpu) {
    for (const char* query : {static_cast<const char*>(nullptr), "", "{}"}) {
        const Answer answer = kernels(query);
        ASSERT_EQ(answer.status, TILEWISE_OK) << answer.error;
        EXPECT_TRUE(answer.has("@cpu-"));
        EXPECT_FALSE(answer.has("@gfx"));
    }
}

TEST(Capi, ABadQueryIsAUsageErrorThatSaysWhat) {
    const std::pair<const char*, const char*> cases[] = {
        {"{", "line 1"},
        {"[]", "not an object"},
        {"nonsense", "JSON line 1, column 1"},
        {R"({"arch": "gfx9422"})", "did you mean 'gfx942'"},
        {R"({"rule_set": "ful"})", "did you mean 'full'"},
        {R"({"op": "gem"})", "did you mean 'gemm'"},
        {R"({"dtype": "bf17"})", "dtype"},
        {R"({"archs": "gfx942"})", "did you mean 'arch'"},
    };
    for (const auto& [query, part] : cases) {
        const Answer answer = kernels(query);
        EXPECT_EQ(answer.status, TILEWISE_USAGE) << query;
        EXPECT_TRUE(answer.error_has(part)) << query << "\n" << answer.error;
    }
}

// The message is about the kind of the value, not about an empty word that nobody wrote.
TEST(Capi, AQueryValueOfTheWrongKindIsSaidToBe) {
    for (const char* query : {R"({"arch": 5})", R"({"rule_set": 5})", R"({"op": 5})", R"({"dtype": 5})"}) {
        const Answer answer = kernels(query);
        EXPECT_EQ(answer.status, TILEWISE_USAGE) << query;
        EXPECT_TRUE(answer.error_has("string")) << query << "\n" << answer.error;
    }
}

TEST(Capi, SelectNamesThePlanAndTheReasons) {
    const Answer answer = select(kProblem, R"({"arch": "gfx942"})");
    ASSERT_EQ(answer.status, TILEWISE_OK) << answer.error;
    for (const char* part :
         {R"("plan":{"kernel":"gemm_bf16_)", R"("source":")", R"("why":")", R"("candidates":[{"name":)",
          R"("predicted_us":)", R"("rejected":[{"name":)", R"("rule":"fit_)", R"("have":")", R"("need":")"}) {
        EXPECT_TRUE(answer.has(part)) << part;
    }
    const Answer json = select(R"({"op": "gemm", "m": 256, "n": 256, "k": 256, "dtype": "bf16", "layout": "rcr"})",
                               R"({"arch": "gfx942"})");
    EXPECT_EQ(json.text, answer.text) << "the JSON form of the problem is the same problem";
    EXPECT_EQ(select(kProblem, nullptr).status, TILEWISE_OK);
}

TEST(Capi, SelectStatusCodes) {
    EXPECT_EQ(select(nullptr, nullptr).status, TILEWISE_USAGE);
    EXPECT_EQ(select("", nullptr).status, TILEWISE_USAGE);
    EXPECT_EQ(select("gemm:m=1", nullptr).status, TILEWISE_USAGE);
    EXPECT_EQ(select("gemm:m=x,n=1,k=1,dtype=fp32", nullptr).status, TILEWISE_USAGE);
    EXPECT_EQ(select(kProblem, "{").status, TILEWISE_USAGE);
    EXPECT_EQ(select(kProblem, R"({"arch": "z80"})").status, TILEWISE_USAGE);
    EXPECT_EQ(select(kProblem, R"({"op": "gemm"})").status, TILEWISE_USAGE) << "a problem has its own";
    const Answer impossible = select("gemm:m=-1,n=1,k=1,dtype=fp32", nullptr);
    EXPECT_EQ(impossible.status, TILEWISE_UNSUPPORTED);
    EXPECT_TRUE(impossible.error_has("size_positive")) << impossible.error;
    const Answer nothing = select("gemm:m=64,n=64,k=64,dtype=fp8", R"({"arch": "sm_80"})");
    EXPECT_EQ(nothing.status, TILEWISE_OK) << "no kernel is an answer, not a failure";
    EXPECT_TRUE(nothing.has(R"("plan":null)")) << nothing.text;
}

TEST(Capi, CheckAndFix) {
    const Answer good = check(kKernel, 0);
    ASSERT_EQ(good.status, TILEWISE_OK) << good.error;
    EXPECT_TRUE(good.has(R"("valid":true)"));
    EXPECT_TRUE(good.has(R"("violations":[])"));
    EXPECT_FALSE(good.has("corrected"));

    const Answer bad = check(kBadKernel, 0);
    EXPECT_EQ(bad.status, TILEWISE_OK) << "that it is not valid is the answer";
    EXPECT_TRUE(bad.has(R"("valid":false)"));
    EXPECT_TRUE(bad.has(R"({"rule":"scheduler","have":"interwave with compv3","need":"one of intrawave"})"));

    for (const int fix : {1, -1}) {
        const Answer fixed = check(kBadKernel, fix);
        EXPECT_TRUE(fixed.has(R"("changes":[{"field":"scheduler")")) << fixed.text;
        EXPECT_TRUE(fixed.has(kKernel)) << fixed.text;
        EXPECT_TRUE(fixed.has(R"("remaining":[])"));
    }
}

TEST(Capi, CheckTakesJsonAsWell) {
    const Answer answer = check(R"({"op":"gemm","dtype":"bf16","layout":"rcr","pipeline":"compv3","epilogue":"cshuffle",
        "scheduler":"intrawave","tile":"128x128x64","wave":"2x2x1","warp_tile":"32x32x16","vector_a":8,"vector_b":8,
        "vector_c":8,"arch":"gfx942"})",
                                0);
    ASSERT_EQ(answer.status, TILEWISE_OK) << answer.error;
    EXPECT_TRUE(answer.has(R"("valid":true)"));
    EXPECT_TRUE(answer.has(kKernel));
}

TEST(Capi, CheckStatusCodes) {
    for (const char* config : {static_cast<const char*>(nullptr), "", "{", "{}", "gemm_bf16", "gemm@gfx942",
                               "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16@nochip"}) {
        EXPECT_EQ(check(config, 0).status, TILEWISE_USAGE) << (config ? config : "NULL");
        EXPECT_EQ(check(config, 1).status, TILEWISE_USAGE);
    }
}

TEST(Capi, WithoutAnOutputPointerItIsAUsageError) {
    EXPECT_EQ(tilewise_kernels("{}", nullptr), TILEWISE_USAGE);
    EXPECT_NE(std::string(tilewise_last_error()), "");
    EXPECT_EQ(tilewise_select(kProblem, nullptr, nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_check(kKernel, 0, nullptr), TILEWISE_USAGE);
}

TEST(Capi, FreeTakesNull) { tilewise_free(nullptr); }

TEST(Capi, ASuccessClearsTheMessage) {
    EXPECT_EQ(check("nonsense", 0).status, TILEWISE_USAGE);
    EXPECT_STRNE(tilewise_last_error(), "");
    EXPECT_EQ(check(kKernel, 0).status, TILEWISE_OK);
    EXPECT_STREQ(tilewise_last_error(), "");
}

TEST(CapiThreads, EachThreadHasItsOwnMessage) {
    ASSERT_EQ(check("nonsense of the main thread", 0).status, TILEWISE_USAGE);
    const std::string before = tilewise_last_error();
    std::vector<std::thread> threads;
    std::vector<int> right(4);
    for (std::size_t t = 0; t < right.size(); ++t) {
        threads.emplace_back([t, &right] {
            bool good = std::string(tilewise_last_error()).empty();  // nothing failed in this thread yet
            const std::string name = "nonsense_" + std::to_string(t) + "@x";
            for (int i = 0; i < 50; ++i) {
                char* text = nullptr;
                good &= tilewise_check(name.c_str(), 0, &text) == TILEWISE_USAGE && text == nullptr;
                good &= std::string(tilewise_last_error()).find(name) != std::string::npos;
                good &= tilewise_check(kKernel, 1, &text) == TILEWISE_OK && text != nullptr;
                tilewise_free(text);
            }
            right[t] = good ? 1 : 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 0; t < right.size(); ++t) EXPECT_EQ(right[t], 1) << "thread " << t;
    EXPECT_EQ(tilewise_last_error(), before);
}

// Odd bytes arrive from other languages; whatever they are, the answer is a status and valid JSON text or a message.
TEST(Capi, OddBytesAreRefused) {
    const std::string high(300, '\xff');
    for (const std::string& text :
         {high, std::string("gemm:m=\xc3\x28"), std::string(100000, '{'), std::string(100000, 'a')}) {
        EXPECT_EQ(select(text.c_str(), nullptr).status, TILEWISE_USAGE);
        EXPECT_EQ(check(text.c_str(), 1).status, TILEWISE_USAGE);
        EXPECT_EQ(kernels(text.c_str()).status, TILEWISE_USAGE);
    }
}

}  // namespace
