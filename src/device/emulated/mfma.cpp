// SPDX-License-Identifier: MIT
// The matrix products of AMD's waves on the emulated GPU. Which element each register holds is in tests/golden/hip: a lane has 16 bytes
// along k of row (column of B) lane % side, those of number lane / side; of the sums four in a row are rows of the result that follow
// each other, all of column lane % side. Products are added up in fp32, those of int8 in whole numbers, one after another.
#include <cmath>
#include <cstring>

#include "device/emulated/element_values.hpp"
#include "device/emulated/grid.hpp"

namespace tilewise::emulated {
namespace {

constexpr int kWave = 64, kLaneBytes = 16, kRun = 4;

struct SquareArguments {
    void* sums;
    const unsigned *a, *b;
};

// fp32 is multiplied as it is, unlike tf32; 16-bit subnormals may count as zero.
void lane_values(KernelDType type, const unsigned* words, bool flushes, float* values) {
    if (element_bytes(type) == 4) {
        std::memcpy(values, words, kLaneBytes);
        return;
    }
    const int count = kLaneBytes / element_bytes(type);
    to_values(type, reinterpret_cast<const unsigned char*>(words), count, values);
    if (!flushes || element_bytes(type) != 2) return;
    const float least = type == KernelDType::fp16 ? 0x1p-14F : 0x1p-126F;
    for (int i = 0; i < count; ++i) {
        if (std::fabs(values[i]) < least) values[i] = 0;
    }
}

}  // namespace

void Grid::multiply_squares(KernelDType a_type, KernelDType b_type, int side, void* sums, const unsigned* a,
                            const unsigned* b) {
    if (spec_.lanes != kWave) fault("MFMA needs waves of 64 lanes");
    SquareArguments mine{sums, a, b};
    meet("MFMA", &mine, [&](const auto& lanes) {
        const int chunks = kWave / side, each = kLaneBytes / element_bytes(a_type), depth = chunks * each;
        const auto arguments = [&](int lane) -> const SquareArguments& {
            return *static_cast<SquareArguments*>(lanes[static_cast<std::size_t>(lane)]);
        };
        // Rows of A and columns of B side by side, a chunk of k after the other.
        std::vector<float> rows(static_cast<std::size_t>(side * depth)), columns(rows.size());
        for (int lane = 0; lane < kWave; ++lane) {
            const int first = lane % side * depth + lane / side * each;
            const auto at = static_cast<std::size_t>(first);
            lane_values(a_type, arguments(lane).a, spec_.flushes_subnormals, &rows[at]);
            lane_values(b_type, arguments(lane).b, spec_.flushes_subnormals, &columns[at]);
        }
        for (int lane = 0; lane < kWave; ++lane) {
            for (int i = 0; i < side * side / kWave; ++i) {
                const int row = kRun * (lane / side) + i % kRun + kRun * chunks * (i / kRun);
                const int x_first = row * depth, y_first = lane % side * depth;
                const float* const x = &rows[static_cast<std::size_t>(x_first)];
                const float* const y = &columns[static_cast<std::size_t>(y_first)];
                char* const place = static_cast<char*>(arguments(lane).sums) + 4 * i;
                if (a_type == KernelDType::int8) {
                    int sum = 0;  // as whole numbers: fp32 does not have the sum before
                    for (int k = 0; k < depth; ++k) sum += static_cast<int>(x[k] * y[k]);
                    std::uint32_t before = 0;
                    std::memcpy(&before, place, 4);
                    before += static_cast<std::uint32_t>(sum);
                    std::memcpy(place, &before, 4);
                } else {
                    float sum = 0;
                    std::memcpy(&sum, place, 4);
                    for (int k = 0; k < depth; ++k) sum += x[k] * y[k];
                    std::memcpy(place, &sum, 4);
                }
            }
        }
    });
}

}  // namespace tilewise::emulated
