// SPDX-License-Identifier: MIT
// Copying and clearing rows on a GPU: calls of the driver that go into the stream and are recorded by a capture. The context must be
// current.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "device/device.hpp"
#include "device/gpu/gpu_box.hpp"

namespace tilewise {

// Whether rows of this pitch, in blocks of that, are a box.
inline bool is_box(std::int64_t row_pitch, std::int64_t block_pitch, const RowCopy& copy) {
    const bool apart = copy.rows == 1 || row_pitch >= copy.row_bytes;
    const bool whole = copy.blocks == 1 || (row_pitch >= copy.row_bytes && block_pitch % row_pitch == 0 &&
                                            block_pitch / row_pitch >= copy.rows);
    return apart && whole;
}

inline GpuBox::Side box_side(const void* memory, std::int64_t row_pitch, std::int64_t block_pitch,
                             const RowCopy& copy) {
    return {const_cast<void*>(memory), static_cast<std::size_t>(std::max(row_pitch, copy.row_bytes)),
            static_cast<std::size_t>(copy.blocks == 1 ? copy.rows : block_pitch / row_pitch)};
}

template <class Driver>
Status copy_gpu_rows(const Driver& driver, const RowCopy& copy, typename Driver::Stream stream) {
    if (copy.row_bytes == 0 || copy.rows == 0 || copy.blocks == 0) return {};
    if (copy.rows == 1 && copy.blocks == 1) {  // of any length; boxes are narrower than 2 GiB
        return driver.check(driver.copy_bytes(copy.to, copy.from, static_cast<std::size_t>(copy.row_bytes), stream),
                            "MemcpyAsync");
    }
    if (is_box(copy.from_row_pitch, copy.from_block_pitch, copy) &&
        is_box(copy.to_row_pitch, copy.to_block_pitch, copy)) {
        const GpuBox box = {box_side(copy.from, copy.from_row_pitch, copy.from_block_pitch, copy),
                            box_side(copy.to, copy.to_row_pitch, copy.to_block_pitch, copy),
                            static_cast<std::size_t>(copy.row_bytes), static_cast<std::size_t>(copy.rows),
                            static_cast<std::size_t>(copy.blocks)};
        return driver.check(driver.copy_box(box, stream), "Memcpy3DAsync");
    }
    // Block by block; within a block, rows that overlap one by one.
    const bool by_block = copy.blocks > 1;
    const std::int64_t pieces = by_block ? copy.blocks : copy.rows;
    const std::int64_t to_pitch = by_block ? copy.to_block_pitch : copy.to_row_pitch;
    const std::int64_t from_pitch = by_block ? copy.from_block_pitch : copy.from_row_pitch;
    RowCopy piece = copy;
    (by_block ? piece.blocks : piece.rows) = 1;
    for (std::int64_t i = 0; i < pieces; ++i) {
        piece.to = static_cast<std::byte*>(copy.to) + i * to_pitch;
        piece.from = static_cast<const std::byte*>(copy.from) + i * from_pitch;
        if (auto status = copy_gpu_rows(driver, piece, stream); !status) return status;
    }
    return {};
}

template <class Driver>
Status clear_gpu_rows(const Driver& driver, void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows,
                      typename Driver::Stream stream) {
    if (row_bytes == 0 || rows == 0) return {};
    return driver.check(
        driver.memset_2d_async(memory, static_cast<std::size_t>(pitch), 0, static_cast<std::size_t>(row_bytes),
                               static_cast<std::size_t>(rows), stream),
        "Memset2DAsync");
}

}  // namespace tilewise
