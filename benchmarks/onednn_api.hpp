// SPDX-License-Identifier: MIT
// The part of oneDNN's C API that a matrix product needs, for versions 2 and 3 alike. Everything opaque is a pointer here.
// Version 2 has memory descriptors by value where version 3 has handles; MemoryDesc hides that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "benchmarks/shared_object.hpp"
#include "measure/tensors.hpp"

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
inline constexpr int kOk = 0, kCpuEngine = 1, kInOrder = 1, kAnyTag = 1, kWeightsQuery = 131;
inline constexpr int kSource = 1, kDestination = 17, kWeights = 33;
inline constexpr unsigned kSyclRuntime = 512;
inline constexpr int kUsmMemory = 0;

struct OnednnApi {
    static Result<OnednnApi> load(const std::string& path);

    bool is_sycl() const { return version()->cpu_runtime == kSyclRuntime; }

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
    int (*matmul_desc_init)(void*, ConstHandle src, ConstHandle weights, ConstHandle bias, ConstHandle dst);  // 2
    int (*op_desc_create)(Handle*, const void*, ConstHandle attr, Handle engine, ConstHandle hint);           // 2
    int (*matmul_create)(Handle*, Handle engine, ConstHandle src, ConstHandle weights, ConstHandle bias,
                         ConstHandle dst,
                         ConstHandle attr);  // 3
    int (*reorder_create)(Handle*, ConstHandle from, Handle from_engine, ConstHandle to, Handle to_engine,
                          ConstHandle attr);
    ConstHandle (*query_desc)(ConstHandle primitive_desc, int what, int index);
    int (*primitive_create)(Handle*, ConstHandle primitive_desc);
    int (*primitive_destroy)(Handle);
    int (*primitive_desc_destroy)(Handle);
    int (*execute)(ConstHandle primitive, Handle stream, int count, const ExecArg* args);
};

// Two-dimensional; with the matrix's strides, or in whatever form the library likes best.
class MemoryDesc {
public:
    static Result<MemoryDesc> make(const OnednnApi& api, const MatrixView& matrix, std::int64_t rows, std::int64_t cols,
                                   bool any_form);

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
