// SPDX-License-Identifier: MIT
#include "registry/read_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "config/rule_set.hpp"

namespace tilewise {
namespace {

Result<KernelConfig> find_by_id(std::string_view id, const ArchCatalog& archs) {
    for (const ArchSpec& arch : archs.archs()) {
        for (const Op op : kAllOps) {
            auto configs = expand(arch, op, RuleSet::full);
            if (!configs) return configs.error();
            const auto found = std::find_if(configs->begin(), configs->end(), [&](const KernelConfig& config) {
                return kernel_id(kernel_name(config)) == id;
            });
            if (found != configs->end()) return std::move(*found);
        }
    }
    return usage_error(fmt::format(
        "no kernel of the rule sets has the id '{}'; tilewise kernels lists them, and names work for any kernel", id));
}

}  // namespace

bool is_kernel_id(std::string_view word) {
    constexpr std::size_t kIdDigits = 16;
    return word.size() == kIdDigits && word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<KernelConfig> read_kernel(std::string_view text, const ArchCatalog& archs) {
    const std::string_view word = trim(text);
    return is_kernel_id(word) ? find_by_id(word, archs) : read_config(text);
}

}  // namespace tilewise
