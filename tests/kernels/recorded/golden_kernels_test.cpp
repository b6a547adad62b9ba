// SPDX-License-Identifier: MIT
// The CUDA kernels' own functions with the tables of what a GPU does: elements that one instruction puts somewhere are the
// ones that the next expects there. What a kernel asks for is recorded; what the instruction makes of it is the table's.
#include "kernels/golden_testing.hpp"
#include "kernels/recorded/cuda_recorder.hpp"

#if defined(__GNUC__) && !defined(__clang__)
// g++ makes one function of two that do the same to arrays of different sizes, then warns of the smaller one.
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif

namespace tilewise {
namespace {

namespace kernel = cuda_recorded;
using kernel::recorded, kernel::u32, kernel::u64;

struct Element {
    u32 row, column;
    bool operator==(const Element&) const = default;
};
void PrintTo(const Element& e, std::ostream* out) { *out << '(' << e.row << ", " << e.column << ')'; }

class GoldenKernels : public GoldenTest {
protected:
    void SetUp() override { recorded = {}; }
};

// --- a warp: ldmatrix, mma.sync --------------------------------------------------------------------------------------

template <bool a_row_major, bool b_row_major, int depth>
struct WarpConfig {
    using A = kernel::Bf16;
    using B = A;
    static constexpr int tile_m = 32, tile_n = 64, tile_k = depth, wave_m = 1, wave_n = 1, wave_k = 1;
    static constexpr int warp_m = 16, warp_n = 8, warp_k = 16, vector_a = 8, vector_b = 8, stages = 1, threads = 32;
    static constexpr int shared_bytes = (tile_m + tile_n) * depth * 2;
    static constexpr auto pipeline = kernel::Pipeline::basic_v1;
    static constexpr auto math = kernel::Math::strict;
    static constexpr bool a_row = a_row_major, b_row = b_row_major;
};

class GoldenWarp : public GoldenKernels {
protected:
    // Calls f for what each register gets of rows `first` on at step k of an operand's tile: f(lane, register, half, (extent, k)).
    template <class Core, class Tile, bool extent_first, class F>
    void each_fetched(int first, int k, F&& f) const {
        std::map<u32, Element> elements;  // by address
        for (u32 line = 0; line < Tile::kLines; ++line) {
            for (u32 i = 0; i < Tile::kLineLength; ++i) {
                elements[Tile::Layout::byte_offset(line, i * 2)] = Tile::kAlongK ? Element{line, i} : Element{i, line};
            }
        }
        u32 rows[32];
        for (u32 lane = 0; lane < 32; ++lane) {
            threadIdx.x = lane;
            u32 nowhere[4];
            Core::template fetch<Tile, extent_first>(0, first, k, nowhere);
            rows[lane] = recorded.matrix_row;
        }
        const GoldenTable& loaded = table(recorded.transposed ? "ldmatrix_x4_trans" : "ldmatrix_x4");
        for (int lane = 0; lane < 32; ++lane) {
            for (int slot = 0; slot < 8; ++slot) {
                const u32 place = loaded.at(lane, slot), matrix = place >> 8, row = place >> 4 & 15,
                          column = place & 15;
                f(lane, slot / 2, slot % 2, elements.at(rows[matrix * 8 + row] + column * 2));
            }
        }
    }

    template <bool a_row, bool b_row, int depth>
    void expect_operands() const {
        using Core = kernel::MmaCore<WarpConfig<a_row, b_row, depth>>;
        const GoldenTable& fragments = table("mma_m16n8k16");
        for (const int first : {0, 16}) {
            for (int step = 0; step < Core::kStepsK; ++step) {
                const u32 row = static_cast<u32>(first), k = static_cast<u32>(step) * 16;
                each_fetched<Core, typename Core::A, true>(first, step, [&](int lane, int i, int half, Element got) {
                    const u32 place = fragments.at(lane, 4 + i * 2 + half);
                    ASSERT_EQ(got, (Element{row + (place >> 4), k + (place & 15)})) << "A, lane " << lane;
                });
                // Two registers for each 8 columns.
                each_fetched<Core, typename Core::B, false>(first, step, [&](int lane, int i, int half, Element got) {
                    const u32 place = fragments.at(lane, 12 + i % 2 * 2 + half), column = row + (i / 2 ? 8 : 0);
                    ASSERT_EQ(got, (Element{column + (place & 15), k + (place >> 4)})) << "B, lane " << lane;
                });
            }
        }
    }
};

TEST_F(GoldenWarp, OperandsAreFetchedAsTheProductWantsThem) {
    if (!have({"ldmatrix_x4", "ldmatrix_x4_trans", "mma_m16n8k16"})) GTEST_SKIP() << missing_;
    expect_operands<true, false, 64>();
    expect_operands<false, true, 64>();
    expect_operands<true, true, 32>();
    expect_operands<false, false, 16>();
}

TEST_F(GoldenWarp, SumsArePutWhereTheyAreReadAgain) {
    if (!have({"mma_m16n8k16"})) GTEST_SKIP() << missing_;
    using Core = kernel::MmaCore<WarpConfig<true, false, 64>>;
    using Region = Core::Region;
    for (int pass = 0; pass < Core::kPasses; ++pass) {
        recorded.floats.clear();
        std::map<u32, float> want;
        for (u32 lane = 0; lane < 32; ++lane) {
            threadIdx.x = lane;
            Core core;
            for (int j = 0; j < Core::kStepsN; ++j) {
                for (int i = 0; i < 4; ++i) {
                    const float value = static_cast<float>(lane * 1000 + static_cast<u32>(j * 4 + i));
                    for (auto& sums : core.sums) sums[j][i] = value;
                    const int column = j * 8 - core.pass_col(pass);
                    if (column < 0 || column >= Core::kRegionCols) continue;
                    const u32 place = table("mma_m16n8k16").at(static_cast<int>(lane), i);
                    want[Region::at(place >> 4, static_cast<u32>(column) + (place & 15))] = value;
                }
            }
            core.put(pass, 0);
        }
        EXPECT_EQ(want.size(), Core::kRegionRows * Core::kRegionCols) << "every place once";
        EXPECT_EQ(recorded.floats, want);
    }
}

// --- a warpgroup: tensor copies, wgmma, stmatrix ----------------------------------------------------------------------

template <int n, bool a_row_major = true, bool b_row_major = false>
struct GroupConfig {
    using A = kernel::Bf16;
    using B = A;
    using Out = kernel::Fp16;
    static constexpr int tile_m = 128, tile_n = n, tile_k = 64, wave_m = 2, wave_n = 1, wave_k = 1;
    static constexpr int warp_m = 64, warp_n = n, warp_k = 16, stages = 1, cluster_m = 1, cluster_n = 1, threads = 384;
    static constexpr int producer_waves = 1, vector_c = 8;
    static constexpr auto stream_k = kernel::StreamK::off;
    static constexpr int shared_bytes = (tile_m + tile_n) * tile_k * 2 + wave_m * 2 * 8192 + 1024;
    static constexpr auto pipeline = kernel::Pipeline::compv6;
    static constexpr auto math = kernel::Math::strict;
    static constexpr bool a_row = a_row_major, b_row = b_row_major, c_row = true;
    static constexpr bool swap_ab = false, cluster_k = false;
};

class GoldenGroup : public GoldenKernels {
protected:
    template <class Config>
    kernel::WgmmaGemm<Config> gemm() const {
        return {args_, map_, map_, map_, 0};
    }

    // Tensor copies put this into shared memory, by address: (x, y) in the tensor. Boxes are 64 elements wide.
    std::map<u32, Element> copied(u32 box_lines) const {
        std::map<u32, Element> memory;
        const GoldenTable& lines = table("tma_128_bytes");
        for (const auto& box : recorded.copied_in) {
            for (u32 line = 0; line < box_lines; ++line) {
                for (u32 i = 0; i < 64; ++i) {
                    const u32 byte = line / 64 * 8192 + lines.at(static_cast<int>(line % 64), static_cast<int>(i));
                    memory[box.shared + byte] = {static_cast<u32>(box.x) + i, static_cast<u32>(box.y) + line};
                }
            }
        }
        return memory;
    }

    // Where a descriptor starts, and the rest of it.
    static u32 start_of(u64 descriptor) { return static_cast<u32>(descriptor & 0x3fff) << 4; }
    static u64 rest_of(u64 descriptor) { return descriptor & ~u64{0x3fff}; }

    // The operand that was copied is read by the products as rows (columns) first and on, k from 0 on.
    void expect_read(const std::map<u32, Element>& memory, const std::string& name, bool along_k, u32 first) const {
        const GoldenTable& reads = table(name);
        const bool is_b = name[6] == 'b';
        ASSERT_EQ(recorded.products.size(), 4U);
        for (u32 step = 0; step < 4; ++step) {
            const auto& product = recorded.products[step];
            const u64 descriptor = is_b ? product.b : product.a;
            // The table is of these distances, and of a start that moves by as much each step.
            EXPECT_EQ(rest_of(descriptor), rest_of(kernel::operand_at(0, 8192, 1024)));
            const u32 moved = step * (along_k ? 32 : 2048);
            for (u32 line = 0; line < reads.rows.size(); ++line) {
                for (u32 k = 0; k < 16; ++k) {
                    const u32 byte = reads.at(static_cast<int>(line), static_cast<int>(step * 16 + k));
                    const auto at = memory.find(start_of(descriptor) + byte - moved);
                    ASSERT_NE(at, memory.end()) << name << ", line " << line;
                    const u32 depth = step * 16 + k;
                    ASSERT_EQ(at->second, along_k ? (Element{depth, first + line}) : (Element{first + line, depth}))
                        << name << ", line " << line << ", k " << depth;
                }
            }
        }
    }

    template <bool a_row, bool b_row>
    void expect_operands() {
        using Config = GroupConfig<128, a_row, b_row>;
        using Gemm = kernel::WgmmaGemm<Config>;
        const auto gemm = this->gemm<Config>();
        for (const int first : {0, 64}) {
            recorded = {};
            kernel::copy_rows<typename Gemm::Shape>(map_, 0, 0, 0, 0, 0, 0, 0);
            const auto a = copied(a_row ? 128 : 64);
            recorded.copied_in.clear();
            kernel::copy_columns<typename Gemm::Shape>(map_, Gemm::Shape::kBytesA, 0, 0, 0, 0, 0, 0);
            const auto b = copied(b_row ? 64 : 128);
            float sums[Gemm::Shape::kRepeats][64] = {};
            gemm.multiply_stage(sums, 0, first, Gemm::Shape::kSteps, false);
            expect_read(a, a_row ? "wgmma_a_along_k" : "wgmma_a_along_m", a_row, static_cast<u32>(first));
            expect_read(b, b_row ? "wgmma_b_along_n" : "wgmma_b_along_k", !b_row, 0);
        }
    }

    // 16 bits that tell thread and register apart, as a number that an fp16 element keeps.
    template <int n>
    static float number_of(int thread, int i) {
        return kernel::Fp16::to_float(static_cast<kernel::u16>(thread * (n / 2) + i + 1));
    }

    template <int n>
    void expect_staged() {
        using Gemm = kernel::WgmmaGemm<GroupConfig<n>>;
        const auto gemm = this->gemm<GroupConfig<n>>();
        const GoldenTable& places = table(fmt::format("wgmma_d_n{}", n));
        for (int chunk = 0; chunk < Gemm::Shape::kStagedChunks; ++chunk) {
            recorded.floats.clear();
            std::map<u32, float> want;
            for (int thread = 0; thread < 128; ++thread) {
                float sums[n / 2];
                for (int i = 0; i < n / 2; ++i) {
                    sums[i] = number_of<n>(thread, i);
                    const u32 place = places.at(thread, i);
                    const int column = static_cast<int>(place & 255) - chunk * Gemm::Shape::kStagedColumns;
                    if (column < 0 || column >= Gemm::Shape::kStagedColumns) continue;
                    want[Gemm::Store::staged_at(static_cast<int>(place >> 8), column)] = sums[i];
                }
                gemm.store().stage_sums(0, sums, chunk, thread);
            }
            EXPECT_EQ(want.size(), 64U * Gemm::Shape::kStagedColumns) << "every place once";
            EXPECT_EQ(recorded.floats, want);
        }
    }

    template <int n>
    void expect_stored() {
        using Gemm = kernel::WgmmaGemm<GroupConfig<n>>;
        const auto gemm = this->gemm<GroupConfig<n>>();
        static_assert(Gemm::Shape::kRepeats * Gemm::Shape::kStoreChunks <= 2,
                      "a buffer is used once, so threads may run one by one");
        recorded = {};
        std::map<u32, u32> shared;  // bits by address
        std::map<std::pair<u32, u32>, u32> want, got;
        for (int warp = 0; warp < 4; ++warp) {
            recorded.stored.clear();
            for (int thread = warp * 32; thread < warp * 32 + 32; ++thread) {
                float sums[1][n / 2];
                for (int i = 0; i < n / 2; ++i) {
                    sums[0][i] = number_of<n>(thread, i);
                    const u32 place = table(fmt::format("wgmma_d_n{}", n)).at(thread, i);
                    want[{place >> 8, place & 255}] = static_cast<u32>(thread * (n / 2) + i + 1);
                }
                unsigned buffer = 0;
                gemm.store().store_boxes(sums, {}, 0, {0, thread}, {}, buffer);
            }
            put_matrices(shared);
        }
        const GoldenTable& lines = table(fmt::format("tma_{}_bytes", Gemm::Shape::kStoreBytes));
        ASSERT_EQ(recorded.copied_out.size(), static_cast<std::size_t>(Gemm::Shape::kStoreChunks));
        for (const auto& box : recorded.copied_out) {
            for (u32 row = 0; row < 64; ++row) {
                for (u32 column = 0; column < Gemm::Shape::kStoreColumns; ++column) {
                    const u32 byte = lines.at(static_cast<int>(row), static_cast<int>(column));
                    got[{static_cast<u32>(box.y) + row, static_cast<u32>(box.x) + column}] = shared[box.shared + byte];
                }
            }
        }
        EXPECT_EQ(got, want);
    }

    // The stores of one warp, of which each lane has made as many.
    void put_matrices(std::map<u32, u32>& shared) const {
        const std::size_t each_lane = recorded.stored.size() / 32;
        for (std::size_t store = 0; store < each_lane; ++store) {
            for (u32 lane = 0; lane < 32; ++lane) {
                for (u32 slot = 0; slot < 8; ++slot) {
                    const u32 place = table("stmatrix_x4").at(static_cast<int>(lane), static_cast<int>(slot));
                    const u32 giver = (place >> 8) * 8 + (place >> 4 & 15);
                    const u32 word = recorded.stored[lane * each_lane + store].words[slot / 2];
                    shared[recorded.stored[giver * each_lane + store].row + (place & 15) * 2] =
                        slot % 2 ? word >> 16 : word & 0xffff;
                }
            }
        }
    }

    kernel::TensorMap map_ = {};
    KernelArgs args_ = [] {
        KernelArgs args{};
        args.alpha = 1;
        return args;
    }();
};

TEST_F(GoldenGroup, ProductsReadWhatTensorCopiesPut) {
    if (!have({"tma_128_bytes", "wgmma_a_along_k", "wgmma_a_along_m", "wgmma_b_along_k", "wgmma_b_along_n"})) {
        GTEST_SKIP() << missing_;
    }
    expect_operands<true, true>();
    expect_operands<true, false>();
    expect_operands<false, true>();
    expect_operands<false, false>();
}

TEST_F(GoldenGroup, SumsAreStagedWhereTheyAreReadAgain) {
    if (!have({"wgmma_d_n16", "wgmma_d_n32", "wgmma_d_n64", "wgmma_d_n128", "wgmma_d_n256"})) GTEST_SKIP() << missing_;
    expect_staged<16>();
    expect_staged<32>();
    expect_staged<64>();
    expect_staged<128>();
    expect_staged<256>();
}

TEST_F(GoldenGroup, SumsReachTheirPlacesThroughTensorCopies) {
    if (!have({"wgmma_d_n16", "wgmma_d_n32", "wgmma_d_n64", "wgmma_d_n128", "stmatrix_x4", "tma_128_bytes",
               "tma_64_bytes", "tma_32_bytes"})) {
        GTEST_SKIP() << missing_;
    }
    expect_stored<16>();
    expect_stored<32>();
    expect_stored<64>();
    expect_stored<128>();
}

}  // namespace
}  // namespace tilewise
