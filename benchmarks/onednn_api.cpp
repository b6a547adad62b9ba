// SPDX-License-Identifier: MIT
#include "benchmarks/onednn_api.hpp"

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

}  // namespace

Result<OnednnApi> OnednnApi::load(const std::string& path) {
    auto library = SharedObject::load(path);
    if (!library) return library.error();
    const SharedObject& so = *library;
    OnednnApi api{};
    bool complete = so.find("dnnl_version", api.version);
    const bool is_v2 = complete && api.version()->major < 3;
    complete =
        complete && so.find("dnnl_engine_create", api.engine_create) &&
        so.find("dnnl_stream_create", api.stream_create) && so.find("dnnl_stream_wait", api.stream_wait) &&
        so.find("dnnl_memory_create", api.memory_create) && so.find("dnnl_memory_destroy", api.memory_destroy) &&
        so.find("dnnl_memory_desc_get_size", api.desc_size) &&
        so.find(is_v2 ? "dnnl_memory_desc_init_by_strides" : "dnnl_memory_desc_create_with_strides",
                api.desc_from_strides) &&
        so.find(is_v2 ? "dnnl_memory_desc_init_by_tag" : "dnnl_memory_desc_create_with_tag", api.desc_from_tag) &&
        so.find("dnnl_reorder_primitive_desc_create", api.reorder_create) &&
        so.find("dnnl_primitive_desc_query_md", api.query_desc) &&
        so.find("dnnl_primitive_create", api.primitive_create) &&
        so.find("dnnl_primitive_destroy", api.primitive_destroy) &&
        so.find("dnnl_primitive_desc_destroy", api.primitive_desc_destroy) &&
        so.find("dnnl_primitive_execute", api.execute);
    so.find("dnnl_sycl_interop_memory_create", api.memory_create_sycl);
    complete = complete && (is_v2 ? so.find("dnnl_matmul_desc_init", api.matmul_desc_init) &&
                                        so.find("dnnl_primitive_desc_create", api.op_desc_create)
                                  : so.find("dnnl_matmul_primitive_desc_create", api.matmul_create));
    if (!complete) return Error{ErrorCode::device, fmt::format("{} is not oneDNN 2 or 3: a function is missing", path)};
    return api;
}

Result<MemoryDesc> MemoryDesc::make(const OnednnApi& api, const MatrixView& matrix, std::int64_t rows,
                                    std::int64_t cols, bool any_form) {
    const std::array<std::int64_t, 2> sizes = {rows, cols}, strides = {matrix.row_stride, matrix.col_stride};
    MemoryDesc desc;
    desc.is_value_ = api.matmul_create == nullptr;
    const int type = onednn_type(matrix.type);
    const int status = any_form ? api.desc_from_tag(desc.storage_->data(), 2, sizes.data(), type, kAnyTag)
                                : api.desc_from_strides(desc.storage_->data(), 2, sizes.data(), type, strides.data());
    if (status != kOk) return unsupported_error(fmt::format("oneDNN refuses a memory descriptor, status {}", status));
    return desc;
}

}  // namespace tilewise::bench
