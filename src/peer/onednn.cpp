// SPDX-License-Identifier: MIT
// oneDNN as a peer of matrix products: its matmul primitive, with B as it is, or in the form the primitive prefers, put
// there ahead.
#include "peer/onednn_engine.hpp"
#include "peer/peer.hpp"

namespace tilewise::bench {
namespace {

Result<MemoryDesc> describe(const OnednnApi& api, const MatrixView& matrix, std::int64_t rows, std::int64_t cols,
                            bool any_form = false) {
    const std::array<std::int64_t, 2> sizes = {rows, cols}, strides = {matrix.row_stride, matrix.col_stride};
    return MemoryDesc::make(api, matrix.type, sizes, {strides.data(), any_form ? 0 : strides.size()});
}

// A product ready to run; owns what oneDNN made for it.
class Matmul {
public:
    explicit Matmul(const OnednnEngine& engine) : engine_(engine) {}

    Status prepare(const Tensors& tensors) {
        const OnednnApi& api = engine_.api();
        const GemmShape& g = tensors.problem().gemm;
        const bool packed = tensors.problem().packed_b;
        auto a = describe(api, tensors.a(), g.m, g.k);
        auto plain_b = describe(api, tensors.b(), g.k, g.n);
        auto b = describe(api, tensors.b(), g.k, g.n, packed);
        auto c = describe(api, tensors.c(), g.m, g.n);
        if (!a || !plain_b || !b || !c) return unsupported_error("oneDNN has no such type");
        Handle desc = nullptr;
        const int status = api.make_matmul(&desc, engine_.handle(), a->get(), b->get(), c->get());
        if (status != kOk) return onednn_failed("making the product", status);
        auto made = engine_.primitive(desc);
        if (!made) return made.error();
        matmul_ = std::move(*made);
        memory_ = {engine_.memory(a->get(), tensors.a().data), engine_.memory(plain_b->get(), tensors.b().data),
                   engine_.memory(c->get(), tensors.c().data)};
        Status status_of_b = packed ? pack(*plain_b) : Status();
        args_ = {ExecArg{kSource, memory_[0].get()}, {kWeights, memory_[1].get()}, {kDestination, memory_[2].get()}};
        return status_of_b;
    }

    void run() const { engine_.execute(matmul_, args_); }

private:
    // Replaces the plain B by one in the primitive's own form.
    Status pack(const MemoryDesc& plain) {
        ConstHandle wanted = engine_.api().query_desc(matmul_.desc.get(), kWeightsQuery, 0);
        const std::shared_ptr<void> packed = engine_.memory(wanted);
        auto reorder = engine_.reorder(plain.get(), wanted);
        if (!reorder) return reorder.error();
        const std::array<ExecArg, 2> args = {ExecArg{kSource, memory_[1].get()}, {kDestination, packed.get()}};
        const int status = engine_.execute(*reorder, args);
        memory_[1] = packed;
        return status == kOk ? Status() : onednn_failed("packing B", status);
    }

    OnednnEngine engine_;
    Primitive matmul_;
    std::array<std::shared_ptr<void>, 3> memory_;
    std::array<ExecArg, 3> args_{};
};

class Onednn final : public Peer {
public:
    explicit Onednn(OnednnEngine engine) : engine_(std::move(engine)) {}

    std::string name() const override { return engine_.name(); }
    std::string details() const override { return engine_.details(); }

    Result<TimedCall> bind(const Tensors& tensors) override {
        auto matmul = std::make_shared<Matmul>(engine_);
        if (auto status = matmul->prepare(tensors); !status) return status.error();
        return TimedCall([matmul](int) { matmul->run(); });
    }

private:
    OnednnEngine engine_;
};

}  // namespace

Result<std::unique_ptr<Peer>> load_onednn(const std::string& path) {
    auto engine = OnednnEngine::start(path);
    if (!engine) return engine.error();
    return std::unique_ptr<Peer>(std::make_unique<Onednn>(std::move(*engine)));
}

}  // namespace tilewise::bench
