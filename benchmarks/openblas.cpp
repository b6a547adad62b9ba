// SPDX-License-Identifier: MIT
// OpenBLAS as a peer: cblas_sgemm on fp32, B as it is. It has no packed form.
#include "base/text.hpp"
#include "benchmarks/peer.hpp"
#include "benchmarks/shared_object.hpp"

namespace tilewise::bench {
namespace {

constexpr int kRowMajor = 101, kAsStored = 111, kTransposed = 112;
using Sgemm = void(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                   const float* b, int ldb, float beta, float* c, int ldc);

struct Operand {
    const float* data;
    int trans, leading;

    explicit Operand(const MatrixView& view)
        : data(static_cast<const float*>(view.data)),
          trans(view.col_stride == 1 ? kAsStored : kTransposed),
          leading(static_cast<int>(view.col_stride == 1 ? view.row_stride : view.col_stride)) {}
};

class OpenBlas final : public Peer {
public:
    OpenBlas(Sgemm* sgemm, std::string config) : sgemm_(sgemm), config_(std::move(config)) {}

    std::string name() const override {  // the config begins with "OpenBLAS 0.3.21 "
        return config_.substr(0, config_.find(' ', config_.find(' ') + 1));
    }
    std::string details() const override { return config_; }

    Result<TimedCall> bind(const Tensors& tensors) override {
        const Problem& p = tensors.problem();
        if (p.packed_b || p.dtype_a != DType::fp32) return unsupported_error("OpenBLAS multiplies plain fp32 only");
        const Operand a(tensors.a()), b(tensors.b()), c(tensors.c());
        float* out = static_cast<float*>(tensors.c().data);
        const int m = static_cast<int>(p.gemm.m), n = static_cast<int>(p.gemm.n), k = static_cast<int>(p.gemm.k);
        return TimedCall([=, sgemm = sgemm_](int) {
            sgemm(kRowMajor, a.trans, b.trans, m, n, k, 1.0f, a.data, a.leading, b.data, b.leading, 0.0f, out,
                  c.leading);
        });
    }

private:
    Sgemm* sgemm_;
    std::string config_;
};

}  // namespace

Result<std::unique_ptr<Peer>> load_openblas(const std::string& path) {
    auto library = SharedObject::load(path);
    if (!library) return library.error();
    // The build on PyPI puts a prefix before every name, so that it can share a process with another one.
    for (const std::string prefix : {"", "scipy_"}) {
        Sgemm* sgemm = nullptr;
        char* (*config)() = nullptr;
        void (*set_threads)(int) = nullptr;
        if (!library->find((prefix + "cblas_sgemm").c_str(), sgemm)) continue;
        if (!library->find((prefix + "openblas_get_config").c_str(), config)) continue;
        if (!library->find((prefix + "openblas_set_num_threads").c_str(), set_threads)) continue;
        set_threads(1);
        return std::unique_ptr<Peer>(std::make_unique<OpenBlas>(sgemm, std::string(trim(config()))));
    }
    return Error{ErrorCode::device,
                 fmt::format("{} is not OpenBLAS: it lacks cblas_sgemm or openblas_get_config", path)};
}

}  // namespace tilewise::bench
