// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>
#include <thread>
#include <tuple>

#include "base/compress.hpp"
#include "base/files.hpp"
#include "base/sha256.hpp"
#include "base/version.hpp"
#include "build/pack.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

constexpr mode_t kReadByAll = 0644;  // a pack is made to be used by others

// Decoding one takes about three milliseconds; larger ones hold little more of what kernels have in common.
constexpr std::int64_t kBlockBytes = std::int64_t{2} << 20;

struct PlannedBlock {
    std::vector<const PackItem*> items;
    std::int64_t bytes = 0;
    Result<std::string> stored = std::string();
};

// Kernels of like names are alike. By name, and once each: a pack has one order and no doubles.
std::vector<PlannedBlock> plan_blocks(std::span<const PackItem> items) {
    std::map<std::string_view, const PackItem*> by_digest;
    for (const PackItem& item : items) by_digest.emplace(item.manifest.digest, &item);
    std::vector<const PackItem*> sorted;
    sorted.reserve(by_digest.size());
    for (const auto& [digest, item] : by_digest) sorted.push_back(item);
    const auto place = [](const PackItem* item) {
        const Manifest& m = item->manifest;
        return std::tie(m.arch, m.file, m.kernel, m.digest);
    };
    std::sort(sorted.begin(), sorted.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
    std::vector<PlannedBlock> blocks;
    for (const PackItem* item : sorted) {
        const bool fits = !blocks.empty() && blocks.back().bytes + item->manifest.size <= kBlockBytes;
        if (!fits) blocks.emplace_back();
        blocks.back().items.push_back(item);
        blocks.back().bytes += item->manifest.size;
    }
    return blocks;
}

Result<std::string> compressed(const PlannedBlock& block) {
    if (block.bytes > static_cast<std::int64_t>(kMaxBlockBytes)) {
        return Error{ErrorCode::toolchain, fmt::format("kernel {} has {} bytes; a pack takes at most {}",
                                                       block.items[0]->manifest.kernel, block.bytes, kMaxBlockBytes)};
    }
    std::string contents;
    for (const PackItem* item : block.items) {
        const auto kernel = read_file(item->path);
        if (!kernel) return kernel.error();
        if (sha256_hex(*kernel) != item->manifest.sha256) {
            return Error{ErrorCode::toolchain, fmt::format("kernel {} is damaged: the contents of '{}' have changed",
                                                           item->manifest.kernel, item->path)};
        }
        contents += *kernel;
    }
    return compress(contents);
}

void compress_all(std::vector<PlannedBlock>& blocks, int jobs) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = 0; (i = next++) < blocks.size();) blocks[i].stored = compressed(blocks[i]);
    };
    std::vector<std::jthread> others;
    try {
        for (int i = 1; i < jobs && i < static_cast<int>(blocks.size()); ++i) others.emplace_back(work);
    } catch (const std::system_error&) {
        // The system gives no more threads: those we have do.
    }
    work();
}

Result<std::string> header_and_index(const std::vector<PlannedBlock>& planned, const std::string& tuning) {
    Json::Array blocks, kernels;
    for (std::size_t i = 0; i < planned.size(); ++i) {
        blocks.push_back(Json::object({{"stored", planned[i].stored->size()}, {"bytes", planned[i].bytes}}));
        std::int64_t offset = 0;
        for (const PackItem* item : planned[i].items) {
            kernels.push_back(
                Json::object({{"block", i}, {"offset", offset}, {"manifest", manifest_json(item->manifest)}}));
            offset += item->manifest.size;
        }
    }
    Json json = Json::object({{"abi", kKernelAbi},
                              {"version", version()},
                              {"blocks", Json(std::move(blocks))},
                              {"kernels", Json(std::move(kernels))}});
    if (!tuning.empty()) json.set("tuning", tuning);
    const std::string index = json.dump();
    if (index.size() > kMaxBlockBytes) {
        return Error{ErrorCode::toolchain,
                     fmt::format("the index of the pack would have {} bytes; need at most {}: write "
                                 "several packs (--shard)",
                                 index.size(), kMaxBlockBytes)};
    }
    const std::string stored = compress(index);
    return fmt::format("tilewise-pack 2 {} {} {}\n{}", stored.size(), index.size(), sha256_hex(stored), stored);
}

}  // namespace

Status write_pack(std::span<const PackItem> items, const std::string& path, const PackOptions& options) {
    auto file = NewFile::create(path, kReadByAll);
    if (!file) return file.error();
    auto blocks = plan_blocks(items);
    compress_all(blocks, options.jobs);
    for (const PlannedBlock& block : blocks) {
        if (!block.stored) return block.stored.error();
    }
    const auto index = header_and_index(blocks, options.tuning);
    if (!index) return index.error();
    if (auto status = file->append(*index); !status) return status;
    for (const PlannedBlock& block : blocks) {
        if (auto status = file->append(*block.stored); !status) return status;
    }
    if (auto status = file->sync(); !status) return status;
    return file->publish();
}

}  // namespace tilewise
