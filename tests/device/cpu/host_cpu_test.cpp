// SPDX-License-Identifier: MIT
#include "device/cpu/host_cpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "config/archs.hpp"
#include "config/chip.hpp"

namespace tilewise {
namespace {

ArchSpec cpu(const std::string& name, int load_bytes, std::vector<std::string> features) {
    ArchSpec arch = arch_named("cpu-generic");
    arch.name = name;
    arch.load_bytes = load_bytes;
    arch.cpu_features = std::move(features);
    return arch;
}

std::string chosen(std::initializer_list<ArchSpec> archs) {
    ArchCatalog catalog;
    for (const ArchSpec& arch : archs) catalog.add(arch);
    const auto arch = host_cpu_arch(catalog);
    return arch ? (*arch)->name : "none";
}

TEST(HostCpu, FeaturesAreThoseOfTheCompilersOwnCheck) {
    const auto features = host_cpu_features();
    const std::set<std::string> have(features.begin(), features.end());
    EXPECT_EQ(have.size(), features.size());
    __builtin_cpu_init();
    EXPECT_EQ(have.contains("sse2"), __builtin_cpu_supports("sse2") != 0);
    EXPECT_EQ(have.contains("avx"), __builtin_cpu_supports("avx") != 0);
    EXPECT_EQ(have.contains("fma"), __builtin_cpu_supports("fma") != 0);
    EXPECT_EQ(have.contains("avx2"), __builtin_cpu_supports("avx2") != 0);
    EXPECT_EQ(have.contains("avx512f"), __builtin_cpu_supports("avx512f") != 0);
    EXPECT_EQ(have.contains("avx512bw"), __builtin_cpu_supports("avx512bw") != 0);
    EXPECT_EQ(have.contains("avx512_vnni"), __builtin_cpu_supports("avx512vnni") != 0);
    EXPECT_EQ(have.contains("avx512_bf16"), __builtin_cpu_supports("avx512bf16") != 0);
}

TEST(HostCpu, VendorAndFamilyAreThoseOfTheKernel) {
    std::ifstream file("/proc/cpuinfo");
    std::map<std::string, std::string> first;
    for (std::string line; std::getline(file, line) && !line.empty();) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos || colon + 2 > line.size()) continue;
        first[line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1)] = line.substr(colon + 2);
    }
    if (!first.contains("vendor_id")) GTEST_SKIP() << "/proc/cpuinfo names no CPU here";
    EXPECT_EQ(host_cpu_family(), first["vendor_id"] + " " + first["cpu family"]);
}

// Work is priced as on this CPU, where there is a chip for it; everything else of the arch stays, and so do all other archs.
TEST(HostCpu, AnArchHasTheChipThatTheHostIs) {
    auto here = archs_here();
    ASSERT_TRUE(here.ok()) << here.error().message;
    for (const ArchSpec& arch : here->archs()) {
        std::string chip = arch_named(arch.name).chip;
        for (const std::string& name : chip_names()) {
            const auto found = find_chip(name);
            const bool is_host = std::ranges::find(found->cpus, host_cpu_family()) != found->cpus.end();
            if (is_host && found->cpu_arch == arch.name) chip = name;
        }
        EXPECT_EQ(arch.chip, chip) << arch.name;
        EXPECT_EQ(arch.memory_gbps, find_chip(chip)->memory_gbps) << arch.name;
        EXPECT_EQ(arch.cpu_features, arch_named(arch.name).cpu_features);
        EXPECT_EQ(arch.waves, arch_named(arch.name).waves);
    }
}

TEST(HostCpu, TheArchIsOneTheHostCanRun) {
    const auto arch = host_cpu_arch(embedded_archs());
    ASSERT_TRUE(arch.ok()) << arch.error().message;
    EXPECT_EQ((*arch)->backend, Backend::cpu);
    const auto have = host_cpu_features();
    for (const std::string& feature : (*arch)->cpu_features) {
        EXPECT_NE(std::find(have.begin(), have.end(), feature), have.end()) << feature;
    }
    // No other that the host can run asks for more.
    for (const ArchSpec& other : embedded_archs().archs()) {
        const bool fits = other.backend == Backend::cpu &&
                          std::all_of(other.cpu_features.begin(), other.cpu_features.end(), [&](const std::string& f) {
                              return std::find(have.begin(), have.end(), f) != have.end();
                          });
        if (fits) {
            EXPECT_LE(std::pair(other.load_bytes, other.cpu_features.size()),
                      std::pair((*arch)->load_bytes, (*arch)->cpu_features.size()))
                << other.name;
        }
    }
}

// A feature an arch file asks for under a name nobody knows would make the arch unreachable for ever.
TEST(HostCpu, EveryFeatureOfTheArchFilesIsKnown) {
    const std::set<std::string> known = {"sse2",        "fma",      "f16c",     "avx",      "avx2",        "avx512f",
                                         "avx512dq",    "avx512cd", "avx512bw", "avx512vl", "avx512_vnni", "amx_bf16",
                                         "avx512_fp16", "amx_tile", "amx_int8", "avx_vnni", "avx512_bf16"};
    for (const ArchSpec& arch : embedded_archs().archs()) {
        for (const std::string& feature : arch.cpu_features) {
            EXPECT_TRUE(known.contains(feature)) << arch.name << " " << feature;
        }
        EXPECT_EQ(arch.cpu_features.empty(), arch.is_gpu()) << arch.name;
    }
}

TEST(HostCpu, TheRichestWins) {
    EXPECT_EQ(chosen({cpu("a", 16, {"sse2"}), cpu("b", 32, {"sse2"})}), "b") << "wider loads";
    EXPECT_EQ(chosen({cpu("b", 32, {"sse2"}), cpu("a", 64, {})}), "a") << "whatever the order";
    EXPECT_EQ(chosen({cpu("a", 16, {"sse2"}), cpu("b", 16, {})}), "a") << "then the longer list";
    EXPECT_EQ(chosen({cpu("a", 16, {}), cpu("b", 64, {"sse2", "no_such_feature"})}), "a") << "only what the host has";
    EXPECT_EQ(chosen({cpu("b", 64, {"no_such_feature"})}), "none");
    EXPECT_EQ(chosen({arch_named("gfx942"), cpu("a", 4, {})}), "a") << "only CPUs";
}

TEST(HostCpu, WithoutACpuArchTheErrorIsOfTheDevice) {
    const ArchCatalog empty;
    const auto arch = host_cpu_arch(empty);
    ASSERT_FALSE(arch.ok());
    EXPECT_EQ(arch.error().code, ErrorCode::device);
    EXPECT_FALSE(arch.error().message.empty());
}

}  // namespace
}  // namespace tilewise
