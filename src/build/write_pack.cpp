// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "base/version.hpp"
#include "build/pack.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

using Items = std::map<std::string_view, const PackItem*>;  // by digest, so that a pack has one order and no doubles

Error failure(const std::string& path, int error) {
    return usage_error(fmt::format("cannot write the pack '{}': {}", path, std::strerror(error)));
}

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

Status append(std::FILE* file, std::string_view text, const std::string& path) {
    return std::fwrite(text.data(), 1, text.size(), file) == text.size() ? Status() : failure(path, errno);
}

Status append_all(std::FILE* file, const Items& items, const std::string& path) {
    if (auto status = append(file, header_and_index(items), path); !status) return status;
    for (const auto& [digest, item] : items) {
        const auto kernel = read_file(item->path);
        if (!kernel) return kernel.error();
        if (sha256_hex(*kernel) != item->manifest.sha256) {
            return Error{ErrorCode::toolchain, fmt::format("kernel {} is damaged: the contents of '{}' have changed",
                                                           item->manifest.kernel, item->path)};
        }
        if (auto status = append(file, *kernel, path); !status) return status;
    }
    if (std::fflush(file) != 0 || fsync(fileno(file)) != 0) return failure(path, errno);
    return {};
}

}  // namespace

Status write_pack(std::span<const PackItem> items, const std::string& path) {
    Items sorted;
    for (const PackItem& item : items) sorted.emplace(item.manifest.digest, &item);
    const std::string unfinished = fmt::format("{}.{}.tmp", path, getpid());
    std::FILE* file = std::fopen(unfinished.c_str(), "wbe");
    if (!file) return failure(path, errno);
    auto status = append_all(file, sorted, path);
    if (std::fclose(file) != 0 && status) status = failure(path, errno);
    if (status && std::rename(unfinished.c_str(), path.c_str()) != 0) status = failure(path, errno);
    if (!status) std::remove(unfinished.c_str());
    return status;
}

}  // namespace tilewise
