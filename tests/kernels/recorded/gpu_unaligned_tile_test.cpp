// SPDX-License-Identifier: MIT
// Tiles whose lines begin anywhere: every element arrives where the layout says, whatever the boundary its line begins on, and
// what lies outside the matrix arrives as zero and is never read.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.hpp"
#include "kernels/recorded/cuda_recorder.hpp"

namespace tilewise {
namespace {

namespace kernel = cuda_recorded;
using kernel::recorded, kernel::u16, kernel::u32;

// Memory for `bytes` that begins, or else ends, where a page begins that nobody may touch.
class FencedMemory {
public:
    FencedMemory(std::size_t bytes, bool at_end)
        : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), inner_((bytes + page_ - 1) / page_ * page_) {
        base_ = static_cast<char*>(
            mmap(nullptr, inner_ + 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(base_, page_, PROT_NONE);
        mprotect(base_ + page_ + inner_, page_, PROT_NONE);
        begin_ = base_ + page_ + (at_end ? inner_ - bytes : 0);
    }
    FencedMemory(const FencedMemory&) = delete;
    FencedMemory& operator=(const FencedMemory&) = delete;
    ~FencedMemory() { munmap(base_, inner_ + 2 * page_); }
    void* begin() const { return begin_; }

private:
    std::size_t page_, inner_;
    char *base_, *begin_;
};

// `extent` rows (or columns) of `k` elements in lines of `stride`, and a tile of it at `first`, one step of k on.
template <int extent, int depth, bool along_k, int threads>
void expect_elements(Index first, Index rows, Index k, Index stride, bool by_registers, bool at_end) {
    using Tile = kernel::UnalignedTile<kernel::Bf16, extent, depth, along_k, threads>;
    const Index lines = along_k ? rows : k, length = along_k ? k : rows, count = (lines - 1) * stride + length;
    const FencedMemory memory(static_cast<std::size_t>(count) * sizeof(u16), at_end);
    u16* start = static_cast<u16*>(memory.begin());
    Random random(11);
    for (Index i = 0; i < count; ++i) start[i] = static_cast<u16>(random.between(1, 65535));
    recorded = {};
    const Tile tile({start, rows, k, stride}, first, 0);
    const int k_left = static_cast<int>(k - depth);
    for (int thread = 0; thread < threads; ++thread) {
        threadIdx.x = static_cast<unsigned>(thread);
        if (by_registers) {
            typename Tile::Registers registers;
            tile.load(registers, 1, k_left);
            Tile::put(registers, 0);
        } else {
            tile.move(0, 1, k_left);
        }
    }
    ASSERT_EQ(recorded.words.size() * 4, static_cast<std::size_t>(Tile::kBytes));
    for (int e = 0; e < extent; ++e) {
        for (int i = 0; i < depth; ++i) {
            const auto line = static_cast<u32>(along_k ? e : i), element = static_cast<u32>(along_k ? i : e);
            const u32 at = Tile::Layout::byte_offset(line, element * 2);
            const u32 got = recorded.words.at(at / 4 * 4) >> (at % 4 * 8) & 0xffff;
            const Index row = first + e, step = depth + i;
            const u16 want = row < rows && step < k ? start[along_k ? row * stride + step : step * stride + row] : 0;
            ASSERT_EQ(got, want) << "row " << row << ", k " << step << " with a stride of " << stride;
        }
    }
}

TEST(CudaUnalignedTile, ElementsComeFromAnyBoundary) {
    for (const bool by_registers : {true, false}) {
        for (const bool at_end : {true, false}) {
            for (Index stride = 61; stride < 70; ++stride) {
                expect_elements<64, 32, true, 128>(0, 70, 57, stride, by_registers, at_end);
                expect_elements<64, 32, true, 128>(64, 70, 57, stride, by_registers, at_end);
                expect_elements<32, 32, true, 128>(32, 70, 61, stride, by_registers, at_end);
                expect_elements<32, 16, false, 64>(0, 57, 31, stride, by_registers, at_end);
                expect_elements<32, 16, false, 256>(32, 57, 18, stride, by_registers, at_end);  // fewer chunks
            }
            expect_elements<32, 32, true, 128>(0, 64, 64, 64, by_registers, at_end);  // whole tiles up to the end
            expect_elements<32, 32, true, 128>(32, 64, 64, 64, by_registers, at_end);
        }
    }
}

}  // namespace
}  // namespace tilewise
