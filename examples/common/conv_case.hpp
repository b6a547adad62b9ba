// SPDX-License-Identifier: MIT
// A grouped convolution of an example, in one of its directions: the problem, random operands in memory of the device, and
// the check of the result against plain loops. Tensors are channels-last: x N,D,H,W,G,C  w G,K,Z,Y,X,C  y N,D,H,W,G,K.
#pragma once

#include <array>
#include <vector>

#include "reference.hpp"

namespace example {

// Extents are depth, height, width; a 2-D convolution has depth 1.
struct ConvShape {
    std::int64_t n = 1, g = 1, c = 1, k = 1;  // c and k: totals over the groups
    std::array<std::int64_t, 3> in = {1, 1, 1}, filter = {1, 1, 1}, stride = {1, 1, 1}, pad = {0, 0, 0};
    bool is_3d = false;

    std::int64_t out(std::size_t i) const { return (in[i] + 2 * pad[i] - filter[i]) / stride[i] + 1; }
    std::int64_t x_size() const { return n * in[0] * in[1] * in[2] * c; }
    std::int64_t y_size() const { return n * out(0) * out(1) * out(2) * k; }
    std::int64_t w_size() const { return k * filter[0] * filter[1] * filter[2] * (c / g); }
};

inline tilewise::Problem conv_problem(const ConvShape& s, tilewise::Direction direction, const std::string& dtype) {
    tilewise::Conv conv(direction);
    conv.images(s.n).groups(s.g).channels(s.c, s.k).dtype(dtype);
    const auto& [in, filter, stride, pad] = std::tie(s.in, s.filter, s.stride, s.pad);
    if (s.is_3d) {
        conv.input({in[0], in[1], in[2]}).filter({filter[0], filter[1], filter[2]});
        conv.stride({stride[0], stride[1], stride[2]}).padding({pad[0], pad[1], pad[2]});
    } else {
        conv.input({in[1], in[2]})
            .filter({filter[1], filter[2]})
            .stride({stride[1], stride[2]})
            .padding({pad[1], pad[2]});
    }
    return need(conv.build(), "problem");
}

// Calls visit(x, w, y) with the places of every product of a convolution.
template <class Visit>
void visit_products(const ConvShape& s, const Visit& visit) {
    const std::int64_t cg = s.c / s.g, kg = s.k / s.g;
    const auto inside = [&](std::size_t i, std::int64_t o, std::int64_t f) { return o * s.stride[i] - s.pad[i] + f; };
    for (std::int64_t n = 0; n < s.n; ++n)
        for (std::int64_t od = 0; od < s.out(0); ++od)
            for (std::int64_t oh = 0; oh < s.out(1); ++oh)
                for (std::int64_t ow = 0; ow < s.out(2); ++ow)
                    for (std::int64_t fz = 0; fz < s.filter[0]; ++fz)
                        for (std::int64_t fy = 0; fy < s.filter[1]; ++fy)
                            for (std::int64_t fx = 0; fx < s.filter[2]; ++fx) {
                                const std::int64_t d = inside(0, od, fz), h = inside(1, oh, fy), w = inside(2, ow, fx);
                                if (d < 0 || d >= s.in[0] || h < 0 || h >= s.in[1] || w < 0 || w >= s.in[2]) continue;
                                const std::int64_t x_pixel = ((n * s.in[0] + d) * s.in[1] + h) * s.in[2] + w;
                                const std::int64_t y_pixel = ((n * s.out(0) + od) * s.out(1) + oh) * s.out(2) + ow;
                                for (std::int64_t g = 0; g < s.g; ++g)
                                    for (std::int64_t k = 0; k < kg; ++k) {
                                        const std::int64_t tap =
                                            (((g * kg + k) * s.filter[0] + fz) * s.filter[1] + fy) * s.filter[2] + fx;
                                        for (std::int64_t c = 0; c < cg; ++c) {
                                            visit(static_cast<std::size_t>((x_pixel * s.g + g) * cg + c),
                                                  static_cast<std::size_t>(tap * cg + c),
                                                  static_cast<std::size_t>((y_pixel * s.g + g) * kg + k));
                                        }
                                    }
                            }
}

class ConvCase {
public:
    ConvCase(const tilewise::Device& device, const ConvShape& shape, tilewise::Direction direction,
             const std::string& dtype = "fp32", unsigned seed = 1)
        : problem(conv_problem(shape, direction, dtype)),
          shape_(shape),
          direction_(direction),
          x_(random_values(dtype, shape.x_size(), seed)),
          w_(random_values(dtype, shape.w_size(), seed + 1)),
          y_(random_values(dtype, shape.y_size(), seed + 2)) {
        // Forward x, w, y; backward data dy, w, dx; backward weight dy, x, dw.
        const Values* inputs[][2] = {{&x_, &w_}, {&y_, &w_}, {&y_, &x_}};
        for (const Values* input : inputs[static_cast<int>(direction)])
            there_.push_back(need(tilewise::Buffer::of(device, input->stored()), "input"));
        std::vector<std::uint8_t> poison = result_values().stored();
        std::fill(poison.begin(), poison.end(), std::uint8_t{0xff});  // NaN, so that what is not written is seen
        there_.push_back(need(tilewise::Buffer::of(device, poison), "output"));
    }

    tilewise::Operands operands() const { return {there_[0].data(), there_[1].data(), there_[2].data()}; }

    // After a run that is done.
    bool is_right(const std::string& what) const {
        std::vector<std::uint8_t> bytes(there_[2].bytes());
        need(there_[2].read(bytes), "reading the result");
        const std::vector<double> expected = reference();
        const double terms = problem.flops() / 2 / static_cast<double>(expected.size());
        return agrees(what, Values::read(x_.dtype, bytes), expected, std::max(terms, 1.0));
    }

    const tilewise::Problem problem;

private:
    const Values& result_values() const {
        return direction_ == tilewise::Direction::forward         ? y_
               : direction_ == tilewise::Direction::backward_data ? x_
                                                                  : w_;
    }

    std::vector<double> reference() const {
        std::vector<double> result(result_values().floats.size());
        const auto& [x, w, y] = std::tie(x_.floats, w_.floats, y_.floats);
        switch (direction_) {
            case tilewise::Direction::forward:
                visit_products(shape_, [&](auto i, auto f, auto o) { result[o] += double(x[i]) * double(w[f]); });
                break;
            case tilewise::Direction::backward_data:
                visit_products(shape_, [&](auto i, auto f, auto o) { result[i] += double(y[o]) * double(w[f]); });
                break;
            case tilewise::Direction::backward_weight:
                visit_products(shape_, [&](auto i, auto f, auto o) { result[f] += double(x[i]) * double(y[o]); });
                break;
        }
        return result;
    }

    ConvShape shape_;
    tilewise::Direction direction_;
    Values x_, w_, y_;
    std::vector<tilewise::Buffer> there_;
};

// --direction of an example.
inline tilewise::Direction direction_of(const Arguments& args) {
    const std::string& word = args.text("direction");
    if (word == "forward") return tilewise::Direction::forward;
    if (word == "backward-data") return tilewise::Direction::backward_data;
    if (word == "backward-weight") return tilewise::Direction::backward_weight;
    std::fprintf(stderr, "--direction takes forward, backward-data or backward-weight, not '%s'\n", word.c_str());
    std::exit(2);
}
inline const Option kDirection = {"direction", "forward", "forward, backward-data or backward-weight"};
inline constexpr std::array<tilewise::Direction, 3> kDirections = {
    tilewise::Direction::forward, tilewise::Direction::backward_data, tilewise::Direction::backward_weight};

}  // namespace example
