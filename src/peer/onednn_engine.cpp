// SPDX-License-Identifier: MIT
#include "peer/onednn_engine.hpp"

#include <cstdlib>

namespace tilewise::bench {

Error onednn_failed(const char* what, int status) {
    return unsupported_error(fmt::format("oneDNN: {} failed with status {}", what, status));
}

Result<OnednnEngine> OnednnEngine::start(const std::string& path) {
    auto api = OnednnApi::load(path);
    if (!api) return api.error();
    OnednnEngine engine;
    engine.api_ = std::make_shared<const OnednnApi>(*api);
    int status = api->engine_create(&engine.engine_, kCpuEngine, 0);
    if (status == kOk) status = api->stream_create(&engine.stream_, engine.engine_, kInOrder);
    if (status != kOk) return onednn_failed("starting a CPU engine", status);
    return engine;
}

std::string OnednnEngine::name() const {
    const OnednnVersion& v = *api_->version();
    return fmt::format("oneDNN {}.{}.{}", v.major, v.minor, v.patch);
}

std::string OnednnEngine::details() const {
    return fmt::format("{}, {} runtime", name(), api_->is_sycl() ? "SYCL" : "OpenMP");
}

std::shared_ptr<void> OnednnEngine::memory(ConstHandle desc, void* data) const {
    Handle made = nullptr;
    if (api_->is_sycl()) {
        api_->memory_create_sycl(&made, desc, engine_, kUsmMemory, data);
    } else {
        api_->memory_create(&made, desc, engine_, data);
    }
    return {made, [api = api_](Handle handle) {
                if (handle) api->memory_destroy(handle);
            }};
}

std::shared_ptr<void> OnednnEngine::memory(ConstHandle desc) const {
    constexpr std::size_t kAlign = 64;
    const std::size_t bytes = (api_->desc_size(desc) + kAlign - 1) / kAlign * kAlign;
    const std::shared_ptr<void> room(std::aligned_alloc(kAlign, bytes), std::free);
    const std::shared_ptr<void> made = memory(desc, room.get());
    return {made.get(), [room, made](Handle) {}};
}

Result<Primitive> OnednnEngine::primitive(Handle desc) const {
    Primitive made;
    made.desc = {desc, [api = api_](Handle handle) { api->primitive_desc_destroy(handle); }};
    Handle handle = nullptr;
    if (const int status = api_->primitive_create(&handle, desc); status != kOk) {
        return onednn_failed("making an operation", status);
    }
    made.handle = {handle, [api = api_](Handle owned) { api->primitive_destroy(owned); }};
    return made;
}

Result<Primitive> OnednnEngine::reorder(ConstHandle from, ConstHandle to) const {
    Handle desc = nullptr;
    const int status = api_->reorder_create(&desc, from, engine_, to, engine_, nullptr);
    if (status != kOk) return onednn_failed("making a reorder", status);
    return primitive(desc);
}

int OnednnEngine::execute(const Primitive& primitive, std::span<const ExecArg> args) const {
    const int status = api_->execute(primitive.handle.get(), stream_, static_cast<int>(args.size()), args.data());
    return status == kOk ? api_->stream_wait(stream_) : status;
}

}  // namespace tilewise::bench
