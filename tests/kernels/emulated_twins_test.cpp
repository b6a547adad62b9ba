// SPDX-License-Identifier: MIT
// Every function of a GPU's instructions (kernels/cuda/primitives.hpp, hopper.hpp, kernels/hip/primitives.hpp) has its twin for the host in kernels/emulate,
// those that convert in kernels/gpu/conversions.hpp: one that is added without it would be found missing by whoever emulates a
// kernel next.
#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/embedded.hpp"

namespace tilewise {
namespace {

bool in_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The names between each TILEWISE_DEVICE and the parenthesis that follows, unless something else than a function begins there.
std::set<std::string> functions_in(std::string_view text) {
    constexpr std::string_view kMark = "TILEWISE_DEVICE ";
    std::set<std::string> names;
    for (std::size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at)) {
        at += kMark.size();
        const std::size_t end = text.find_first_of(";{}()=", at);
        if (end == std::string_view::npos || text[end] != '(') continue;
        std::size_t begin = end;
        while (in_a_name(text[begin - 1])) --begin;
        if (begin < end) names.emplace(text.substr(begin, end - begin));
    }
    return names;
}

std::set<std::string> functions_of(std::string_view path) {
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path == path) return functions_in(file.text);
    }
    return {};
}

TEST(EmulatedTwins, EveryInstructionHasOne) {
    for (const auto& [file, twin] : {std::pair<std::string, std::string>("cuda/primitives.hpp", "primitives.hpp"),
                                     {"cuda/hopper.hpp", "hopper.hpp"},
                                     {"hip/primitives.hpp", "hip.hpp"}}) {
        auto have = functions_of("kernels/emulate/" + twin);
        const auto need = functions_of("kernels/" + file);
        for (const char* shared : {"kernels/emulate/gpu.hpp", "kernels/gpu/conversions.hpp"}) {
            have.merge(functions_of(shared));
        }
        have.insert("tanhf");  // the host's own
        EXPECT_GT(need.size(), 20U) << file;
        for (const std::string& name : need) EXPECT_TRUE(have.contains(name)) << file << ": " << name;
    }
}

// Others would have no twin, and those of kernels/gpu would be one vendor's.
TEST(EmulatedTwins, InstructionsAreInTheirHeadersOnly) {
    for (const EmbeddedFile& file : embedded_files()) {
        const bool is_gpu = file.path.starts_with("kernels/cuda/") || file.path.starts_with("kernels/hip/");
        if (!is_gpu && !file.path.starts_with("kernels/gpu/")) continue;
        const bool may = file.path == "kernels/cuda/primitives.hpp" || file.path == "kernels/cuda/hopper.hpp" ||
                         file.path == "kernels/hip/primitives.hpp";
        bool has = false;
        for (const char* word :
             {"asm(", "asm volatile(", "threadIdx", "__shfl", "__byte_perm", "__dp4a", "__builtin_amdgcn"}) {
            has = has || file.text.find(word) != std::string_view::npos;
        }
        EXPECT_EQ(has, may) << file.path;
    }
}

}  // namespace
}  // namespace tilewise
