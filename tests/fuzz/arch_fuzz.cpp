// SPDX-License-Identifier: MIT
// Arch files and recipes, which people write by hand.
#include "base/embedded.hpp"
#include "config/arch_spec.hpp"
#include "config/recipe.hpp"
#include "config/rule_set.hpp"
#include "config/rules.hpp"
#include "fuzz.hpp"

std::vector<std::string> fuzz_seeds() {
    std::vector<std::string> seeds;
    for (const tilewise::EmbeddedFile& file : tilewise::embedded_files()) {
        if (file.path.ends_with(".json")) seeds.emplace_back(file.text);
    }
    return seeds;
}

namespace {

using namespace tilewise;

void check(const ArchSpec& arch) {
    const auto again = parse_arch(arch.json.dump(2), "again");
    // Printing replaces bytes that are no UTF-8, so it is the printed texts that are compared.
    require(again.ok() && again->json.dump() == arch.json.dump() && again->name == arch.name, "an arch reads back");
    require(again->waves == arch.waves && again->known_bad == arch.known_bad, "with the same numbers");
    // Whatever the numbers are, a config can be checked and corrected against them.
    KernelConfig config;
    config.arch = arch.name;
    config.dtype = arch.warp_tiles.empty() ? DType::fp32 : arch.warp_tiles.front().dtypes.a;
    config.tile = {128, 128, 32};
    config.wave = arch.waves.front();
    config.warp_tile = {16, 16, 16};
    config.stages = 3;
    const Correction result = correct_config(config, arch);
    require(result.remaining == check_config(result.config, arch), "what remains is what is wrong");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = as_text(data, size);
    const auto arch = parse_arch(text, "fuzz.json");
    if (arch) {
        check(*arch);
    } else {
        require(arch.error().message.starts_with("fuzz.json"), "an error names the file");
    }
    const auto recipe = parse_recipe(text, "fuzz.json");
    require(recipe.ok() || recipe.error().message.starts_with("fuzz.json"), "an error names the file");
    return 0;
}
