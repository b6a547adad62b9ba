// SPDX-License-Identifier: MIT
// Packs, which come from other machines: as they are; with an index that is compressed and a first line that fits it, so that what
// the index says is looked at too; and as one compressed block.
#include <fmt/core.h>

#include "base/compress.hpp"
#include "base/sha256.hpp"
#include "build/pack.hpp"
#include "kernels/common/args.hpp"
#include "scratch_folder.hpp"

namespace {

using namespace tilewise;

std::string with_index(std::string_view index, std::string_view blocks) {
    const std::string stored = compress(index);
    return fmt::format("tilewise-pack 2 {} {} {}\n", stored.size(), index.size(), sha256_hex(stored)) + stored +
           std::string(blocks);
}

std::string block_of(std::string_view first, std::string_view second) {
    return compress(std::string(first) + std::string(second));
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
    kernels.push_back(Json::object({{"block", 0}, {"offset", 0}, {"manifest", manifest_json(one)}}));
    kernels.push_back(Json::object({{"block", 0}, {"offset", first.size()}, {"manifest", manifest_json(other)}}));
    const std::size_t bytes = first.size() + second.size(), stored = block_of(first, second).size();
    const Json block = Json::object({{"stored", stored}, {"bytes", bytes}});
    return Json::object({{"abi", kKernelAbi},
                         {"version", "0.1.0"},
                         {"blocks", Json(Json::Array{block})},
                         {"kernels", Json(std::move(kernels))},
                         {"tuning", "{}"}})
        .dump();
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
    const std::string code(300, 'x'), more(77, 'y'), index = index_of(code, more), block = block_of(code, more);
    const std::string none = R"({"abi": 4, "version": "0.1.0", "blocks": [], "kernels": []})";
    return {with_index(index, block), index + block, with_index(none, ""), none, block};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const ScratchFolder folder;
    const std::string_view text = as_text(data, size);
    look_into(Pack::from_memory(text, "a pack in memory"));
    look_into(Pack::open(folder.write("plain.pack", text)));
    const std::size_t index_bytes = text.rfind('}') + 1;  // npos + 1: none
    if (index_bytes > 0) {
        const std::string mended = with_index(text.substr(0, index_bytes), text.substr(index_bytes));
        look_into(Pack::from_memory(mended, "a pack in memory"));
    }
    for (const std::size_t bytes : {std::size_t{377}, size, 40 * size}) {
        const auto code = decompress(text, bytes);
        require(!code || code->size() == bytes, "as many bytes as were asked for");
    }
    const auto back = decompress(compress(text), size);
    require(back.ok() && *back == text, "what was compressed comes back");
    return 0;
}
