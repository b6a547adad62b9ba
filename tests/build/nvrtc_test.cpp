// SPDX-License-Identifier: MIT
// CUDA kernels compiled by NVRTC, without a GPU. What needs NVRTC is skipped where there is none; tools/setup sees to it
// that there is one.
#include "build/nvrtc.hpp"

#include <elf.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "build/build_testing.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "run/kernel_code.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

constexpr const char* kNowhere = "/nonexistent/libnvrtc.so.13";
constexpr Elf64_Half kCuda = 190;

// Adds `value` to each of an array's elements.
BuildRequest adding(int value, const std::string& arch = "sm_90a") {
    BuildRequest request;
    request.name = "add_" + std::to_string(value);
    request.arch = arch;
    request.suffix = ".cubin";
    request.source =
        "extern \"C\" __global__ void tilewise_kernel(float* a) { a[threadIdx.x] += " + std::to_string(value) + "; }\n";
    return request;
}

class NvrtcTest : public BuildTest {
protected:
    void SetUp() override {
        BuildTest::SetUp();
        if (const auto found = find_nvrtc("", std::nullopt); !found) GTEST_SKIP() << found.error().message;
    }
    // An error's message, or nothing when it went well.
    std::string failure(const BuildRequest& request) const {
        Builder builder(settings_);
        const auto kernel = builder.build(request);
        return kernel ? "" : kernel.error().message;
    }
};

Elf64_Ehdr elf_header(const std::string& path) {
    Elf64_Ehdr header{};
    const auto file = read_file(path);
    if (file && file->size() >= sizeof header) std::memcpy(&header, file->data(), sizeof header);
    return header;
}

// An older one refuses options that it does not know.
TEST(NvrtcCommand, HasTheOptionsThatItsVersionKnows) {
    const BuildRequest request = adding(1);
    for (const auto& [version, knows] : {std::pair{"12.8", false}, {"12.9", true}, {"12.10", true}, {"13.0", true}}) {
        const Toolchain toolchain{"libnvrtc.so", "nvrtc", version};
        const auto command = kNvrtcCompiler.command({request, "", toolchain, std::chrono::seconds(1)}, "");
        EXPECT_EQ(std::count(command.begin(), command.end(), "--minimal"), knows ? 1 : 0) << version;
    }
}

TEST_F(NvrtcTest, BuildsForEachArch) {
    Builder builder(settings_);
    std::vector<std::string> contents;
    for (const char* arch : {"sm_90a", "sm_80"}) {
        const auto kernel = builder.build(adding(1, arch));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(kernel->origin, KernelOrigin::built);
        EXPECT_EQ(kernel->path, entry(kernel->digest) + "/kernel.cubin");
        EXPECT_EQ(elf_header(kernel->path).e_machine, kCuda);
        contents.push_back(*read_file(kernel->path));
        EXPECT_NE(contents.back().find("tilewise_kernel"), std::string::npos);
        EXPECT_TRUE(kernel->manifest.compiler.starts_with("nvrtc 1")) << kernel->manifest.compiler;
        EXPECT_EQ(kernel->manifest.arch, arch);
    }
    EXPECT_NE(contents[0], contents[1]);
    EXPECT_TRUE(cache().verify().empty());
}

TEST_F(NvrtcTest, TheSecondRequestNeedsNoNvrtc) {
    ASSERT_EQ(failure(adding(2)), "");
    settings_.nvrtc = kNowhere;
    Builder builder(settings_);
    const auto kernel = builder.build(adding(2));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->origin, KernelOrigin::cache);
    EXPECT_TRUE(kernel->manifest.resources.has_value());
    EXPECT_NE(failure(adding(3)), "");
}

TEST_F(NvrtcTest, APackHoldsCubins) {
    std::vector<PackItem> items;
    {
        Builder builder(settings_);
        const auto kernel = builder.build(adding(4));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        items.push_back({kernel->manifest, kernel->path});
        ASSERT_TRUE(write_pack(items, at("kernels.pack")).ok());
    }
    settings_.cache_dir = at("another");
    settings_.nvrtc = kNowhere;
    settings_.packs = {at("kernels.pack")};
    Builder builder(settings_);
    const auto kernel = builder.build(adding(4));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->origin, KernelOrigin::pack);
    EXPECT_EQ(kernel->manifest, items[0].manifest);
}

BuildRequest as_ptx(BuildRequest request) {
    request.suffix = kPtx;
    return request;
}

TEST_F(NvrtcTest, PtxIsTextForAnyLaterChip) {
    Builder builder(settings_);
    const auto ptx = builder.build(as_ptx(adding(40, "sm_80")));
    ASSERT_TRUE(ptx.ok()) << ptx.error().message;
    EXPECT_EQ(ptx->path, entry(ptx->digest) + "/kernel.ptx");
    EXPECT_EQ(ptx->manifest.arch, "sm_80");
    EXPECT_TRUE(ptx->manifest.compiler.starts_with("nvrtc 1")) << ptx->manifest.compiler;
    const std::string text = *read_file(ptx->path);
    for (const char* word : {".version", ".target sm_80", ".visible .entry tilewise_kernel"}) {
        EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
    }
    EXPECT_EQ(text.find('\0'), std::string::npos);
    const auto cubin = builder.build(adding(40, "sm_80"));
    ASSERT_TRUE(cubin.ok()) << cubin.error().message;
    EXPECT_NE(cubin->digest, ptx->digest);
    EXPECT_TRUE(cache().verify().empty());
    EXPECT_NE(failure(as_ptx(adding(40, "sm_90a"))).find("no PTX for sm_90a"), std::string::npos);
    BuildRequest wrong = as_ptx(adding(41, "sm_80"));
    wrong.source += "error;";
    EXPECT_NE(failure(wrong).find("--gpu-architecture=compute_80"), std::string::npos) << failure(wrong);
}

// A kernel in the cache or in a pack that the driver cannot load counts as not being there.
TEST_F(NvrtcTest, KernelsOfANewerToolkitAreNotUsed) {
    const BuildRequest request = adding(42, "sm_80");
    const auto current = find_nvrtc("", std::nullopt);
    ASSERT_TRUE(current.ok());
    const int major = std::stoi(current->version);
    const auto build_here = [&](int driver_major) {
        BuildSettings here = settings_;
        here.driver_version = driver_major * 1000 + 990;
        return Builder(here).build(request);
    };
    // The same kernel, as if the next NVRTC had built it: in the cache, and in a pack.
    ASSERT_EQ(failure(request), "");
    const std::string digest = *digest_of(request);
    const std::string newer = "nvrtc " + std::to_string(major + 1) + ".0";
    const auto pretend_newer = [&] {
        Manifest manifest = cache().find(digest)->manifest;
        manifest.compiler = newer;
        ASSERT_TRUE(write_file(entry(digest) + "/manifest.json", manifest_json(manifest).dump(2)).ok());
    };
    pretend_newer();
    const auto item = cache().find(digest);
    ASSERT_TRUE(item.has_value());
    ASSERT_TRUE(write_pack(std::vector<PackItem>{{item->manifest, item->path}}, at("newer.pack")).ok());

    EXPECT_EQ(build_here(major + 1)->origin, KernelOrigin::cache) << "a driver that is new enough takes it";
    const auto rebuilt = build_here(major);
    ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().message;
    EXPECT_EQ(rebuilt->origin, KernelOrigin::built);
    EXPECT_EQ(rebuilt->manifest.compiler, "nvrtc " + current->version);
    EXPECT_EQ(cache().find(digest)->manifest.compiler, rebuilt->manifest.compiler) << "ours takes its place";
    EXPECT_EQ(build_here(major + 1)->origin, KernelOrigin::cache) << "and serves both";

    pretend_newer();
    settings_.nvrtc = kNowhere;
    settings_.packs = {at("newer.pack")};
    settings_.driver_version = major * 1000 + 990;
    Builder builder(settings_);
    EXPECT_TRUE(builder.needs_compiler(request));
    EXPECT_FALSE(builder.has_compiler(request));
    const std::string message = failure(request);
    for (const std::string& word : {newer, std::string("the cache"), at("newer.pack"), std::string("driver")}) {
        EXPECT_NE(message.find(word), std::string::npos) << word << "\n" << message;
    }
    EXPECT_EQ(cache().find(digest)->manifest.compiler, newer) << "what others may use stays";
    settings_.driver_version = (major + 1) * 1000;
    settings_.cache_dir = at("another");
    EXPECT_FALSE(Builder(settings_).needs_compiler(request));
    EXPECT_EQ(Builder(settings_).build(request)->origin, KernelOrigin::pack);
}

TEST(DriverLoads, CubinsByMajorVersionPtxByMinorToo) {
    EXPECT_TRUE(driver_loads(kCubin, 12, 9, 12040));
    EXPECT_FALSE(driver_loads(kPtx, 12, 9, 12040));
    EXPECT_TRUE(driver_loads(kPtx, 12, 4, 12040));
    for (const std::string_view suffix : {kCubin, kPtx}) {
        EXPECT_TRUE(driver_loads(suffix, 12, 9, 13000));
        EXPECT_FALSE(driver_loads(suffix, 13, 0, 12090));
    }
}

TEST(NvrtcVersion, IsReadWholeOrNotAtAll) {
    EXPECT_EQ(nvrtc_version("13.0"), std::pair(13, 0));
    for (const char* text : {"", "13", "x.0", "-1.0", "4294967309.0", "13.4294967296"}) {
        EXPECT_EQ(nvrtc_version(text), std::nullopt) << text;
    }
}

TEST_F(NvrtcTest, TellsWhatAKernelNeeds) {
    BuildRequest request = adding(5);
    Builder builder(settings_);
    const auto small = builder.build(request);
    ASSERT_TRUE(small.ok()) << small.error().message;
    ASSERT_TRUE(small->manifest.resources.has_value());
    EXPECT_GT(small->manifest.resources->registers, 0);
    EXPECT_EQ(small->manifest.resources->shared_bytes, 0);
    EXPECT_EQ(small->manifest.resources->local_bytes, 0);
    request.source =
        "extern \"C\" __global__ void tilewise_kernel(float* a, int n) {\n"
        "    __shared__ float s[128];\n"
        "    float kept[200];\n"  // at an index that is not known ahead, thus not in registers
        "    for (int i = 0; i < 200; ++i) kept[i] = a[i * n];\n"
        "    s[threadIdx.x] = kept[n];\n"
        "    __syncthreads();\n"
        "    a[threadIdx.x] = s[threadIdx.x ^ 1];\n"
        "}\n";
    const auto large = builder.build(request);
    ASSERT_TRUE(large.ok()) << large.error().message;
    ASSERT_TRUE(large->manifest.resources.has_value());
    EXPECT_EQ(large->manifest.resources->shared_bytes, 512);
    EXPECT_EQ(large->manifest.resources->local_bytes, 800);
    const auto parsed = parse_manifest(manifest_json(large->manifest), "x");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(*parsed, large->manifest);
}

TEST_F(NvrtcTest, AnErrorComesWithOptionsLogAndSource) {
    BuildRequest request = adding(6);
    request.source += "static_assert(sizeof(int) == 5, \"no such int\");\n";
    const std::string message = failure(request);
    const std::string folder = settings_.cache_dir + "/failed/" + *digest_of(request);
    for (const std::string& word : {std::string("add_6"), std::string("nvrtc 1"), std::string("no such int"),
                                    std::string("--gpu-architecture=sm_90a"), std::string("-std=c++20"), folder}) {
        EXPECT_NE(message.find(word), std::string::npos) << word << "\n" << message;
    }
    EXPECT_EQ(*read_file(folder + "/entry/source.cpp"), request.source);
    EXPECT_NE(read_file(folder + "/log.txt")->find("no such int"), std::string::npos);
    EXPECT_NE(read_file(folder + "/command.txt")->find("-default-device"), std::string::npos);
    EXPECT_NE(failure(adding(6, "sm_1")).find("sm_1"), std::string::npos) << "an arch it does not know";
}

// Headers include each other by where they are, and each other twice; NVRTC knows them by one name.
TEST_F(NvrtcTest, HeadersFindEachOther) {
    const std::vector<EmbeddedFile> files = {
        {"kernels/common/two.hpp", "#pragma once\nconstexpr int two = 2;\n"},
        {"kernels/cuda/a.hpp", "#pragma once\n#include \"b.hpp\"\n#include \"../common/two.hpp\"\n"},
        {"kernels/cuda/b.hpp",
         "#pragma once\n#include \"../cuda/../common/two.hpp\"  // again\nint b() { return two; }\n"},
        {"kernels/cuda/bad.hpp", "#include \"b.hpp\"\n\nnonsense;\n"}};
    const KernelHeaders headers(files);
    EXPECT_EQ(headers.with_rooted_includes(files[1].text, "cuda/a.hpp"),
              "#pragma once\n#include \"cuda/b.hpp\"\n#include \"common/two.hpp\"\n");
    const auto toolchain = find_nvrtc("", std::nullopt);
    ASSERT_TRUE(toolchain.ok());
    BuildRequest request = adding(7);
    const auto compile = [&](const std::string& source, const std::string& folder) {
        request.source = source + "extern \"C\" __global__ void tilewise_kernel(int* a) { *a = b() + two; }\n";
        fs::create_directory(at(folder));
        return compile_kernel({request, std::string(64, '0'), *toolchain, 30s, {}, headers}, at(folder));
    };
    const auto good = compile("#include \"cuda/a.hpp\"\n#include \"cuda/b.hpp\"\n", "good");
    EXPECT_TRUE(std::holds_alternative<Manifest>(good)) << std::get<CompileFault>(good).message;
    const auto bad = compile("#include \"cuda/bad.hpp\"\n", "bad");
    ASSERT_TRUE(std::holds_alternative<CompileFault>(bad));
    EXPECT_NE(std::get<CompileFault>(bad).message.find("cuda/bad.hpp(3)"), std::string::npos)
        << std::get<CompileFault>(bad).message;
}

TEST_F(NvrtcTest, TheSameBytesWhereverAndWheneverItIsBuilt) {
    std::set<std::string> contents;
    for (const char* name : {"one", "another-place"}) {
        settings_.cache_dir = at(name);
        Builder builder(settings_);
        const auto kernel = builder.build(adding(8));
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        contents.insert(*read_file(kernel->path));
    }
    EXPECT_EQ(contents.size(), 1U);
    EXPECT_EQ(contents.begin()->find(root_), std::string::npos) << "where it was built is in the kernel";
}

TEST_F(NvrtcTest, ManyThreads) {
    Builder builder(settings_);
    std::vector<BuildRequest> requests;
    for (int i = 0; i < 8; ++i) requests.push_back(adding(10 + i / 2, i % 2 == 0 ? "sm_90a" : "sm_80"));
    requests[5].source = "error";
    EXPECT_TRUE(builder.has_compiler(requests[0]));
    const auto built = builder.build_all(requests, 4);
    for (std::size_t i = 0; i < built.size(); ++i) EXPECT_EQ(built[i].ok(), i != 5) << i;
    EXPECT_EQ(cache().stats().entries, 7);
}

TEST_F(NvrtcTest, AForkWhileCompiling) {
    Builder builder(settings_);
    BuildRequest slow = adding(20);
    for (int i = 0; i < 20; ++i) {
        slow.source +=
            "extern \"C\" __global__ void k" + std::to_string(i) +
            "(float* a, int n) { float l[90]; for (int i = 0; i < 90; ++i) l[i] = a[i * n]; a[n] = l[n]; }\n";
    }
    std::thread thread([&] { EXPECT_TRUE(builder.build(slow).ok()); });
    std::this_thread::sleep_for(100ms);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(builder.build(adding(21)).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    thread.join();
}

TEST_F(NvrtcTest, TakesTooLong) {
    const auto found = find_nvrtc("", std::nullopt);
    ASSERT_TRUE(found.ok());
    if (!load_nvrtc(found->path)->set_callback) GTEST_SKIP() << "NVRTC " << found->version << " cannot be stopped";
    settings_.compile_limit = 1ms;
    EXPECT_NE(failure(adding(22)).find("TILEWISE_COMPILE_TIMEOUT_S"), std::string::npos);
}

// A program that has no time left does not wait for what it began to build.
TEST_F(NvrtcTest, EndsWhenNobodyWantsIt) {
    const auto found = find_nvrtc("", std::nullopt);
    ASSERT_TRUE(found.ok());
    std::atomic<bool> stop{true};
    settings_.stop = &stop;
    EXPECT_NE(failure(adding(24)).find("it was stopped"), std::string::npos);
    stop = false;
    EXPECT_TRUE(Builder(settings_).build(adding(24)).ok());

    if (!load_nvrtc(found->path)->set_callback) return;
    BuildRequest slow = adding(25);
    slow.source +=
        "template <int N> __device__ float sum(float x) { return sum<N - 1>(x * N) + sum<N - 2>(x); }\n"
        "template <> __device__ float sum<0>(float x) { return x; }\n"
        "template <> __device__ float sum<1>(float x) { return x + 1; }\n"
        "extern \"C\" __global__ void slow(float* a) { a[0] = sum<26>(a[1]); }\n";
    std::jthread alarm([&] { std::this_thread::sleep_for(100ms), stop = true; });
    EXPECT_NE(failure(slow).find("it was stopped"), std::string::npos);
}

// Reading, optimizing and assembling are each stopped somewhere; the process goes on, and the next kernel is built.
TEST_F(NvrtcTest, StoppedAtAnyMoment) {
    const auto found = find_nvrtc("", std::nullopt);
    ASSERT_TRUE(found.ok());
    if (!load_nvrtc(found->path)->set_callback) GTEST_SKIP() << "NVRTC " << found->version << " cannot be stopped";
    const auto config = parse_kernel_name(
        "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x128x64_2x1x1_64x128x16_va8_vb8_vc8_stages6_splitk2_pw1@sm_90a");
    const auto request = build_request(*config, arch_named("sm_90a"), kCubin);
    ASSERT_TRUE(request.ok()) << request.error().message;
    for (const auto limit : {200ms, 500ms, 700ms, 900ms}) {
        settings_.compile_limit = limit;
        const auto built = Builder(settings_).build(*request);
        if (built) break;  // a fast machine
        EXPECT_NE(built.error().message.find("TILEWISE_COMPILE_TIMEOUT_S"), std::string::npos) << built.error().message;
    }
    settings_.compile_limit = 60s;
    const auto built = Builder(settings_).build(*request);
    EXPECT_TRUE(built.ok()) << built.error().message;
}

// What a driver cannot load is not built for it.
TEST_F(NvrtcTest, NoNewerThanTheDriver) {
    const auto found = find_nvrtc("", std::nullopt);
    ASSERT_TRUE(found.ok());
    const int major = std::stoi(found->version);
    EXPECT_EQ(*find_nvrtc("", major * 1000), *found) << "a later minor version of the same major one is fine";
    for (const std::string& wanted : {found->path, std::string()}) {
        const auto refused = find_nvrtc(wanted, 11080);
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().message.find("CUDA 11.8 at most"), std::string::npos) << refused.error().message;
    }
    settings_.driver_version = 11080;
    EXPECT_NE(failure(adding(23)).find("CUDA 11.8"), std::string::npos);
}

class NoNvrtcTest : public BuildTest {};

TEST_F(NoNvrtcTest, SaysWhatIsMissingAndTheWayOut) {
    settings_.nvrtc = kNowhere;
    Builder builder(settings_);
    const auto kernel = builder.build(adding(30));
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::toolchain);
    for (const char* word : {"add_30", kNowhere, "TILEWISE_NVRTC", "pip install nvidia-cuda-nvrtc", "pack"}) {
        EXPECT_NE(kernel.error().message.find(word), std::string::npos) << word << "\n" << kernel.error().message;
    }
    EXPECT_NE(find_nvrtc("libm.so.6", std::nullopt).error().message.find("no NVRTC"), std::string::npos);
}

TEST_F(NoNvrtcTest, LooksInPythonPackages) {
    const std::string lib = at("venv/lib/python3.11/site-packages/nvidia/");
    for (const char* file : {"cu12/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12",
                             "cu13/lib/libnvrtc-builtins.so.13.0", "cu13/lib/libnvrtc.alt.so.13"}) {
        fs::create_directories(fs::path(lib + file).parent_path());
        std::ofstream(lib + file) << "x";
    }
    const Variable variable("VIRTUAL_ENV", at("venv"));
    std::vector<std::string> ours;
    for (const std::string& place : nvrtc_places()) {
        if (place.starts_with(root_)) ours.push_back(place.substr(lib.size()));
    }
    EXPECT_EQ(ours, (std::vector<std::string>{"cu13/lib/libnvrtc.so.13", "cu12/lib/libnvrtc.so.12",
                                              "cuda_nvrtc/lib/libnvrtc.so.12"}));
}

TEST(KernelResources, TheMostThatAKernelOfTheFileNeeds) {
    EXPECT_EQ(resources_from_log("ptxas info    : Function properties for other\n"
                                 "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
                                 "ptxas info    : Used 10 registers, used 1 barriers, 360 bytes cmem[0]\n"
                                 "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                                 "ptxas info    : Used 168 registers, 1024 bytes smem, 364 bytes cmem[0]\n"),
              (KernelResources{168, 1024, 16}));
    EXPECT_EQ(resources_from_log(""), std::nullopt);
    EXPECT_EQ(resources_from_log("many registers, few bytes smem"), std::nullopt);
}

TEST(Manifest, ResourcesMayBeMissingButNotWrong) {
    Manifest manifest;
    manifest.digest = manifest.sha256 = std::string(64, '0');
    manifest.kernel = manifest.arch = manifest.compiler = manifest.created = "x";
    manifest.file = "kernel.cubin";
    manifest.size = 1;
    EXPECT_EQ(*parse_manifest(manifest_json(manifest), "x"), manifest);
    manifest.resources = KernelResources{40, 512, 0};
    EXPECT_EQ(*parse_manifest(manifest_json(manifest), "x"), manifest);
    manifest.resources->registers = 0;
    EXPECT_NE(parse_manifest(manifest_json(manifest), "x").error().message.find("resources.registers"),
              std::string::npos);
}

}  // namespace
}  // namespace tilewise
