// SPDX-License-Identifier: MIT
// Planning for every arch, without building anything: problems whose sizes, strides, dilations and pads are small, odd or extreme, and
// the kernels of the rule sets, changed or not. Whatever fits can be launched, and a plain problem that a machine can hold has a kernel.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/bounded_product.hpp"
#include "config/config_name.hpp"
#include "config/geometry.hpp"
#include "config/rules.hpp"
#include "config/workspace.hpp"
#include "family/family.hpp"
#include "family/launch_plan.hpp"
#include "family/may_run.hpp"
#include "family/problem_to_run.hpp"
#include "problem/empty_problem.hpp"
#include "problem/operand_specs.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "run/executable.hpp"
#include "select/select.hpp"
#include "tape.hpp"

std::vector<std::string> fuzz_seeds() {
    std::vector<std::string> seeds;
    std::uint64_t state = 1;
    for (int i = 0; i < 256; ++i) {
        std::string& seed = seeds.emplace_back();
        for (int byte = 0; byte < 80; ++byte) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            seed += static_cast<char>(state >> 56);
        }
    }
    return seeds;
}

namespace {

using namespace tilewise;

constexpr DType kInputs[] = {DType::fp16, DType::bf16, DType::fp32, DType::fp8, DType::bf8, DType::int8};

// Small ones mostly: a problem with many large sizes is refused before it is planned.
std::int64_t extent(Tape& tape) {
    switch (tape.below(16)) {
        case 0: return std::int64_t{1} << tape.below(49);
        case 1: return (std::int64_t{1} << tape.below(49)) + static_cast<std::int64_t>(tape.below(3)) - 1;
        case 2: return std::int64_t{tape.byte()} * tape.byte() * 8;
        case 3: return std::int64_t{tape.byte()} * 8;
        case 4: return tape.byte();
        default: return 1 + static_cast<std::int64_t>(tape.below(8));
    }
}
// Around what 32 bits hold, and far beyond.
std::int64_t far(Tape& tape) {
    constexpr std::size_t kLeastBits = 28, kMostBits = 46;
    const std::size_t bits = kLeastBits + tape.below(kMostBits - kLeastBits);
    return (std::int64_t{1} << bits) + static_cast<std::int64_t>(tape.below(5)) - 2;
}
std::int64_t channels(Tape& tape) {
    constexpr std::int64_t kUsual[] = {1, 3, 4, 8, 16, 32, 64, 96, 128, 256};
    return tape.often() ? tape.one_of(kUsual) : extent(tape);
}

void read_gemm(Problem& p, Tape& tape) {
    constexpr Layout kLayouts[] = {Layout::rcr, Layout::rrr, Layout::crr, Layout::ccr,
                                   Layout::rcc, Layout::rrc, Layout::crc, Layout::ccc};
    GemmShape& s = p.gemm;
    s.m = channels(tape), s.n = channels(tape), s.k = channels(tape), s.batch = tape.often() ? 1 : extent(tape);
    p.layout = tape.one_of(kLayouts);
    for (auto* strides : {&s.leading, &s.batch_stride}) {
        for (std::int64_t& stride : *strides) stride = tape.often() ? kPacked : extent(tape);
    }
}

void read_conv(Problem& p, Tape& tape) {
    ConvShape& s = p.conv;
    const int rank = 1 + static_cast<int>(tape.below(kMaxSpatialDims));
    s.in = s.filter = s.stride = s.dilation = filled(rank, 1), s.pad_before = s.pad_after = filled(rank, 0);
    s.n = extent(tape), s.g = tape.often() ? 1 : channels(tape);
    for (std::int64_t* all : {&s.c, &s.k}) *all = bounded_product({s.g, tape.often() ? channels(tape) : 1});
    const bool extreme = tape.below(2) == 0;
    for (int d = 0; d < rank; ++d) {
        s.in[d] = extent(tape), s.filter[d] = 1 + static_cast<std::int64_t>(tape.below(5));
        if (tape.often()) s.stride[d] = 1 + static_cast<std::int64_t>(tape.below(3));
        if (tape.often()) s.pad_before[d] = s.pad_after[d] = s.filter[d] / 2;
        if (!extreme) continue;
        s.stride[d] = tape.below(2) == 0 ? far(tape) : extent(tape);
        s.dilation[d] = tape.below(2) == 0 ? far(tape) : extent(tape);
        const std::int64_t reach = bounded_product({s.filter[d] - 1, s.dilation[d]});
        s.pad_before[d] = tape.often() ? reach : extent(tape), s.pad_after[d] = tape.often() ? 0 : s.stride[d];
        if (!tape.often()) s.filter[d] = extent(tape);
    }
    p.layout = channels_last(rank);
    if (!tape.often()) p.layout = static_cast<Layout>(static_cast<int>(p.layout) + kMaxSpatialDims);
}

// Whether options were added that not every set of kernels has to have.
bool read_options(Problem& p, Tape& tape) {
    if (tape.often()) return false;
    constexpr Math kMath[] = {Math::strict, Math::fast, Math::tf32, Math::tf32x3};
    constexpr Scale kScales[] = {Scale::none, Scale::tensor, Scale::row};
    if (tape.often()) p.math = tape.one_of(kMath);
    p.beta = tape.often(), p.scale = tape.one_of(kScales), p.deterministic = tape.often();
    if (!tape.often()) p.epilogue = {EpilogueOp::bias, EpilogueOp::gelu};
    if (!tape.often()) p.epilogue.insert(p.epilogue.end(), {EpilogueOp::add, EpilogueOp::mul});
    if (!tape.often()) p.workspace_bytes = extent(tape) - 1;
    if (!tape.often()) p.align_bytes = std::int64_t{1} << tape.below(13);
    p.packed_b = !tape.often();
    return true;
}

const Registry& kernels_for(const Problem& p, const ArchSpec& arch, RuleSet set) {
    static std::map<std::tuple<std::string, Op, DType, RuleSet>, Registry> known;
    const auto [at, is_new] = known.try_emplace({arch.name, p.op, p.dtype_a, set});
    if (is_new) {
        auto list = list_kernels(query_for(p, arch, set));
        require(list.ok(), "rule sets expand");
        at->second.add(std::move(*list));
    }
    return at->second;
}

// A broken promise is printed with the problem and the kernel that broke it.
void require_for(const Problem& p, const KernelConfig& c, bool holds, const char* what) {
    if (!holds) std::fprintf(stderr, "%s\n%s\n", print_problem(p).c_str(), kernel_name(c).c_str());
    require(holds, what);
}

void check_launch(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int threads) {
    const auto promise = [&](bool holds, const char* what) { require_for(p, c, holds, what); };
    if (!find_family(c, arch)) return;
    const auto plan = launch_plan(p, c, arch, threads);
    promise(plan && plan->workspace_bytes >= 0, "there is a plan, without negative memory");
    if (const CpuParts* parts = plan->cpu())
        return promise(!parts->run.empty() && parts->threads >= 1, "somebody does the work");
    const GpuGrid& grid = *plan->gpu();
    promise(grid.blocks >= 1 && grid.block.threads >= 1, "there are blocks");
    promise(grid.block.threads <= arch.max_threads && grid.block.shared_bytes <= arch.shared_bytes, "that can start");
    promise(std::min({grid.reduce_blocks, grid.pack_blocks, grid.pack_b_blocks, grid.raster_group}) >= 0, "no fewer");
}

// A number of the config becomes another; the rules say whether it still is one.
void change(KernelConfig& c, Tape& tape) {
    constexpr int kNumbers[] = {0, 1, 2, 3, 4, 7, 8, 16, 32, 64, 128, 256, 1024, 65536};
    int* const fields[] = {&c.tile.m,      &c.tile.n,      &c.tile.k,         &c.wave.m,         &c.wave.n,
                           &c.wave.k,      &c.vector_a,    &c.vector_b,       &c.vector_c,       &c.stages,
                           &c.split_k,     &c.cluster.m,   &c.cluster.n,      &c.raster_group,   &c.num_groups_to_merge,
                           &c.warp_tile.m, &c.warp_tile.n, &c.producer_waves, &c.blocks_per_unit};
    bool* const flags[] = {&c.persistent, &c.split_image, &c.explicit_gemm,     &c.two_stage,
                           &c.swap_ab,    &c.cluster_k,   &c.double_smem_buffer};
    constexpr Gather kGathers[] = {Gather::plain, Gather::async, Gather::tensor, Gather::halo, Gather::columns};
    for (std::size_t i = tape.below(3) + 1; i > 0; --i) {
        switch (tape.below(4)) {
            case 0: *tape.one_of(flags) ^= true; break;
            case 1: c.gather = tape.one_of(kGathers); break;
            default: *tape.one_of(fields) = tape.one_of(kNumbers);
        }
    }
}

// Lanes of AMD GPUs have offsets of 32 bits from a tile's first element, so that long lines leave no room for a tile (rule fit_plan).
bool has_far_lines(const Problem& p) {
    constexpr std::int64_t kFarBytes = std::int64_t{1} << 24;
    const auto operands = operand_specs(p);
    return std::ranges::any_of(operands, [](const OperandSpec& one) {
        return std::ranges::any_of(one.strides,
                                   [&](std::int64_t stride) { return stride >= kFarBytes / bytes_of(one.dtype); });
    });
}

// So many bytes are in no machine's memory, and so many residue classes of backward data in no layer.
bool is_beyond_machines(const Problem& p) {
    double bytes = 0, classes = 1;
    for (const OperandSpec& operand : operand_specs(p)) {
        const double elements =
            static_cast<double>(operand.strides.front()) * static_cast<double>(operand.shape.front());
        bytes += elements * static_cast<double>(bytes_of(operand.dtype));
    }
    for (int d = 0; d < p.conv.in.rank; ++d) {
        const bool is_one = output_size(p.conv)[d] == 1 || p.op != Op::conv_bwd_data;
        classes *= is_one ? 1 : static_cast<double>(std::min(p.conv.stride[d], p.conv.in[d]));
    }
    constexpr double kMostBytes = 2e11, kMostClasses = 1e6;
    return bytes > kMostBytes || classes > kMostClasses;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto archs = ArchCatalog::embedded();
    require(archs.ok(), "embedded archs read");
    Tape tape(data, size);
    const ArchSpec& arch = archs->archs()[tape.below(archs->archs().size())];
    const RuleSet set = tape.often() ? RuleSet::standard : RuleSet::tiny;
    Problem p;
    p.op = tape.one_of(kAllOps);
    p.dtype_a = p.dtype_b = tape.one_of(kInputs), p.dtype_out = default_output(p.dtype_a);
    p.op == Op::gemm ? read_gemm(p, tape) : read_conv(p, tape);
    const bool has_options = read_options(p, tape);
    if (check_problem(p)) return 0;
    if (is_empty(p)) {
        p = stand_in(p);
        if (check_problem(p)) return 0;
    }
    const int threads = 1 + tape.byte() * (tape.often() ? 1 : tape.byte());
    const Registry& kernels = kernels_for(p, arch, set);
    const Selection selection = select_kernel(p, kernels, arch, threads);
    const bool must_have_one = !has_options && kernels.size() > 0 && has_families(arch.backend, p.op) &&
                               set == RuleSet::standard && !is_beyond_machines(p) &&
                               !(arch.backend == Backend::hip && has_far_lines(p));
    if (must_have_one && !selection.plan) {
        std::fprintf(stderr, "%s on %s: %s\n", print_problem(p).c_str(), arch.name.c_str(),
                     why_none(selection).c_str());
        require(false, "a plain problem has a kernel");
    }
    for (const Candidate& candidate : selection.candidates) {
        const KernelConfig& config = candidate.kernel->config;
        if (candidate.predicted_us) require_for(p, config, *candidate.predicted_us > 0, "everything takes time");
        const auto other = problem_to_run(p, config, arch);
        check_launch(other ? other->problem : p, config, arch, threads);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(16, selection.candidates.size()); ++i) {
        KernelConfig config = selection.candidates[i].kernel->config;
        change(config, tape);
        if (!is_valid(config, arch) || !has_code(config, arch) || !may_run(ProblemView(p), config, arch)) continue;
        check_launch(p, config, arch, threads);
    }
    return 0;
}
