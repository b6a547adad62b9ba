// SPDX-License-Identifier: MIT
#include "config/config_json.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/random_config.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kName =
    "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8_splitk4@gfx942";

TEST(ConfigJson, RoundTrip) {
    Random random(1);
    for (int i = 0; i < 5000; ++i) {
        const KernelConfig config = random_config(random, i % 2 == 0 ? 10 : 100);
        const auto again = config_from_json(config_to_json(config));
        ASSERT_TRUE(again.ok()) << again.error().message;
        ASSERT_EQ(*again, config);
        const auto reread = read_config("  " + config_to_json(config).dump(2) + "\n");
        ASSERT_TRUE(reread.ok()) << reread.error().message;
        ASSERT_EQ(*reread, config);
    }
}

TEST(ConfigJson, NamesLeadAndWhatIsNotDefault) {
    const Json json = config_to_json(*parse_kernel_name(kName));
    EXPECT_EQ(json.dump(), R"({"op":"gemm","dtype":"bf16","layout":"rcr","pipeline":"compv3","epilogue":"cshuffle",)"
                           R"("scheduler":"intrawave","tile":"128x128x64","wave":"2x2x1","warp_tile":"32x32x16",)"
                           R"("vector_a":8,"vector_b":8,"vector_c":8,"split_k":4,"arch":"gfx942"})");
}

TEST(ConfigJson, DefaultsThatDependOnOthersFollowThem) {
    auto json = config_to_json(*parse_kernel_name(kName));
    auto text = json.dump();
    text.replace(text.find("bf16"), 4, "int8");
    const auto config = read_config(text);
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->dtype_b, DType::int8);
    EXPECT_EQ(config->dtype_out, DType::int32);
    EXPECT_EQ(config->dtype_acc, DType::int32);
}

TEST(ConfigJson, ReadsANameOrJson) {
    const auto named = read_config(std::string("  ") + std::string(kName) + "\n");
    ASSERT_TRUE(named.ok()) << named.error().message;
    EXPECT_EQ(kernel_name(*named), kName);
    const auto nameless = read_config(kName.substr(0, kName.find('@')));
    ASSERT_FALSE(nameless.ok());
    EXPECT_NE(nameless.error().message.find("has no @arch"), std::string::npos) << nameless.error().message;
    EXPECT_FALSE(read_config("").ok());
    EXPECT_FALSE(read_config("{").ok());
    EXPECT_FALSE(read_config("[]").ok());
}

TEST(ConfigJson, MistakesAreNamedWithTheirLine) {
    const std::pair<std::string, std::string_view> cases[] = {
        {"\"op\": \"gem\"", "config field 'op' (line 2): unknown operation 'gem'"},
        {"\"op\": 1", "config field 'op' (line 2): takes a string, not integer"},
        {"\"vectr_a\": 8", "unknown config field 'vectr_a'; did you mean 'vector_a'? (line 2)"},
        {"\"op\": \"gemm\"", "config field 'dtype' is missing"},
        {"\"op\": \"gemm\", \"dtype\": \"fp32\", \"layout\": \"rcr\", \"pipeline\": \"mem\"",
         "config field 'epilogue' is missing"},
        {"\"op\": \"conv_fwd\", \"dtype\": \"fp32\", \"layout\": \"nhwgc\"", "config field 'ndim' is missing"},
    };
    for (const auto& [members, message] : cases) {
        const auto result = read_config("{\n" + members + "}");
        ASSERT_FALSE(result.ok()) << members;
        EXPECT_EQ(result.error().code, ErrorCode::usage);
        EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
    }
}

TEST(ConfigJson, EveryFieldRefusesTheWrongKindOfValue) {
    Random random(2);
    const Json wrong[] = {Json(), Json(1.5), Json(Json::Array{}), Json(Json::Object{}), Json("?"), Json(-1)};
    for (const ConfigField& field : config_fields()) {
        for (const Json& value : wrong) {
            const Json right = config_to_json(random_config(random, 100));
            Json json{Json::Object{}};
            bool placed = false;
            for (const auto& member : *right.object()) {
                placed |= member.first == field.name;
                json.set(member.first, member.first == field.name ? value : member.second);
            }
            if (!placed) json.set(std::string(field.name), value);
            const auto result = config_from_json(json);
            ASSERT_FALSE(result.ok()) << field.name << " " << value.dump();
            EXPECT_NE(result.error().message.find(field.name), std::string::npos) << result.error().message;
        }
    }
}

}  // namespace
}  // namespace tilewise
