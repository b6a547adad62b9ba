// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <map>

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "base/version.hpp"
#include "build/pack.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

using Items = std::map<std::string_view, const PackItem*>;  // by digest, so that a pack has one order and no doubles

constexpr mode_t kReadByAll = 0644;  // a pack is made to be used by others

std::string header_and_index(const Items& items) {
    Json kernels = Json::Array();
    std::int64_t offset = 0;
    for (const auto& [digest, item] : items) {
        kernels.push_back(Json::object({{"offset", offset}, {"manifest", manifest_json(item->manifest)}}));
        offset += item->manifest.size;
    }
    const Json index = Json::object({{"abi", kKernelAbi}, {"version", version()}, {"kernels", std::move(kernels)}});
    const std::string text = index.dump() + "\n";
    return fmt::format("tilewise-pack 1 {} {}\n{}", text.size(), sha256_hex(text), text);
}

Status append_all(NewFile& file, const Items& items) {
    if (auto status = file.append(header_and_index(items)); !status) return status;
    for (const auto& [digest, item] : items) {
        const auto kernel = read_file(item->path);
        if (!kernel) return kernel.error();
        if (sha256_hex(*kernel) != item->manifest.sha256) {
            return Error{ErrorCode::toolchain, fmt::format("kernel {} is damaged: the contents of '{}' have changed",
                                                           item->manifest.kernel, item->path)};
        }
        if (auto status = file.append(*kernel); !status) return status;
    }
    return file.sync();
}

}  // namespace

Status write_pack(std::span<const PackItem> items, const std::string& path) {
    Items sorted;
    for (const PackItem& item : items) sorted.emplace(item.manifest.digest, &item);
    auto file = NewFile::create(path, kReadByAll);
    if (!file) return file.error();
    if (auto status = append_all(*file, sorted); !status) return status;
    return file->publish();
}

}  // namespace tilewise
