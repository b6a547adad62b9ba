// SPDX-License-Identifier: MIT
#include "build/build_request.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tilewise {
namespace {

std::vector<EmbeddedFile> some_headers() {
    return {{"arch/x.json", "{}"},
            {"kernels/common/args.hpp", "#pragma once\nint args;\n"},
            {"kernels/cpu/gemm.hpp",
             "  #  include \"tile.hpp\"\n// #include \"nothing.hpp\"\n#include \"common/args.hpp\"\n"},
            {"kernels/cpu/tile.hpp", "#pragma once\n#include \"../cpu/gemm.hpp\"\nint tile;\n"},
            {"kernels/cpu/unused.hpp", "int unused;\n"},
            {"kernels/cuda/bad.hpp", "#include <cuda.h>\n"}};
}

BuildRequest some_request() {
    return {"name", "#include \"cpu/gemm.hpp\"\nint x;\n", {"-mavx2", "-mfma"}, "cpu-avx2", ".so"};
}

std::string digest(const BuildRequest& request, const std::vector<EmbeddedFile>& files = some_headers()) {
    const auto found = digest_of(request, KernelHeaders(files));
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? *found : "";
}

TEST(KernelHeaders, FollowsIncludesThroughTheirFoldersAndOnce) {
    const auto files = some_headers();
    const KernelHeaders headers(files);
    const auto found = headers.included_by("#include \"cpu/gemm.hpp\"");
    ASSERT_TRUE(found.ok()) << found.error().message;
    std::vector<std::string> paths;
    for (const KernelHeader* header : *found) paths.push_back(header->path());
    EXPECT_EQ(paths, (std::vector<std::string>{"common/args.hpp", "cpu/gemm.hpp", "cpu/tile.hpp"}));
    EXPECT_TRUE(headers.included_by("int x;")->empty());
}

TEST(KernelHeaders, AnythingElseIsAnError) {
    const auto files = some_headers();
    const KernelHeaders headers(files);
    for (const char* source : {"#include <vector>", "#include \"cpu/missing.hpp\"", "#include \"cuda/bad.hpp\"",
                               "#include MACRO", "#include \"arch/x.json\"", "#include \"../cpu/gemm.hpp\""}) {
        const auto found = headers.included_by(source);
        ASSERT_FALSE(found.ok()) << source;
        EXPECT_EQ(found.error().code, ErrorCode::toolchain);
    }
    EXPECT_NE(headers.included_by("#include \"cuda/bad.hpp\"").error().message.find("cuda/bad.hpp includes <cuda.h>"),
              std::string::npos);
}

TEST(BuildRequest, EveryIngredientChangesTheDigest) {
    std::set<std::string> digests = {digest(some_request())};
    const auto differs = [&](const BuildRequest& request, const std::vector<EmbeddedFile>& files = some_headers()) {
        return digests.insert(digest(request, files)).second;
    };
    BuildRequest request = some_request();
    request.source += " ";
    EXPECT_TRUE(differs(request));
    request = some_request();
    request.flags = {"-mfma", "-mavx2"};
    EXPECT_TRUE(differs(request));
    request.flags = {"-mavx2-mfma"};
    EXPECT_TRUE(differs(request));
    request = some_request();
    request.arch = "cpu-avx512";
    EXPECT_TRUE(differs(request));
    request = some_request();
    request.suffix = ".cubin";
    EXPECT_TRUE(differs(request));
    auto files = some_headers();
    files[3].text = "#pragma once\n#include \"gemm.hpp\"\nint other;\n";
    EXPECT_TRUE(differs(some_request(), files)) << "a header included by a header";
}

TEST(BuildRequest, NothingElseDoes) {
    BuildRequest request = some_request();
    request.name = "another";
    EXPECT_EQ(digest(request), digest(some_request())) << "kernels that differ in name only share their code";
    auto files = some_headers();
    files[4].text = "int changed;";
    EXPECT_EQ(digest(some_request(), files), digest(some_request())) << "a header that is not included";
    EXPECT_TRUE(is_digest(digest(some_request())));
}

TEST(BuildRequest, NonsenseIsRefused) {
    for (const char* suffix : {"", ".", "so", "./so", ".s/o", ".SO"}) {
        BuildRequest request = some_request();
        request.suffix = suffix;
        EXPECT_FALSE(digest_of(request, KernelHeaders(some_headers())).ok()) << suffix;
    }
    BuildRequest nameless = some_request();
    nameless.name.clear();
    EXPECT_FALSE(digest_of(nameless, KernelHeaders(some_headers())).ok());
    EXPECT_FALSE(is_digest("abc"));
    EXPECT_FALSE(is_digest(std::string(64, 'G')));
}

}  // namespace
}  // namespace tilewise
