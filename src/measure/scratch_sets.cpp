// SPDX-License-Identifier: MIT
#include "measure/scratch_sets.hpp"

#include <algorithm>

#include "measure/device_memory.hpp"
#include "measure/random_fill.hpp"
#include "measure/tensors.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Random elements of one type on the device, from which buffers of any length are filled.
struct Pattern {
    static constexpr std::int64_t kElements = std::int64_t{1} << 20;

    static Result<GuardedBuffer> make(DType type, Range range, std::uint64_t seed) {
        auto buffer = GuardedBuffer::make("pattern", type, StoredRows{1, 1, kElements, kElements, kElements}, 64);
        if (buffer) fill_random(*buffer, range, seed);
        return buffer;
    }
};

class Filler {
public:
    Filler(Device& device, std::vector<std::shared_ptr<void>>& memory) : device_(device), memory_(memory) {}

    // The first stretch comes from the host, the rest from what is there already.
    Result<void*> filled(DType type, std::int64_t elements, bool is_scale) {
        auto memory = device_memory(device_, elements * bytes_of(type));
        if (!memory) return memory.error();
        memory_.push_back(*memory);
        auto* begin = static_cast<std::byte*>(memory->get());
        auto pattern = Pattern::make(type, is_scale ? kScaleRange : operand_range(type), ++seed_);
        if (!pattern) return pattern.error();
        const std::int64_t total = elements * bytes_of(type);
        std::int64_t done = std::min(total, pattern->bytes());
        auto status = device_.copy(begin, pattern->data(), static_cast<std::size_t>(done), kDefaultStream);
        while (status && done < total) {
            const std::int64_t next = std::min(done, total - done);
            status = device_.copy(begin + done, begin, static_cast<std::size_t>(next), kDefaultStream);
            done += next;
        }
        if (!status) return status.error();
        return static_cast<void*>(begin);
    }

private:
    Device& device_;
    std::vector<std::shared_ptr<void>>& memory_;
    std::uint64_t seed_ = 0;
};

Result<Operands> make_set(const Problem& p, Filler& filler) {
    Operands o;
    Status status;
    const auto put = [&](auto& pointer, DType type, std::int64_t elements, bool is_scale = false) {
        if (!status) return;
        auto memory = filler.filled(type, elements, is_scale);
        if (memory) {
            pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(*memory);
        } else {
            status = memory.error();
        }
    };
    put(o.a, p.dtype_a, stored_rows(p, 0).span());
    put(o.b, p.dtype_b, stored_rows(p, 1).span());
    put(o.c, p.dtype_out, stored_rows(p, 2).span());
    if (has_bias(p)) {
        put(o.bias, p.dtype_out, bias_length(p));
    }
    if (p.scale != Scale::none) {
        put(o.scale_a, DType::fp32, p.scale == Scale::row ? p.gemm.m : 1, true);
        put(o.scale_b, DType::fp32, p.scale == Scale::row ? p.gemm.n : 1, true);
    }
    for (std::size_t i = 0; i < d_count(p); ++i) put(o.d[i], p.dtype_out, stored_rows(p, 2).span());
    if (!status) return status.error();
    return o;
}

std::int64_t set_bytes(const Problem& p) {
    std::int64_t bytes = 0;
    for (int operand = 0; operand < 3; ++operand) {
        const DType type = operand == 0 ? p.dtype_a : operand == 1 ? p.dtype_b : p.dtype_out;
        const auto copies = static_cast<std::int64_t>(operand == 2 ? 1 + d_count(p) : 1);
        bytes += stored_rows(p, operand).span() * bytes_of(type) * copies;
    }
    return bytes;
}

}  // namespace

Result<ScratchSets> ScratchSets::make(const Problem& p, Device& device, std::int64_t cache_bytes,
                                      std::int64_t max_bytes, int most_sets) {
    // The set in use is in the cache, so the others alone must exceed it.
    const std::int64_t each = std::max<std::int64_t>(set_bytes(p), 1);
    const std::int64_t wanted = 2 + cache_bytes / each, allowed = std::max<std::int64_t>(1, max_bytes / each);
    const std::int64_t count = std::min({wanted, allowed, std::int64_t{most_sets}});
    ScratchSets made;
    Filler filler(device, made.memory_);
    for (std::int64_t i = 0; i < count; ++i) {
        auto set = make_set(p, filler);
        if (!set) return set.error();
        made.sets_.push_back(*set);
    }
    return made;
}

}  // namespace tilewise
