// SPDX-License-Identifier: MIT
// Which code of a kernel a problem is run by. GPU kernels are compiled for the epilogue of the problem, or for every epilogue: that one
// serves plain problems as well, and any where the exact one can neither be found nor compiled.
#pragma once

#include <optional>
#include <string_view>

#include "base/note.hpp"
#include "base/result.hpp"
#include "build/builder.hpp"
#include "device/device.hpp"
#include "problem/chain.hpp"

namespace tilewise {

// The request for a config on an arch, as one of code_suffixes(arch): for a chain, or for every epilogue.
Result<BuildRequest> build_request(const KernelConfig& config, const ArchSpec& arch, std::string_view suffix,
                                   const std::optional<Chain>& chain = std::nullopt);
// The same as the kind of code that a device loads.
inline Result<BuildRequest> build_request(const KernelConfig& config, const Device& device,
                                          const std::optional<Chain>& chain = std::nullopt) {
    return build_request(config, device.arch(), device.code_suffix(), chain);
}

struct CodeChoice {
    BuildRequest request;
    bool falls_back = false;  // to the code for every epilogue, which is slower
};
Result<CodeChoice> choose_code(const Problem& problem, const KernelConfig& config, const Device& device,
                               Builder& builder);
// Whether the digest is that of a code that may be chosen.
bool is_code_of(std::string_view digest, const Problem& problem, const KernelConfig& config, const Device& device);
Note epilogue_note(const Problem& problem);

}  // namespace tilewise
