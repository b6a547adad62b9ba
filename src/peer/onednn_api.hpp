// SPDX-License-Identifier: MIT
// The part of oneDNN's C API that the benchmarks need, for versions 2 and 3 alike. Everything opaque is a pointer here.
// Version 2 has memory descriptors by value where version 3 has handles; MemoryDesc hides that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "peer/shared_object.hpp"
#include "problem/types.hpp"

namespace tilewise::bench {

using Handle = void*;
using ConstHandle = const void*;

struct OnednnVersion {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
};
struct ExecArg {
    int index;
    Handle memory;
};
inline constexpr int kOk = 0, kCpuEngine = 1, kInOrder = 1, kAnyTag = 1;
inline constexpr int kImplementationQuery = 8, kWeightsQuery = 131, kDiffWeightsQuery = 132;
inline constexpr int kSource = 1, kDestination = 17, kWeights = 33;
inline constexpr int kDiffSource = 129, kDiffDestination = 145, kDiffWeights = 161;
inline constexpr int kForwardTraining = 64, kDirectConvolution = 1;
inline constexpr unsigned kSyclRuntime = 512;
inline constexpr int kUsmMemory = 0;

// A convolution without its tensors: an extent for each spatial dimension. Dilation counts the gaps between taps.
struct ConvGeometry {
    const std::int64_t *strides, *dilates, *pad_before, *pad_after;
};

struct OnednnApi {
    static Result<OnednnApi> load(const std::string& path);

    bool is_v2() const { return version()->major < 3; }
    bool is_sycl() const { return version()->cpu_runtime == kSyclRuntime; }

    // Makes the description of an operation. An output may be in any form.
    int make_matmul(Handle* made, Handle engine, ConstHandle a, ConstHandle b, ConstHandle c) const;
    int make_conv_forward(Handle* made, Handle engine, ConstHandle x, ConstHandle w, ConstHandle y,
                          const ConvGeometry& geometry) const;
    int make_conv_backward_data(Handle* made, Handle engine, ConstHandle dx, ConstHandle w, ConstHandle dy,
                                const ConvGeometry& geometry, ConstHandle forward) const;
    int make_conv_backward_weights(Handle* made, Handle engine, ConstHandle x, ConstHandle dw, ConstHandle dy,
                                   const ConvGeometry& geometry, ConstHandle forward) const;

    const OnednnVersion* (*version)();
    int (*engine_create)(Handle*, int kind, std::size_t index);
    int (*stream_create)(Handle*, Handle engine, unsigned flags);
    int (*stream_wait)(Handle);
    int (*memory_create)(Handle*, ConstHandle desc, Handle engine, void* data);
    int (*memory_create_sycl)(Handle*, ConstHandle desc, Handle engine, int kind, void* data);  // null elsewhere
    int (*memory_destroy)(Handle);
    std::size_t (*desc_size)(ConstHandle);
    int (*desc_from_strides)(void* desc, int dims, const std::int64_t* sizes, int type, const std::int64_t* strides);
    int (*desc_from_tag)(void* desc, int dims, const std::int64_t* sizes, int type, int tag);
    int (*reorder_create)(Handle*, ConstHandle from, Handle from_engine, ConstHandle to, Handle to_engine,
                          ConstHandle attr);
    ConstHandle (*query_desc)(ConstHandle primitive_desc, int what, int index);
    int (*query)(ConstHandle primitive_desc, int what, int index, void* result);
    int (*primitive_create)(Handle*, ConstHandle primitive_desc);
    int (*primitive_destroy)(Handle);
    int (*primitive_desc_destroy)(Handle);
    int (*execute)(ConstHandle primitive, Handle stream, int count, const ExecArg* args);

private:
    using Sizes = const std::int64_t*;  // one value for each spatial dimension
    bool find_v2(const SharedObject& so);
    bool find_v3(const SharedObject& so);

    // Version 2 fills in an operation, then makes its description; version 3 does both at once.
    int (*op_desc_create_)(Handle*, const void* operation, ConstHandle attr, Handle engine, ConstHandle hint);
    int (*matmul_init_)(void*, ConstHandle src, ConstHandle weights, ConstHandle bias, ConstHandle dst);
    int (*forward_init_)(void*, int kind, int algorithm, ConstHandle x, ConstHandle w, ConstHandle bias, ConstHandle y,
                         Sizes strides, Sizes dilates, Sizes before, Sizes after);
    int (*backward_data_init_)(void*, int algorithm, ConstHandle dx, ConstHandle w, ConstHandle dy, Sizes strides,
                               Sizes dilates, Sizes before, Sizes after);
    int (*backward_weights_init_)(void*, int algorithm, ConstHandle x, ConstHandle dw, ConstHandle dbias,
                                  ConstHandle dy, Sizes strides, Sizes dilates, Sizes before, Sizes after);
    int (*matmul_create_)(Handle*, Handle engine, ConstHandle src, ConstHandle weights, ConstHandle bias,
                          ConstHandle dst, ConstHandle attr);
    int (*forward_create_)(Handle*, Handle engine, int kind, int algorithm, ConstHandle x, ConstHandle w,
                           ConstHandle bias, ConstHandle y, Sizes strides, Sizes dilates, Sizes before, Sizes after,
                           ConstHandle attr);
    int (*backward_data_create_)(Handle*, Handle engine, int algorithm, ConstHandle dx, ConstHandle w, ConstHandle dy,
                                 Sizes strides, Sizes dilates, Sizes before, Sizes after, ConstHandle hint,
                                 ConstHandle attr);
    int (*backward_weights_create_)(Handle*, Handle engine, int algorithm, ConstHandle x, ConstHandle dw,
                                    ConstHandle dbias, ConstHandle dy, Sizes strides, Sizes dilates, Sizes before,
                                    Sizes after, ConstHandle hint, ConstHandle attr);
};

class MemoryDesc {
public:
    // With the strides given or, without any, in whatever form the library likes best.
    static Result<MemoryDesc> make(const OnednnApi& api, DType type, std::span<const std::int64_t> sizes,
                                   std::span<const std::int64_t> strides);

    // Version 3 passes the handle, version 2 the address of the value.
    ConstHandle get() const { return is_value_ ? static_cast<const void*>(storage_->data()) : handle(); }

private:
    static constexpr std::size_t kRoomBytes = 4096;  // a descriptor of version 2.6 takes 696

    ConstHandle handle() const { return *reinterpret_cast<const Handle*>(storage_->data()); }

    struct alignas(64) Storage : std::array<std::byte, kRoomBytes> {};
    std::shared_ptr<Storage> storage_ = std::make_shared<Storage>();
    bool is_value_ = false;
};

}  // namespace tilewise::bench
