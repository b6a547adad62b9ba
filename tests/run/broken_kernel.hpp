// SPDX-License-Identifier: MIT
// For tests that break kernels on purpose: a fault is a text of the templates that is replaced in the flat source, and a
// device that loads the broken kernel in the place of the one it is given.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "base/embedded.hpp"
#include "device/forwarding_device.hpp"

namespace tilewise {

struct Fault {
    std::string what;
    std::string text, instead;  // in the templates; the text is there once
    std::string problem;
};

inline void append_flat(const std::string& path, std::string_view text, std::set<std::string>& seen, std::string& out) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
        const std::string_view line = text.substr(begin, end - begin);
        begin = end;
        constexpr std::string_view kInclude = "#include \"";
        if (line.starts_with("#pragma once")) continue;
        if (!line.starts_with(kInclude)) {
            out += line;
            continue;
        }
        const std::string name(line.substr(kInclude.size(), line.rfind('"') - kInclude.size()));
        for (const EmbeddedFile& file : embedded_files()) {
            const std::string from_root = "kernels/" + name;
            const std::string beside = (folder / name).lexically_normal().string();
            if (file.path != from_root && file.path != beside) continue;
            if (seen.insert(std::string(file.path)).second) append_flat(std::string(file.path), file.text, seen, out);
        }
    }
}

// The source with everything it includes in its place, as the preprocessor would leave it.
inline std::string flat_source(const std::string& source) {
    std::string flat;
    std::set<std::string> seen;
    append_flat("", source, seen, flat);
    return flat;
}

// The request, of a flat source, with one text of the templates replaced.
inline BuildRequest changed(BuildRequest request, const Fault& fault) {
    const std::size_t at = request.source.find(fault.text);
    EXPECT_NE(at, std::string::npos) << fault.what << ": the templates no longer have: " << fault.text;
    if (at == std::string::npos) return request;
    EXPECT_EQ(request.source.find(fault.text, at + 1), std::string::npos) << fault.what << ": the text is there twice";
    request.source.replace(at, fault.text.size(), fault.instead);
    return request;
}

// Loads another kernel than it is given, as if the template had been written that way.
class OtherCode : public ForwardingDevice {
public:
    OtherCode(Device& device, const BuiltKernel& other) : ForwardingDevice(device), other_(other) {}
    Result<std::shared_ptr<const Code>> load(const BuiltKernel&) override { return ForwardingDevice::load(other_); }

private:
    const BuiltKernel& other_;
};

}  // namespace tilewise
