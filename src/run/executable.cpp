// SPDX-License-Identifier: MIT
#include "run/executable.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/activity.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "problem/empty_problem.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"
#include "problem/kernel_words.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

KernelMatrix gemm_matrix(const Problem& p, int operand) {
    const bool row = is_row(p.layout, operand);
    const Index leading = leading_stride(p, operand);
    return {nullptr, row ? leading : 1, row ? 1 : leading, batch_stride(p, operand)};
}

// The strides of A, B and C, where a convolution's operand is a matrix; an activation that is gathered has none.
void set_conv_matrices(KernelArgs& args, Op op, bool channels_last) {
    const KernelConv& conv = args.conv;
    const Index row = conv.filter[0] * conv.filter[1] * conv.filter[2] * conv.c;  // the weights of one output channel
    const auto output = [](const KernelActivation& t) {
        return KernelMatrix{nullptr, t.pixel_stride, t.channel_stride, t.group_stride};
    };
    if (op == Op::conv_fwd) args.b = {nullptr, 1, row, conv.k * row}, args.c = output(conv.y);
    if (op == Op::conv_bwd_data) args.c = output(conv.x);
    if (op == Op::conv_bwd_weight) args.c = {nullptr, row, 1, conv.k * row};
    if (op == Op::conv_bwd_weight) return;
    args.bias_batch_stride = args.n;
    const KernelActivation& out = op == Op::conv_fwd ? conv.y : conv.x;
    if (!channels_last) args.c_image_rows = args.m / conv.images, args.c_image_stride = out.image_stride;
}

KernelArgs make_args(const Problem& p, const KernelConfig& c) {
    KernelArgs args = problem_args(p);
    args.split_k = c.split_k;
    args.raster = static_cast<KernelRaster>(c.raster);
    return args;
}
static_assert(static_cast<int>(KernelRaster::hilbert) == static_cast<int>(Raster::hilbert));

void set_grid_args(KernelArgs& args, const GpuGrid& grid) {
    args.raster_group = grid.raster_group;
    if (grid.split_k > 0) args.split_k = grid.split_k;
    std::copy(grid.patch.begin(), grid.patch.end(), args.patch);
    args.set_family_args(grid.family_args);
    if (!grid.product) return;
    // A and B are plain matrices; C stays the problem's.
    const GemmView& v = *grid.product;
    args.m = v.m, args.n = v.n, args.k = v.k, args.batch = v.batch;
    args.a = {nullptr, v.k, 1, v.m * v.k}, args.b = {nullptr, v.n, 1, v.k * v.n};
}

Error missing(std::string_view what) {
    return usage_error(fmt::format("the operand {} is null; the problem needs it", what));
}

Result<std::shared_ptr<const Code>> load(const BuiltKernel& built, const std::string& name, Device& device) {
    Activity activity("load", name);
    auto code = device.load(built);
    if (activity.is_told()) activity.tell(code ? fmt::format("on {}", device.name()) : code.error().message);
    return code;
}

using Loaded = std::pair<BuiltKernel, std::shared_ptr<const Code>>;

// Another process may prune or replace the kernel between its building and its loading, which answers with a toolchain
// error where the file is not what was built; then it is looked for again, and built if need be. That this happens over and
// over means that the cache is too small to work with.
Result<Loaded> build_and_load(const BuildRequest& request, Device& device, Builder& builder) {
    constexpr int kAttempts = 3;
    std::string refused;  // why what was there before is no good
    for (int attempt = 1;; ++attempt) {
        auto built = builder.build(request);
        if (!built && refused.empty()) return built.error();
        if (!built) return Error{built.error().code, fmt::format("{}; {}", refused, built.error().message)};
        auto code = load(*built, request.name, device);
        if (code) return Loaded{std::move(*built), std::move(*code)};
        const bool is_gone = access(built->path.c_str(), F_OK) != 0;
        if (!is_gone && code.error().code != ErrorCode::toolchain) return code.error();
        refused = code.error().message;
        if (attempt == kAttempts) {
            return Error{
                ErrorCode::toolchain,
                fmt::format("kernel {} was built {} times, and each time its file was gone or changed before it "
                            "could be loaded: is another process clearing the cache, or is TILEWISE_CACHE_MAX "
                            "too small? {}",
                            request.name, kAttempts, code.error().message)};
        }
        // Another process may have put a good one there since; what is not good the second time is made anew.
        attempt == 1 ? builder.forget(built->digest) : builder.discard(built->digest);
    }
}

}  // namespace

KernelArgs problem_args(const Problem& p) {
    KernelArgs args{};
    const GemmView view = gemm_view(p);
    args.m = view.m, args.n = view.n, args.k = view.k, args.batch = view.batch;
    if (p.op == Op::gemm) {
        args.a = gemm_matrix(p, 0), args.b = gemm_matrix(p, 1), args.c = gemm_matrix(p, 2);
    } else {
        args.conv = kernel_conv(p);
        set_conv_matrices(args, p.op, is_channels_last(p.layout));
    }
    args.scale = kernel_scale(p.scale);
    for (std::size_t i = 0; i < p.epilogue.size(); ++i) args.epilogue[i] = kernel_op(p.epilogue[i]);
    args.split_k = 1;
    return args;
}

Result<Executable> Executable::prepare(const Problem& problem, const Kernel& kernel, Device& device, Builder& builder,
                                       const LaunchPlan* searched) {
    if (has_empty_result(problem)) {
        Executable ready;
        ready.built_.origin = KernelOrigin::none;
        ready.launches_nothing_ = true;
        return ready;
    }
    if (has_empty_sums(problem)) return prepare_zeroed(problem, kernel, device, builder);
    auto plan =
        searched ? std::optional(*searched) : launch_plan(problem, kernel.config, device.arch(), device.max_threads());
    if (!plan) {
        Rejected why;
        const auto other = problem_to_run(problem, kernel.config, device.arch(), &why);
        if (other) return prepare_padded(problem, *other, kernel, device, builder);
        return unsupported_error(fmt::format("{} may not run {}: rule {}: have {}; need {}", kernel.name,
                                             print_problem(problem), why.rule, why.have, why.need));
    }
    auto chosen = choose_code(problem, kernel.config, device, builder);
    if (!chosen) return chosen.error();
    auto loaded = build_and_load(chosen->request, device, builder);
    if (!loaded) return loaded.error();
    auto& [built, code] = *loaded;

    Executable ready;
    ready.built_ = std::move(built);
    if (!ready.built_.note.empty()) ready.notes_.push_back({"cache", ErrorCode::toolchain, ready.built_.note});
    if (chosen->falls_back) ready.notes_.push_back(epilogue_note(problem));
    ready.args_ = make_args(problem, kernel.config);
    if (const CpuParts* parts = plan->cpu()) {
        ready.threads_ = parts->threads;
        ready.how_ = fmt::format("{} thread{}", parts->threads, parts->threads == 1 ? "" : "s");
    }
    if (const GpuGrid* grid = plan->gpu()) {
        set_grid_args(ready.args_, *grid);
        ready.how_ = "launched";
    }
    ready.workspace_bytes_ = plan->workspace_bytes;
    ready.packed_b_bytes_ = plan->gpu() ? plan->gpu()->packed_b_bytes : code->packed_b_bytes(ready.args_);
    for (int i = 0; i < 3 && device.arch().is_gpu(); ++i) {
        ready.access_bytes_[static_cast<std::size_t>(i)] = static_cast<std::size_t>(access_bytes(kernel.config, i));
    }
    ready.note_operands(problem);
    ready.label_ = fmt::format("{} by {}", print_problem(problem), kernel.name);
    auto launch = device.prepare(std::move(code), ready.args_, std::move(*plan));
    if (!launch) return launch.error();
    ready.launch_ = std::move(*launch);
    return ready;
}

Result<Executable> Executable::prepare_padded(const Problem& problem, const PaddedProblem& padded, const Kernel& kernel,
                                              Device& device, Builder& builder) {
    auto inner = prepare(padded.problem, kernel, device, builder);
    if (!inner || !padded.note) return inner;  // what is not padded has the same operands
    Executable ready;
    ready.built_ = inner->built_;
    ready.notes_ = inner->notes_;
    ready.notes_.push_back(*padded.note);
    ready.threads_ = inner->threads_;
    auto kernel_ready = std::make_shared<const Executable>(std::move(*inner));
    ready.padded_ = std::make_shared<const PaddedLaunch>(padded.tensors, std::move(kernel_ready), device, builder);
    if (ready.padded_->note()) ready.notes_.push_back(*ready.padded_->note());
    ready.workspace_bytes_ = ready.padded_->workspace_bytes();
    ready.note_operands(problem);
    return ready;
}

Result<Executable> Executable::prepare_zeroed(const Problem& problem, const Kernel& kernel, Device& device,
                                              Builder& builder) {
    const Problem full = stand_in(problem);
    auto inner = prepare(full, kernel, device, builder);
    if (!inner) return inner.error();
    Executable ready;
    ready.built_ = inner->built_;
    ready.notes_ = inner->notes_;
    ready.threads_ = inner->threads_;
    ready.zeroed_ =
        std::make_shared<const ZeroedLaunch>(full, std::make_shared<const Executable>(std::move(*inner)), device);
    ready.workspace_bytes_ = ready.zeroed_->workspace_bytes();
    return ready;
}

void Executable::note_operands(const Problem& problem) {
    has_beta_ = problem.beta;
    has_bias_ = has_bias(problem);
    has_scales_ = problem.scale != Scale::none;
    d_count_ = d_count(problem);
    overlap_ = OverlapCheck(problem, workspace_bytes_, packed_b_bytes_);
}

// A GPU that meets a wide access off its boundary is lost to the whole process.
Status Executable::check_alignment(const Operands& o) const {
    const void* const pointers[] = {o.a, o.b, o.c};
    constexpr char kNames[] = {'a', 'b', 'c'};
    for (std::size_t i = 0; i < access_bytes_.size(); ++i) {
        if (reinterpret_cast<std::uintptr_t>(pointers[i]) % access_bytes_[i] == 0) continue;
        return usage_error(fmt::format(
            "the pointer of {} is no multiple of {} bytes, which the kernel needs; say align= in the problem",
            kNames[i], access_bytes_[i]));
    }
    return {};
}

Status Executable::check_operands(const Operands& o) const {
    if (!o.a || !o.b || !o.c) return missing(!o.a ? "a" : !o.b ? "b" : "c");
    if (has_bias_ && !o.bias) return missing("bias");
    if (has_scales_ && (!o.scale_a || !o.scale_b)) return missing(!o.scale_a ? "scale_a" : "scale_b");
    if (workspace_bytes_ > 0 && !o.workspace) {
        return usage_error(fmt::format("the workspace is null; the kernel needs {} bytes", workspace_bytes_));
    }
    if (!has_beta_ && o.beta != 0) return usage_error("beta is not 0, but the problem does not say beta=1");
    for (std::size_t i = 0; i < d_count_; ++i) {
        if (!o.d[i]) return missing(fmt::format("d[{}]", i));
    }
    if (auto status = check_alignment(o); !status) return status;
    return overlap_.check_launch(o);
}

void Executable::serve_until(std::shared_ptr<const Replacement> better, std::int64_t its_workspace_bytes, Note note) {
    better_ = std::move(better);
    workspace_bytes_ = std::max(workspace_bytes_, its_workspace_bytes);
    notes_.push_back(std::move(note));
}

Status Executable::launch(const Operands& o, Stream stream) const { return now().launch_this(o, stream); }

Status Executable::launch_this(const Operands& o, Stream stream) const {
    if (launches_nothing_) return {};
    if (zeroed_) return zeroed_->run(o, stream);  // what is given is checked where the kernel is launched
    if (auto status = check_operands(o); !status) return status;
    if (padded_) return padded_->run(o, stream);
    KernelArgs args = args_;
    args.a.data = const_cast<void*>(o.a);
    args.b.data = const_cast<void*>(o.b);
    args.c.data = o.c;
    args.bias = o.bias;
    for (std::size_t i = 0; i < d_count_; ++i) args.d[i] = o.d[i];
    args.scale_a = o.scale_a;
    args.scale_b = o.scale_b;
    args.alpha = o.alpha;
    args.beta = o.beta;
    args.workspace = o.workspace;
    Activity activity("run", label_);
    auto status = launch_->run(args, stream);
    if (activity.is_told()) activity.tell(status ? how_ : status.error().message);
    return status;
}

Json threads_json(const Executable& executable) {
    return executable.threads() > 0 ? Json(executable.threads()) : Json();
}

Status Executable::pack_b(const void* b, void* packed, Stream stream) const {
    if (launches_nothing_ || zeroed_) return {};
    if (padded_) return unsupported_error("the problem is padded for this kernel, which reads B as it is");
    if (auto status = overlap_.check_packing(b, packed); !status) return status;
    KernelArgs args = args_;
    args.b.data = const_cast<void*>(b);
    return launch_->pack_b(args, packed, stream);
}

}  // namespace tilewise
