// SPDX-License-Identifier: MIT
// A manifest describes a built kernel: what it is, how it was made, and the size and hash that its file must have.
// It is stored beside every cached kernel and in the index of a pack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "build/kernel_resources.hpp"

namespace tilewise {

struct Manifest {
    std::string digest;  // of the request
    std::string kernel;  // its name
    std::string arch;
    std::vector<std::string> flags;
    std::string compiler;  // "g++ 12.2.0", "nvrtc 13.0"
    std::string file;      // "kernel.so", "kernel.cubin", "kernel.ptx"
    std::int64_t size = 0;
    std::string sha256;
    std::string created;                       // UTC, for people; nothing is decided by it
    std::optional<KernelResources> resources;  // of a GPU kernel, where the compiler told

    bool operator==(const Manifest&) const = default;
};

Json manifest_json(const Manifest& manifest);
// Strict: an unknown key or a value that cannot be is an error; `file` is where it was read, for the message.
Result<Manifest> parse_manifest(const Json& json, const std::string& file);

std::string time_text();  // now, as 2025-01-31T12:00:00Z

}  // namespace tilewise
