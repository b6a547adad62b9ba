// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_rows.hpp"

#include <algorithm>
#include <cstddef>

namespace tilewise {
namespace {

using namespace cuda_driver;

CUmemcpy3D::Side side(const void* memory, std::int64_t row_pitch, std::int64_t block_pitch, const RowCopy& copy) {
    CUmemcpy3D::Side result{};
    result.memory_type = kDeviceMemory;
    result.device = reinterpret_cast<CUdeviceptr>(memory);
    result.pitch = static_cast<std::size_t>(std::max(row_pitch, copy.row_bytes));
    result.height = static_cast<std::size_t>(copy.blocks == 1 ? copy.rows : block_pitch / row_pitch);
    return result;
}

// The driver copies boxes: rows behind one another, in slices that begin a whole number of rows apart.
bool is_box(std::int64_t row_pitch, std::int64_t block_pitch, const RowCopy& copy) {
    const bool apart = copy.rows == 1 || row_pitch >= copy.row_bytes;
    const bool whole = copy.blocks == 1 || (row_pitch >= copy.row_bytes && block_pitch % row_pitch == 0 &&
                                            block_pitch / row_pitch >= copy.rows);
    return apart && whole;
}

Status copy_box(const Driver& driver, const RowCopy& copy, CUstream stream) {
    CUmemcpy3D box{};
    box.from = side(copy.from, copy.from_row_pitch, copy.from_block_pitch, copy);
    box.to = side(copy.to, copy.to_row_pitch, copy.to_block_pitch, copy);
    box.width_bytes = static_cast<std::size_t>(copy.row_bytes);
    box.height = static_cast<std::size_t>(copy.rows);
    box.depth = static_cast<std::size_t>(copy.blocks);
    return driver.check(driver.memcpy_3d_async(&box, stream), "cuMemcpy3DAsync");
}

}  // namespace

Status copy_cuda_rows(const Driver& driver, const RowCopy& copy, CUstream stream) {
    if (copy.row_bytes == 0 || copy.rows == 0 || copy.blocks == 0) return {};
    if (copy.rows == 1 && copy.blocks == 1) {  // of any length; boxes are narrower than 2 GiB
        return driver.check(
            driver.memcpy_async(reinterpret_cast<CUdeviceptr>(copy.to), reinterpret_cast<CUdeviceptr>(copy.from),
                                static_cast<std::size_t>(copy.row_bytes), stream),
            "cuMemcpyAsync");
    }
    if (is_box(copy.from_row_pitch, copy.from_block_pitch, copy) &&
        is_box(copy.to_row_pitch, copy.to_block_pitch, copy)) {
        return copy_box(driver, copy, stream);
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
        if (auto status = copy_cuda_rows(driver, piece, stream); !status) return status;
    }
    return {};
}

Status clear_cuda_rows(const Driver& driver, void* memory, std::int64_t pitch, std::int64_t row_bytes,
                       std::int64_t rows, CUstream stream) {
    if (row_bytes == 0 || rows == 0) return {};
    return driver.check(
        driver.memset_2d_async(reinterpret_cast<CUdeviceptr>(memory), static_cast<std::size_t>(pitch), 0,
                               static_cast<std::size_t>(row_bytes), static_cast<std::size_t>(rows), stream),
        "cuMemsetD2D8Async");
}

}  // namespace tilewise
