// SPDX-License-Identifier: MIT
// A product with units, clocks, bandwidths and prices: one value per file of chips/. An arch (config/arch_spec.hpp) is an
// instruction set and names the chip that its numbers are for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "config/backend.hpp"
#include "config/prices.hpp"
#include "problem/types.hpp"

namespace tilewise {

struct Peak {
    DType dtype = DType::fp32;
    double tflops = 0;  // of the whole device
};

struct Chip {
    std::string name;
    std::string description;
    Backend backend = Backend::cpu;
    int units = 1;                 // compute units, multiprocessors or cores the peaks are for
    std::int64_t cache_bytes = 0;  // last-level cache
    std::vector<Peak> peaks;
    double memory_gbps = 0;
    double cache_gbps = 0;  // of the last-level cache, per unit on a CPU
    double pack_gbps = 0;   // bytes of operands packed per second and unit; GPUs do not pack
    double launch_us = 0;   // what a launch costs beside its work
    Prices prices;          // 0 where they are another backend's
    // CPUs, by vendor and family as CPUID has them ("AuthenticAMD 26"), that this is, and the arch that has this chip there in the place
    // of the one that it names.
    std::vector<std::string> cpus;
    std::string cpu_arch;

    Json json;  // the file as it was read
};

// Reads one chip file; an error names the file, the line and the key. Instead of prices it may name an embedded chip that has them.
Result<Chip> parse_chip(std::string_view text, const std::string& file);
// The same of an object that is part of a file.
Result<Chip> read_chip(const Json& json, const std::string& file, const std::string& path = {});
// One of those that are embedded in the library.
Result<Chip> find_chip(std::string_view name);
std::vector<std::string> chip_names();

// The file's JSON with these prices.
Json chip_to_json(const Chip& chip);

}  // namespace tilewise
