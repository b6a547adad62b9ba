// SPDX-License-Identifier: MIT
#include "run/kernel_code.hpp"

#include <fmt/core.h>

#include <utility>

#include "build/code_suffix.hpp"
#include "build/toolchain.hpp"
#include "config/config_name.hpp"
#include "family/family.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {

Result<BuildRequest> build_request(const KernelConfig& config, const ArchSpec& arch, std::string_view suffix,
                                   const std::optional<Chain>& chain) {
    auto source = generate_source(config, arch, chain);
    if (!source) return source.error();
    BuildRequest request;
    request.name = kernel_name(config);
    request.source = std::move(source->text);
    request.arch = arch.name;
    request.suffix = suffix;
    if (suffix == kEmulatedCode) request.source = emulated_source(request.source, arch.backend);
    if (suffix == kSharedObject) request.flags = host_flags(source->features);
    return request;
}

Result<CodeChoice> choose_code(const Problem& problem, const KernelConfig& config, const Device& device,
                               Builder& builder) {
    auto any = build_request(config, device);
    if (!any) return any.error();
    if (!device.arch().is_gpu() || !builder.settings().exact_epilogues) return CodeChoice{std::move(*any)};
    const Chain chain = chain_of(problem);
    auto exact = build_request(config, device, chain);
    if (!exact) return exact.error();
    if (!builder.needs_compiler(*exact)) return CodeChoice{std::move(*exact)};
    const bool may_serve = chain.is_plain() || !builder.has_compiler(*exact);
    if (may_serve && !builder.needs_compiler(*any)) return CodeChoice{std::move(*any), !chain.is_plain()};
    return CodeChoice{std::move(*exact)};
}

bool is_code_of(std::string_view digest, const Problem& problem, const KernelConfig& config, const Device& device) {
    const auto has_digest = [&](const std::optional<Chain>& chain) {
        const auto request = build_request(config, device, chain);
        const auto found = request ? digest_of(*request) : Result<std::string>(request.error());
        return found && *found == digest;
    };
    return (device.arch().is_gpu() && has_digest(chain_of(problem))) || has_digest(std::nullopt);
}

Note epilogue_note(const Problem& problem) {
    const std::string chain = print_chain(chain_of(problem));
    return {
        "epilogue", ErrorCode::toolchain,
        fmt::format(
            "there is no compiler, and no kernel of the pack is for the epilogue {0}: it is interpreted, which takes "
            "longer; tilewise build --epilogues {0} --pack FILE makes one",
            chain)};
}

}  // namespace tilewise
