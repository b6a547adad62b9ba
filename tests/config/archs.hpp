// SPDX-License-Identifier: MIT
// The embedded archs, for tests that go through all of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/arch_catalog.hpp"
#include "config/config_name.hpp"

namespace tilewise {

inline void PrintTo(const KernelConfig& config, std::ostream* out) { *out << kernel_name(config); }

inline const ArchCatalog& embedded_archs() {
    static const ArchCatalog catalog = [] {
        auto archs = ArchCatalog::embedded();
        if (!archs) ADD_FAILURE() << archs.error().message;
        return archs ? *archs : ArchCatalog{};
    }();
    return catalog;
}

inline const ArchSpec& arch_named(std::string_view name) { return **embedded_archs().find(name); }

inline std::vector<std::string> arch_names() {
    std::vector<std::string> names;
    for (const ArchSpec& arch : embedded_archs().archs()) names.push_back(arch.name);
    return names;
}

// A test suite that runs once for each embedded arch.
class EachArch : public testing::TestWithParam<std::string> {
protected:
    const ArchSpec& arch() const { return arch_named(GetParam()); }
};

inline std::string test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

}  // namespace tilewise
