// SPDX-License-Identifier: MIT
// A convolution as its definition says it, in double, one product at a time: every tap of every output pixel adds what it
// contributes to the output of the direction. Operands are found by the shapes and strides that callers are told
// (problem/operand_specs.hpp). The tests hold the reference, and kernels' gradients, against it.
#pragma once

#include <vector>

#include "measure/element.hpp"
#include "measure/tensors.hpp"
#include "problem/facts.hpp"
#include "problem/operand_specs.hpp"

namespace tilewise {

// Where in a packed operand of a convolution elements are, counted as callers store them.
class PlainConv {
public:
    explicit PlainConv(const Problem& problem) : p_(problem), s_(problem.conv), out_(output_size(s_)) {
        const std::vector<OperandSpec> specs = operand_specs(problem);
        for (int i = 0; i < 3; ++i) {
            const OperandSpec& spec = specs[static_cast<std::size_t>(i)];
            (is_weight(p_.op, i) ? w_ : is_input(p_.op, i) ? x_ : y_) = spec.strides;
        }
    }

    // f(index in x, index in w, index in y) for every product there is.
    template <class Visit>
    void visit(const Visit& f) const {
        // Dimensions that the problem lacks are outermost, with one position each.
        const auto of = [&](const Extents& e, int d) {
            const int at = d - (kMaxSpatialDims - e.rank);
            return at < 0 ? std::int64_t{1} : e[at];
        };
        std::int64_t o[3], t[3];
        for (o[0] = 0; o[0] < of(out_, 0); ++o[0])
            for (o[1] = 0; o[1] < of(out_, 1); ++o[1])
                for (o[2] = 0; o[2] < of(out_, 2); ++o[2])
                    for (t[0] = 0; t[0] < of(s_.filter, 0); ++t[0])
                        for (t[1] = 0; t[1] < of(s_.filter, 1); ++t[1])
                            for (t[2] = 0; t[2] < of(s_.filter, 2); ++t[2]) visit_tap(o, t, f);
    }

    // The channel of the output, over all groups, that a flat index of the output belongs to.
    std::int64_t channel_of(std::int64_t flat) const {
        const std::vector<OperandSpec> specs = operand_specs(p_);
        const OperandSpec& c = specs[2];
        const std::size_t group = is_channels_last(p_.layout) ? c.shape.size() - 2 : 1;
        const auto at = [&](std::size_t d) { return flat / c.strides[d] % c.shape[d]; };
        return at(group) * c.shape[group + 1] + at(group + 1);
    }

private:
    template <class Visit>
    void visit_tap(const std::int64_t* o, const std::int64_t* t, const Visit& f) const {
        const int lacking = kMaxSpatialDims - s_.in.rank;
        std::int64_t in[3] = {0, 0, 0};
        for (int d = 0; d < s_.in.rank; ++d) {
            in[d] = o[d + lacking] * s_.stride[d] + t[d + lacking] * s_.dilation[d] - s_.pad_before[d];
            if (in[d] < 0 || in[d] >= s_.in[d]) return;
        }
        const std::size_t first = is_channels_last(p_.layout) ? 1 : 3;  // spatial stride of an activation
        const std::size_t group = is_channels_last(p_.layout) ? static_cast<std::size_t>(s_.in.rank) + 1 : 1;
        std::int64_t x = 0, w = 0, y = 0;
        for (int d = 0; d < s_.in.rank; ++d) {
            const auto at = static_cast<std::size_t>(d);
            x += in[d] * x_[first + at];
            y += o[d + lacking] * y_[first + at];
            w += t[d + lacking] * w_[2 + at];
        }
        for (std::int64_t n = 0; n < s_.n; ++n)
            for (std::int64_t g = 0; g < s_.g; ++g)
                for (std::int64_t k = 0; k < s_.k / s_.g; ++k)
                    for (std::int64_t c = 0; c < s_.c / s_.g; ++c)
                        f(x + n * x_[0] + g * x_[group] + c * x_[group + 1], w + g * w_[0] + k * w_[1] + c * w_.back(),
                          y + n * y_[0] + g * y_[group] + k * y_[group + 1]);
    }

    Problem p_;
    ConvShape s_;
    Extents out_;
    std::vector<std::int64_t> x_, w_, y_;  // strides
};

inline std::vector<double> decoded(const MatrixView& view, std::int64_t elements) {
    std::vector<double> values(static_cast<std::size_t>(elements));
    decode(view.type, view.data, 1, elements, values.data());
    return values;
}

// The sums of products, as the output is stored.
inline std::vector<double> plain_products(const Tensors& t) {
    const Problem& p = t.problem();
    const auto elements = operand_elements(p);
    const std::vector<double> a = decoded(t.a(), elements[0]), b = decoded(t.b(), elements[1]);
    std::vector<double> c(static_cast<std::size_t>(elements[2]));
    PlainConv(p).visit([&](std::int64_t x, std::int64_t w, std::int64_t y) {
        const std::int64_t places[3][3] = {{x, w, y}, {y, w, x}, {y, x, w}};
        const auto& at = places[static_cast<int>(p.op) - static_cast<int>(Op::conv_fwd)];
        c[static_cast<std::size_t>(at[2])] += a[static_cast<std::size_t>(at[0])] * b[static_cast<std::size_t>(at[1])];
    });
    return c;
}

}  // namespace tilewise
