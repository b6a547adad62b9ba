// SPDX-License-Identifier: MIT
// The probes of kernels/cuda/probes.hpp with what each needs to run, and the golden table it must find: one truth for the
// test that compiles them anywhere and the test that runs them on a GPU.
#pragma once

#include <fmt/core.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "build/build_request.hpp"
#include "build/code_suffix.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {

// A matrix of 16-bit elements in memory, whole as far as memory goes, and the part of it that the copies may know of.
struct ProbeTensor {
    bool is_read = true;  // A, whose elements hold their numbers from 1 on; otherwise B, of zeros
    int rows = 0, columns = 0;
    int known_rows = 0, known_columns = 0;
};

// Images of 16-bit elements, which copies see as pixels of channels; as many along every dimension.
struct ProbePixels {
    int dims = 0, images = 0, channels = 0;
    int size = 0, lower = 0, upper = 0, step = 0;
    int pixels = 0;  // of one copy
};

struct Probe {
    std::string name;
    std::string table;  // several probes may find the same; the first of them has its name
    std::string meaning;
    std::string type;  // in tilewise::cuda
    int threads = 0;
    std::int64_t shared_bytes = 0;
    int rows = 0, columns = 0;  // of the table
    int digits = 4;
    std::optional<ProbeTensor> tensor;
    std::vector<std::uint32_t> inputs;  // fp32 bits in A; then they are the table's keys
    std::optional<ProbePixels> windows = {};

    bool uses_maps() const { return tensor || windows; }
};

// Rounding ties and their neighbours, the ends of both 16-bit ranges, denormals, infinities, NaN with payloads.
inline std::vector<std::uint32_t> conversion_inputs() {
    std::vector<std::uint32_t> inputs = {0x00000000, 0x00000001, 0x00007fff, 0x00008000, 0x00008001, 0x00018000,
                                         0x007fffff, 0x00800000, 0x007f8000, 0x3f800000, 0x3f807fff, 0x3f808000,
                                         0x3f808001, 0x3f818000, 0x3f818001,
                                         0x3f817fff,  // ties of bf16 around 1
                                         0x3f800fff, 0x3f801000, 0x3f801001, 0x3f803000, 0x3f802fff,
                                         0x3f803001,  // ties of fp16 around 1
                                         0x477fdfff, 0x477fe000, 0x477fefff, 0x477ff000, 0x477ff001,
                                         0x47800000,  // fp16's largest, 65520, 65536
                                         0x33000000, 0x33000001, 0x32ffffff, 0x33800000, 0x33bfffff, 0x33c00000,
                                         0x33c00001,  // fp16's smallest
                                         0x387fc000, 0x387fdfff, 0x387fe000, 0x387ff000, 0x38800000, 0x38000fff,
                                         0x38001000, 0x38003000,                                      // its denormals
                                         0x7f7f0000, 0x7f7f7fff, 0x7f7f8000, 0x7f7fffff, 0x7f800000,  // bf16's largest
                                         0x7f800001, 0x7f80ffff, 0x7fa00000, 0x7fc00000, 0x7fc12345, 0x7fffffff};
    const std::size_t positive = inputs.size();
    for (std::size_t i = 0; i < positive; ++i) inputs.push_back(inputs[i] | 0x80000000u);
    // Some of everything: bits that are far from regular.
    for (std::uint32_t bits = 0x9e3779b9u, i = 0; i < 64; ++i, bits = std::rotl(bits * 0x85ebca6bu, 13) ^ i) {
        inputs.push_back(bits);
    }
    return inputs;
}

inline std::vector<Probe> warp_probes() {
    std::vector<Probe> list;
    constexpr int kLanes = 32;
    constexpr std::int64_t kMatrixBytes = 512;
    for (const int count : {4, 2}) {
        for (const bool trans : {false, true}) {
            const std::string name = fmt::format("ldmatrix_x{}{}", count, trans ? "_trans" : "");
            list.push_back(
                {name,
                 name,
                 "lane: for each register, low half then high half: (matrix, row, column) it got, a digit each; "
                 "lane 8m + r gives the address of row r of matrix m",
                 fmt::format("LoadMatricesProbe<{}, {}>", count, trans),
                 kLanes,
                 kMatrixBytes,
                 kLanes,
                 2 * count,
                 3,
                 {},
                 {}});
        }
    }
    list.push_back({"stmatrix_x4",
                    "stmatrix_x4",
                    "lane: for each register, low half then high half: (matrix, row, column) it went to, a digit each; "
                    "lane 8m + r gives the address of row r of matrix m",
                    "StoreMatricesProbe",
                    kLanes,
                    kMatrixBytes,
                    kLanes,
                    8,
                    3,
                    {},
                    {}});
    for (const char* type : {"Bf16", "Fp16"}) {
        list.push_back({fmt::format("mma_m16n8k16{}", type == std::string("Fp16") ? "_fp16" : ""),
                        "mma_m16n8k16",
                        "lane: (row, column) of D's 4 registers; (row, k) of A's 4 registers, low half then high half; "
                        "(k, column) of B's 2 registers likewise; a digit each",
                        fmt::format("MultiplyProbe<{}>", type),
                        kLanes,
                        0,
                        kLanes,
                        16,
                        2,
                        {},
                        {}});
    }
    list.push_back({"mma_m16n8k16_fp64",
                    "mma_m16n8k16_fp64",
                    "lane: (row, column) of D's 4 registers; (row, k) of A's 8; (k, column) of B's 4; a digit each",
                    "MultiplyFp64Probe",
                    kLanes,
                    0,
                    kLanes,
                    16,
                    2,
                    {},
                    {}});
    const auto inputs = conversion_inputs();
    list.push_back({"convert",
                    "convert",
                    "bits of fp32: bits of bf16 by cvt.rn, by cvt.rn of a pair as its low half, as its high half; "
                    "of fp16 likewise",
                    "ConvertProbe",
                    128,
                    0,
                    static_cast<int>(inputs.size()),
                    6,
                    4,
                    {},
                    inputs});
    return list;
}

inline std::vector<Probe> warpgroup_probes() {
    std::vector<Probe> list;
    constexpr int kThreads = 128;
    constexpr std::int64_t kLineBytes = 128, kOperandBytes = 65536 + 64 * kLineBytes;
    const auto ending = [](std::string_view type) { return type == "Fp16" ? "_fp16" : ""; };
    for (const int n : {16, 32, 64, 128, 256}) {
        for (const std::string_view type : {"Bf16", "Fp16"}) {
            const std::string table = fmt::format("wgmma_d_n{}", n);
            list.push_back({table + ending(type),
                            table,
                            "thread of the warpgroup: for each register of D: row and column, two digits each",
                            fmt::format("SumsProbe<{}, {}>", type, n),
                            kThreads,
                            (64 + n) * kLineBytes,
                            kThreads,
                            n / 2,
                            4,
                            {},
                            {}});
        }
    }
    struct Operand {
        const char* table;
        bool is_b, along_k;
        int steps, leading_bytes, stride_bytes;
    };
    // As wgmma_gemm.hpp lays operands out, and with other distances, which tell what the descriptor's fields mean.
    constexpr Operand kOperands[] = {
        {"wgmma_a_along_k", false, true, 4, 8192, 1024},   {"wgmma_a_along_m", false, false, 4, 8192, 1024},
        {"wgmma_b_along_k", true, true, 4, 8192, 1024},    {"wgmma_b_along_n", true, false, 4, 8192, 1024},
        {"wgmma_a_along_k_far", false, true, 1, 16, 2048}, {"wgmma_b_along_n_far", true, false, 1, 16384, 2048},
    };
    for (const Operand& o : kOperands) {
        for (const std::string_view type : {"Bf16", "Fp16"}) {
            list.push_back(
                {std::string(o.table) + ending(type),
                 o.table,
                 fmt::format("{}: for each k: byte of the operand in shared memory that the element is read from; "
                             "swizzle of 128 bytes, leading {}, stride {}; {}",
                             o.is_b ? "column of B" : "row of A", o.leading_bytes, o.stride_bytes,
                             o.along_k ? "every 16 of k the start goes on by 32 bytes"
                                       : "every 16 of k the start goes on by two strides"),
                 fmt::format("OperandProbe<{}, {}, {}, {}, {}, {}>", type, o.is_b, o.along_k, o.steps, o.leading_bytes,
                             o.stride_bytes),
                 kThreads,
                 kOperandBytes,
                 o.is_b ? 128 : 64,
                 o.steps * 16,
                 4,
                 {},
                 {}});
        }
    }
    return list;
}

inline std::vector<Probe> copy_probes() {
    std::vector<Probe> list;
    constexpr int kThreads = 128, kRows = 64;
    constexpr std::int64_t kSharedBytes = 16384 + 1024;  // the barrier is behind the box
    const auto add = [&](const std::string& name, const std::string& table, const std::string& meaning,
                         const std::string& type, const ProbeTensor& tensor) {
        list.push_back({name, table, meaning, type, kThreads, kSharedBytes, kRows, tensor.columns, 4, tensor, {}});
    };
    // Lines of 128, 64 and 32 bytes are swizzled; others are not.
    for (const int columns : {64, 32, 16, 8, 48}) {
        const std::string table = fmt::format("tma_{}_bytes", columns * 2);
        const std::string meaning = fmt::format(
            "row of the tensor: for each column: byte of the box in shared memory; lines of {} bytes", columns * 2);
        ProbeTensor tensor{true, kRows, columns, kRows, columns};
        add(table, table, meaning, fmt::format("CopyInProbe<64, {}, 0, 0, 0, false>", columns), tensor);
        tensor.is_read = false;
        add(table + "_store", table, meaning, fmt::format("CopyOutProbe<64, {}, 0, 0, false>", columns), tensor);
    }
    add("tma_128_bytes_at_512", "tma_128_bytes_at_512",
        "row of the tensor: for each column: byte of shared memory, from a multiple of 1024; the box begins at byte "
        "512",
        "CopyInProbe<64, 64, 512, 0, 0, false>", {true, kRows, 64, kRows, 64});
    // The tensor has 40 x 40 of a box of 64 x 64 that begins at column -8, row -3.
    add("tma_load_outside", "tma_load_outside",
        "line of shared memory: for each element: its number in memory, rows of 64, plus one, or zero; box of 64 x 64 "
        "from "
        "column -8, row -3 on, tensor of 40 x 40",
        "CopyInProbe<64, 64, 0, -8, -3, true>", {true, kRows, 64, 40, 40});
    add("tma_store_outside", "tma_store_outside",
        "row of memory: for each column: number of the element of shared memory, lines of 64, plus one, or zero where "
        "nothing was written; box of 64 x 64 from column 8, row 3 on, tensor of 40 x 40",
        "CopyOutProbe<64, 64, 8, 3, true>", {false, kRows, 64, 40, 40});
    return list;
}

// Windows that reach over the border, from the corner of the first on, over the ends of lines and of images.
inline std::vector<Probe> pixel_probes() {
    std::vector<Probe> list;
    constexpr int kThreads = 128, kChannels = 8, kFirst = -1, kOffset = 1;
    constexpr std::int64_t kSharedBytes = 16384 + 1024;
    constexpr ProbePixels kWindows[] = {{1, 3, kChannels, 9, kFirst, -1, 1, 24},
                                        {2, 3, kChannels, 5, kFirst, -1, 1, 64},
                                        {2, 3, kChannels, 6, kFirst, -1, 2, 32},
                                        {3, 3, kChannels, 4, kFirst, -1, 1, 96}};
    for (const ProbePixels& w : kWindows) {
        const std::string name = fmt::format("im2col_{}d{}", w.dims, w.step > 1 ? "_strided" : "");
        list.push_back({name,
                        name,
                        fmt::format("pixel of the copy: for each channel: the element's number in memory plus one, or "
                                    "zero; {} images of {} pixels along {} dimensions, windows from {} to the end plus "
                                    "{} in steps of {}, moved by {} (along the second by {})",
                                    w.images, w.size, w.dims, w.lower, w.upper, w.step, kOffset, kOffset + 1),
                        fmt::format("PixelsProbe<{}, {}, {}, {}, {}>", w.dims, w.pixels, w.channels, kFirst, kOffset),
                        kThreads,
                        kSharedBytes,
                        w.pixels,
                        w.channels,
                        4,
                        {},
                        {},
                        w});
    }
    return list;
}

inline std::vector<Probe> all_probes() {
    std::vector<Probe> list = warp_probes();
    for (auto* more : {warpgroup_probes, copy_probes, pixel_probes}) {
        for (Probe& probe : more()) list.push_back(std::move(probe));
    }
    return list;
}

// For a GPU or, as emulated code, for the host.
inline BuildRequest probe_request(const Probe& probe, std::string_view suffix = kCubin) {
    BuildRequest request;
    request.name = "probe_" + probe.name;
    request.arch = "sm_90a";
    request.suffix = suffix;
    request.source = fmt::format(
        "#include \"cuda/primitives.hpp\"\n#include \"cuda/probes.hpp\"\nusing namespace tilewise::cuda;\n"
        "TILEWISE_CUDA_{}PROBE({})\n",
        probe.uses_maps() ? "TENSOR_" : "", probe.type);
    if (suffix == kEmulatedCode) request.source = emulated_source(request.source, Backend::cuda);
    return request;
}

}  // namespace tilewise
