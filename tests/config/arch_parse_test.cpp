// SPDX-License-Identifier: MIT
// Arch files: the embedded ones read, and a broken one is refused with file, line and key.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "config/archs.hpp"
#include "config/rules.hpp"

namespace tilewise {
namespace {

std::string text_of(std::string_view path) {
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path == path) return std::string(file.text);
    }
    ADD_FAILURE() << path;
    return {};
}

// An arch file with its chip in the place of the chip's name.
std::string text_with_chip(const std::string& arch, const std::string& chip) {
    std::string text = text_of("arch/" + arch + ".json");
    const std::string name = "\"" + chip + "\"";
    const auto at = text.find(name);
    EXPECT_NE(at, std::string::npos) << arch << " no longer names " << chip;
    std::string object = text_of("chips/" + chip + ".json");
    object.pop_back();  // the line's end
    return text.replace(at, name.size(), object);
}

// The text of gfx942 and its chip with one piece replaced, and the line of that piece.
struct Edited {
    std::string text;
    int line = 1;
};
Edited edit(std::string_view from, std::string_view to) {
    Edited edited{text_with_chip("gfx942", "mi300x")};
    const auto at = edited.text.find(from);
    EXPECT_NE(at, std::string::npos) << "the file no longer has " << from;
    if (at == std::string::npos) return edited;
    for (std::size_t i = 0; i < at; ++i) edited.line += edited.text[i] == '\n' ? 1 : 0;
    edited.text.replace(at, from.size(), to);
    return edited;
}

TEST(ArchParse, EveryEmbeddedFileReads) {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with("arch/")) continue;
        const auto arch = parse_arch(file.text, std::string(file.path));
        ASSERT_TRUE(arch.ok()) << arch.error().message;
        EXPECT_EQ("arch/" + arch->name + ".json", file.path);
        EXPECT_EQ(arch->json.dump(), Json::parse(text_with_chip(arch->name, arch->chip))->dump());
        names.push_back(arch->name);
    }
    for (const char* name :
         {"cpu-generic", "cpu-avx2", "cpu-avx512", "cpu-amx", "sm_80", "sm_90a", "gfx90a", "gfx942", "gfx950"}) {
        EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
    }
}

TEST(ArchParse, NumbersArriveWhereTheyBelong) {
    const ArchSpec& arch = arch_named("gfx942");
    EXPECT_EQ(arch.backend, Backend::hip);
    EXPECT_EQ(arch.wave_size, 64);
    EXPECT_EQ(arch.shared_bytes, 65536);
    EXPECT_EQ(arch.load_bytes, 16);
    EXPECT_EQ(arch.pipeline(Pipeline::compv4).buffering, Buffering::twofold);
    EXPECT_TRUE(arch.pipeline(Pipeline::mem).schedulers[static_cast<std::size_t>(Scheduler::interwave)]);
    EXPECT_FALSE(arch.pipeline(Pipeline::compv3).schedulers[static_cast<std::size_t>(Scheduler::interwave)]);
    EXPECT_FALSE(arch.pipeline(Pipeline::preshuffle).ops[static_cast<std::size_t>(Op::conv_fwd)]);
    EXPECT_EQ(arch.limits[static_cast<std::size_t>(Operator::preshuffle)].min, (Shape3{64, 64, 32}));
    EXPECT_TRUE(arch.has_option("two_stage", Op::conv_bwd_weight));
    EXPECT_FALSE(arch.has_option("two_stage", Op::conv_fwd));
    EXPECT_FALSE(arch.has_option("no_such_field", Op::gemm));
    EXPECT_TRUE(arch.is_known_bad("cshuffle_odd_repeat"));
    EXPECT_EQ(arch.memory_gbps, 5300);
    ASSERT_NE(arch.find_warp_tiles({DType::fp8, DType::bf8}), nullptr);
    EXPECT_EQ(arch.find_warp_tiles({DType::fp8, DType::bf8})->tiles.front(), (Shape3{32, 32, 16}));
    EXPECT_EQ(arch.find_warp_tiles({DType::fp32, DType::fp16}), nullptr);
}

struct BadArch {
    std::string_view from, to, key, what;
};

TEST(ArchParse, ABrokenFileIsRefusedWithItsPlace) {
    const BadArch cases[] = {
        {R"("units": 304)", R"("units": 0)", "chip.units", "whole number from 1"},
        {R"("units": 304)", R"("units": "304")", "chip.units", "whole number from 1"},
        {R"("units": 304)", R"("units": 3.5)", "chip.units", "whole number from 1"},
        {R"("units": 304)", R"("unit": 304)", "chip.units", "is missing"},
        {R"("units": 304)", R"("units": 304, "unitz": 5)", "chip.unitz", "did you mean 'units'"},
        {R"("chip": {)", R"("chip": "mi300", "chips": {)", "chip", "did you mean 'mi300x'"},
        {R"("chip": {)", R"("chip": "h200", "chips": {)", "chip", "h200 is for cuda, not for hip"},
        {R"("mfma_gemm": {)", R"("gemv": {}, "mfma_gemm": {)", "chip.prices.gemv", "unknown key"},
        {R"("prices": {)", R"("prices": "h200", "other": {)", "chip.prices", "h200 is for cuda"},
        {R"("wave_size": 64)", R"("wave_size": -1)", "wave_size", "whole number"},
        {R"("shared_bytes": 65536)", R"("shared_bytes": 0)", "shared_bytes", "whole number"},
        {R"("load_bytes": 16)", R"("load_bytes": 0)", "load_bytes", "whole number"},
        {R"("backend": "hip")", R"("backend": "metal")", "backend", "unknown backend 'metal'"},
        {R"("name": "gfx942")", R"("name": "GFX 942")", "name", "from a-z"},
        {R"("name": "gfx942")", R"("name": "")", "name", "non-empty string"},
        {R"("provisional": true)", R"("provisional": 1)", "provisional", "true or false"},
        {R"("1x2x1", "1x4x1")", R"("1x2", "1x4x1")", "waves", "'1x2' is not three extents"},
        {R"("1x2x1", "1x4x1")", R"("1x0x1", "1x4x1")", "waves", "'1x0x1' is not three extents"},
        {R"("1x2x1", "1x4x1")", R"(3, "1x4x1")", "waves", "needs strings"},
        {R"("bf8_fp8": ["32x32x16"])", R"("bf8_fp8": [])", "warp_tiles.bf8_fp8", "at least one shape"},
        {R"("bf8_fp8": ["32x32x16"])", R"("bf8_fp8": ["32x32x0"])", "warp_tiles.bf8_fp8", "is not three extents"},
        {R"("bf8_fp8": ["32x32x16"])", R"("bf8_fp9": ["32x32x16"])", "warp_tiles.bf8_fp9", "is not a dtype or a pair"},
        {R"("compv6": {)", R"("compv7": {)", "pipelines", "unknown pipeline 'compv7'"},
        {R"({"schedulers": ["intrawave"], "buffers": "single"})", R"({"schedulers": ["intrawave"]})",
         "pipelines.basic_async_v1.buffers", "is missing"},
        {R"({"schedulers": ["intrawave"], "buffers": "single"})", R"({"schedulers": ["x"], "buffers": "single"})",
         "pipelines.basic_async_v1.schedulers", "unknown scheduler 'x'"},
        {R"({"schedulers": ["intrawave"], "buffers": "single"})", R"({"schedulers": [], "buffers": "triple"})",
         "pipelines.basic_async_v1.buffers", "unknown buffering 'triple'"},
        {R"({"schedulers": ["intrawave"], "buffers": "single"})",
         R"({"schedulers": [], "buffers": "single", "min_stages": 4, "max_stages": 3})",
         "pipelines.basic_async_v1.max_stages", "whole number from 4"},
        {R"({"schedulers": ["intrawave"], "buffers": "single"})", R"({"schedulers": [], "buffers": "single", "x": 1})",
         "pipelines.basic_async_v1.x", "unknown key"},
        {R"({"schedulers": ["intrawave"], "buffers": "single"})", R"(7)", "pipelines.basic_async_v1", "not an object"},
        {R"("multi_d": {"min": "16x16x8", "align": "16x16x8"})", R"("multi_d": {"min": "16x16x8"})",
         "operators.multi_d.align", "is missing"},
        {R"("multi_d": {"min": "16x16x8", "align": "16x16x8"})", R"("multi_d": {"min": "16x16x8", "align": "16x16x0"})",
         "operators.multi_d.align", "is not three extents"},
        {R"("multi_d": {)", R"("multi_e": {)", "operators.multi_d", "is missing"},
        {R"("two_stage": ["conv_bwd_weight"])", R"("two_stages": ["conv_bwd_weight"])", "options.two_stages",
         "unknown key"},
        {R"("two_stage": ["conv_bwd_weight"])", R"("two_stage": ["conv"])", "options.two_stage",
         "unknown operation 'conv'"},
        {R"("two_stage": ["conv_bwd_weight"])", R"("two_stage": "some")", "options.two_stage", "an array of strings"},
        {R"("two_stage": ["conv_bwd_weight"])", R"("tile": ["conv_bwd_weight"])", "options.tile", "unknown key"},
        {R"("compv6_loads")", R"("compv6_lods")", "known_bad", "'compv6_lods' is no rule"},
        {R"("memory_gbps": 5300)", R"("memory_gbps": "5300")", "chip.peaks.memory_gbps", "needs a number"},
        {R"("memory_gbps": 5300)", R"("memory_gbps": -5)", "chip.peaks.memory_gbps", "needs a number above 0"},
        {R"("launch_us": 4,)", "", "chip.peaks.launch_us", "is missing"},
        {R"("load_bytes": 16)", R"("load_bytes": 24)", "load_bytes", "power of two"},
        {R"("bf8_fp8": ["32x32x16"])", R"("fp32_fp16": ["32x32x16"])", "warp_tiles.fp32_fp16", "same input type"},
        {R"("bf8_fp8": ["32x32x16"])", R"("bf8_bf8": ["32x32x16"])", "warp_tiles.bf8_bf8", "given before"},
        {R"("fp32": 163.4)", R"("fp33": 163.4)", "chip.peaks.tflops.fp33", "unknown key"},
        {R"("epilogues": ["default")", R"("epilogues": ["fancy")", "epilogues", "unknown epilogue 'fancy'"},
        {R"("max_threads": 1024)", R"("wide_wave_rows": 64, "max_threads": 1024)", "wide_wave_rows", "come together"},
    };
    for (const BadArch& bad : cases) {
        const Edited edited = edit(bad.from, bad.to);
        const auto arch = parse_arch(edited.text, "my/chip.json");
        ASSERT_FALSE(arch.ok()) << bad.to;
        EXPECT_EQ(arch.error().code, ErrorCode::usage);
        const std::string& message = arch.error().message;
        EXPECT_TRUE(message.starts_with("my/chip.json:")) << message;
        EXPECT_NE(message.find(bad.key), std::string::npos) << bad.to << "\n" << message;
        EXPECT_NE(message.find(bad.what), std::string::npos) << bad.to << "\n" << message;
        // A missing key has no line of its own: the line is that of the object it is missing from.
        if (bad.what == "is missing") continue;
        EXPECT_TRUE(message.starts_with("my/chip.json:" + std::to_string(edited.line) + ":")) << bad.to << "\n"
                                                                                              << message;
    }
}

// Files of earlier versions named their rules; the error says what to do.
TEST(ArchParse, TheKeyOfTheRulesIsGone) {
    const Edited with = edit("\"backend\"", "\"rules\": \"cdna\",\n  \"backend\"");
    const auto arch = parse_arch(with.text, "my.json");
    ASSERT_FALSE(arch.ok());
    EXPECT_EQ(
        arch.error().message,
        fmt::format("my.json:{}: rules: is no key any more: remove it; the recipes of the backend apply", with.line));
}

TEST(ArchParse, TheBackendIsAWholeWord) {
    for (const char* backend : {"c", "cu", "hi", "cpu cuda", "cpu cuda hip", "pu"}) {
        const std::string line = std::string(R"("backend": ")") + backend + "\"";
        EXPECT_FALSE(parse_arch(edit(R"("backend": "hip")", line).text, "f").ok()) << backend;
    }
}

TEST(ArchParse, PeaksAreAboveZero) {  // every roof divides by them
    for (const auto& [from, to] :
         {std::pair{R"("memory_gbps": 5300)", R"("memory_gbps": 0)"}, {R"("fp32": 163.4)", R"("fp32": 0)"}}) {
        EXPECT_FALSE(parse_arch(edit(from, to).text, "f").ok()) << to;
    }
}

// A rule that always holds has no business in the list of those that hold on some targets only.
TEST(ArchParse, KnownBadListsKnownBadRulesOnly) {
    EXPECT_FALSE(parse_arch(edit(R"("compv6_loads")", R"("tile_multiple")").text, "f").ok());
}

TEST(ArchParse, TextThatIsNoJsonNamesTheFile) {
    for (const std::string text : {"", "{", "[]", "5", "{\"name\": }"}) {
        const auto arch = parse_arch(text, "my/chip.json");
        ASSERT_FALSE(arch.ok());
        EXPECT_NE(arch.error().message.find("my/chip.json"), std::string::npos) << arch.error().message;
    }
}

// No key can be dropped or turned into something else without an error or a different arch, and never a crash.
TEST(ArchParse, EveryTopLevelKeyIsReadAndChecked) {
    const Json whole = *Json::parse(text_of("arch/sm_90a.json"));
    const std::vector<std::string_view> may_be_missing = {
        "provisional", "cpu_features", "wide_wave_rows",  "wide_wave_size", "accumulators_per_thread",
        "registers",   "max_cluster",  "depthwise_tiles", "known_bad",      "fp8_sum_bits"};
    for (const auto& member : *whole.object()) {
        Json without{Json::Object{}}, wrong{Json::Object{}};
        for (const auto& [key, value] : *whole.object()) {
            if (key != member.first) without.set(key, value);
            wrong.set(key, key == member.first ? Json::object({{"?", Json()}}) : value);
        }
        const bool optional =
            std::find(may_be_missing.begin(), may_be_missing.end(), member.first) != may_be_missing.end();
        const bool paired = member.first.starts_with("wide_wave");
        EXPECT_EQ(parse_arch(without.dump(2), "f").ok(), optional && !paired) << member.first;
        EXPECT_FALSE(parse_arch(wrong.dump(2), "f").ok()) << member.first;
    }
}

}  // namespace
}  // namespace tilewise
