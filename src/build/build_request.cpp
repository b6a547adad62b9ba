// SPDX-License-Identifier: MIT
#include "build/build_request.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/sha256.hpp"
#include "build/code_suffix.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

constexpr int kDigestSchema = 1;  // raised when the list of ingredients changes

constexpr std::string_view kHexDigits = "0123456789abcdef";

// Kernels need neither the C++ library nor start-up code; -nostdinc holds them to the headers that the digest covers.
// The functions that they may call (memcpy, expf, a helper of the compiler) are linked only if used, and must be there (-z defs).
// Nobody looks for symbols (-s) or a build id in them: the file is named by its digest already.
constexpr std::array<std::string_view, 17> kHostFlags = {"-std=c++20",
                                                         "-O3",
                                                         "-fPIC",
                                                         "-shared",
                                                         "-fwrapv",  // sums of integers wrap around
                                                         "-fno-exceptions",
                                                         "-fno-rtti",
                                                         "-fvisibility=hidden",
                                                         "-fno-stack-protector",
                                                         "-nostdinc",
                                                         "-nostdlib",
                                                         "-Wl,--as-needed",
                                                         "-Wl,-z,defs",
                                                         "-Wl,-z,noexecstack",
                                                         "-Wl,--build-id=none",
                                                         "-s",
                                                         "-pipe"};

// CUDA kernels on the host: threads that wait for each other, so speed matters less than the compiler's time; what was never
// written must not look like a number.
constexpr auto kEmulatedFlags = [] {
    std::array<std::string_view, kHostFlags.size() + 2> flags{};
    std::copy(kHostFlags.begin(), kHostFlags.end(), flags.begin());
    flags[kHostFlags.size()] = "-O1";  // of several the last counts
    flags[kHostFlags.size() + 1] = "-ftrivial-auto-var-init=pattern";
    return flags;
}();

// A client's own C++: the C++ library is there, and headers are the client's to name. What they do belongs to the digest as far
// as the source and the flags tell.
constexpr std::array<std::string_view, 7> kExtensionFlags = {"-std=c++20",          "-O2", "-fPIC", "-shared",
                                                             "-fvisibility=hidden", "-s",  "-pipe"};

// Functions are for the device without being marked so, since the same headers also run emulated on the host. The
// assembler, which PTX does not see, tells what a kernel needs (-v). No fast math: what a kernel may approximate it says
// itself.
constexpr std::array<std::string_view, 3> kCubinFlags = {"-std=c++20", "-default-device", "--ptxas-options=-v"};
constexpr std::array<std::string_view, 2> kPtxFlags = {"-std=c++20", "-default-device"};

// No header and no library of a vendor's: what a kernel needs is in its own headers. Code objects of version 5 are what HIP 5.5 and later
// load.
constexpr std::array<std::string_view, 12> kHsacoFlags = {"-x",
                                                          "hip",
                                                          "--cuda-device-only",
                                                          "--no-gpu-bundle-output",
                                                          "-nogpuinc",
                                                          "-nogpulib",
                                                          "-nostdinc",
                                                          "-std=c++20",
                                                          "-O3",
                                                          "-mcode-object-version=5",
                                                          "-Wno-c++11-narrowing",  // as NVRTC has it
                                                          "-Wno-unused-command-line-argument"};

// With its length, so that no two lists of parts read the same.
void add(std::string& text, std::string_view key, std::string_view value) {
    text += fmt::format("{} {}:{}\n", key, value.size(), value);
}

}  // namespace

std::span<const std::string_view> fixed_flags(std::string_view suffix) {
    if (suffix == kSharedObject) return kHostFlags;
    if (suffix == kEmulatedCode) return kEmulatedFlags;
    if (suffix == kCubin) return kCubinFlags;
    if (suffix == kPtx) return kPtxFlags;
    if (suffix == kExtension) return kExtensionFlags;
    if (suffix == kHsaco) return kHsacoFlags;
    return {};
}

Result<std::string> digest_of(const BuildRequest& request, const KernelHeaders& headers) {
    const std::string_view suffix = request.suffix;
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    if (suffix.size() < 2 || suffix[0] != '.' || !std::all_of(suffix.begin() + 1, suffix.end(), plain)) {
        return usage_error(fmt::format("'{}' is no suffix of a built kernel; need one like .so", suffix));
    }
    if (request.name.empty() || request.arch.empty()) return usage_error("a build request needs a name and an arch");
    std::vector<const KernelHeader*> covered;
    if (suffix != kExtension) {
        auto included = headers.included_by(request.source);
        if (!included) return included.error();
        covered = std::move(*included);
    }
    std::string text = fmt::format("tilewise kernel {}\nabi {}\n", kDigestSchema, kKernelAbi);
    add(text, "arch", request.arch);
    add(text, "suffix", suffix);
    for (const std::string_view flag : fixed_flags(suffix)) add(text, "fixed", flag);
    for (const std::string& flag : request.flags) add(text, "flag", flag);
    for (const KernelHeader* header : covered) add(text, header->path(), header->sha256());
    add(text, "source", request.source);
    return sha256_hex(text);
}

bool is_digest(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

}  // namespace tilewise
