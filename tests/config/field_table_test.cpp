// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <set>

#include "config/archs.hpp"
#include "config/config_json.hpp"
#include "config/random_config.hpp"
#include "config/recipe.hpp"
#include "registry/registry.hpp"

namespace tilewise {
namespace {

TEST(FieldTable, NamesAndTagsAreUnique) {
    std::set<std::string_view> names, tags;
    for (const ConfigField& field : config_fields()) {
        EXPECT_TRUE(names.insert(field.name).second) << field.name;
        EXPECT_FALSE(field.help.empty()) << field.name;
        if (field.role == Role::lead) {
            EXPECT_TRUE(field.tag.empty()) << field.name;
            continue;
        }
        EXPECT_TRUE(tags.insert(field.tag).second) << field.tag;
        // A digit, "_" or "-" in a tag could be read as the beginning of its value or as the next field.
        EXPECT_FALSE(field.tag.empty()) << field.name;
        EXPECT_EQ(field.tag.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), std::string_view::npos) << field.tag;
        EXPECT_NE(field.tag, "no") << "which begins a truth value that is false";
    }
    EXPECT_EQ(find_field("no_such_field"), nullptr);
    for (const std::string_view name : names) EXPECT_EQ(find_field(name)->name, name);
}

TEST(FieldTable, ParseThenPrintIsTheText) {
    Random random(1);
    for (const ConfigField& field : config_fields()) {
        for (int i = 0; i < 200; ++i) {
            const std::string value = random_value(field, random);
            KernelConfig c;
            ASSERT_TRUE(field.parse(c, value).ok()) << field.name << " " << value;
            std::string printed;
            field.print(c, printed);
            ASSERT_EQ(printed, value) << field.name;
            const Json json = field.to_json(c);
            ASSERT_EQ(json.string() ? *json.string() : json.dump(), value) << field.name;
        }
    }
}

TEST(FieldTable, NonsenseIsRefusedByEveryField) {
    for (const ConfigField& field : config_fields()) {
        for (const char* text : {"", " ", "-1", "65537", "99999999999999999999", "1x", "x1", "1x1x1x1", "TRUE", "NONE",
                                 "?", "1x65537x1", "-1x1x1", "mnkm", "0x0.5", "a b", "a@b"}) {
            if (field.type == "std::string" && std::string_view(text).find_first_of(" @?TN.") == std::string::npos &&
                *text != '\0') {
                continue;  // any word may name an arch
            }
            KernelConfig c;
            const Status status = field.parse(c, text);
            ASSERT_FALSE(status.ok()) << field.name << " takes '" << text << "'";
            EXPECT_FALSE(status.error().message.empty());
        }
    }
    KernelConfig c;
    EXPECT_FALSE(find_field("arch")->parse(c, std::string(33, 'a')).ok());
    EXPECT_FALSE(find_field("arch")->parse(c, "../x").ok()) << "an arch is part of file names";
}

TEST(FieldTable, ResetMakesDefault) {
    Random random(2);
    for (int i = 0; i < 500; ++i) {
        KernelConfig c = random_config(random, 100);
        for (const ConfigField& field : config_fields()) {
            field.reset(c);
            ASSERT_TRUE(field.is_default(c)) << field.name;
        }
        KernelConfig fresh;
        ASSERT_EQ(c, fresh);
    }
}

TEST(FieldTable, TheSchemaListsEveryField) {
    const Json schema = config_schema();
    const Json* properties = schema.find("properties");
    ASSERT_NE(properties, nullptr);
    EXPECT_EQ(properties->object()->size(), config_fields().size());
    for (const ConfigField& field : config_fields()) {
        const Json* property = properties->find(field.name);
        ASSERT_NE(property, nullptr) << field.name;
        ASSERT_NE(property->find("type"), nullptr) << field.name;
        EXPECT_EQ(*property->find("description")->string(), field.help);
    }
    std::set<std::string> required;
    for (const Json& name : *schema.find("required")->array()) required.insert(*name.string());
    EXPECT_EQ(required, (std::set<std::string>{"op", "dtype", "layout", "pipeline", "epilogue", "scheduler", "tile",
                                               "wave", "warp_tile", "arch"}));
    EXPECT_EQ(*schema.find("additionalProperties")->boolean(), false);
}

template <class E>
void check_names() {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < EnumNames<E>::names.size(); ++i) {
        const std::string_view name = EnumNames<E>::names[i];
        EXPECT_FALSE(name.empty());
        EXPECT_TRUE(names.insert(name).second) << name;
        const auto parsed = parse_enum<E>(name);
        ASSERT_TRUE(parsed.ok());
        EXPECT_EQ(*parsed, static_cast<E>(i));
        EXPECT_EQ(name_of(*parsed), name);
    }
    const auto unknown = parse_enum<E>("no-such-word-at-all");
    ASSERT_FALSE(unknown.ok());
    EXPECT_NE(unknown.error().message.find(EnumNames<E>::kind), std::string::npos);
}

TEST(FieldTable, EveryWordReadsBack) {
    check_names<Op>(), check_names<DType>(), check_names<Layout>(), check_names<EpilogueOp>();
    check_names<Scale>(), check_names<Math>(), check_names<Pipeline>(), check_names<Scheduler>();
    check_names<Epilogue>(), check_names<StreamK>(), check_names<Raster>(), check_names<Gather>();
    check_names<Specialization>(), check_names<Operator>(), check_names<Buffering>(), check_names<RuleSet>();
    check_names<VecStrategy>(), check_names<Priority>();
}

}  // namespace
}  // namespace tilewise
