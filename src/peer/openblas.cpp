// SPDX-License-Identifier: MIT
// OpenBLAS as a peer: cblas_sgemm on fp32, B as it is. It has no packed form.
#include <cstdint>

#include "base/text.hpp"
#include "peer/peer.hpp"
#include "peer/shared_object.hpp"

namespace tilewise::bench {
namespace {

constexpr int kRowMajor = 101, kAsStored = 111, kTransposed = 112;
// Whole numbers are an int, or of 64 bits in builds that say so in every name.
template <class Whole>
using Sgemm = void(int order, int trans_a, int trans_b, Whole m, Whole n, Whole k, float alpha, const float* a,
                   Whole lda, const float* b, Whole ldb, float beta, float* c, Whole ldc);

struct Operand {
    const float* data;
    int trans;
    std::int64_t leading;

    explicit Operand(const MatrixView& view)
        : data(static_cast<const float*>(view.data)),
          trans(view.col_stride == 1 ? kAsStored : kTransposed),
          leading(view.col_stride == 1 ? view.row_stride : view.col_stride) {}
};

template <class Whole>
class OpenBlas final : public Peer {
public:
    OpenBlas(Sgemm<Whole>* sgemm, std::string config) : sgemm_(sgemm), config_(std::move(config)) {}

    std::string name() const override {  // the config begins with "OpenBLAS 0.3.21 "
        return config_.substr(0, config_.find(' ', config_.find(' ') + 1));
    }
    std::string details() const override { return config_; }

    Result<TimedCall> bind(const Tensors& tensors) override {
        const Problem& p = tensors.problem();
        if (p.packed_b || p.dtype_a != DType::fp32) return unsupported_error("OpenBLAS multiplies plain fp32 only");
        const Operand a(tensors.a()), b(tensors.b()), c(tensors.c());
        float* out = static_cast<float*>(tensors.c().data);
        const GemmShape g = p.gemm;
        return TimedCall([=, sgemm = sgemm_](int) {
            const auto whole = [](std::int64_t value) { return static_cast<Whole>(value); };
            sgemm(kRowMajor, a.trans, b.trans, whole(g.m), whole(g.n), whole(g.k), 1.0f, a.data, whole(a.leading),
                  b.data, whole(b.leading), 0.0f, out, whole(c.leading));
        });
    }

private:
    Sgemm<Whole>* sgemm_;
    std::string config_;
};

// Null where the names have another prefix or suffix.
template <class Whole>
std::unique_ptr<Peer> bind_names(const SharedObject& library, const std::string& prefix, const std::string& suffix,
                                 int threads) {
    Sgemm<Whole>* sgemm = nullptr;
    char* (*config)() = nullptr;
    void (*set_threads)(int) = nullptr;
    if (!library.find((prefix + "cblas_sgemm" + suffix).c_str(), sgemm)) return nullptr;
    if (!library.find((prefix + "openblas_get_config" + suffix).c_str(), config)) return nullptr;
    if (!library.find((prefix + "openblas_set_num_threads" + suffix).c_str(), set_threads)) return nullptr;
    set_threads(threads);
    return std::make_unique<OpenBlas<Whole>>(sgemm, std::string(trim(config())));
}

}  // namespace

Result<std::unique_ptr<Peer>> load_openblas(const std::string& path, int threads) {
    auto library = SharedObject::load(path);
    if (!library) return library.error();
    // The builds on PyPI put a prefix before every name, so that they can share a process with another one.
    for (const std::string prefix : {"", "scipy_"}) {
        if (auto peer = bind_names<int>(*library, prefix, "", threads)) return peer;
        if (auto peer = bind_names<std::int64_t>(*library, prefix, "64_", threads)) return peer;
    }
    return Error{ErrorCode::device,
                 fmt::format("{} is not OpenBLAS: it lacks cblas_sgemm or openblas_get_config", path)};
}

}  // namespace tilewise::bench
