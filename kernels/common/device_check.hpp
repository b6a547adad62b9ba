// SPDX-License-Identifier: MIT
// The host and the kernels that check a large result on its device share this header. Both kernels (gpu/fill.hpp,
// gpu/reference.hpp) are launched like any other, with one KernelArgs; its `workspace` holds the device address of one
// of the structs here: a BufferTask, or CheckParameters. A host reads the outcome back from there.
#pragma once
#include "finish.hpp"
#include "random.hpp"

namespace tilewise {

using CheckBits = unsigned long long;
inline constexpr CheckBits kNowhere = ~0ull;

// ---- One buffer with its guards: filling it, and looking at what became of it ----

enum class BufferAction : int {
    guard,    // the guard pattern everywhere
    random,   // the rows, by random_value; element i of all rows, counted in order, is number i of the seed
    poison,   // the rows, as never written
    inspect,  // a checksum of all, and the first byte outside of the rows that is not the guard pattern
    compare,  // the rows with those of a result that is right
};

inline constexpr CheckBits kGuardWord = kNowhere;  // eight guard bytes

// Rows of neighbouring elements within `whole_bytes` of memory, a multiple of 8; matrices do not overlap.
struct BufferTask {
    BufferAction action;
    KernelDType type;
    unsigned char* memory;
    Index whole_bytes, front_bytes;
    Index matrices, rows, row_length, leading, between;  // as StoredRows, in elements
    double low, width;
    int whole_numbers;
    CheckBits seed;
    // inspect adds to the one and lowers the other; the host sets them to 0 and kNowhere before.
    CheckBits checksum;
    CheckBits first_damage;  // bytes from `memory`
    // What is known to be right lies as `memory` does; another right result is at most so far apart before both are rounded.
    const unsigned char* known;
    double apart;
    // compare adds to the one and lowers the other; the host sets them to 0 and kNowhere before.
    CheckBits failed;
    CheckBits least_flipped_error;  // the bits of a largest error, flipped: the least of them is of the largest
};

inline CheckBits flipped_bits(double error) { return ~__builtin_bit_cast(CheckBits, error); }
inline double unflipped(CheckBits bits) { return __builtin_bit_cast(double, ~bits); }

// Where element i of all rows, counted in order, begins: bytes from `memory`.
constexpr Index element_place(const BufferTask& task, Index i) {
    const Index line = i / task.row_length, col = i - line * task.row_length;
    const Index matrix = line / task.rows, row = line - matrix * task.rows;
    return task.front_bytes + (matrix * task.between + row * task.leading + col) * element_bytes(task.type);
}

enum class BytePlace : int { in_a_row, before, behind, between_rows, between_matrices };
// Says what the byte so far from `memory` belongs to.
constexpr BytePlace byte_place(const BufferTask& task, Index byte) {
    if (byte < task.front_bytes) return BytePlace::before;
    const Index at = (byte - task.front_bytes) / element_bytes(task.type);
    const Index span = (task.rows - 1) * task.leading + task.row_length;
    if (at >= (task.matrices - 1) * task.between + span) return BytePlace::behind;
    const Index matrix = task.matrices > 1 ? at / task.between : 0, within = at - matrix * task.between;
    if (within >= span) return BytePlace::between_matrices;
    return within % task.leading < task.row_length ? BytePlace::in_a_row : BytePlace::between_rows;
}

// The first byte of the eight at `byte` that a kernel must not have touched and that is no longer a guard.
constexpr CheckBits damage_in(const BufferTask& task, CheckBits word, Index byte) {
    if (word == kGuardWord) return kNowhere;
    for (int i = 0; i < 8; ++i) {
        if ((word >> (8 * i) & 0xff) == 0xff || byte_place(task, byte + i) == BytePlace::in_a_row) continue;
        return static_cast<CheckBits>(byte + i);
    }
    return kNowhere;
}

// ---- The result against the reference ----

inline constexpr int kCheckThreads = 256;  // of a block
inline constexpr int kCheckTile = 64;      // rows and columns of C that a block judges at a time

// An account tells what was found in some of the elements. An index counts elements by batch, row and column.
struct CheckAccount {
    CheckBits checked = 0, failed = 0;
    CheckBits first = kNowhere;  // the first that failed, and what it is
    double expected = 0, got = 0, tolerance = 0;
    CheckBits unwritten = 0;  // whether it still holds the poison
    // The worst in relation to what it may be off by, the first of equals.
    CheckBits worst = kNowhere;
    double max_ratio = -1, max_error = 0, allowed = 0;
    double most_apart = 0;  // the largest bound of an error, before rounding
};

struct CheckParameters {
    ErrorModel model;
    FinishSteps steps;
    KernelDType a, b, out;
    const void* original_c;  // what C was, with its strides; read only if steps.beta is not 0
    CheckAccount* accounts;  // one for each thread of the launch
};

inline void take_worse(CheckAccount& account, CheckBits index, double ratio, double error, double allowed) {
    if (ratio < account.max_ratio || (ratio == account.max_ratio && index > account.worst)) return;
    account.worst = index;
    account.max_ratio = ratio, account.max_error = error, account.allowed = allowed;
}

inline void take_failure(CheckAccount& account, const CheckAccount& from) {
    if (from.first >= account.first) return;
    account.first = from.first;
    account.expected = from.expected, account.got = from.got, account.tolerance = from.tolerance;
    account.unwritten = from.unwritten;
}

// Judges one element, given its bits.
inline void take_element(CheckAccount& account, CheckBits index, KernelDType out, Bounded expected, unsigned bits) {
    const double got = decode(out, bits);
    const bool right = agrees(out, expected, got);
    const double error = error_of(expected, got, right), tolerance = tolerance_of(out, expected);
    ++account.checked;
    account.most_apart = greater(account.most_apart, expected.error);
    take_worse(account, index, ratio_of(error, tolerance, right), error, tolerance);
    if (right) return;
    ++account.failed;
    CheckAccount failure;
    failure.first = index;
    failure.expected = expected.value, failure.got = got, failure.tolerance = tolerance;
    failure.unwritten = bits == poison_bits(out) ? 1 : 0;
    take_failure(account, failure);
}

inline void merge(CheckAccount& account, const CheckAccount& other) {
    account.checked += other.checked;
    account.failed += other.failed;
    account.most_apart = greater(account.most_apart, other.most_apart);
    take_failure(account, other);
    take_worse(account, other.worst, other.max_ratio, other.max_error, other.allowed);
}

}  // namespace tilewise
