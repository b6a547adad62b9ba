// SPDX-License-Identifier: MIT
// Packs, which come from other machines: as they are, and with a first line that fits an index that was changed, so that its contents
// are looked at too.
#include <fmt/core.h>

#include "base/sha256.hpp"
#include "build/pack.hpp"
#include "kernels/common/args.hpp"
#include "scratch_folder.hpp"

namespace {

using namespace tilewise;

std::string header(std::string_view index) {
    return fmt::format("tilewise-pack 1 {} {}\n", index.size(), sha256_hex(index));
}

std::string index_of(std::string_view first, std::string_view second) {
    Manifest one;
    one.digest = sha256_hex("one"), one.kernel = "gemm_fp32@cpu-avx2", one.arch = "cpu-avx2";
    one.flags = {"-O3", "-mavx2"}, one.compiler = "g++ 12.2.0", one.file = "kernel.so";
    one.size = static_cast<std::int64_t>(first.size()), one.sha256 = sha256_hex(first), one.created = time_text();
    Manifest other = one;
    other.digest = sha256_hex("other"), other.arch = "sm_90a", other.compiler = "nvrtc 13.0",
    other.file = "kernel.cubin";
    other.size = static_cast<std::int64_t>(second.size()), other.sha256 = sha256_hex(second);
    other.resources = KernelResources{128, 65536, 0};
    Json::Array kernels;
    kernels.push_back(Json::object({{"offset", 0}, {"manifest", manifest_json(one)}}));
    kernels.push_back(Json::object({{"offset", first.size()}, {"manifest", manifest_json(other)}}));
    return Json::object({{"abi", kKernelAbi}, {"version", "0.1.0"}, {"kernels", Json(std::move(kernels))}}).dump();
}

void look_into(const Result<Pack>& pack) {
    if (!pack) {
        require(pack.error().message.find("pack") != std::string::npos, "an error says that it is about a pack");
        return;
    }
    const auto manifests = pack->manifests();
    require(manifests.size() == pack->size(), "every kernel has a manifest");
    for (const Manifest& manifest : manifests) {
        require(pack->find(manifest.digest) != nullptr, "what is listed is found");
        const auto code = pack->read(manifest.digest);
        if (!code) continue;
        require(static_cast<std::int64_t>(code->size()) == manifest.size, "as many bytes as it says");
        require(sha256_hex(*code) == manifest.sha256, "and these very ones");
    }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const std::string code(300, 'x'), more(77, 'y'), index = index_of(code, more);
    const std::string none = R"({"abi": 4, "version": "0.1.0", "kernels": []})";
    return {header(index) + index + code + more, index + code + more, header(none) + none, none};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const ScratchFolder folder;
    const std::string_view text = as_text(data, size);
    look_into(Pack::from_memory(text, "a pack in memory"));
    look_into(Pack::open(folder.write("plain.pack", text)));
    const std::size_t index_bytes = text.rfind('}') + 1;  // npos + 1: none
    const std::string mended = header(text.substr(0, index_bytes)) + std::string(text);
    look_into(Pack::from_memory(mended, "a pack in memory"));
    look_into(Pack::open(folder.write("mended.pack", mended)));
    return 0;
}
