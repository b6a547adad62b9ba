// SPDX-License-Identifier: MIT
#include "peer/onednn_api.hpp"

namespace tilewise::bench {
namespace {

int onednn_type(DType type) {
    switch (type) {
        case DType::fp16: return 1;
        case DType::bf16: return 2;
        case DType::fp32: return 3;
        case DType::int32: return 4;
        case DType::int8: return 5;
        default: return 0;
    }
}

// An operation of version 2 holds up to five memory descriptors.
struct alignas(64) Operation : std::array<std::byte, 16384> {};

}  // namespace

bool OnednnApi::find_v2(const SharedObject& so) {
    return so.find("dnnl_memory_desc_init_by_strides", desc_from_strides) &&
           so.find("dnnl_memory_desc_init_by_tag", desc_from_tag) &&
           so.find("dnnl_primitive_desc_create", op_desc_create_) && so.find("dnnl_matmul_desc_init", matmul_init_) &&
           so.find("dnnl_dilated_convolution_forward_desc_init", forward_init_) &&
           so.find("dnnl_dilated_convolution_backward_data_desc_init", backward_data_init_) &&
           so.find("dnnl_dilated_convolution_backward_weights_desc_init", backward_weights_init_);
}

bool OnednnApi::find_v3(const SharedObject& so) {
    return so.find("dnnl_memory_desc_create_with_strides", desc_from_strides) &&
           so.find("dnnl_memory_desc_create_with_tag", desc_from_tag) &&
           so.find("dnnl_matmul_primitive_desc_create", matmul_create_) &&
           so.find("dnnl_convolution_forward_primitive_desc_create", forward_create_) &&
           so.find("dnnl_convolution_backward_data_primitive_desc_create", backward_data_create_) &&
           so.find("dnnl_convolution_backward_weights_primitive_desc_create", backward_weights_create_);
}

Result<OnednnApi> OnednnApi::load(const std::string& path) {
    auto library = SharedObject::load(path);
    if (!library) return library.error();
    const SharedObject& so = *library;
    OnednnApi api{};
    const bool complete =
        so.find("dnnl_version", api.version) && so.find("dnnl_engine_create", api.engine_create) &&
        so.find("dnnl_stream_create", api.stream_create) && so.find("dnnl_stream_wait", api.stream_wait) &&
        so.find("dnnl_memory_create", api.memory_create) && so.find("dnnl_memory_destroy", api.memory_destroy) &&
        so.find("dnnl_memory_desc_get_size", api.desc_size) &&
        so.find("dnnl_reorder_primitive_desc_create", api.reorder_create) &&
        so.find("dnnl_primitive_desc_query_md", api.query_desc) && so.find("dnnl_primitive_desc_query", api.query) &&
        so.find("dnnl_primitive_create", api.primitive_create) &&
        so.find("dnnl_primitive_destroy", api.primitive_destroy) &&
        so.find("dnnl_primitive_desc_destroy", api.primitive_desc_destroy) &&
        so.find("dnnl_primitive_execute", api.execute) && (api.is_v2() ? api.find_v2(so) : api.find_v3(so));
    if (!complete) return Error{ErrorCode::device, fmt::format("{} is not oneDNN 2 or 3: a function is missing", path)};
    so.find("dnnl_sycl_interop_memory_create", api.memory_create_sycl);
    return api;
}

int OnednnApi::make_matmul(Handle* made, Handle engine, ConstHandle a, ConstHandle b, ConstHandle c) const {
    if (!is_v2()) return matmul_create_(made, engine, a, b, nullptr, c, nullptr);
    Operation operation{};
    const int status = matmul_init_(operation.data(), a, b, nullptr, c);
    return status == kOk ? op_desc_create_(made, operation.data(), nullptr, engine, nullptr) : status;
}

int OnednnApi::make_conv_forward(Handle* made, Handle engine, ConstHandle x, ConstHandle w, ConstHandle y,
                                 const ConvGeometry& g) const {
    if (!is_v2()) {
        return forward_create_(made, engine, kForwardTraining, kDirectConvolution, x, w, nullptr, y, g.strides,
                               g.dilates, g.pad_before, g.pad_after, nullptr);
    }
    Operation operation{};
    const int status = forward_init_(operation.data(), kForwardTraining, kDirectConvolution, x, w, nullptr, y,
                                     g.strides, g.dilates, g.pad_before, g.pad_after);
    return status == kOk ? op_desc_create_(made, operation.data(), nullptr, engine, nullptr) : status;
}

int OnednnApi::make_conv_backward_data(Handle* made, Handle engine, ConstHandle dx, ConstHandle w, ConstHandle dy,
                                       const ConvGeometry& g, ConstHandle forward) const {
    if (!is_v2()) {
        return backward_data_create_(made, engine, kDirectConvolution, dx, w, dy, g.strides, g.dilates, g.pad_before,
                                     g.pad_after, forward, nullptr);
    }
    Operation operation{};
    const int status = backward_data_init_(operation.data(), kDirectConvolution, dx, w, dy, g.strides, g.dilates,
                                           g.pad_before, g.pad_after);
    return status == kOk ? op_desc_create_(made, operation.data(), nullptr, engine, forward) : status;
}

int OnednnApi::make_conv_backward_weights(Handle* made, Handle engine, ConstHandle x, ConstHandle dw, ConstHandle dy,
                                          const ConvGeometry& g, ConstHandle forward) const {
    if (!is_v2()) {
        return backward_weights_create_(made, engine, kDirectConvolution, x, dw, nullptr, dy, g.strides, g.dilates,
                                        g.pad_before, g.pad_after, forward, nullptr);
    }
    Operation operation{};
    const int status = backward_weights_init_(operation.data(), kDirectConvolution, x, dw, nullptr, dy, g.strides,
                                              g.dilates, g.pad_before, g.pad_after);
    return status == kOk ? op_desc_create_(made, operation.data(), nullptr, engine, forward) : status;
}

Result<MemoryDesc> MemoryDesc::make(const OnednnApi& api, DType type, std::span<const std::int64_t> sizes,
                                    std::span<const std::int64_t> strides) {
    MemoryDesc desc;
    desc.is_value_ = api.is_v2();
    void* place = desc.storage_->data();
    const int dims = static_cast<int>(sizes.size()), code = onednn_type(type);
    const int status = strides.empty() ? api.desc_from_tag(place, dims, sizes.data(), code, kAnyTag)
                                       : api.desc_from_strides(place, dims, sizes.data(), code, strides.data());
    if (status != kOk) return unsupported_error(fmt::format("oneDNN refuses a memory descriptor, status {}", status));
    return desc;
}

}  // namespace tilewise::bench
