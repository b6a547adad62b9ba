// SPDX-License-Identifier: MIT
// Short ways to the ops for calls from Python, which spends most of its time on arguments: no epilogue, operands as autocast
// wants them, and the geometry of a convolution by a number that it was given before. They are made of the ops, so gradients,
// tracing and memory formats are theirs.
#pragma once

#include <ATen/autocast_mode.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "autograd.hpp"

namespace tilewise_torch {

// A TypeError sends the caller the longer way, which knows what to do with other tensors.
inline void check_strided(const at::Tensor& x, const char* name) {
    TORCH_CHECK_TYPE(x.layout() == at::kStrided && !x.is_nested(), name, ": a tensor of layout ", x.layout(),
                     x.is_nested() ? ", nested," : "", " has no plain memory");
}

// What torch.autocast makes of operands: as torch's own ops have them, weights cast once.
class Cast {
public:
    explicit Cast(const at::Tensor& x) : device_(x.device().type()) {
        TORCH_CHECK_TYPE(device_ == at::kCPU || device_ == at::kCUDA, "x is on ", x.device());
        is_on_ = at::autocast::is_autocast_enabled(device_);
        if (is_on_) dtype_ = at::autocast::get_autocast_dtype(device_);
    }

    bool is_on() const { return is_on_; }
    at::Tensor operator()(const at::Tensor& x) const { return at::autocast::cached_cast(dtype_, x, device_); }
    OptionalTensor operator()(const OptionalTensor& x) const { return has(x) ? OptionalTensor((*this)(*x)) : x; }

private:
    c10::DeviceType device_;
    bool is_on_ = false;
    at::ScalarType dtype_ = at::kFloat;
};

// Geometries by number, read without a lock: entries are added, and never changed or taken away.
class KeptGeometries {
public:
    // stride, before, after and dilation of `dims` numbers each. -1 when there is no more room.
    static int64_t add(std::size_t dims, const int64_t* numbers, int64_t groups) {
        static std::mutex mutex;
        static int64_t count = 0;
        auto kept = std::make_unique<const Kept>(Kept{dims, {numbers, numbers + 4 * dims}, groups});
        const std::lock_guard lock(mutex);
        if (count == static_cast<int64_t>(kMost)) return -1;
        places()[static_cast<std::size_t>(count)].store(kept.release(), std::memory_order_release);
        return count++;
    }

    static at::Tensor conv(const at::Tensor& x, const at::Tensor& w, const OptionalTensor& bias, int64_t number) {
        check_strided(x, "x"), check_strided(w, "w");
        TORCH_CHECK_VALUE(number >= 0 && number < static_cast<int64_t>(kMost), "geometry: ", number, "; need 0 to ",
                          kMost - 1);
        const Kept* kept = places()[static_cast<std::size_t>(number)].load(std::memory_order_acquire);
        TORCH_CHECK_VALUE(kept, "geometry: ", number, " was never given");
        const Cast cast(x);
        return cast.is_on() ? kept->conv(cast(x), cast(w), cast(bias)) : kept->conv(x, w, bias);
    }

private:
    static constexpr std::size_t kMost = 4096;

    struct Kept {
        std::size_t dims;
        std::vector<int64_t> numbers;
        int64_t groups;

        at::Tensor conv(const at::Tensor& x, const at::Tensor& w, const OptionalTensor& bias) const {
            const auto part = [&](std::size_t index) {
                return c10::fromIntArrayRefSlow(at::IntArrayRef(numbers).slice(index * dims, dims));
            };
            const bool is_one_image = x.dim() == static_cast<int64_t>(dims) + 1;  // without a batch
            const at::Tensor y = conv_op().call(is_one_image ? x.unsqueeze(0) : x, w, bias, {}, part(0), part(1),
                                                part(2), part(3), groups, "");
            return is_one_image ? y.squeeze(0) : y;
        }
    };

    static std::array<std::atomic<const Kept*>, kMost>& places() {
        static std::array<std::atomic<const Kept*>, kMost> all{};
        return all;
    }
};

inline at::Tensor quick_linear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias) {
    check_strided(x, "x"), check_strided(weight, "weight");
    const Cast cast(x);
    return cast.is_on() ? linear_op().call(cast(x), cast(weight), cast(bias), {}, "")
                        : linear_op().call(x, weight, bias, {}, "");
}

}  // namespace tilewise_torch
