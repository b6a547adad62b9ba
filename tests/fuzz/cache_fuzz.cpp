// SPDX-License-Identifier: MIT
// Entries of the kernel cache whose manifest, or code, is not what it was.
#include "base/sha256.hpp"
#include "build/kernel_cache.hpp"
#include "scratch_folder.hpp"

namespace {

using namespace tilewise;

constexpr std::string_view kCode = "code of a kernel";
const std::string kDigest = sha256_hex("a request");

Manifest manifest() {
    Manifest m;
    m.digest = kDigest, m.kernel = "gemm_bf16@sm_90a", m.arch = "sm_90a", m.flags = {"--std=c++20"};
    m.compiler = "nvrtc 13.0", m.file = "kernel.cubin", m.size = static_cast<std::int64_t>(kCode.size());
    m.sha256 = sha256_hex(kCode), m.created = "2025-01-31T12:00:00Z", m.resources = KernelResources{64, 1024, 0};
    return m;
}

}  // namespace

// A manifest, then what differs from the code.
std::vector<std::string> fuzz_seeds() {
    Manifest bare = manifest();
    bare.resources.reset();
    return {manifest_json(manifest()).dump(2), manifest_json(bare).dump(), manifest_json(manifest()).dump() + "x"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const ScratchFolder folder;
    const std::string_view text = as_text(data, size);
    const std::size_t manifest_bytes = text.rfind('}') + 1;  // npos + 1: none
    const std::string place = "v1/" + kDigest.substr(0, 2) + "/" + kDigest;
    folder.write(place + "/manifest.json", text.substr(0, manifest_bytes));
    folder.write(place + "/kernel.cubin", std::string(kCode) + std::string(text.substr(manifest_bytes)));
    std::filesystem::permissions(folder.path() + "/v1", std::filesystem::perms::owner_all);
    std::filesystem::permissions(folder.path() + "/v1/" + kDigest.substr(0, 2), std::filesystem::perms::owner_all);
    std::filesystem::permissions(folder.path() + "/" + place, std::filesystem::perms::owner_all);
    KernelCache cache(folder.path());
    const bool is_bad = !cache.verify().empty();
    const auto peeked = cache.peek(kDigest);
    const auto listed = cache.ls();
    require(cache.stats().entries == 1, "an entry is counted, whole or not");
    const auto found = cache.find(kDigest);
    require(found.has_value() == !is_bad, "what is found is whole");
    if (found) require(peeked && *peeked == found->manifest && listed.size() == 1, "and is what was said of it");
    return 0;
}
