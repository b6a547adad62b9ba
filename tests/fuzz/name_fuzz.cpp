// SPDX-License-Identifier: MIT
// Kernel names, config JSON and exported registries; what reads also goes through the check and the correction of every arch, and what
// is valid has a source, or none.
#include "config/arch_catalog.hpp"
#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "config/rules.hpp"
#include "family/family.hpp"
#include "fuzz.hpp"
#include "registry/registry.hpp"

std::vector<std::string> fuzz_seeds() {
    std::vector<std::string> seeds = {
        "gemm_bf16_rcr_compv4_cshuffle_intrawave_256x128x64_2x2x1_32x32x16_va8_vb8_vc8_dsb@gfx942",
        "gemm_fp8_rcr_compv6_cshuffle_intrawave_128x256x128_2x1x1_64x256x32_b-bf8_va16_vb16_vc8_stages4_pers"
        "_sk-atomic_pw1_no-det@sm_90a",
        "gemm_fp32_ccr_preshuffle_default_auto_128x128x32_2x2x1_16x16x8_math-tf32x3_va4_pad-mn_cluster2x1_raster-"
        "hilbert"
        "_group8_swap_bpu2@gfx950",
        "grouped_conv_bwd_data_bf16_ndhwgc_3d_basic_async_v1_default_intrawave_64x64x32_2x2x1_16x16x16_out-fp32"
        "_gather-async_merge4_splitimage_explicit@gfx90a",
        "grouped_conv_bwd_weight_fp8_any_2d_basic_v1_default_intrawave_64x256x1_1x1x1_4x16x1_twostage_spec-depthwise"
        "_filter4x4_stride1x1_dilation1x1@cpu-avx2",
        "gemm_bf16_rcr_compv3_cshuffle_intrawave_0x0x0_65536x1x1_65536x1x1@gfx942",
    };
    for (std::size_t i = 0, names = seeds.size(); i < names; ++i) {
        const auto config = tilewise::parse_kernel_name(seeds[i]);
        require(config.ok(), "the seeds read");
        seeds.push_back(tilewise::config_to_json(*config).dump(2));
        tilewise::Registry registry;
        registry.add(tilewise::make_kernel(*config, tilewise::Priority::high));
        seeds.push_back(registry.to_json().dump(2));
    }
    return seeds;
}

namespace {

using namespace tilewise;

void check(const KernelConfig& config) {
    const auto named = parse_kernel_name(kernel_name(config));
    require(named.ok() && *named == config, "a name reads back as the same config");
    const auto from_json = config_from_json(config_to_json(config));
    require(from_json.ok() && *from_json == config, "JSON reads back as the same config");
    static const auto archs = ArchCatalog::embedded();
    require(archs.ok(), "embedded archs read");
    for (const ArchSpec& arch : archs->archs()) {
        KernelConfig moved = config;
        moved.arch = arch.name;
        require(is_valid(moved, arch) == check_config(moved, arch).empty(), "yes or no agrees with the list");
        const Correction result = correct_config(moved, arch);
        require(result.config.tile == moved.tile, "the tile is the user's");
        require(result.remaining.empty() == is_valid(result.config, arch), "what remains is what is wrong");
        static_cast<void>(has_code(moved, arch));  // has an answer, whatever the numbers are
        if (result.remaining.empty()) {
            require(generate_source(result.config, arch).ok() == has_code(result.config, arch), "code or none");
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = as_text(data, size);
    if (const auto config = parse_kernel_name(text)) {
        require(kernel_name(*config) == text, "a config has one name");
        check(*config);
    }
    if (const auto config = read_config(text)) check(*config);
    if (const auto json = Json::parse(text)) {
        Registry registry, again;
        if (registry.import_json(*json)) {
            require(again.import_json(registry.to_json()).ok() && again.size() == registry.size(),
                    "a registry reads back");
        }
    }
    return 0;
}
