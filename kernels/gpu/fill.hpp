// SPDX-License-Identifier: MIT
// Fills a guarded buffer on the device, with the very bits that the host would have put there, and looks at it after a
// kernel ran. One launch does one BufferTask (../common/device_check.hpp), with any number of blocks of any size. On a
// host, who includes this says what the machine's functions are (tests/measure/gpu_twin.hpp).
#pragma once
#include "../common/device_check.hpp"
#include "types.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE void store_bits(unsigned char* at, u32 bits, int bytes) {
    if (bytes == 4) *reinterpret_cast<u32*>(at) = bits;
    if (bytes == 2) *reinterpret_cast<u16*>(at) = u16(bits);
    if (bytes == 1) *at = u8(bits);
}

struct EveryThread {  // of the launch: where this one begins, and how far apart its turns are
    Index first, step;
};
TILEWISE_DEVICE EveryThread every_thread() {
    return {Index(block_index()) * block_threads() + thread_index(), Index(block_count()) * block_threads()};
}

TILEWISE_DEVICE void write_guards(const BufferTask& task, EveryThread turn) {
    u64* words = reinterpret_cast<u64*>(task.memory);
    for (Index i = turn.first; i < task.whole_bytes / 8; i += turn.step) words[i] = kGuardWord;
}

TILEWISE_DEVICE void write_rows(const BufferTask& task, EveryThread turn) {
    const Index total = task.matrices * task.rows * task.row_length;
    const bool random = task.action == BufferAction::random;
    TILEWISE_ROLLED
    for (Index i = turn.first; i < total; i += turn.step) {
        u32 bits = poison_bits(task.type);
        if (random) {
            const double value = random_value(task.low, task.width, task.whole_numbers != 0, task.seed, u64(i));
            bits = encode(task.type, value);
        }
        store_bits(task.memory + element_place(task, i), bits, element_bytes(task.type));
    }
}

TILEWISE_DEVICE void inspect(const BufferTask& task, EveryThread turn, u64* checksum, u64* first_damage) {
    const u64* words = reinterpret_cast<const u64*>(task.memory);
    u64 sum = 0, damage = kNowhere;
    TILEWISE_ROLLED
    for (Index i = turn.first; i < task.whole_bytes / 8; i += turn.step) {
        const u64 word = words[i];
        sum += random_bits(word, u64(i));
        const u64 found = damage_in(task, word, 8 * i);
        damage = found < damage ? found : damage;
    }
    atomicAdd(checksum, sum);
    if (damage != kNowhere) atomicMin(first_damage, damage);
}

TILEWISE_DEVICE u32 load_bits(const unsigned char* at, int bytes) {
    if (bytes == 4) return *reinterpret_cast<const u32*>(at);
    return bytes == 2 ? *reinterpret_cast<const u16*>(at) : *at;
}

TILEWISE_DEVICE void compare(const BufferTask& task, EveryThread turn, u64* failed, u64* least_flipped_error) {
    const Index total = task.matrices * task.rows * task.row_length;
    const int bytes = element_bytes(task.type);
    u64 wrong = 0;
    double most = 0;
    TILEWISE_ROLLED
    for (Index i = turn.first; i < total; i += turn.step) {
        const Index place = element_place(task, i);
        const u32 have = load_bits(task.memory + place, bytes), want = load_bits(task.known + place, bytes);
        if (have == want) continue;
        const double got = decode(task.type, have);
        const Bounded expected = beside(task.type, decode(task.type, want), task.apart);
        const bool right = agrees(task.type, expected, got);
        wrong += right ? 0 : 1;
        most = greater(most, error_of(expected, got, right));
    }
    if (wrong) atomicAdd(failed, wrong);
    if (most > 0) atomicMin(least_flipped_error, u64(flipped_bits(most)));
}

TILEWISE_DEVICE void do_buffer_task(const KernelArgs& args) {
    griddep_wait();
    BufferTask* shared_task = static_cast<BufferTask*>(args.workspace);
    const BufferTask task = *shared_task;
    const EveryThread turn = every_thread();
    switch (task.action) {
        case BufferAction::guard: return write_guards(task, turn);
        case BufferAction::random:
        case BufferAction::poison: return write_rows(task, turn);
        case BufferAction::inspect: return inspect(task, turn, &shared_task->checksum, &shared_task->first_damage);
        case BufferAction::compare: return compare(task, turn, &shared_task->failed, &shared_task->least_flipped_error);
    }
}

}  // namespace tilewise::gpu

#define TILEWISE_GPU_FILL()                                                                         \
    extern "C" __global__ void tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) { \
        tilewise::gpu::do_buffer_task(args);                                                        \
    }
