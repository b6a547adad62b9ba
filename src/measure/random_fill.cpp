// SPDX-License-Identifier: MIT
#include "measure/random_fill.hpp"

#include <algorithm>
#include <array>

#include "measure/element.hpp"

namespace tilewise {

Range operand_range(DType type) {
    switch (type) {
        case DType::int8: return {-127, 127};
        case DType::int32: return {-1000, 1000};
        default: return {-1, 1};
    }
}

Draw draw_of(DType type, Range range) {
    const bool whole = type == DType::int8 || type == DType::int32;
    // A whole number stands for the interval of length one that starts at it, so that all are equally likely.
    return {range.low, range.high - range.low + (whole ? 1 : 0), whole};
}

void fill_random(const GuardedBuffer& buffer, Range range, std::uint64_t seed) {
    const StoredRows& shape = buffer.shape();
    const DType type = buffer.type();
    const Draw draw = draw_of(type, range);
    std::array<double, 1024> values{};
    std::uint64_t counter = 0;
    for (std::int64_t r = 0; r < shape.matrices * shape.rows; ++r) {
        std::byte* row = buffer.row(r / shape.rows, r % shape.rows);
        for (std::int64_t done = 0; done < shape.row_length;) {
            const std::int64_t count = std::min<std::int64_t>(shape.row_length - done, values.size());
            for (std::int64_t i = 0; i < count; ++i) {
                values[static_cast<std::size_t>(i)] = random_value(draw.low, draw.width, draw.whole, seed, counter++);
            }
            encode(type, values.data(), count, row + done * bytes_of(type));
            done += count;
        }
    }
}

}  // namespace tilewise
