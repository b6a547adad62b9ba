// SPDX-License-Identifier: MIT
// Chip files: the embedded ones read, every price arrives, and a broken file is refused with its place.
#include "config/chip.hpp"

#include <gtest/gtest.h>

#include <set>

#include "config/archs.hpp"
#include "config/price_names.hpp"

namespace tilewise {
namespace {

Chip chip_named(std::string_view name) {
    auto chip = find_chip(name);
    EXPECT_TRUE(chip.ok()) << chip.error().message;
    return chip ? *chip : Chip{};
}

TEST(Chip, EveryEmbeddedFileReadsAndIsSomeArchs) {
    std::set<std::string> used;
    for (const ArchSpec& arch : embedded_archs().archs()) used.insert(arch.chip);
    for (const std::string& name : chip_names()) {
        const Chip chip = chip_named(name);
        EXPECT_EQ(chip.name, name);
        if (chip.cpus.empty()) {
            EXPECT_TRUE(used.contains(name)) << name;
        } else {
            EXPECT_EQ(arch_named(chip.cpu_arch).backend, Backend::cpu) << name;
        }
    }
}

TEST(Chip, GivesTheArchItsNumbers) {
    const ArchSpec& arch = arch_named("sm_90a");
    EXPECT_EQ(arch.chip, "h200");
    EXPECT_EQ(arch.units, 132);
    EXPECT_EQ(arch.memory_gbps, 4270);
    EXPECT_EQ(arch.prices.clock.cycles_per_us.value, 1700);
    EXPECT_EQ(arch.prices.blocked_gemm.call_steps.value, 0) << "no CPU";
    EXPECT_EQ(arch_named("sm_80").prices.patch_conv.store_cycles, arch.prices.patch_conv.store_cycles);
}

TEST(Chip, EveryPriceHasAValueAndAName) {
    const Chip chips[] = {chip_named("zen4"), chip_named("h200"), chip_named("mi300x")};  // one of each backend
    std::set<std::string> names;
    for (std::size_t i = 0; i < all_prices(chips[0].prices).size(); ++i) {
        double sum = 0;
        for (const Chip& chip : chips) sum += all_prices(chip.prices)[i].value;
        EXPECT_GT(sum, 0) << price_name(i);
        EXPECT_TRUE(names.insert(price_name(i)).second) << price_name(i);
    }
    const ArchSpec& arch = arch_named("sm_90a");
    EXPECT_EQ(price_name(arch, &arch.prices.gemv.pass_us.value), "gemv.pass_us");
    EXPECT_EQ(price_name(arch, &arch.cache_gbps), "peaks.cache_gbps");
    EXPECT_EQ(price_name(arch, &arch.peaks.front().tflops), "peaks.tflops.fp32");
}

TEST(Chip, IsReadBackAsItIsWritten) {
    Chip chip = chip_named("h200");
    chip.prices.block_product.fill_us.value = 0.5;
    const auto again = parse_chip(chip_to_json(chip).dump(2), "again.json");
    ASSERT_TRUE(again.ok()) << again.error().message;
    for (std::size_t i = 0; i < all_prices(chip.prices).size(); ++i) {
        EXPECT_EQ(all_prices(again->prices)[i], all_prices(chip.prices)[i]) << price_name(i);
    }
}

TEST(Chip, ABrokenFileIsRefusedWithItsPlace) {
    struct Bad {
        std::string from, to, what;
    };
    const Bad cases[] = {
        {"\"cycles_per_us\": 1700", "\"cycles_per_us\": 0", "prices.clock.cycles_per_us: needs a number above 0"},
        {"\"cycles_per_us\": 1700", "\"cycle_per_us\": 1700", "prices.clock.cycles_per_us: is missing"},
        {"\"cycles_per_us\": 1700", "\"cycles_per_us\": 1700, \"fll\": 1", "prices.clock.fll: unknown key"},
        {"\"clock\": {", "\"clok\": {", "prices.clock: is missing"},
        {"\"units\": 132", "\"units\": 0", "units: needs a whole number"},
        {"\"prices\": {", "\"price\": {", "prices: is missing"},
    };
    const std::string text = chip_named("h200").json.dump(2);
    for (const Bad& bad : cases) {
        std::string broken = text;
        const auto at = broken.find(bad.from);
        ASSERT_NE(at, std::string::npos) << bad.from;
        broken.replace(at, bad.from.size(), bad.to);
        const auto chip = parse_chip(broken, "my.json");
        ASSERT_FALSE(chip.ok()) << bad.to;
        EXPECT_TRUE(chip.error().message.starts_with("my.json:")) << chip.error().message;
        EXPECT_NE(chip.error().message.find(bad.what), std::string::npos) << chip.error().message;
    }
}

}  // namespace
}  // namespace tilewise
