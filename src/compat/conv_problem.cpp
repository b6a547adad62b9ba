// SPDX-License-Identifier: MIT
#include "compat/conv_problem.hpp"

namespace tilewise::compat {
namespace {

constexpr const char* kDirections[] = {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"};
constexpr int kBackwardWeight = 2;

std::string extents(bool is_3d, int d, int h, int w) {
    const std::string plane = std::to_string(h) + "x" + std::to_string(w);
    return is_3d ? std::to_string(d) + "x" + plane : plane;
}

// NULL when it is no word for a layout.
const char* layout_word(const std::string& setting, bool is_3d) {
    if (setting.empty() || setting == "channels_last") return is_3d ? "ndhwgc" : "nhwgc";
    if (setting == "channels_first") return is_3d ? "ngcdhw" : "ngchw";
    return nullptr;
}

}  // namespace

std::string conv_text(const ConvProblemC& p, const Settings& settings) {
    const bool is_3d = p.input_d > 1 || p.filter_z > 1 || p.pad_d > 0;
    const char* layout = layout_word(settings.layout, is_3d);
    if (p.direction < 0 || p.direction > kBackwardWeight || !layout) return {};
    return std::string(kDirections[p.direction]) + ":n=" + std::to_string(p.N) + ",g=" + std::to_string(p.G) +
           ",c=" + std::to_string(p.C) + ",k=" + std::to_string(p.K) +
           ",in=" + extents(is_3d, p.input_d, p.input_h, p.input_w) +
           ",filter=" + extents(is_3d, p.filter_z, p.filter_y, p.filter_x) +
           ",stride=" + extents(is_3d, p.stride_d, p.stride_h, p.stride_w) +
           ",pad=" + extents(is_3d, p.pad_d, p.pad_h, p.pad_w) +
           ",dilation=" + extents(is_3d, p.dilation_d, p.dilation_h, p.dilation_w) + ",dtype=" + settings.dtype +
           ",layout=" + layout;
}

ConvProblemC with_direction(const ConvBwdwProblemC& p) {
    return {p.N,        p.G,        p.C,          p.K,          p.input_d,    p.input_h,       p.input_w,
            p.filter_z, p.filter_y, p.filter_x,   p.stride_d,   p.stride_h,   p.stride_w,      p.pad_d,
            p.pad_h,    p.pad_w,    p.dilation_d, p.dilation_h, p.dilation_w, kBackwardWeight, p.split_k};
}

float run_conv(Session& session, const void* a, const void* b, void* c, const ConvProblemC* problem, void* stream) {
    if (!session.is_open()) return static_cast<float>(fail(kError, "the init function was not called, or failed"));
    if (!a || !b || !c || !problem) return static_cast<float>(fail(kError, "a pointer is NULL"));
    const std::string text = conv_text(*problem, session.settings());
    if (text.empty())
        return static_cast<float>(
            fail(kError, "direction is none of 0, 1, 2, or layout of channels_last, channels_first"));
    const bool is_weight = problem->direction == kBackwardWeight;
    const Buffers buffers = is_weight ? Buffers{b, a, c} : Buffers{a, b, c};
    const int split_k = is_weight ? problem->split_k : 1;
    const std::string aligned = text + alignment_option(buffers);
    return static_cast<float>(session.is_emulated() ? session.run_on_host(aligned, buffers, split_k)
                                                    : session.run(aligned, buffers, stream, split_k));
}

}  // namespace tilewise::compat
