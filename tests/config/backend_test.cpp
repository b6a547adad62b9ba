// SPDX-License-Identifier: MIT
// The table of backends agrees with what is there: archs are named as their backend's, headers exist.
#include "config/backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/embedded.hpp"
#include "config/archs.hpp"

namespace tilewise {
namespace {

TEST(Backend, NamesOfArchsBeginAsTheirBackendSays) {
    for (const ArchSpec& arch : embedded_archs().archs()) {
        for (const Backend backend : kAllBackends) {
            EXPECT_EQ(arch.name.starts_with(facts_of(backend).arch_prefix), backend == arch.backend)
                << arch.name << ' ' << name_of(backend);
        }
    }
}

TEST(Backend, GpusHaveWavesOfSeveralThreads) {
    for (const ArchSpec& arch : embedded_archs().archs()) {
        EXPECT_EQ(arch.is_gpu(), arch.wave_size > 1) << arch.name;
        EXPECT_EQ(arch.is_gpu(), arch.cpu_features.empty()) << arch.name;
    }
}

TEST(Backend, PrimitivesAreAmongTheKernels) {
    int found = 0;
    for (const Backend backend : kAllBackends) {
        const std::string_view primitives = facts_of(backend).primitives;
        if (primitives.empty()) continue;
        EXPECT_TRUE(facts_of(backend).is_gpu) << name_of(backend);
        const auto files = embedded_files();
        EXPECT_TRUE(std::ranges::any_of(files, [&](const EmbeddedFile& file) {
            return file.path == "kernels/" + std::string(primitives);
        })) << primitives;
        ++found;
    }
    EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace tilewise
