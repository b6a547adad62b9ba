// SPDX-License-Identifier: MIT
#include "config/arch_catalog.hpp"

#include <algorithm>

#include "base/embedded.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace tilewise {

Result<ArchCatalog> ArchCatalog::embedded() {
    ArchCatalog catalog;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with("arch/")) continue;
        auto arch = parse_arch(file.text, std::string(file.path));
        if (!arch) return arch.error();
        catalog.add(std::move(*arch));
    }
    return catalog;
}

Status ArchCatalog::add_file(const std::string& path) {
    auto text = read_file(path);
    if (!text) return text.error();
    auto arch = parse_arch(*text, path);
    if (!arch) return arch.error();
    add(std::move(*arch));
    return {};
}

void ArchCatalog::add(ArchSpec arch) {
    const auto at = std::lower_bound(archs_.begin(), archs_.end(), arch,
                                     [](const ArchSpec& a, const ArchSpec& b) { return a.name < b.name; });
    if (at != archs_.end() && at->name == arch.name) {
        *at = std::move(arch);
    } else {
        archs_.insert(at, std::move(arch));
    }
}

Result<const ArchSpec*> ArchCatalog::find(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const ArchSpec& arch : archs_) {
        if (arch.name == name) return &arch;
        names.push_back(arch.name);
    }
    return usage_error(unknown_word("arch", name, names));
}

}  // namespace tilewise
