// SPDX-License-Identifier: MIT
// A registry as JSON: out, in again, and nothing when anything is wrong.
#include <gtest/gtest.h>

#include <functional>

#include "base/random.hpp"
#include "config/config_json.hpp"
#include "registry/sample_kernels.hpp"

namespace tilewise {
namespace {

Json make_export() {
    Random random(1);
    Registry registry("source");
    auto kernels = sample_kernels();
    for (Kernel& kernel : kernels) {
        kernel.priority = static_cast<Priority>(random.between(0, 2));
        kernel.available = random.chance(50);
    }
    registry.add(std::move(kernels));
    return registry.to_json();
}

const Json& exported() {
    static const Json json = make_export();
    return json;
}

TEST(RegistryJson, ExportThenImportIsTheSame) {
    const Json& json = exported();
    Registry registry("source");
    const auto taken = registry.import_json(*Json::parse(json.dump(2)));
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    EXPECT_EQ(static_cast<std::int64_t>(*taken), *json.find("count")->integer());
    EXPECT_EQ(registry.to_json(), json) << "priorities, availability and order included";
    EXPECT_EQ(*registry.import_json(json), 0u) << "nothing of higher priority the second time";
}

TEST(RegistryJson, StatisticsCountEveryKernel) {
    const Json& json = exported();
    const Json* statistics = json.find("statistics");
    ASSERT_NE(statistics, nullptr);
    const auto total = [](const Json& counts) {
        std::int64_t sum = 0;
        for (const auto& [value, count] : *counts.object()) sum += *count.integer();
        return sum;
    };
    for (const char* key :
         {"by_op", "by_dtype", "by_layout", "by_pipeline", "by_scheduler", "by_epilogue", "by_arch"}) {
        ASSERT_NE(statistics->find(key), nullptr) << key;
        EXPECT_EQ(total(*statistics->find(key)), *json.find("count")->integer()) << key;
    }
    std::int64_t gemms = 0;
    for (const Json& kernel : *json.find("kernels")->array()) {
        if (*kernel.find("config")->find("op")->string() == "gemm") ++gemms;
    }
    EXPECT_EQ(*statistics->find("by_op")->find("gemm")->integer(), gemms);
    EXPECT_EQ(Registry().to_json(false).find("statistics"), nullptr);
}

// {count, kernels:[{name, id, available, config}]} is what other programs read.
TEST(RegistryJson, KernelsHaveTheirShape) {
    const auto kernels = sample_kernels();
    const Json json = kernels_to_json(kernels);
    EXPECT_EQ(*json.find("count")->integer(), static_cast<std::int64_t>(kernels.size()));
    ASSERT_EQ(json.find("kernels")->array()->size(), kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const Json& item = (*json.find("kernels")->array())[i];
        EXPECT_EQ(*item.find("name")->string(), kernels[i].name);
        EXPECT_EQ(*item.find("id")->string(), kernels[i].id);
        EXPECT_EQ(*item.find("available")->boolean(), kernels[i].available);
        EXPECT_EQ(*config_from_json(*item.find("config")), kernels[i].config);
    }
}

// The export with one member of the last kernel replaced (or, with null, dropped).
Json damaged(std::string_view key, const Json& value) {
    const Json& whole = exported();
    Json::Array kernels = *whole.find("kernels")->array();
    Json last{Json::Object{}};
    const Json old = kernels.back();
    for (const auto& member : *old.object()) {
        if (member.first != key) last.set(member.first, member.second);
    }
    if (!value.is_null()) last.set(std::string(key), value);
    kernels.back() = last;
    return Json::object({{"kernels", Json(std::move(kernels))}});
}

void expect_nothing_added(const Json& json) {
    static const Kernel there = sample_kernels("cpu-avx2").front();
    Registry registry;
    registry.add(there);
    const auto result = registry.import_json(json);
    EXPECT_FALSE(result.ok()) << json.dump().substr(0, 200);
    EXPECT_EQ(registry.size(), 1u);
    EXPECT_TRUE(result.ok() || !result.error().message.empty());
}

TEST(RegistryJson, ABrokenImportAddsNothing) {
    for (const char* text : {"null", "5", "[]", "{}", R"({"kernels": 5})", R"({"kernels": {}})", R"({"kernels": [5]})",
                             R"({"kernels": [{}]})", R"({"kernels": [{"config": 5}]})", R"({"kernels": [null]})"}) {
        expect_nothing_added(*Json::parse(text));
    }
    expect_nothing_added(damaged("config", Json()));
    expect_nothing_added(damaged("config", Json("x")));
    expect_nothing_added(damaged("config", Json::object({{"op", "gemm"}})));
    expect_nothing_added(damaged("name", Json("gemm_of_another_name")));
    expect_nothing_added(damaged("name", Json(5)));
    expect_nothing_added(damaged("priority", Json("urgent")));
}

// What is there but cannot be read must not be taken for something else.
TEST(RegistryJson, AMemberOfTheWrongKindIsAnError) {
    expect_nothing_added(damaged("priority", Json(2)));
    expect_nothing_added(damaged("available", Json("yes")));
    expect_nothing_added(damaged("id", Json("0000000000000000")));
}

TEST(RegistryJson, OnlyTheConfigIsNeeded) {
    for (const char* key : {"name", "id", "priority", "available"}) {
        Registry registry;
        EXPECT_TRUE(registry.import_json(damaged(key, Json())).ok()) << key;
    }
}

}  // namespace
}  // namespace tilewise
