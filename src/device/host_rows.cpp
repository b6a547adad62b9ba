// SPDX-License-Identifier: MIT
#include "device/host_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/cpu/thread_pool.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kBytesWorthAThread = 256 * 1024;  // less is copied before another thread has woken up

// A copy cut into parts of equal size: whole rows, or where these are few, pieces of each of them.
struct Job {
    RowCopy copy;  // from null: zeros
    std::int64_t all_rows = 0;
    int parts = 1;

    bool by_rows() const { return all_rows >= parts; }
};

void do_rows(const RowCopy& c, std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end) {
    auto* const to = static_cast<std::byte*>(c.to);
    const auto* const from = static_cast<const std::byte*>(c.from);
    const auto bytes = static_cast<std::size_t>(end - begin);
    std::int64_t block = first / c.rows, row = first % c.rows;
    for (std::int64_t i = first; i < last; ++i) {
        std::byte* const target = to + block * c.to_block_pitch + row * c.to_row_pitch + begin;
        if (from) {
            std::memcpy(target, from + block * c.from_block_pitch + row * c.from_row_pitch + begin, bytes);
        } else {
            std::memset(target, 0, bytes);
        }
        if (++row == c.rows) row = 0, ++block;
    }
}

void do_part(void* context, int index) {
    const Job& job = *static_cast<const Job*>(context);
    const auto share = [&](std::int64_t all, int part) {
        return all / job.parts * part + all % job.parts * part / job.parts;
    };
    const std::int64_t rows = job.all_rows, bytes = job.copy.row_bytes;
    if (job.by_rows()) {
        do_rows(job.copy, share(rows, index), share(rows, index + 1), 0, bytes);
    } else {
        do_rows(job.copy, 0, rows, share(bytes, index), share(bytes, index + 1));
    }
}

}  // namespace

void copy_host_rows(const RowCopy& copy, int threads) {
    Job job{copy, copy.rows * copy.blocks};
    const std::int64_t bytes = job.all_rows * copy.row_bytes;
    if (bytes <= 0) return;
    job.parts = static_cast<int>(std::clamp<std::int64_t>(bytes / kBytesWorthAThread, 1, std::max(1, threads)));
    if (job.parts == 1) return do_part(&job, 0);
    ThreadPool::instance().run(job.parts, job.parts, do_part, &job);
}

void clear_host_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows, int threads) {
    RowCopy zeros;
    zeros.to = memory;
    zeros.row_bytes = row_bytes, zeros.rows = rows, zeros.to_row_pitch = pitch;
    copy_host_rows(zeros, threads);
}

}  // namespace tilewise
