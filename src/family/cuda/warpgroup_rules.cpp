// SPDX-License-Identifier: MIT
#include "family/cuda/warpgroup_rules.hpp"

#include <algorithm>

namespace tilewise::warpgroup_rules {

bool large_boxes(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostBoxLines = 256;  // of one tensor copy
    const int rows = std::max(c.tile.m / c.cluster.n, c.tile.n / c.cluster.m);
    return rows > kMostBoxLines &&
           refuse(out, TILEWISE_TEXT("{} lines for one copy", rows), TILEWISE_TEXT("at most {}", kMostBoxLines));
}

bool other_waves(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const int most = most_warpgroups(c);
    const bool turns = c.pipeline == Pipeline::compv5;  // two take turns on tiles
    return (c.wave.m > most || (turns && c.wave.m != 2)) &&
           refuse(out, TILEWISE_TEXT("{} warpgroups along m", c.wave.m),
                  TILEWISE_TEXT("{} with pipeline {}",
                                turns       ? "2"
                                : most == 3 ? "1, 2 or 3"
                                            : "1 or 2",
                                name_of(c.pipeline)));
}

}  // namespace tilewise::warpgroup_rules
