// SPDX-License-Identifier: MIT
// Rules about memory: what a block keeps in shared memory, and the width of its loads and stores.
#include <bit>
#include <numeric>

#include "config/geometry.hpp"
#include "config/rule_groups.hpp"

namespace tilewise {
namespace {

bool over_budget(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return shared_bytes(c, arch) > arch.shared_bytes &&
           refuse(out,
                  TILEWISE_TEXT("{} bytes: {} buffers of tile {}, {} blocks per unit", shared_bytes(c, arch),
                                buffer_count(c), print_shape(c.tile), c.blocks_per_unit),
                  TILEWISE_TEXT("at most {}", arch.shared_bytes));
}

// Fewer blocks share the unit, then fewer stages, then one buffer where the pipeline can do with one.
void correct_budget(KernelConfig& c, const ArchSpec& arch) {
    const PipelineSpec& spec = arch.pipeline(c.pipeline);
    while (over_budget(c, arch, nullptr) && c.blocks_per_unit > 1) --c.blocks_per_unit;
    while (over_budget(c, arch, nullptr) && c.stages > spec.min_stages) --c.stages;
    if (over_budget(c, arch, nullptr) && spec.buffering == Buffering::either) c.double_smem_buffer = false;
}

// The widest access of the operand's type.
int widest(const KernelConfig& c, const ArchSpec& arch, int operand) {
    return static_cast<int>(arch.load_bytes / bytes_of(operand_dtype(c, operand)));
}

bool is_wrong_width(const KernelConfig& c, const ArchSpec& arch, int operand) {
    const int width = vector_width(c, operand);
    return width < 1 || !std::has_single_bit(static_cast<unsigned>(width)) || width > widest(c, arch, operand);
}

bool wrong_width(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (!is_wrong_width(c, arch, 0) && !is_wrong_width(c, arch, 1) && !is_wrong_width(c, arch, 2)) return false;
    const auto list = [&](auto describe) {
        std::string text;
        for (int i = 0; i < 3; ++i) {
            if (is_wrong_width(c, arch, i)) text += (text.empty() ? "" : ", ") + describe(i);
        }
        return text;
    };
    return refuse(
        out,
        [&] { return list([&](int i) { return fmt::format("vector_{} {}", kOperandName[i], vector_width(c, i)); }); },
        [&] {
            return "a power of two up to " + list([&](int i) {
                       return fmt::format("{} ({} bytes of {})", widest(c, arch, i), arch.load_bytes,
                                          name_of(operand_dtype(c, i)));
                   });
        });
}

void correct_width(KernelConfig& c, const ArchSpec& arch) {
    for (int i = 0; i < 3; ++i) {
        int width = std::max(1, std::min(vector_width(c, i), widest(c, arch, i)));
        set_vector_width(c, i, static_cast<int>(std::bit_floor(static_cast<unsigned>(width))));
    }
}

bool is_no_divisor(const KernelConfig& c, int operand) {
    const int extent = contiguous_tile_extent(c, operand), width = vector_width(c, operand);
    return extent > 0 && width > 0 && extent % width != 0;
}

bool does_not_divide(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (!is_no_divisor(c, 0) && !is_no_divisor(c, 1) && !is_no_divisor(c, 2)) return false;
    return refuse(
        out,
        [&] {
            std::string text;
            for (int i = 0; i < 3; ++i) {
                if (!is_no_divisor(c, i)) continue;
                text += fmt::format("{}vector_{} {} along a tile extent of {}", text.empty() ? "" : ", ",
                                    kOperandName[i], vector_width(c, i), contiguous_tile_extent(c, i));
            }
            return text;
        },
        TILEWISE_TEXT("divisors of those extents"));
}

void correct_divisor(KernelConfig& c, const ArchSpec&) {
    for (int i = 0; i < 3; ++i) {
        const int extent = contiguous_tile_extent(c, i);
        if (extent > 0) set_vector_width(c, i, std::gcd(vector_width(c, i), extent));
    }
}

bool any_layout_vector(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool wide = c.vector_a > 1 || c.vector_b > 1 || c.vector_c > 1;
    return c.layout == Layout::any && wide &&
           refuse(out, TILEWISE_TEXT("vectors {}, {}, {} with layout any", c.vector_a, c.vector_b, c.vector_c),
                  TILEWISE_TEXT("1 each, or one layout"));
}

void correct_any_layout(KernelConfig& c, const ArchSpec&) { c.vector_a = c.vector_b = c.vector_c = 1; }

constexpr ConfigRule kMemoryRules[] = {
    {"shared_memory", "all resident operand tiles of all blocks on a unit fit its shared memory (on a CPU, its cache)",
     over_budget, correct_budget},
    {"vector_width", "one access moves a power of two of elements, at most the arch's widest load", wrong_width,
     correct_width},
    {"vector_divides_tile", "a row of the tile is a whole number of accesses", does_not_divide, correct_divisor},
    {"vector_any_layout", "which elements are neighbours is known only for one layout", any_layout_vector,
     correct_any_layout},
};

}  // namespace

std::span<const ConfigRule> memory_rules() { return kMemoryRules; }

}  // namespace tilewise
