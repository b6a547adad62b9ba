// SPDX-License-Identifier: MIT
// Warpgroup products of the emulated GPU. A warp computes its 16 of the 64 rows by itself, from what is in shared memory when
// it comes there; its registers hold poison until it has waited. Operands that change before that, or registers that do, are
// errors. Where operands lie is in tests/golden/cuda (wgmma_*.txt).
#include <fmt/core.h>

#include <cstring>

#include "device/emulated/element_values.hpp"
#include "device/emulated/grid.hpp"
#include "device/emulated/tensor_box.hpp"

namespace tilewise::emulated {
namespace {

constexpr int kWarpRows = 16, kGroupDepthBytes = 32, kBlockLines = 8, kWarpgroupWarps = 4;
constexpr std::uint32_t kPoisonWord = 0x01010101u * kEmulatedPoison;

struct Descriptor {
    unsigned start, leading, stride;
    int line_bytes;  // of the swizzle; 16 without one

    explicit Descriptor(unsigned long long bits)
        : start(field(bits)), leading(field(bits >> 16)), stride(field(bits >> 32)), line_bytes(line(bits >> 62)) {}

private:
    static unsigned field(unsigned long long bits) { return static_cast<unsigned>(bits & 0x3fff) << 4; }
    static int line(unsigned long long mode) { return mode == 1 ? 128 : mode == 2 ? 64 : mode == 3 ? 32 : 16; }
};

// Where 16 bytes of an operand are, before the swizzle: along k, chunk `chunk` of line `line`; else chunk `chunk` of the lines'
// extent at step `line` of k.
unsigned chunk_address(const Descriptor& d, bool along_k, int line, int chunk) {
    const auto in_block = static_cast<unsigned>(line % kBlockLines), block = static_cast<unsigned>(line / kBlockLines);
    const auto per_line = static_cast<unsigned>(d.line_bytes) / kChunkBytes;
    const auto in_line = static_cast<unsigned>(chunk) % per_line, lines = static_cast<unsigned>(chunk) / per_line;
    const auto line_bytes = static_cast<unsigned>(d.line_bytes);
    // A swizzled line along k is never left: products go from one to the next by their start. Without a swizzle the second
    // 16 bytes of k are `leading` away.
    const unsigned across = along_k && d.line_bytes > 16 ? 0 : lines * d.leading;
    const unsigned along =
        along_k && d.line_bytes > 16 ? static_cast<unsigned>(chunk) * kChunkBytes : in_line * kChunkBytes;
    return d.start + across + block * d.stride + in_block * line_bytes + along;
}

struct ProductCall {
    void* sums;
    unsigned long long a, b;
    bool keep;
};

// Register i of a lane, of a row of the warp and a column.
int row_of(int lane, int i) { return lane / 4 + i / 2 % 2 * 8; }
int column_of(int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

// Element (row, column) of a matrix whose rows are `width` long, one after the other.
std::size_t place_of(int row, int width, int column) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(column);
}
std::size_t area_of(int rows, int width) { return place_of(rows, width, 0); }

void load_sums(Accumulator& to) {
    for (int lane = 0; lane < kWarp; ++lane) {
        auto* const registers = static_cast<std::uint32_t*>(to.registers[static_cast<std::size_t>(lane)]);
        for (int i = 0; i < to.columns / 2; ++i) {
            to.sums[place_of(row_of(lane, i), to.columns, column_of(lane, i))] = registers[i];
            registers[i] = kPoisonWord;
        }
    }
}

// False where a register was written in between.
bool store_sums(const Accumulator& from) {
    bool untouched = true;
    for (int lane = 0; lane < kWarp; ++lane) {
        auto* const registers = static_cast<std::uint32_t*>(from.registers[static_cast<std::size_t>(lane)]);
        for (int i = 0; i < from.columns / 2; ++i) {
            untouched = untouched && registers[i] == kPoisonWord;
            registers[i] = from.sums[place_of(row_of(lane, i), from.columns, column_of(lane, i))];
        }
    }
    return untouched;
}

// sums(16 x columns) += a(16 x depth) * b(columns x depth)
void add_products(Accumulator& to, const std::vector<float>& a, const std::vector<float>& b, int depth) {
    const int n = to.columns;
    std::vector<float> across(b.size());  // B with its columns side by side
    for (int c = 0; c < n; ++c) {
        for (int k = 0; k < depth; ++k) {
            across[place_of(k, n, c)] = b[place_of(c, depth, k)];
        }
    }
    std::vector<float> row(static_cast<std::size_t>(n));
    float* const totals = row.data();
    for (int r = 0; r < kWarpRows; ++r) {
        std::uint32_t* const sums = to.sums.data() + r * n;
        if (to.whole) {
            std::fill(row.begin(), row.end(), 0.0f);
        } else {
            std::memcpy(row.data(), sums, row.size() * sizeof(float));
        }
        for (int k = 0; k < depth; ++k) {
            const float factor = a[place_of(r, depth, k)];
            const float* const line = across.data() + k * n;
            constexpr int kTogether = 8;
            for (int c = 0; c < n; c += kTogether) {
                for (int i = 0; i < kTogether; ++i) totals[c + i] += factor * line[c + i];
            }
        }
        if (to.whole) {
            for (int c = 0; c < n; ++c) {
                sums[c] += static_cast<std::uint32_t>(static_cast<int>(row[static_cast<std::size_t>(c)]));
            }
        } else {
            std::memcpy(sums, row.data(), row.size() * sizeof(float));
        }
    }
}

}  // namespace

// Line after line, each with its 32 bytes of k.
std::vector<unsigned char> Grid::read_operand(const OperandView& view) {
    const Descriptor d(view.descriptor);
    const auto chunk_at = [&](int line, int chunk) {
        return shared_at(*running_->block,
                         swizzled(chunk_address(d, view.along_k, line, chunk), d.line_bytes > 16 ? d.line_bytes : 0),
                         kChunkBytes);
    };
    std::vector<unsigned char> bytes(static_cast<std::size_t>(view.count * kGroupDepthBytes));
    if (view.along_k) {
        for (int i = 0; i < view.count; ++i) {
            for (int chunk = 0; chunk < kGroupDepthBytes / static_cast<int>(kChunkBytes); ++chunk) {
                std::memcpy(bytes.data() + i * kGroupDepthBytes + chunk * static_cast<int>(kChunkBytes),
                            chunk_at(view.first + i, chunk), kChunkBytes);
            }
        }
        return bytes;
    }
    const int in_chunk = static_cast<int>(kChunkBytes) / view.element_bytes;
    for (int k = 0; k < kGroupDepthBytes / view.element_bytes; ++k) {
        for (int i = 0; i < view.count; i += in_chunk) {
            const unsigned char* const chunk = chunk_at(k, (view.first + i) / in_chunk);
            for (int j = 0; j < in_chunk; ++j) {
                std::memcpy(bytes.data() + (i + j) * kGroupDepthBytes + k * view.element_bytes,
                            chunk + j * view.element_bytes, static_cast<std::size_t>(view.element_bytes));
            }
        }
    }
    return bytes;
}

void Grid::warpgroup_multiply(KernelDType a_type, KernelDType b_type, int n, bool trans_a, bool trans_b, void* sums,
                              unsigned long long a, unsigned long long b, bool keep) {
    ProductCall mine{sums, a, b, keep};
    meet("wgmma", &mine, [&](const auto& lanes) {
        Warp& warp = *running_->warp;
        const ProductCall& first = *static_cast<ProductCall*>(lanes[0]);
        for (std::size_t lane = 0; lane < kWarp; ++lane) {
            const ProductCall& one = *static_cast<ProductCall*>(lanes[lane]);
            if (one.a != first.a || one.b != first.b || one.keep != first.keep) {
                fault("the lanes of a warp give different operands to a wgmma");
            }
        }
        const int bytes = element_bytes(a_type), depth = kGroupDepthBytes / bytes;
        Product product;
        product.sums = first.sums;
        product.a = {a, warp.index % kWarpgroupWarps * kWarpRows, kWarpRows, bytes, !trans_a};
        product.b = {b, 0, n, bytes, !trans_b};
        product.a_bytes = read_operand(product.a);
        product.b_bytes = read_operand(product.b);

        Accumulator& to = warp.sums[first.sums];
        if (to.products == 0) {
            for (std::size_t i = 0; i < kWarp; ++i) to.registers[i] = static_cast<ProductCall*>(lanes[i])->sums;
            to.columns = n, to.whole = a_type == KernelDType::int8;
            to.sums.assign(area_of(kWarpRows, n), 0);
            load_sums(to);
        }
        if (to.columns != n) fault("products of different widths add to the same registers");
        if (!keep) to.sums.assign(area_of(kWarpRows, n), 0);
        ++to.products;
        std::vector<float> a_values(area_of(kWarpRows, depth));
        std::vector<float> b_values(area_of(n, depth));
        to_values(a_type, product.a_bytes.data(), kWarpRows * depth, a_values.data());
        to_values(b_type, product.b_bytes.data(), n * depth, b_values.data());
        add_products(to, a_values, b_values, depth);
        warp.products.open.push_back(std::move(product));
    });
}

void Grid::finish_product(const Product& product) {
    if (read_operand(product.a) != product.a_bytes || read_operand(product.b) != product.b_bytes) {
        fault("shared memory was written while a wgmma read it");
    }
    auto& sums = running_->warp->sums;
    const auto to = sums.find(product.sums);
    if (--to->second.products > 0) return;
    if (!store_sums(to->second)) fault("a register was written while a wgmma added to it");
    sums.erase(to);
}

void Grid::warpgroup_commit() {
    meet("wgmma.commit_group", nullptr, [&](const auto&) { running_->warp->products.commit(); });
}

void Grid::warpgroup_wait(int pending) {
    meet("wgmma.wait_group", nullptr, [&](const auto&) {
        auto& groups = running_->warp->products.committed;
        while (groups.size() > static_cast<std::size_t>(pending)) {
            for (const Product& product : groups.front()) finish_product(product);
            groups.pop_front();
        }
    });
}

}  // namespace tilewise::emulated
