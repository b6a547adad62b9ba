// SPDX-License-Identifier: MIT
#include "base/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tilewise {

Result<std::string> read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    std::string text;
    if (file) {
        char buffer[1 << 16];
        std::size_t count = 0;
        while ((count = std::fread(buffer, 1, sizeof buffer, file.get())) > 0) text.append(buffer, count);
        if (!std::ferror(file.get())) return text;
    }
    return usage_error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
}

}  // namespace tilewise
