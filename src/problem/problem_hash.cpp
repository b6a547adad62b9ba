// SPDX-License-Identifier: MIT
#include "problem/problem_hash.hpp"

#include <cstdint>

namespace tilewise {
namespace {

class Mixer {
public:
    void add(std::int64_t value) {
        // One round of the splitmix64 finaliser per value: every bit of the input reaches every bit of the state.
        state_ ^= static_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15u + (state_ << 6) + (state_ >> 2);
        state_ *= 0xbf58476d1ce4e5b9u;
        state_ ^= state_ >> 29;
    }
    void add(const Extents& extents) {
        for (const std::int64_t size : extents.size) add(size);
    }
    std::size_t value() const { return state_; }

private:
    std::uint64_t state_ = 0x243f6a8885a308d3u;
};

}  // namespace

std::size_t ProblemHash::operator()(const Problem& p) const {
    Mixer mixer;
    // Small fields share one word.
    mixer.add(static_cast<std::int64_t>(p.op) | static_cast<std::int64_t>(p.dtype_a) << 8 |
              static_cast<std::int64_t>(p.dtype_b) << 16 | static_cast<std::int64_t>(p.dtype_out) << 24 |
              static_cast<std::int64_t>(p.layout) << 32 | static_cast<std::int64_t>(p.scale) << 40 |
              static_cast<std::int64_t>(p.math) << 44 | static_cast<std::int64_t>(p.beta) << 48 |
              static_cast<std::int64_t>(p.packed_b) << 49 | static_cast<std::int64_t>(p.deterministic) << 50);
    if (p.op == Op::gemm) {
        for (const std::int64_t size : {p.gemm.m, p.gemm.n, p.gemm.k, p.gemm.batch}) mixer.add(size);
        for (const std::int64_t stride : p.gemm.leading) mixer.add(stride);
        for (const std::int64_t stride : p.gemm.batch_stride) mixer.add(stride);
    } else {
        for (const std::int64_t size : {p.conv.n, p.conv.g, p.conv.c, p.conv.k}) mixer.add(size);
        for (const Extents* e :
             {&p.conv.in, &p.conv.filter, &p.conv.stride, &p.conv.dilation, &p.conv.pad_before, &p.conv.pad_after}) {
            mixer.add(*e);
        }
    }
    for (const EpilogueOp op : p.epilogue) mixer.add(static_cast<std::int64_t>(op));
    mixer.add(p.align_bytes);
    mixer.add(p.workspace_bytes);
    return mixer.value();
}

}  // namespace tilewise
