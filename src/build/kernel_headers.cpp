// SPDX-License-Identifier: MIT
#include "build/kernel_headers.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kFolder = "kernels/";

// Finds what stands after #include in a line, or nothing.
std::string_view include_of(std::string_view line) {
    line = trim(line);
    if (!line.starts_with('#')) return {};
    line = trim(line.substr(1));
    constexpr std::string_view kWord = "include";
    return line.starts_with(kWord) ? trim(line.substr(kWord.size())) : std::string_view();
}

// Finds what stands between the quotes; nothing for any other kind of include.
std::string_view quoted(std::string_view include) {
    const std::size_t end = include.find('"', 1);
    if (!include.starts_with('"') || end == std::string_view::npos) return {};
    return include.substr(1, end - 1);
}

std::vector<std::string_view> includes_of(std::string_view text) {
    std::vector<std::string_view> found;
    for (const std::string_view line : split(text, '\n')) {
        if (const std::string_view include = include_of(line); !include.empty()) found.push_back(include);
    }
    return found;
}

}  // namespace

void KernelHeader::study() const {
    std::call_once(studied_, [this] {
        sha256_ = sha256_hex(text_);
        includes_ = includes_of(text_);
    });
}

const std::string& KernelHeader::sha256() const {
    study();
    return sha256_;
}

const std::vector<std::string_view>& KernelHeader::includes() const {
    study();
    return includes_;
}

KernelHeaders::KernelHeaders(std::span<const EmbeddedFile> files) {
    for (const EmbeddedFile& file : files) {
        if (!file.path.starts_with(kFolder)) continue;
        std::string path(file.path.substr(kFolder.size()));
        headers_.try_emplace(path, path, file.text);
    }
}

const KernelHeaders& KernelHeaders::embedded() {
    static const KernelHeaders headers(embedded_files());
    return headers;
}

// As the compiler finds it: beside the including file first, then from the root.
const KernelHeader* KernelHeaders::resolve(std::string_view include, std::string_view from) const {
    const std::filesystem::path beside = std::filesystem::path(from).parent_path() / include;
    for (const std::filesystem::path& path : {beside, std::filesystem::path(include)}) {
        const auto at = headers_.find(path.lexically_normal().string());  // "cpu/../common/args.hpp"
        if (at != headers_.end()) return &at->second;
    }
    return nullptr;
}

Result<std::vector<const KernelHeader*>> KernelHeaders::included_by(std::string_view source) const {
    std::map<std::string_view, const KernelHeader*> found;
    std::vector<std::pair<std::string_view, std::vector<std::string_view>>> unread = {{"", includes_of(source)}};
    while (!unread.empty()) {
        const auto [path, includes] = std::move(unread.back());
        unread.pop_back();
        for (const std::string_view include : includes) {
            const std::string_view name = quoted(include);
            const KernelHeader* header = name.empty() ? nullptr : resolve(name, path);
            if (!header) {
                return Error{ErrorCode::toolchain,
                             fmt::format("{} includes {}, which is none of the kernel headers in the library",
                                         path.empty() ? "the kernel's source" : path, include)};
            }
            if (found.emplace(header->path(), header).second) unread.emplace_back(header->path(), header->includes());
        }
    }
    std::vector<const KernelHeader*> headers;
    headers.reserve(found.size());
    for (const auto& [path, header] : found) headers.push_back(header);
    return headers;
}

std::string KernelHeaders::with_rooted_includes(std::string_view text, std::string_view path) const {
    std::string rooted;
    rooted.reserve(text.size());
    std::size_t copied = 0;
    for (const std::string_view include : includes_of(text)) {
        const std::string_view name = quoted(include);
        const KernelHeader* header = name.empty() ? nullptr : resolve(name, path);
        if (!header) continue;
        const auto at = static_cast<std::size_t>(name.data() - text.data());
        rooted += text.substr(copied, at - copied);
        rooted += header->path();
        copied = at + name.size();
    }
    rooted += text.substr(copied);
    return rooted;
}

}  // namespace tilewise
