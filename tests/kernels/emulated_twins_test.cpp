// SPDX-License-Identifier: MIT
// Every function of the CUDA instructions (kernels/cuda/primitives.hpp, hopper.hpp) has its twin for the host in
// kernels/emulate: one that is added without it would be found missing by whoever emulates a kernel next.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "base/embedded.hpp"

namespace tilewise {
namespace {

std::set<std::string> functions_of(std::string_view path) {
    std::set<std::string> names;
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path != path) continue;
        const std::string text(file.text);
        const std::regex function(R"(TILEWISE_DEVICE [^;{}()=]*?(\w+)\()");
        for (auto at = std::sregex_iterator(text.begin(), text.end(), function); at != std::sregex_iterator(); ++at) {
            names.insert((*at)[1]);
        }
    }
    return names;
}

TEST(EmulatedTwins, EveryInstructionHasOne) {
    for (const std::string file : {"primitives.hpp", "hopper.hpp"}) {
        const auto have = functions_of("kernels/emulate/" + file), need = functions_of("kernels/cuda/" + file);
        EXPECT_GT(need.size(), 20U) << file;
        for (const std::string& name : need) EXPECT_TRUE(have.contains(name)) << file << ": " << name;
    }
}

}  // namespace
}  // namespace tilewise
