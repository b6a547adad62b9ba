// SPDX-License-Identifier: MIT
// Random configs made through the field table, so that a new field is covered the day it is added.
#pragma once

#include <string>
#include <vector>

#include "base/random.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

inline std::string random_number(Random& random) {
    // Round numbers as configs have them, small ones, zero and the largest.
    if (random.chance(60)) return std::to_string(std::int64_t{1} << random.between(0, 9));
    if (random.chance(80)) return std::to_string(random.between(0, 40));
    return std::to_string(random.chance(50) ? 65536 : random.between(0, 65536));
}

inline std::string random_shape(Random& random, int rank) {
    std::string text = random_number(random);
    for (int i = 1; i < rank; ++i) text += "x" + random_number(random);
    return text;
}

// A value the field accepts, as text.
inline std::string random_value(const ConfigField& field, Random& random) {
    const Json schema = field.schema();
    if (const Json* words = schema.find("enum")) return *random.pick(*words->array()).string();
    if (field.type == "bool") return random.chance(50) ? "true" : "false";
    if (field.type == "int") return random_number(random);
    if (field.type == "Shape3") return random_shape(random, 3);
    if (field.type == "Shape2") return random_shape(random, 2);
    if (field.type == "Padding") return random.pick(std::vector<std::string>{"mnk", "m", "n", "k", "mk", "none"});
    if (field.type == "Extents") {
        std::string text = std::to_string(random.between(1, 7));
        for (std::int64_t rank = random.between(0, 2); rank > 0; --rank)
            text += "x" + std::to_string(random.between(1, 7));
        return random.chance(30) ? "none" : text;
    }
    return random.pick(std::vector<std::string>{"gfx942", "sm_90a", "cpu-avx2", "x", "a-b_c", "no-such_arch"});
}

// Any values in any fields; `share` percent of the fields beside the leading ones leave their default.
inline KernelConfig random_config(Random& random, int share) {
    KernelConfig c;
    for (const ConfigField& field : config_fields()) {
        field.reset(c);
        if (field.role == Role::lead || random.chance(share)) {
            (void)field.parse(c, random_value(field, random)).ok();
        }
    }
    return c;
}

// A config that the arch might have: its own shapes, pipelines and types, then a few fields changed at random. Most
// rules are passed, so that each gets its turn to be the one that is broken.
inline KernelConfig nearly_valid_config(Random& random, const ArchSpec& arch) {
    KernelConfig c;
    c.op = random.pick(kAllOps);
    c.ndim = c.op == Op::gemm ? 0 : static_cast<int>(random.between(1, 3));
    const WarpTiles& entry = random.pick(arch.warp_tiles);
    c.dtype = entry.dtypes.a;
    c.dtype_b = entry.dtypes.b;
    c.dtype_out = c.default_dtype_out();
    c.dtype_acc = c.default_dtype_acc();
    c.arch = arch.name;
    c.layout = c.op == Op::gemm ? static_cast<Layout>(random.between(0, 8)) : channels_last(c.ndim);
    do c.pipeline = static_cast<Pipeline>(random.between(0, kPipelineCount - 1));
    while (!arch.pipeline(c.pipeline).supported);
    const PipelineSpec& spec = arch.pipeline(c.pipeline);
    do c.scheduler = static_cast<Scheduler>(random.between(0, kSchedulerCount - 1));
    while (!spec.schedulers[static_cast<std::size_t>(c.scheduler)]);
    c.double_smem_buffer = spec.buffering == Buffering::twofold;
    c.stages = spec.min_stages;
    c.producer_waves = spec.producers ? 1 : 0;
    c.wave = random.pick(arch.waves);
    c.warp_tile = random.pick(entry.tiles);
    const auto repeat = [&] { return static_cast<int>(random.between(1, 4)); };
    c.tile = {c.wave.m * c.warp_tile.m * repeat(), c.wave.n * c.warp_tile.n * repeat(),
              c.wave.k * c.warp_tile.k * repeat()};
    for (std::int64_t changes = random.between(0, 5); changes > 0; --changes) {
        const ConfigField& field = random.pick(config_fields());
        (void)field.parse(c, random_value(field, random)).ok();
    }
    return c;
}

}  // namespace tilewise
