// SPDX-License-Identifier: MIT
// Code of the fake HIP runtime. An object is judged by its own header and metadata, as a loader would. It cannot be run here, but its
// source lies beside it in the cache; that is compiled for the emulated GPU, and each launch runs this twin.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "build/amdgpu_object.hpp"
#include "build/builder.hpp"
#include "build/code_suffix.hpp"
#include "device/emulated/calls.hpp"
#include "device/emulated/grid.hpp"
#include "device/hip/fake_state.hpp"
#include "family/gpu/gpu_source.hpp"

namespace fake_hip {
namespace {

using namespace tilewise;

// The flags of objects; those of the chips that the tests name.
constexpr std::pair<std::string_view, unsigned> kChips[] = {{"gfx90a", 0x3f}, {"gfx942", 0x4c}, {"gfx950", 0x4f}};
constexpr unsigned char kAmdOsAbi = 64, kOldestAbi = 3;  // code objects of version 5

HipResult refuse(HipResult code, std::string why) {
    state().fault = std::move(why);
    return code;
}

// A loader gets no size: the section headers are the last thing in the file.
std::string_view whole(const unsigned char* image) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    return {reinterpret_cast<const char*>(image), header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr)};
}

bool is_for(const unsigned char* image, const std::string& arch) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    const auto chip = std::find_if(std::begin(kChips), std::end(kChips), [&](auto& c) { return c.first == arch; });
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == kAmdGpuMachine &&
           header.e_ident[EI_OSABI] == kAmdOsAbi && header.e_ident[EI_ABIVERSION] >= kOldestAbi &&
           chip != std::end(kChips) && (header.e_flags & 0xff) == chip->second;
}

Result<std::string> build_twin(std::string_view image, const std::string& arch) {
    auto settings = build_settings();
    if (!settings) return settings.error();
    const std::string wanted = sha256_hex(image);
    const KernelCache cache(settings->cache_dir);
    for (const CacheEntry& entry : cache.ls()) {
        if (entry.manifest.sha256 != wanted) continue;
        const auto source = read_file(entry.path.substr(0, entry.path.rfind('/')) + "/source.cpp");
        if (!source) return source.error();
        BuildRequest request;
        request.name = entry.manifest.kernel;
        request.source = emulated_source(*source, Backend::hip);
        request.arch = arch;
        request.suffix = kEmulatedCode;
        Builder builder(std::move(*settings));
        auto built = builder.build(request);
        return built ? Result<std::string>(built->path) : Result<std::string>(built.error());
    }
    return usage_error("the object is not in the cache, which has its source");
}

unsigned number_of(const Json& json, std::string_view key) {
    const Json* value = json.find(key);
    return value && value->integer() ? static_cast<unsigned>(*value->integer()) : 0;
}

bool is_given(const Json& argument) {
    const Json* kind = argument.find(".value_kind");
    return kind && kind->string() && !kind->string()->starts_with("hidden_");
}

void add_kernel(FakeModule& module, const Json& json) {
    auto kernel = std::make_unique<FakeKernel>();
    kernel->module = &module;
    kernel->name = *json.find(".name")->string();
    kernel->twin = dlsym(module.twin, kernel->name.c_str());
    kernel->most_threads = number_of(json, ".max_flat_workgroup_size");
    kernel->shared_bytes = number_of(json, ".group_segment_fixed_size");
    for (const Json& argument : *json.find(".args")->array()) {
        if (is_given(argument)) kernel->argument_bytes += number_of(argument, ".size");
    }
    module.kernels.emplace(kernel->name, std::move(kernel));
}

void call_twin(const void* bound) {
    const auto& launch = *static_cast<const FakeLaunch*>(bound);
    reinterpret_cast<void (*)(KernelArgs)>(launch.kernel->twin)(launch.args);
}

}  // namespace

HipResult load_module(const unsigned char* image, std::unique_ptr<FakeModule>& module) {
    const std::string& arch = device().arch;
    if (!is_for(image, arch)) return refuse(kNoBinary, "the image is no code object for " + arch);
    const auto kernels = amdgpu_kernels(whole(image));
    if (!kernels) return refuse(kNoBinary, kernels.error().message);
    const auto path = build_twin(whole(image), arch);
    if (!path) return refuse(kNoBinary, path.error().message);
    module = std::make_unique<FakeModule>();
    module->device = current_device();
    module->twin = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module->twin) return refuse(kNoBinary, dlerror());
    module->machine = static_cast<Machine**>(dlsym(module->twin, "tilewise_machine"));
    for (const Json& kernel : *kernels->array()) add_kernel(*module, kernel);
    return kSuccess;
}

HipResult run_launch(const FakeLaunch& launch) {
    FakeState& all = state();
    Machine calls = emulated::machine_calls();
    *launch.kernel->module->machine = &calls;
    emulated::GridSpec grid;
    grid.blocks = launch.blocks, grid.threads = static_cast<int>(launch.threads);
    grid.shared_bytes = launch.shared_bytes;
    grid.lanes = emulated::kMostLanes;
    grid.seed = all.seed++;
    grid.call = call_twin, grid.kernel = &launch;
    FakeDevice& on = all.devices[static_cast<std::size_t>(launch.kernel->module->device)];
    const auto status = emulated::Grid(grid, calls, all.stacks, on.memory).run();
    return status ? kSuccess : refuse(kLaunchFailure, status.error().message);
}

}  // namespace fake_hip
