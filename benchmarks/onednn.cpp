// SPDX-License-Identifier: MIT
// oneDNN as a peer: its matmul primitive, with B as it is, or in the form the primitive prefers, put there ahead.
#include <cstdlib>

#include "benchmarks/onednn_api.hpp"
#include "benchmarks/peer.hpp"

namespace tilewise::bench {
namespace {

Error failed(const char* what, int status) {
    return unsupported_error(fmt::format("oneDNN: {} failed with status {}", what, status));
}

// A product ready to run; owns what oneDNN made for it.
class Matmul {
public:
    Matmul(const OnednnApi& api, Handle engine, Handle stream) : api_(api), engine_(engine), stream_(stream) {}
    Matmul(const Matmul&) = delete;
    Matmul& operator=(const Matmul&) = delete;
    ~Matmul() {
        for (const ExecArg& arg : args_) {
            if (arg.memory) api_.memory_destroy(arg.memory);
        }
        if (primitive_) api_.primitive_destroy(primitive_);
        if (primitive_desc_) api_.primitive_desc_destroy(primitive_desc_);
        std::free(packed_);
    }

    Status prepare(const Tensors& tensors) {
        const GemmShape& g = tensors.problem().gemm;
        auto a = MemoryDesc::make(api_, tensors.a(), g.m, g.k, false);
        auto plain_b = MemoryDesc::make(api_, tensors.b(), g.k, g.n, false);
        auto b = MemoryDesc::make(api_, tensors.b(), g.k, g.n, tensors.problem().packed_b);
        auto c = MemoryDesc::make(api_, tensors.c(), g.m, g.n, false);
        if (!a || !plain_b || !b || !c) return unsupported_error("oneDNN has no such type");
        if (auto status = create(*a, *b, *c); !status) return status;
        args_[0] = {kSource, memory(a->get(), tensors.a().data)};
        args_[1] = {kWeights, memory(plain_b->get(), tensors.b().data)};
        args_[2] = {kDestination, memory(c->get(), tensors.c().data)};
        return tensors.problem().packed_b ? pack(*plain_b) : Status();
    }

    void run() const {
        api_.execute(primitive_, stream_, static_cast<int>(args_.size()), args_.data());
        api_.stream_wait(stream_);
    }

private:
    Status create(const MemoryDesc& a, const MemoryDesc& b, const MemoryDesc& c) {
        int status = kOk;
        if (api_.matmul_create) {
            status = api_.matmul_create(&primitive_desc_, engine_, a.get(), b.get(), nullptr, c.get(), nullptr);
        } else {
            constexpr std::size_t kRoomBytes = 16384;  // an operation of version 2 holds five memory descriptors
            alignas(64) std::array<std::byte, kRoomBytes> operation{};
            status = api_.matmul_desc_init(operation.data(), a.get(), b.get(), nullptr, c.get());
            if (status == kOk) {
                status = api_.op_desc_create(&primitive_desc_, operation.data(), nullptr, engine_, nullptr);
            }
        }
        if (status == kOk) status = api_.primitive_create(&primitive_, primitive_desc_);
        return status == kOk ? Status() : failed("making the product", status);
    }

    // Replaces the plain B among the arguments by one in the primitive's own form.
    Status pack(const MemoryDesc& plain_desc) {
        ConstHandle wanted = api_.query_desc(primitive_desc_, kWeightsQuery, 0);
        constexpr std::size_t kAlign = 64;
        const std::size_t bytes = (api_.desc_size(wanted) + kAlign - 1) / kAlign * kAlign;
        packed_ = std::aligned_alloc(kAlign, bytes);
        const Handle plain = args_[1].memory;
        args_[1].memory = memory(wanted, packed_);
        Handle desc = nullptr, reorder = nullptr;
        int status = api_.reorder_create(&desc, plain_desc.get(), engine_, wanted, engine_, nullptr);
        if (status == kOk) status = api_.primitive_create(&reorder, desc);
        const std::array<ExecArg, 2> args = {ExecArg{kSource, plain}, ExecArg{kDestination, args_[1].memory}};
        if (status == kOk) status = api_.execute(reorder, stream_, static_cast<int>(args.size()), args.data());
        if (status == kOk) status = api_.stream_wait(stream_);
        if (reorder) api_.primitive_destroy(reorder);
        if (desc) api_.primitive_desc_destroy(desc);
        api_.memory_destroy(plain);
        return status == kOk ? Status() : failed("packing B", status);
    }

    Handle memory(ConstHandle desc, void* data) const {
        Handle made = nullptr;
        if (api_.is_sycl()) {
            api_.memory_create_sycl(&made, desc, engine_, kUsmMemory, data);
        } else {
            api_.memory_create(&made, desc, engine_, data);
        }
        return made;
    }

    const OnednnApi& api_;
    Handle engine_, stream_;
    Handle primitive_desc_ = nullptr, primitive_ = nullptr;
    std::array<ExecArg, 3> args_{};
    void* packed_ = nullptr;
};

class Onednn final : public Peer {
public:
    Onednn(const OnednnApi& api, Handle engine, Handle stream) : api_(api), engine_(engine), stream_(stream) {}

    std::string name() const override {
        const OnednnVersion& v = *api_.version();
        return fmt::format("oneDNN {}.{}.{}", v.major, v.minor, v.patch);
    }
    std::string details() const override {
        return fmt::format("{}, {} runtime", name(), api_.is_sycl() ? "SYCL" : "OpenMP");
    }

    Result<TimedCall> bind(const Tensors& tensors) override {
        auto matmul = std::make_shared<Matmul>(api_, engine_, stream_);
        if (auto status = matmul->prepare(tensors); !status) return status.error();
        return TimedCall([matmul](int) { matmul->run(); });
    }

private:
    OnednnApi api_;
    Handle engine_, stream_;  // live as long as the process
};

}  // namespace

Result<std::unique_ptr<Peer>> load_onednn(const std::string& path) {
    auto api = OnednnApi::load(path);
    if (!api) return api.error();
    Handle engine = nullptr, stream = nullptr;
    int status = api->engine_create(&engine, kCpuEngine, 0);
    if (status == kOk) status = api->stream_create(&stream, engine, kInOrder);
    if (status != kOk) return failed("starting a CPU engine", status);
    return std::unique_ptr<Peer>(std::make_unique<Onednn>(*api, engine, stream));
}

}  // namespace tilewise::bench
