// SPDX-License-Identifier: MIT
#include "config/arch_catalog.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "config/archs.hpp"

namespace tilewise {
namespace {

// A file in the test's own temporary folder.
std::string write_file(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "tilewise_arch_catalog_" + name;
    std::ofstream(path) << text;
    return path;
}

std::string renamed(std::string_view arch, const std::string& name, int units) {
    std::string text = arch_named(arch).json.dump(2);
    const std::string old = "\"name\": \"" + std::string(arch) + "\"";
    text.replace(text.find(old), old.size(), "\"name\": \"" + name + "\"");
    const auto at = text.find("\"units\": ") + 9;
    return text.replace(at, text.find(',', at) - at, std::to_string(units));
}

TEST(ArchCatalog, IsSortedAndFindsByName) {
    const auto& archs = embedded_archs().archs();
    ASSERT_GE(archs.size(), 9u);
    for (std::size_t i = 1; i < archs.size(); ++i) EXPECT_LT(archs[i - 1].name, archs[i].name);
    for (const ArchSpec& arch : archs) EXPECT_EQ(*embedded_archs().find(arch.name), &arch);
    const auto unknown = embedded_archs().find("gfx943");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, ErrorCode::usage);
    EXPECT_NE(unknown.error().message.find("gfx94"), std::string::npos) << unknown.error().message;
    const auto nothing = embedded_archs().find("");
    ASSERT_FALSE(nothing.ok());
    EXPECT_NE(nothing.error().message.find("cpu-generic"), std::string::npos) << "lists what there is";
}

TEST(ArchCatalog, AFileAddsAnArch) {
    ArchCatalog catalog = embedded_archs();
    const std::size_t before = catalog.archs().size();
    const std::string path = write_file("new.json", renamed("gfx942", "gfx943", 7));
    const Status status = catalog.add_file(path);
    ASSERT_TRUE(status.ok()) << status.error().message;
    std::remove(path.c_str());
    EXPECT_EQ(catalog.archs().size(), before + 1);
    EXPECT_EQ((*catalog.find("gfx943"))->units, 7);
    EXPECT_EQ((*catalog.find("gfx942"))->units, arch_named("gfx942").units);
    EXPECT_EQ(embedded_archs().archs().size(), before) << "a copy is a copy";
}

TEST(ArchCatalog, AFileOfAKnownNameReplaces) {
    ArchCatalog catalog = embedded_archs();
    const std::size_t before = catalog.archs().size();
    const std::string path = write_file("same.json", renamed("gfx942", "gfx942", 8));
    ASSERT_TRUE(catalog.add_file(path).ok());
    std::remove(path.c_str());
    EXPECT_EQ(catalog.archs().size(), before);
    EXPECT_EQ((*catalog.find("gfx942"))->units, 8);
}

TEST(ArchCatalog, ABadFileChangesNothing) {
    ArchCatalog catalog = embedded_archs();
    const std::string path = write_file("bad.json", "{\n  \"name\": \"gfx942\"\n}\n");
    const Status status = catalog.add_file(path);
    std::remove(path.c_str());
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find(path), std::string::npos);
    EXPECT_EQ((*catalog.find("gfx942"))->units, arch_named("gfx942").units);
    const Status missing = catalog.add_file("/nonexistent/arch.json");
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(missing.error().message.find("/nonexistent/arch.json"), std::string::npos);
}

}  // namespace
}  // namespace tilewise
