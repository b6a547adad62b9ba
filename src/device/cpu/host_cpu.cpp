// SPDX-License-Identifier: MIT
#include "device/cpu/host_cpu.hpp"

#include <cpuid.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "config/chip.hpp"

namespace tilewise {
namespace {

enum Register { eax, ebx, ecx, edx };

// Which processor state the operating system must save for a feature to be usable (bits of XCR0).
constexpr std::uint64_t kNoState = 0;
constexpr std::uint64_t kAvxState = 0x6;      // XMM and YMM
constexpr std::uint64_t kAvx512State = 0xe6;  // and opmask, upper ZMM
constexpr std::uint64_t kAmxState = 0x60000;  // tile configuration and data

struct Feature {
    const char* name;
    unsigned leaf, subleaf;
    Register reg;
    int bit;
    std::uint64_t state;
};

// Intel SDM volume 2, CPUID; AMD uses the same bits.
constexpr Feature kFeatures[] = {
    {"sse2", 1, 0, edx, 26, kNoState},
    {"fma", 1, 0, ecx, 12, kAvxState},
    {"f16c", 1, 0, ecx, 29, kAvxState},
    {"avx", 1, 0, ecx, 28, kAvxState},
    {"avx2", 7, 0, ebx, 5, kAvxState},
    {"avx512f", 7, 0, ebx, 16, kAvx512State},
    {"avx512dq", 7, 0, ebx, 17, kAvx512State},
    {"avx512cd", 7, 0, ebx, 28, kAvx512State},
    {"avx512bw", 7, 0, ebx, 30, kAvx512State},
    {"avx512vl", 7, 0, ebx, 31, kAvx512State},
    {"avx512_vnni", 7, 0, ecx, 11, kAvx512State},
    {"amx_bf16", 7, 0, edx, 22, kAmxState},
    {"avx512_fp16", 7, 0, edx, 23, kAvx512State},
    {"amx_tile", 7, 0, edx, 24, kAmxState},
    {"amx_int8", 7, 0, edx, 25, kAmxState},
    {"avx_vnni", 7, 1, eax, 4, kAvxState},
    {"avx512_bf16", 7, 1, eax, 5, kAvx512State},
};

std::uint64_t saved_state() {
    constexpr int kOsxsave = 27;  // whether XGETBV exists
    std::array<unsigned, 4> r{};
    if (!__get_cpuid_count(1, 0, &r[eax], &r[ebx], &r[ecx], &r[edx]) || !(r[ecx] >> kOsxsave & 1)) return 0;
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

}  // namespace

std::vector<std::string> host_cpu_features() {
    std::vector<std::string> names;
    const std::uint64_t saved = saved_state();
    for (const Feature& feature : kFeatures) {
        std::array<unsigned, 4> r{};
        const bool read = __get_cpuid_count(feature.leaf, feature.subleaf, &r[eax], &r[ebx], &r[ecx], &r[edx]) != 0;
        const bool present = read && (r[feature.reg] >> feature.bit & 1) != 0;
        if (present && (saved & feature.state) == feature.state) names.emplace_back(feature.name);
    }
    return names;
}

std::string host_cpu_family() {
    constexpr unsigned kExtendedFamily = 15;
    std::array<unsigned, 4> r{};
    if (!__get_cpuid(0, &r[eax], &r[ebx], &r[ecx], &r[edx])) return "";
    std::string vendor;
    for (const Register part : {ebx, edx, ecx}) {
        for (int byte = 0; byte < 4; ++byte) vendor += static_cast<char>(r[part] >> (8 * byte) & 0xff);
    }
    if (!__get_cpuid(1, &r[eax], &r[ebx], &r[ecx], &r[edx])) return "";
    const unsigned family = r[eax] >> 8 & 0xf, extended = r[eax] >> 20 & 0xff;
    return fmt::format("{} {}", vendor, family + (family == kExtendedFamily ? extended : 0));
}

Status take_host_chip(ArchCatalog& catalog) {
    const std::string host = host_cpu_family();
    for (const std::string& name : chip_names()) {
        const auto chip = find_chip(name);
        if (!chip) return chip.error();
        if (std::find(chip->cpus.begin(), chip->cpus.end(), host) == chip->cpus.end()) continue;
        const auto arch = catalog.find(chip->cpu_arch);
        if (!arch) return arch.error();
        ArchSpec here = **arch;
        set_chip(here, *chip);
        catalog.add(std::move(here));
    }
    return {};
}

Result<ArchCatalog> archs_here() {
    auto catalog = ArchCatalog::embedded();
    if (catalog) {
        if (auto status = take_host_chip(*catalog); !status) return status.error();
    }
    return catalog;
}

Result<const ArchSpec*> host_cpu_arch(const ArchCatalog& catalog) {
    const auto have = host_cpu_features();
    const ArchSpec* best = nullptr;
    for (const ArchSpec& arch : catalog.archs()) {
        const auto& need = arch.cpu_features;
        const bool fits = !arch.is_gpu() && std::all_of(need.begin(), need.end(), [&](const std::string& feature) {
            return std::find(have.begin(), have.end(), feature) != have.end();
        });
        // avx512 asks for more than avx2 in kind, not only in number; the wider load decides, then the longer list.
        const auto rank = [](const ArchSpec& a) { return std::pair{a.load_bytes, a.cpu_features.size()}; };
        if (fits && (!best || rank(arch) > rank(*best))) best = &arch;
    }
    if (!best) return Error{ErrorCode::device, "no CPU arch fits this machine; tilewise needs x86-64 with SSE2"};
    return best;
}

}  // namespace tilewise
