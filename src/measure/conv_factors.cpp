// SPDX-License-Identifier: MIT
// The factors of a convolution. k counts (tap, channel) forward and backward data, (image, output pixel) backward weight.
#include <algorithm>
#include <array>
#include <optional>

#include "measure/element.hpp"
#include "measure/factors.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

using Place = std::array<std::int64_t, kMaxSpatialDims>;

std::int64_t count_of(const Extents& extents) {
    std::int64_t count = 1;
    for (int i = 0; i < extents.rank; ++i) count *= extents[i];
    return count;
}

// The position that has this number when positions are counted with the last dimension running fastest.
Place place_of(std::int64_t number, const Extents& extents) {
    Place place{};
    for (int i = extents.rank - 1; i >= 0; --i) {
        place[static_cast<std::size_t>(i)] = number % extents[i];
        number /= extents[i];
    }
    return place;
}

// x or y: element (image, pixel, group, channel).
struct ActivationView {
    const std::byte* data = nullptr;
    DType type = DType::fp32;
    std::int64_t pixels = 0, groups = 0, channels = 0;
    bool channels_last = true;

    std::int64_t channel_stride() const { return channels_last ? 1 : pixels; }
    std::int64_t pixel_stride() const { return channels_last ? groups * channels : 1; }
    const std::byte* at(std::int64_t image, std::int64_t pixel, std::int64_t group, std::int64_t channel) const {
        const std::int64_t index = channels_last ? ((image * pixels + pixel) * groups + group) * channels + channel
                                                 : ((image * groups + group) * channels + channel) * pixels + pixel;
        return data + index * bytes_of(type);
    }
};

// w: element (group, output channel, tap, input channel).
struct WeightView {
    const std::byte* data = nullptr;
    DType type = DType::fp32;
    std::int64_t k = 0, taps = 0, c = 0;

    std::int64_t k_stride() const { return taps * c; }
    const std::byte* at(std::int64_t group, std::int64_t out, std::int64_t tap, std::int64_t in) const {
        return data + (((group * k + out) * taps + tap) * c + in) * bytes_of(type);
    }
};

class ConvFactors : public Factors {
protected:
    explicit ConvFactors(const Tensors& tensors)
        : shape_(tensors.problem().conv),
          out_(output_size(shape_)),
          in_pixels_(count_of(shape_.in)),
          out_pixels_(count_of(out_)),
          taps_(count_of(shape_.filter)),
          c_(shape_.c / shape_.g),
          k_(shape_.k / shape_.g),
          channels_last_(is_channels_last(tensors.problem().layout)) {}

    ActivationView activation(const MatrixView& of, std::int64_t pixels, std::int64_t channels) const {
        return {static_cast<const std::byte*>(of.data), of.type, pixels, shape_.g, channels, channels_last_};
    }
    WeightView weights(const MatrixView& of) const {
        return {static_cast<const std::byte*>(of.data), of.type, k_, taps_, c_};
    }

    // The input pixel that an output pixel meets with a tap.
    std::optional<std::int64_t> input_of(const Place& output, const Place& tap) const {
        std::int64_t number = 0;
        for (int i = 0; i < shape_.in.rank; ++i) {
            const auto d = static_cast<std::size_t>(i);
            const std::int64_t at = output[d] * shape_.stride[i] + tap[d] * shape_.dilation[i] - shape_.pad_before[i];
            if (at < 0 || at >= shape_.in[i]) return {};
            number = number * shape_.in[i] + at;
        }
        return number;
    }

    // The output pixel that meets an input pixel with a tap: what input_of gives, turned round.
    std::optional<std::int64_t> output_of(const Place& input, const Place& tap) const {
        std::int64_t number = 0;
        for (int i = 0; i < shape_.in.rank; ++i) {
            const auto d = static_cast<std::size_t>(i);
            const std::int64_t reach = input[d] + shape_.pad_before[i] - tap[d] * shape_.dilation[i];
            if (reach < 0 || reach % shape_.stride[i] != 0 || reach / shape_.stride[i] >= out_[i]) return {};
            number = number * out_[i] + reach / shape_.stride[i];
        }
        return number;
    }

    // The channels of one tap after the other, of the pixel that each tap leads to.
    template <class PixelOf>
    void gather_taps(const ActivationView& from, std::int64_t image, std::int64_t group, std::int64_t first,
                     std::int64_t depth, const PixelOf& pixel_of, double* to) const {
        for (std::int64_t at = first; at < first + depth;) {
            const std::int64_t tap = at / from.channels, channel = at % from.channels;
            const std::int64_t count = std::min(from.channels - channel, first + depth - at);
            if (const std::optional<std::int64_t> pixel = pixel_of(place_of(tap, shape_.filter))) {
                decode(from.type, from.at(image, *pixel, group, channel), from.channel_stride(), count, to);
            } else {
                std::fill_n(to, count, 0.0);
            }
            to += count;
            at += count;
        }
    }

    ConvShape shape_;
    Extents out_;
    std::int64_t in_pixels_, out_pixels_, taps_, c_, k_;
    bool channels_last_;
};

// A = x, B = w.
class ForwardFactors final : public ConvFactors {
public:
    explicit ForwardFactors(const Tensors& t)
        : ConvFactors(t), x_(activation(t.a(), in_pixels_, c_)), w_(weights(t.b())) {}

    void read_row(std::int64_t group, std::int64_t row, std::int64_t first, std::int64_t depth,
                  double* to) const override {
        const Place output = place_of(row % out_pixels_, out_);
        const auto pixel_of = [&](const Place& tap) { return input_of(output, tap); };
        gather_taps(x_, row / out_pixels_, group, first, depth, pixel_of, to);
    }
    void read_column(std::int64_t group, std::int64_t col, std::int64_t first, std::int64_t depth,
                     double* to) const override {
        decode(w_.type, w_.at(group, col, first / c_, first % c_), 1, depth, to);
    }

private:
    ActivationView x_;
    WeightView w_;
};

// A = dy, B = w.
class BackwardDataFactors final : public ConvFactors {
public:
    explicit BackwardDataFactors(const Tensors& t)
        : ConvFactors(t), dy_(activation(t.a(), out_pixels_, k_)), w_(weights(t.b())) {}

    void read_row(std::int64_t group, std::int64_t row, std::int64_t first, std::int64_t depth,
                  double* to) const override {
        const Place input = place_of(row % in_pixels_, shape_.in);
        const auto pixel_of = [&](const Place& tap) { return output_of(input, tap); };
        gather_taps(dy_, row / in_pixels_, group, first, depth, pixel_of, to);
    }
    void read_column(std::int64_t group, std::int64_t col, std::int64_t first, std::int64_t depth,
                     double* to) const override {
        for (std::int64_t at = first; at < first + depth;) {
            const std::int64_t count = std::min(k_ - at % k_, first + depth - at);
            decode(w_.type, w_.at(group, at % k_, at / k_, col), w_.k_stride(), count, to);
            to += count;
            at += count;
        }
    }

private:
    ActivationView dy_;
    WeightView w_;
};

// A = dy, B = x.
class BackwardWeightFactors final : public ConvFactors {
public:
    explicit BackwardWeightFactors(const Tensors& t)
        : ConvFactors(t), dy_(activation(t.a(), out_pixels_, k_)), x_(activation(t.b(), in_pixels_, c_)) {}

    void read_row(std::int64_t group, std::int64_t row, std::int64_t first, std::int64_t depth,
                  double* to) const override {
        for (std::int64_t at = first; at < first + depth;) {
            const std::int64_t pixel = at % out_pixels_, count = std::min(out_pixels_ - pixel, first + depth - at);
            decode(dy_.type, dy_.at(at / out_pixels_, pixel, group, row), dy_.pixel_stride(), count, to);
            to += count;
            at += count;
        }
    }
    void read_column(std::int64_t group, std::int64_t col, std::int64_t first, std::int64_t depth,
                     double* to) const override {
        const Place tap = place_of(col / c_, shape_.filter);
        Place output = place_of(first % out_pixels_, out_);
        for (std::int64_t at = first; at < first + depth; ++at, ++to) {
            const std::optional<std::int64_t> pixel = input_of(output, tap);
            *to = 0;
            if (pixel) decode(x_.type, x_.at(at / out_pixels_, *pixel, group, col % c_), 1, 1, to);
            step(output);
        }
    }

private:
    // The next output pixel, the first following the last.
    void step(Place& output) const {
        for (int i = out_.rank - 1; i >= 0; --i) {
            if (++output[static_cast<std::size_t>(i)] < out_[i]) return;
            output[static_cast<std::size_t>(i)] = 0;
        }
    }

    ActivationView dy_, x_;
};

}  // namespace

std::unique_ptr<Factors> make_conv_factors(const Tensors& tensors) {
    switch (tensors.problem().op) {
        case Op::conv_bwd_data: return std::make_unique<BackwardDataFactors>(tensors);
        case Op::conv_bwd_weight: return std::make_unique<BackwardWeightFactors>(tensors);
        default: return std::make_unique<ForwardFactors>(tensors);
    }
}

}  // namespace tilewise
