// SPDX-License-Identifier: MIT
#include "measure/check_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "build/code_suffix.hpp"
#include "build/gpu_request.hpp"
#include "measure/device_memory.hpp"

namespace tilewise {
namespace {

// The reference calls functions of mathematics in double precision, which clang does not have for AMD GPUs.
constexpr std::array<bool, kAllBackends.size()> kHasReference = {false, true, false};  // cpu, cuda, hip

// How the factors of an operation are read.
struct ReferenceSource {
    std::string_view name, header, operands;
};
constexpr std::array<ReferenceSource, EnumNames<Op>::names.size()> kReferences = {
    {{"reference", "gpu/reference.hpp", "MatrixOperands"},
     {"reference_fwd", "gpu/conv_reference.hpp", "ForwardOperands"},
     {"reference_bwd_data", "gpu/conv_reference.hpp", "BackwardDataOperands"},
     {"reference_bwd_weight", "gpu/conv_reference.hpp", "BackwardWeightOperands"}}};
static_assert(static_cast<int>(Op::gemm) == 0 && static_cast<int>(Op::conv_fwd) == 1 &&
              static_cast<int>(Op::conv_bwd_data) == 2 && static_cast<int>(Op::conv_bwd_weight) == 3);

constexpr int kFillBlocksPerUnit = 8;

constexpr std::size_t kParameterBytes = std::max(sizeof(BufferTask), sizeof(CheckParameters));

}  // namespace

bool has_check_kernels(const ArchSpec& arch) { return kHasReference[static_cast<std::size_t>(arch.backend)]; }

BuildRequest fill_request(const ArchSpec& arch) {
    return gpu_request(arch, code_of(arch.backend).suffix, "check_fill",
                       "#include \"gpu/fill.hpp\"\n\nTILEWISE_GPU_FILL()\n");
}

BuildRequest reference_request(const ArchSpec& arch, Op op, bool with_squares) {
    const ReferenceSource& source = kReferences[static_cast<std::size_t>(op)];
    return gpu_request(arch, code_of(arch.backend).suffix,
                       fmt::format("check_{}{}", source.name, with_squares ? "_squares" : ""),
                       fmt::format("#include \"{}\"\n\nTILEWISE_GPU_REFERENCE({}, {})\n", source.header, with_squares,
                                   source.operands));
}

Result<CheckKernel> CheckKernel::make(Device& device, Builder& builder, BuildRequest request, int blocks) {
    request.suffix = device.code_suffix();
    auto built = builder.build(request);
    if (!built) return built.error();
    auto code = device.load(*built);
    if (!code) return code.error();
    GpuGrid grid;
    grid.blocks = blocks;
    grid.block.threads = kCheckThreads;
    CheckKernel kernel;
    kernel.device_ = &device;
    kernel.blocks_ = blocks;
    auto launch = device.prepare(std::move(*code), KernelArgs{}, grid);
    if (!launch) return launch.error();
    kernel.launch_ = std::move(*launch);
    auto memory = device_memory(device, kParameterBytes);
    if (!memory) return memory.error();
    kernel.parameters_ = std::move(*memory);
    return kernel;
}

Result<CheckKernel> CheckKernel::make_fill(Device& device, Builder& builder) {
    const ArchSpec& arch = device.arch();
    return make(device, builder, fill_request(arch), kFillBlocksPerUnit * arch.units);
}

Status CheckKernel::run_with(KernelArgs args, void* parameters, std::size_t bytes) const {
    args.workspace = parameters_.get();
    auto status = device_->copy(parameters_.get(), parameters, bytes, kDefaultStream);
    if (status) status = launch_->run(args, kDefaultStream);
    if (status) status = device_->copy(parameters, parameters_.get(), bytes, kDefaultStream);
    return status;
}

}  // namespace tilewise
