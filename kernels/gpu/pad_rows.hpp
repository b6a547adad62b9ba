// SPDX-License-Identifier: MIT
// Pads and crops tensors for kernels that need longer rows: the tasks of ../common/row_tasks.hpp, one after the other, by any number of
// blocks of any size. Padding to whole chunks of 16 bytes reads each byte once or twice; padding to shorter rows, and cropping, read
// single elements, which lie side by side for the threads of a warp. All write whole chunks.
#pragma once
#include "../common/args.hpp"
#include "../common/row_tasks.hpp"
#include "unaligned_chunk.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE char* pointer_of(RowAddress address) {
    return reinterpret_cast<char*>(u64(address.high) << 32 | address.low);
}

template <int bytes>
TILEWISE_DEVICE u32 load_bits(const char* from) {
    if constexpr (bytes == 4) {
        return load_global<4>(from).words[0];
    } else {
        return load_global<bytes>(from).value;
    }
}
template <int bytes>
TILEWISE_DEVICE void store_bits(char* to, u32 bits) {
    if constexpr (bytes == 4) {
        store_global<4>(to, Packet<4>{{bits}});
    } else {
        store_global<bytes>(to, Packet<bytes>{decltype(Packet<bytes>::value)(bits)});
    }
}

struct RowTurn {  // where a thread begins, and how far apart its chunks are
    int first, step;
};

TILEWISE_DEVICE void pad_rows(const RowTask& task, RowTurn turn) {
    const char* const from = pointer_of(task.narrow);
    char* const to = pointer_of(task.wide);
    const Index end =
        Index(task.blocks - 1) * task.block_pitch + Index(task.rows - 1) * task.row_pitch + task.row_bytes;
    const InnerChunks inner = InnerChunks::of(from, end);
    TILEWISE_ROLLED
    for (int at = turn.first; at < task.bytes / kRowChunkBytes; at += turn.step) {
        const int row = task.by_row.quotient(at), block = task.by_rows.quotient(row);
        const int first = at * kRowChunkBytes - row * task.wide_row_bytes, row_in_block = row - block * task.wide_rows;
        int left = block < task.blocks && row_in_block < task.rows ? task.row_bytes - first : 0;
        left = left < 0 ? 0 : left > kRowChunkBytes ? kRowChunkBytes : left;
        UnalignedChunk chunk;
        chunk.load<1>(from + Index(block) * task.block_pitch + Index(row_in_block) * task.row_pitch + first, left,
                      inner);
        store_global<kRowChunkBytes>(to + Index(at) * kRowChunkBytes, chunk.joined());
    }
}

// Each thread puts a chunk of the wide tensor together, of several rows. The tensor's last chunk may end behind it.
template <int element_bytes>
TILEWISE_DEVICE void pad_elements(const RowTask& task, RowTurn turn) {
    constexpr int elements = kRowChunkBytes / element_bytes, in_word = 4 / element_bytes;
    const char* const from = pointer_of(task.narrow);
    char* const to = pointer_of(task.wide);
    TILEWISE_ROLLED
    for (int at = turn.first; at < (task.bytes + kRowChunkBytes - 1) / kRowChunkBytes; at += turn.step) {
        int row = task.by_row.quotient(at * kRowChunkBytes), column = at * kRowChunkBytes - row * task.wide_row_bytes;
        int block = task.by_rows.quotient(row), row_in_block = row - block * task.wide_rows;
        Packet<kRowChunkBytes> chunk = zero_packet<kRowChunkBytes>();
        TILEWISE_UNROLL
        for (int i = 0; i < elements; ++i) {
            if (block < task.blocks && row_in_block < task.rows && column < task.row_bytes) {
                const char* source =
                    from + Index(block) * task.block_pitch + Index(row_in_block) * task.row_pitch + column;
                chunk.words[i / in_word] |= load_bits<element_bytes>(source) << (i % in_word * element_bytes * 8);
            }
            column += element_bytes;
            if (column == task.wide_row_bytes) column = 0, ++row_in_block;
            if (row_in_block == task.wide_rows) row_in_block = 0, ++block;
        }
        store_global<kRowChunkBytes>(to + Index(at) * kRowChunkBytes, chunk);
    }
}

// Each thread puts a chunk of the narrow tensor together; it may end one row and begin others.
template <int element_bytes>
TILEWISE_DEVICE void crop_rows(const RowTask& task, RowTurn turn) {
    constexpr int elements = kRowChunkBytes / element_bytes, in_word = 4 / element_bytes;
    const char* const from = pointer_of(task.wide);
    char* const to = pointer_of(task.narrow);
    const int skew =
        int(reinterpret_cast<u64>(to) % kRowChunkBytes);  // chunks are the memory's, so the first may be a part
    TILEWISE_ROLLED
    for (int at = turn.first; at < (task.bytes + skew + kRowChunkBytes - 1) / kRowChunkBytes; at += turn.step) {
        const int begin = at * kRowChunkBytes - skew, inside = begin < 0 ? 0 : begin;
        int row = task.by_row.quotient(inside), column = inside - row * task.row_bytes;
        int block = task.by_rows.quotient(row), row_in_block = row - block * task.rows;
        Packet<kRowChunkBytes> chunk = zero_packet<kRowChunkBytes>();
        TILEWISE_UNROLL
        for (int i = 0; i < elements; ++i) {
            const int byte = begin + i * element_bytes;
            if (byte < 0 || byte >= task.bytes) continue;
            const char* source = from + (Index(block) * task.wide_rows + row_in_block) * task.wide_row_bytes + column;
            chunk.words[i / in_word] |= load_bits<element_bytes>(source) << (i % in_word * element_bytes * 8);
            column += element_bytes;
            if (column == task.row_bytes) column = 0, ++row_in_block;
            if (row_in_block == task.rows) row_in_block = 0, ++block;
        }
        if (begin >= 0 && begin + kRowChunkBytes <= task.bytes) {
            store_global<kRowChunkBytes>(to + begin, chunk);
            continue;
        }
        TILEWISE_UNROLL
        for (int i = 0; i < elements; ++i) {
            const int byte = begin + i * element_bytes;
            if (byte < 0 || byte >= task.bytes) continue;
            store_bits<element_bytes>(to + byte, chunk.words[i / in_word] >> (i % in_word * element_bytes * 8));
        }
    }
}

template <int element_bytes>
TILEWISE_DEVICE void move_elements(const RowTask& task, RowTurn turn) {
    task.action == RowAction::crop ? crop_rows<element_bytes>(task, turn) : pad_elements<element_bytes>(task, turn);
}

TILEWISE_DEVICE void do_row_tasks(const KernelArgs& args) {
    griddep_launch();
    griddep_wait();
    const RowTasks& tasks = TILEWISE_FAMILY_ARGS(RowTasks, args);
    const int threads = block_threads();
    const RowTurn turn = {int(block_index()) * threads + thread_index(), int(block_count()) * threads};
    TILEWISE_ROLLED
    for (int i = 0; i < tasks.count; ++i) {
        const RowTask& task = tasks.task[i];
        if (task.action == RowAction::pad_chunks) {
            pad_rows(task, turn);
            continue;
        }
        switch (task.element_bytes) {
            case 1: move_elements<1>(task, turn); break;
            case 2: move_elements<2>(task, turn); break;
            default: move_elements<4>(task, turn); break;
        }
    }
}

}  // namespace tilewise::gpu

#define TILEWISE_GPU_PAD_ROWS()                                                                     \
    extern "C" __global__ void tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) { \
        tilewise::gpu::do_row_tasks(args);                                                          \
    }
