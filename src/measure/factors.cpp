// SPDX-License-Identifier: MIT
#include "measure/factors.hpp"

#include "measure/element.hpp"

namespace tilewise {
namespace {

class GemmFactors final : public Factors {
public:
    explicit GemmFactors(const Tensors& tensors) : a_(tensors.a()), b_(tensors.b()) {}

    void read_row(std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t depth,
                  double* to) const override {
        decode(a_.type, a_.at(batch, row, first), a_.col_stride, depth, to);
    }
    void read_column(std::int64_t batch, std::int64_t col, std::int64_t first, std::int64_t depth,
                     double* to) const override {
        decode(b_.type, b_.at(batch, first, col), b_.row_stride, depth, to);
    }

private:
    MatrixView a_, b_;
};

}  // namespace

std::unique_ptr<Factors> make_factors(const Tensors& tensors) {
    if (is_conv(tensors.problem().op)) return make_conv_factors(tensors);
    return std::make_unique<GemmFactors>(tensors);
}

}  // namespace tilewise
