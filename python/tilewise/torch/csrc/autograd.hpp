// SPDX-License-Identifier: MIT
// The gradients of the ops. Each backward calls ops through the dispatcher, so that it has gradients as well, and tracing
// sees it. Sizes stay symbols where they are.
#pragma once

#include <ATen/FuncTorchTLS.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "conv.hpp"
#include "operands.hpp"

namespace tilewise_torch {

using c10::SymInt;
using c10::SymIntArrayRef;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// ---- the ops as the dispatcher has them ----

using GemmCall = at::Tensor(const at::Tensor&, const at::Tensor&, std::string_view, const OptionalTensor&,
                            std::string_view);
using LinearCall = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
                              std::string_view);
using ConvCall = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
                            SymIntArrayRef, SymIntArrayRef, SymIntArrayRef, SymIntArrayRef, SymInt, std::string_view);
using DataCall = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, SymIntArrayRef, SymIntArrayRef,
                            SymIntArrayRef, SymIntArrayRef, SymIntArrayRef, SymInt, std::string_view);
using WeightCall = at::Tensor(const at::Tensor&, const at::Tensor&, SymIntArrayRef, SymIntArrayRef, SymIntArrayRef,
                              SymIntArrayRef, SymIntArrayRef, SymInt);

template <class Call>
c10::TypedOperatorHandle<Call> find_op(const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Call>();
}

inline const auto& gemm_op() {
    static const auto op = find_op<GemmCall>("tilewise::gemm");
    return op;
}
inline const auto& linear_op() {
    static const auto op = find_op<LinearCall>("tilewise::linear");
    return op;
}
inline const auto& conv_op() {
    static const auto op = find_op<ConvCall>("tilewise::conv");
    return op;
}
inline const auto& data_op() {
    static const auto op = find_op<DataCall>("tilewise::conv_backward_data");
    return op;
}
inline const auto& weight_op() {
    static const auto op = find_op<WeightCall>("tilewise::conv_backward_weight");
    return op;
}

// The same with the gradients that are Python's (_autograd.py), in both directions.
inline const auto& python_gemm_op() {
    static const auto op = find_op<GemmCall>("tilewise::_python_gemm");
    return op;
}
inline const auto& python_linear_op() {
    static const auto op = find_op<LinearCall>("tilewise::_python_linear");
    return op;
}
inline const auto& python_conv_op() {
    static const auto op = find_op<ConvCall>("tilewise::_python_conv");
    return op;
}
inline const auto& python_data_op() {
    static const auto op = find_op<DataCall>("tilewise::_python_conv_backward_data");
    return op;
}
inline const auto& python_weight_op() {
    static const auto op = find_op<WeightCall>("tilewise::_python_conv_backward_weight");
    return op;
}

// ---- what every gradient asks ----

inline bool records(const at::Tensor& x) { return x.defined() && x.requires_grad(); }
inline bool records(const OptionalTensor& x) { return x && records(*x); }

template <class... Tensors>
bool needs_gradient(const Tensors&... tensors) {
    return at::GradMode::is_enabled() && (records(tensors) || ...);
}

// Forward-mode gradients are Python's to compute; a result without its tangent would be silently wrong.
inline bool is_dual(const at::Tensor& x) { return x.defined() && x._fw_grad(/*level=*/0).defined(); }
inline bool is_dual(const OptionalTensor& x) { return x && is_dual(*x); }

template <class... Tensors>
bool has_tangent(const Tensors&... tensors) {
    return (is_dual(tensors) || ...);
}

// torch refuses C++ functions under torch.func's transforms; this says the way out.
inline void refuse_transforms(const char* op) {
    const auto& transforms = at::functorch::functorchTLSAccessor();
    if (!transforms) return;
    try {
        transforms->checkSupportsCppAutogradFunction();
    } catch (const c10::Error&) {
        TORCH_CHECK_NOT_IMPLEMENTED(false, "torch.ops.tilewise.", op,
                                    " is not for torch.func; call tilewise.torch's functions");
    }
}

constexpr char kGeometry[] = "geometry";      // stride, before, after, dilation and groups, in one list
constexpr char kActivation[] = "activation";  // where there is one
constexpr char kBias[] = "bias";              // where there is one
constexpr char kLayout[] = "layout";
constexpr std::size_t kBiasEdge = 2;  // after the two tensors that every op has

inline void save_epilogue(AutogradContext* ctx, const OptionalTensor& bias, std::string_view activation) {
    if (has(bias)) ctx->saved_data[kBias] = true;
    if (!activation.empty()) ctx->saved_data[kActivation] = std::string(activation);
}

inline bool bias_needs_gradient(AutogradContext* ctx) {
    return ctx->saved_data.count(kBias) != 0 && ctx->needs_input_grad(kBiasEdge);
}

inline void refuse_activation(AutogradContext* ctx) {
    const auto found = ctx->saved_data.find(kActivation);
    TORCH_CHECK(
        found == ctx->saved_data.end(), "the fused activation '", found->second.toStringRef(),
        "' has no gradient; call tilewise.torch's functions, which fuse none where a gradient is needed, or apply "
        "the activation after the op");
}

// The bias's gradient: dy summed over every dimension but `kept`.
inline at::Tensor summed_but(const at::Tensor& dy, int64_t kept) {
    c10::SmallVector<int64_t, 5> dims;
    for (int64_t i = 0; i < dy.dim(); ++i) {
        if (i != kept) dims.push_back(i);
    }
    return dims.empty() ? dy : dy.sum(at::IntArrayRef(dims));
}

// A gradient in the memory format of the result that it belongs to, so that those that follow from it are as torch's.
inline at::Tensor formatted(const at::Tensor& gradient, const at::Tensor& a, const at::Tensor& b) {
    if (gradient.dim() <= 3) return gradient;
    return gradient.contiguous(wants_last(a, b) ? last_format(gradient.dim() - 2) : at::MemoryFormat::Contiguous);
}

class SavedGeometry {
public:
    static void save(AutogradContext* ctx, SymIntArrayRef stride, SymIntArrayRef before, SymIntArrayRef after,
                     SymIntArrayRef dilation, const SymInt& groups) {
        c10::SmallVector<SymInt, 13> all;
        for (const SymIntArrayRef list : {stride, before, after, dilation}) all.append(list.begin(), list.end());
        all.push_back(groups);
        ctx->saved_data[kGeometry] = c10::IValue(SymIntArrayRef(all.data(), all.size()));
    }

    explicit SavedGeometry(AutogradContext* ctx)
        : all_(ctx->saved_data[kGeometry].toSymIntVector()), dims_((all_.size() - 1) / 4) {}

    SymIntArrayRef stride() const { return part(0); }
    SymIntArrayRef before() const { return part(1); }
    SymIntArrayRef after() const { return part(2); }
    SymIntArrayRef dilation() const { return part(3); }
    const SymInt& groups() const { return all_.back(); }

private:
    SymIntArrayRef part(std::size_t index) const { return SymIntArrayRef(all_).slice(index * dims_, dims_); }

    std::vector<SymInt> all_;
    std::size_t dims_;
};

inline at::Tensor call_conv(const at::Tensor& x, const at::Tensor& w, const SavedGeometry& g) {
    return conv_op().call(x, w, {}, {}, g.stride(), g.before(), g.after(), g.dilation(), g.groups(), "");
}
inline at::Tensor call_data(const at::Tensor& dy, const at::Tensor& w, const at::Tensor& like, const SavedGeometry& g) {
    return data_op().call(dy, w, {}, like.sym_sizes().slice(2), g.stride(), g.before(), g.after(), g.dilation(),
                          g.groups(), "");
}
inline at::Tensor call_weight(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& like,
                              const SavedGeometry& g) {
    return weight_op().call(x, dy, like.sym_sizes().slice(2), g.stride(), g.before(), g.after(), g.dilation(),
                            g.groups());
}

// ---- products ----

inline char flipped(char letter) { return letter == 'r' ? 'c' : 'r'; }

// Summed over the batch that an operand was shared by.
inline at::Tensor as_shape(const at::Tensor& gradient, const at::Tensor& like) {
    if (gradient.dim() > like.dim()) return gradient.sum(0);
    const bool shared = like.dim() == 3 && like.sym_size(0) != gradient.sym_size(0);
    return shared ? gradient.sum(at::IntArrayRef{0}, /*keepdim=*/true) : gradient;
}

struct GemmGradient : torch::autograd::Function<GemmGradient> {
    static constexpr bool is_traceable = true;

    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b, std::string_view layout,
                              const OptionalTensor& bias, std::string_view activation) {
        ctx->save_for_backward({a, b});
        ctx->saved_data[kLayout] = std::string(layout);
        save_epilogue(ctx, bias, activation);
        const at::AutoDispatchBelowADInplaceOrView below;
        return gemm_op().call(a, b, layout, bias, activation);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
        refuse_activation(ctx);
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &a = saved[0], &b = saved[1], &dc = gradients[0];
        const std::string layout = ctx->saved_data[kLayout].toStringRef();
        const char la = layout[0], lb = layout[1], lc = layout[2];
        variable_list result(5);
        if (ctx->needs_input_grad(0)) {
            result[0] = as_shape(gemm_op().call(dc, b, std::string{lc, flipped(lb), la}, {}, ""), a);
        }
        if (ctx->needs_input_grad(1)) {
            result[1] = as_shape(gemm_op().call(a, dc, std::string{flipped(la), lc, lb}, {}, ""), b);
        }
        if (bias_needs_gradient(ctx)) result[3] = summed_but(dc, dc.dim() - (lc == 'r' ? 1 : 2));
        return result;
    }
};

inline at::Tensor gemm_with_gradient(const at::Tensor& a, const at::Tensor& b, std::string_view layout,
                                     const OptionalTensor& bias, std::string_view activation) {
    if (has_tangent(a, b, bias)) return python_gemm_op().call(a, b, layout, bias, activation);
    if (needs_gradient(a, b, bias)) {
        refuse_transforms("gemm");
        return GemmGradient::apply(a, b, layout, bias, activation);
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    return gemm_op().call(a, b, layout, bias, activation);
}

struct LinearGradient : torch::autograd::Function<LinearGradient> {
    static constexpr bool is_traceable = true;

    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                              const OptionalTensor& bias, const OptionalTensor& d, std::string_view activation) {
        ctx->save_for_backward({x, weight});
        save_epilogue(ctx, bias, activation);
        const at::AutoDispatchBelowADInplaceOrView below;
        return linear_op().call(x, weight, bias, d, activation);
    }

    // As a product of matrices: x (..., in) is one of many rows.
    static at::Tensor rows(const at::Tensor& x) {
        return x.dim() == 1 ? x.unsqueeze(0) : x.dim() == 2 ? x : x.flatten(0, -2);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
        refuse_activation(ctx);
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1];
        const at::Tensor dy = rows(gradients[0]);
        variable_list result(5);
        if (ctx->needs_input_grad(0)) {
            result[0] = gemm_op().call(dy, weight, "rrr", {}, "");
            if (x.dim() != 2) result[0] = result[0].reshape_symint(x.sym_sizes());
        }
        if (ctx->needs_input_grad(1)) result[1] = gemm_op().call(dy, rows(x), "crr", {}, "");
        if (bias_needs_gradient(ctx)) result[2] = summed_but(dy, 1);
        return result;
    }
};

inline at::Tensor linear_with_gradient(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                                       const OptionalTensor& d, std::string_view activation) {
    if (has_tangent(x, weight, bias, d)) return python_linear_op().call(x, weight, bias, d, activation);
    if (needs_gradient(x, weight, bias, d)) {
        refuse_transforms("linear");
        return LinearGradient::apply(x, weight, bias, d, activation);
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    return linear_op().call(x, weight, bias, d, activation);
}

// ---- convolutions ----

struct ConvGradient : torch::autograd::Function<ConvGradient> {
    static constexpr bool is_traceable = true;

    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w,
                              const OptionalTensor& bias, const OptionalTensor& d, SymIntArrayRef stride,
                              SymIntArrayRef before, SymIntArrayRef after, SymIntArrayRef dilation,
                              const SymInt& groups, std::string_view activation) {
        ctx->save_for_backward({x, w});
        SavedGeometry::save(ctx, stride, before, after, dilation, groups);
        save_epilogue(ctx, bias, activation);
        const at::AutoDispatchBelowADInplaceOrView below;
        return conv_op().call(x, w, bias, d, stride, before, after, dilation, groups, activation);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
        refuse_activation(ctx);
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &w = saved[1];
        const at::Tensor dy = formatted(gradients[0], x, w);
        const SavedGeometry geometry(ctx);
        variable_list result(10);
        if (ctx->needs_input_grad(0)) result[0] = call_data(dy, w, x, geometry);
        if (ctx->needs_input_grad(1)) result[1] = call_weight(x, dy, w, geometry);
        if (bias_needs_gradient(ctx)) result[2] = summed_but(dy, 1);
        return result;
    }
};

inline at::Tensor conv_with_gradient(const at::Tensor& x, const at::Tensor& w, const OptionalTensor& bias,
                                     const OptionalTensor& d, SymIntArrayRef stride, SymIntArrayRef before,
                                     SymIntArrayRef after, SymIntArrayRef dilation, SymInt groups,
                                     std::string_view activation) {
    if (has_tangent(x, w, bias, d))
        return python_conv_op().call(x, w, bias, d, stride, before, after, dilation, groups, activation);
    if (needs_gradient(x, w, bias, d)) {
        refuse_transforms("conv");
        return ConvGradient::apply(x, w, bias, d, stride, before, after, dilation, groups, activation);
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    return conv_op().call(x, w, bias, d, stride, before, after, dilation, groups, activation);
}

struct DataGradient : torch::autograd::Function<DataGradient> {
    static constexpr bool is_traceable = true;

    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& dy, const at::Tensor& w,
                              const OptionalTensor& bias, SymIntArrayRef input_size, SymIntArrayRef stride,
                              SymIntArrayRef before, SymIntArrayRef after, SymIntArrayRef dilation,
                              const SymInt& groups, std::string_view activation) {
        ctx->save_for_backward({dy, w});
        SavedGeometry::save(ctx, stride, before, after, dilation, groups);
        save_epilogue(ctx, bias, activation);
        const at::AutoDispatchBelowADInplaceOrView below;
        return data_op().call(dy, w, bias, input_size, stride, before, after, dilation, groups, activation);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
        refuse_activation(ctx);
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &dy = saved[0], &w = saved[1];
        const at::Tensor ddx = formatted(gradients[0], dy, w);
        const SavedGeometry geometry(ctx);
        variable_list result(10);
        if (ctx->needs_input_grad(0)) result[0] = call_conv(ddx, w, geometry);
        if (ctx->needs_input_grad(1)) result[1] = call_weight(ddx, dy, w, geometry);
        if (bias_needs_gradient(ctx)) result[2] = summed_but(ddx, 1);
        return result;
    }
};

inline at::Tensor data_with_gradient(const at::Tensor& dy, const at::Tensor& w, const OptionalTensor& bias,
                                     SymIntArrayRef input_size, SymIntArrayRef stride, SymIntArrayRef before,
                                     SymIntArrayRef after, SymIntArrayRef dilation, SymInt groups,
                                     std::string_view activation) {
    if (has_tangent(dy, w, bias))
        return python_data_op().call(dy, w, bias, input_size, stride, before, after, dilation, groups, activation);
    if (needs_gradient(dy, w, bias)) {
        refuse_transforms("conv_backward_data");
        return DataGradient::apply(dy, w, bias, input_size, stride, before, after, dilation, groups, activation);
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    return data_op().call(dy, w, bias, input_size, stride, before, after, dilation, groups, activation);
}

struct WeightGradient : torch::autograd::Function<WeightGradient> {
    static constexpr bool is_traceable = true;

    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& dy,
                              SymIntArrayRef filter_size, SymIntArrayRef stride, SymIntArrayRef before,
                              SymIntArrayRef after, SymIntArrayRef dilation, const SymInt& groups) {
        ctx->save_for_backward({x, dy});
        SavedGeometry::save(ctx, stride, before, after, dilation, groups);
        const at::AutoDispatchBelowADInplaceOrView below;
        return weight_op().call(x, dy, filter_size, stride, before, after, dilation, groups);
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &dy = saved[1], &ddw = gradients[0];
        const SavedGeometry geometry(ctx);
        variable_list result(8);
        if (ctx->needs_input_grad(0)) result[0] = call_data(dy, ddw, x, geometry);
        if (ctx->needs_input_grad(1)) result[1] = call_conv(x, ddw, geometry);
        return result;
    }
};

inline at::Tensor weight_with_gradient(const at::Tensor& x, const at::Tensor& dy, SymIntArrayRef filter_size,
                                       SymIntArrayRef stride, SymIntArrayRef before, SymIntArrayRef after,
                                       SymIntArrayRef dilation, SymInt groups) {
    if (has_tangent(x, dy)) return python_weight_op().call(x, dy, filter_size, stride, before, after, dilation, groups);
    if (needs_gradient(x, dy)) {
        refuse_transforms("conv_backward_weight");
        return WeightGradient::apply(x, dy, filter_size, stride, before, after, dilation, groups);
    }
    const at::AutoDispatchBelowADInplaceOrView below;
    return weight_op().call(x, dy, filter_size, stride, before, after, dilation, groups);
}

}  // namespace tilewise_torch
