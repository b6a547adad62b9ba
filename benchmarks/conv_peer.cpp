// SPDX-License-Identifier: MIT
#include "benchmarks/conv_peer.hpp"

#include <memory>

#include "problem/facts.hpp"

namespace tilewise::bench {
namespace {

using Sizes = std::vector<std::int64_t>;

Sizes sizes_of(const Extents& extents) { return {extents.size.begin(), extents.size.begin() + extents.rank}; }

// N, C, then pixels are the dimensions; channels are neighbours in memory.
Result<MemoryDesc> describe_activation(const OnednnApi& api, DType type, std::int64_t images, std::int64_t channels,
                                       const Extents& pixels) {
    Sizes sizes = {images, channels}, strides = {0, 1};
    std::int64_t step = channels;
    for (int i = pixels.rank - 1; i >= 0; --i) {
        sizes.insert(sizes.begin() + 2, pixels[i]);
        strides.insert(strides.begin() + 2, step);
        step *= pixels[i];
    }
    strides[0] = step;
    return MemoryDesc::make(api, type, sizes, strides);
}

// Groups where there is more than one, output channels, input channels, taps; GKYXC, or in any form.
Result<MemoryDesc> describe_weights(const OnednnApi& api, DType type, const ConvShape& conv, bool any_form) {
    const std::int64_t c = conv.c / conv.g, k = conv.k / conv.g;
    Sizes sizes = {k, c}, strides = {0, 1};
    std::int64_t step = c;
    for (int i = conv.filter.rank - 1; i >= 0; --i) {
        sizes.insert(sizes.begin() + 2, conv.filter[i]);
        strides.insert(strides.begin() + 2, step);
        step *= conv.filter[i];
    }
    strides[0] = step;
    if (conv.g > 1) {
        sizes.insert(sizes.begin(), conv.g);
        strides.insert(strides.begin(), step * k);
    }
    if (any_form) strides.clear();
    return MemoryDesc::make(api, type, sizes, strides);
}

// The tensors by what they are in the forward pass, which the operands of the direction are or are the gradients of.
struct ConvViews {
    MatrixView x, w, y;
};
ConvViews views_of(const Tensors& t) {
    switch (t.problem().op) {
        case Op::conv_bwd_data: return {t.c(), t.b(), t.a()};
        case Op::conv_bwd_weight: return {t.b(), t.c(), t.a()};
        default: return {t.a(), t.b(), t.c()};
    }
}

class Conv {
public:
    Conv(const OnednnEngine& engine, const Tensors& tensors)
        : engine_(engine), problem_(tensors.problem()), views_(views_of(tensors)) {}

    Status prepare(bool any_form) {
        const ConvShape& conv = problem_.conv;
        const OnednnApi& api = engine_.api();
        auto x = describe_activation(api, views_.x.type, conv.n, conv.c, conv.in);
        auto y = describe_activation(api, views_.y.type, conv.n, conv.k, output_size(conv));
        auto w = describe_weights(api, views_.w.type, conv, any_form);
        auto plain_w = describe_weights(api, views_.w.type, conv, false);
        if (!x || !y || !w || !plain_w) return unsupported_error("oneDNN has no such type");
        if (auto status = create(x->get(), w->get(), y->get()); !status) return status;
        x_ = engine_.memory(x->get(), views_.x.data);
        y_ = engine_.memory(y->get(), views_.y.data);
        plain_w_ = w_ = engine_.memory(plain_w->get(), views_.w.data);
        if (any_form) {
            if (auto status = use_own_form(plain_w->get()); !status) return status;
        }
        set_args();
        return {};
    }

    std::string implementation() const {
        const char* name = "";
        engine_.api().query(conv_.desc.get(), kImplementationQuery, 0, &name);
        return name;
    }
    // Weights into the form the primitive reads, or gradients back from it.
    void reorder() const {
        if (reorder_.handle) engine_.execute(reorder_, reorder_args_);
    }
    void run() const { engine_.execute(conv_, args_); }

private:
    Status create(ConstHandle x, ConstHandle w, ConstHandle y) {
        const ConvShape& conv = problem_.conv;
        const Sizes strides = sizes_of(conv.stride), before = sizes_of(conv.pad_before),
                    after = sizes_of(conv.pad_after);
        Sizes dilates = sizes_of(conv.dilation);
        for (std::int64_t& dilation : dilates) --dilation;
        const ConvGeometry geometry = {strides.data(), dilates.data(), before.data(), after.data()};
        const OnednnApi& api = engine_.api();
        Handle desc = nullptr;
        int status = api.make_conv_forward(&desc, engine_.handle(), x, w, y, geometry);
        if (status != kOk) return onednn_failed("making the convolution", status);
        if (problem_.op != Op::conv_fwd) {
            const Handle forward = desc;
            status = problem_.op == Op::conv_bwd_data
                         ? api.make_conv_backward_data(&desc, engine_.handle(), x, w, y, geometry, forward)
                         : api.make_conv_backward_weights(&desc, engine_.handle(), x, w, y, geometry, forward);
            api.primitive_desc_destroy(forward);
            if (status != kOk) return onednn_failed("making the convolution", status);
        }
        auto made = engine_.primitive(desc);
        if (!made) return made.error();
        conv_ = std::move(*made);
        return {};
    }

    Status use_own_form(ConstHandle plain) {
        const bool is_output = problem_.op == Op::conv_bwd_weight;
        ConstHandle wanted =
            engine_.api().query_desc(conv_.desc.get(), is_output ? kDiffWeightsQuery : kWeightsQuery, 0);
        w_ = engine_.memory(wanted);
        auto made = is_output ? engine_.reorder(wanted, plain) : engine_.reorder(plain, wanted);
        if (!made) return made.error();
        reorder_ = std::move(*made);
        reorder_args_ = {ExecArg{kSource, (is_output ? w_ : plain_w_).get()},
                         {kDestination, (is_output ? plain_w_ : w_).get()}};
        return {};
    }

    void set_args() {
        switch (problem_.op) {
            case Op::conv_bwd_data:
                args_ = {ExecArg{kDiffSource, x_.get()}, {kWeights, w_.get()}, {kDiffDestination, y_.get()}};
                break;
            case Op::conv_bwd_weight:
                args_ = {ExecArg{kSource, x_.get()}, {kDiffWeights, w_.get()}, {kDiffDestination, y_.get()}};
                break;
            default: args_ = {ExecArg{kSource, x_.get()}, {kWeights, w_.get()}, {kDestination, y_.get()}}; break;
        }
    }

    OnednnEngine engine_;
    Problem problem_;
    ConvViews views_;
    Primitive conv_, reorder_;
    std::shared_ptr<void> x_, y_, w_, plain_w_;
    std::array<ExecArg, 3> args_{};
    std::array<ExecArg, 2> reorder_args_{};
};

// Plain loops, which take a hundred times as long: not worth waiting for where there is anything else.
bool is_reference(const Conv& conv) { return conv.implementation().starts_with("ref"); }

BoundConv with_reorder(const std::shared_ptr<Conv>& conv, bool weights_are_output) {
    return {conv->implementation() + " + reorder",
            [conv, weights_are_output](int) {
                if (!weights_are_output) conv->reorder();
                conv->run();
                if (weights_are_output) conv->reorder();
            },
            [] {}};
}

}  // namespace

std::vector<BoundConv> bind_conv(const OnednnEngine& engine, const Tensors& tensors, bool packed) {
    std::vector<BoundConv> ways;
    const bool weights_are_output = tensors.problem().op == Op::conv_bwd_weight;
    const auto own = std::make_shared<Conv>(engine, tensors);
    const bool has_own = own->prepare(true).ok();
    if (packed) {
        if (!has_own) return ways;
        if (!weights_are_output) own->reorder();
        ways.push_back({own->implementation(), [own](int) { own->run(); },
                        [own, weights_are_output] {
                            if (weights_are_output) own->reorder();
                        }});
        return ways;
    }
    const auto plain = std::make_shared<Conv>(engine, tensors);
    if (plain->prepare(false).ok() && !(has_own && is_reference(*plain))) {
        ways.push_back({plain->implementation(), [plain](int) { plain->run(); }, [] {}});
    }
    if (has_own) ways.push_back(with_reorder(own, weights_are_output));
    return ways;
}

}  // namespace tilewise::bench
