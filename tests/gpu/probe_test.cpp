// SPDX-License-Identifier: MIT
// Compares what the instructions of a Hopper GPU do with the tables in tests/golden/cuda that the tests and the emulation on
// other machines stand on. Needs an sm_90 GPU and is skipped where there is none; TILEWISE_TEST_DEVICE=emulated:sm_90a asks
// the emulation the same. From the project's root:
//     TILEWISE_WRITE_GOLDEN=DIR   writes the tables to DIR instead
//     TILEWISE_GOLDEN=DIR         reads them there, not from tests/golden/cuda
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <string>

#include "config/archs.hpp"
#include "device/make_device.hpp"
#include "kernels/golden_table.hpp"
#include "kernels/probe_list.hpp"
#include "measure/device_memory.hpp"

namespace tilewise {

void PrintTo(const Probe& probe, std::ostream* out) { *out << probe.name; }

namespace {

std::string variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
}

TensorMapSpec map_of(const ProbeTensor& tensor) {
    TensorMapSpec map;
    map.dtype = DType::bf16;
    map.size = {tensor.known_columns, tensor.known_rows, 1};
    map.stride_bytes = {tensor.columns * 2, tensor.rows * tensor.columns * 2};
    map.box = {tensor.rows, tensor.columns};
    return map;
}

TensorMapSpec map_of(const ProbePixels& windows) {
    TensorMapSpec map;
    map.dtype = DType::bf16;
    map.size = {windows.channels, 0, windows.images};
    map.stride_bytes = {windows.channels * 2, windows.channels * 2};
    map.box = {windows.pixels, windows.channels};
    Im2colSpec im2col;
    im2col.dims = windows.dims;
    for (std::size_t i = 0; i < static_cast<std::size_t>(windows.dims); ++i) {
        im2col.size[i] = windows.size, im2col.step[i] = windows.step;
        im2col.lower[i] = windows.lower, im2col.upper[i] = windows.upper;
        map.stride_bytes[1] *= windows.size;
    }
    map.im2col = im2col;
    return map;
}

GpuGrid grid_of(const Probe& probe) {
    GpuGrid grid;
    grid.block.threads = probe.threads;
    grid.block.shared_bytes = probe.shared_bytes;
    grid.block.cluster = {1, 1};
    grid.blocks = 1;
    if (probe.windows) {
        grid.tensor_maps.emplace();
        (*grid.tensor_maps)[0] = map_of(*probe.windows);
    }
    if (probe.tensor) {
        grid.tensor_maps.emplace();
        (*grid.tensor_maps)[probe.tensor->is_read ? 0 : 1] = map_of(*probe.tensor);
    }
    return grid;
}

class GpuProbe : public testing::TestWithParam<Probe> {
protected:
    void SetUp() override {
        auto opened = make_device(variable("TILEWISE_TEST_DEVICE", "cuda:0"), embedded_archs());
        if (!opened) GTEST_SKIP() << opened.error().message;
        device_ = std::move(*opened);
        if (device_->arch().name != "sm_90a") GTEST_SKIP() << device_->identity() << ": the tables are of sm_90a";
    }

    // The contents of host memory, in memory of the device.
    template <class T>
    Result<std::shared_ptr<void>> upload(const std::vector<T>& values) {
        const std::size_t bytes = values.size() * sizeof(T);
        auto memory = device_memory(*device_, static_cast<std::int64_t>(bytes));
        if (!memory) return memory;
        if (auto status = device_->copy(memory->get(), values.data(), bytes, kDefaultStream); !status) {
            return status.error();
        }
        return memory;
    }

    Result<std::shared_ptr<void>> input_of(const Probe& probe) {
        if (probe.windows) {
            const TensorMapSpec map = map_of(*probe.windows);
            std::vector<std::uint16_t> elements(static_cast<std::size_t>(map.size[2] * map.stride_bytes[1] / 2));
            std::iota(elements.begin(), elements.end(), std::uint16_t{1});
            return upload(elements);
        }
        if (!probe.tensor) return upload(probe.inputs);
        std::vector<std::uint16_t> elements(static_cast<std::size_t>(probe.tensor->rows * probe.tensor->columns));
        if (probe.tensor->is_read) std::iota(elements.begin(), elements.end(), std::uint16_t{1});
        return upload(elements);
    }

    Result<std::unique_ptr<const Launch>> prepare(const Probe& probe, const KernelArgs& args) {
        auto settings = build_settings();
        if (!settings) return settings.error();
        settings->driver_version = device_->driver_version();
        Builder builder(*settings);
        const auto built = builder.build(probe_request(probe, device_->code_suffix()));
        if (!built) return built.error();
        auto code = device_->load(*built);
        if (!code) return code.error();
        return device_->prepare(*code, args, grid_of(probe));
    }

    Result<GoldenTable> run(const Probe& probe) {
        // What a probe does not find stays visible.
        std::vector<std::uint32_t> found(static_cast<std::size_t>(probe.rows * probe.columns), 0xffffffffu);
        auto input = input_of(probe);
        if (!input) return input.error();
        auto output = upload(found);
        if (!output) return output.error();
        KernelArgs args{};
        args.n = static_cast<Index>(probe.inputs.size());
        args.a.data = args.b.data = input->get();
        args.c.data = output->get();
        const auto launch = prepare(probe, args);
        if (!launch) return launch.error();
        auto status = (*launch)->run(args, kDefaultStream);
        if (status) status = device_->synchronize(kDefaultStream);
        if (status) status = device_->copy(found.data(), output->get(), found.size() * 4, kDefaultStream);
        if (!status) return status.error();
        return table_of(probe, found);
    }

    static GoldenTable table_of(const Probe& probe, const std::vector<std::uint32_t>& found) {
        GoldenTable table;
        table.meaning = probe.meaning;
        table.digits = probe.digits;
        table.keys = probe.inputs;
        if (table.keys.empty()) {
            table.keys.resize(static_cast<std::size_t>(probe.rows));
            std::iota(table.keys.begin(), table.keys.end(), 0U);
        }
        for (auto row = found.begin(); row != found.end(); row += probe.columns) {
            table.rows.emplace_back(row, row + probe.columns);
        }
        return table;
    }

    std::unique_ptr<Device> device_;
};

TEST_P(GpuProbe, FindsWhatTheTableSays) {
    const Probe& probe = GetParam();
    const auto found = run(probe);
    ASSERT_TRUE(found.ok()) << found.error().message;
    std::uint32_t unset = 0;
    for (const auto& row : found->rows) {
        for (const std::uint32_t value : row) unset += value == 0xffffffffu;
    }
    // Nothing of a table may be missing, whichever it is compared with.
    EXPECT_EQ(unset, 0U) << "places of the table that the probe has not found out";
    const std::string target = variable("TILEWISE_WRITE_GOLDEN", "");
    const std::string folder = target.empty() ? variable("TILEWISE_GOLDEN", "tests/golden/cuda") : target;
    if (!target.empty() && probe.name == probe.table) {
        auto status = make_directories(folder);
        if (status) status = write_file(golden_file(folder, probe.table), print_golden(*found));
        ASSERT_TRUE(status.ok()) << status.error().message;
    }
    const auto text = read_file(golden_file(folder, probe.table));
    ASSERT_TRUE(text.ok()) << text.error().message << "; write the tables with TILEWISE_WRITE_GOLDEN=" << folder;
    // As text, so that a difference is shown line by line.
    EXPECT_EQ(print_golden(*found), *text);
}

INSTANTIATE_TEST_SUITE_P(Probes, GpuProbe, testing::ValuesIn(all_probes()),
                         [](const auto& probe) { return probe.param.name; });

}  // namespace
}  // namespace tilewise
