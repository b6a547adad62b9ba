// SPDX-License-Identifier: MIT
#include "build/gpu_request.hpp"

#include <fmt/core.h>

#include "build/code_suffix.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {

BuildRequest gpu_request(const ArchSpec& arch, std::string_view suffix, std::string_view name, std::string_view lines) {
    BuildRequest request;
    request.name = fmt::format("{}@{}", name, arch.name);
    request.source = fmt::format("#include \"{}\"\n{}", facts_of(arch.backend).primitives, lines);
    request.arch = arch.name;
    request.suffix = suffix;
    if (suffix == kEmulatedCode) request.source = emulated_source(request.source, arch.backend);
    return request;
}

}  // namespace tilewise
