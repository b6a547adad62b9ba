// SPDX-License-Identifier: MIT
// A backend is how a machine is driven: threads and the host's compiler, or a vendor's driver and compiler. The enum is its identity,
// a word of files and JSON. What is true of a backend is one row of one table in each layer: here, what configs and sources ask; in
// build/code_suffix.cpp, what its code is; in device/make_device.cpp, how its devices are named and made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"

namespace tilewise {

enum class Backend : std::uint8_t { cpu, cuda, hip };
template <>
struct EnumNames<Backend> {
    static constexpr std::string_view kind = "backend";
    static constexpr std::array<std::string_view, 3> names = {"cpu", "cuda", "hip"};
};
inline constexpr std::array<Backend, EnumNames<Backend>::names.size()> kAllBackends = {Backend::cpu, Backend::cuda,
                                                                                       Backend::hip};

struct BackendFacts {
    bool is_gpu;
    std::string_view arch_prefix;  // names of its archs begin so
    // The header of kernels/ that its sources include before a template of kernels/gpu; none on a CPU.
    std::string_view primitives;
    // The lines that include what stands in for that on a host, which emulates the GPU.
    std::string_view twins;
};
inline constexpr std::array<BackendFacts, kAllBackends.size()> kBackendFacts = {{
    {false, "cpu-", "", ""},  // cpu
    {true, "sm_", "cuda/primitives.hpp",
     "#include \"emulate/primitives.hpp\"\n#include \"emulate/hopper.hpp\"\n"},  // cuda
    {true, "gfx", "hip/primitives.hpp", "#include \"emulate/hip.hpp\"\n"},       // hip
}};

constexpr const BackendFacts& facts_of(Backend backend) { return kBackendFacts[static_cast<std::size_t>(backend)]; }

}  // namespace tilewise
