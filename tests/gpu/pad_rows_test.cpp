// SPDX-License-Identifier: MIT
// Padding and cropping by a kernel against the same by hand: rows of any length at any address, with gaps, in blocks; and a
// convolution of odd channels on a kernel that takes whole chunks only.
#include <cstring>
#include <numeric>

#include "base/rounding.hpp"
#include "config/config_name.hpp"
#include "gpu_testing.hpp"
#include "measure/device_memory.hpp"
#include "run/row_launch.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kRoom = 1 << 15;
constexpr unsigned char kUntouched = 0xA5;

class GpuRows : public GpuTest {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (!device) return;
        narrow_ = device_memory(*device, kRoom).value();
        wide_ = device_memory(*device, kRoom).value();
    }
    Status put(void* to, const std::vector<unsigned char>& bytes) {
        return device->copy(to, bytes.data(), bytes.size(), kDefaultStream);
    }
    std::vector<unsigned char> get(const void* from) {
        std::vector<unsigned char> bytes(kRoom);
        EXPECT_TRUE(device->copy(bytes.data(), from, kRoom, kDefaultStream).ok());
        return bytes;
    }
    void run(const RowTask& task, std::int64_t skew) {
        const auto rows = RowLaunch::make({task}, *device, *builder);
        ASSERT_TRUE(rows.ok()) << rows.error().message;
        const RowPointers pointers{static_cast<char*>(narrow_.get()) + skew, wide_.get()};
        ASSERT_TRUE(rows->run({&pointers, 1}, kDefaultStream).ok());
        ASSERT_TRUE(device->synchronize(kDefaultStream).ok());
    }

    std::shared_ptr<void> narrow_, wide_;
};

PaddedTensor random_tensor(Random& random, bool dense) {
    PaddedTensor tensor;
    RowNest &from = tensor.given, &to = tensor.padded;
    const std::int64_t element = 1 << random.between(0, 2);
    from.row_bytes = element * random.between(1, 70), from.rows = random.between(1, 5),
    from.blocks = random.between(1, 6);
    from.row_pitch = from.row_bytes + (dense ? 0 : element * random.between(0, 9));
    from.block_pitch = from.rows * from.row_pitch + (dense ? 0 : element * random.between(0, 9));
    const std::int64_t unit = random.chance(50) ? 16 : element * random.between(1, 3);
    to.row_bytes = to.row_pitch = round_up(from.row_bytes, unit) + unit * random.between(0, 2);
    to.rows = from.rows + random.between(0, 2), to.blocks = from.blocks + random.between(0, 2);
    to.block_pitch = to.rows * to.row_pitch;
    return tensor;
}

std::vector<unsigned char> random_bytes(Random& random) {
    std::vector<unsigned char> bytes(kRoom);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.bits());
    return bytes;
}

// Calls `each` with where a row begins on either side.
template <class Each>
void for_rows(const PaddedTensor& tensor, Each each) {
    const RowNest &from = tensor.given, &to = tensor.padded;
    for (std::int64_t block = 0; block < from.blocks; ++block) {
        for (std::int64_t row = 0; row < from.rows; ++row) {
            each(block * from.block_pitch + row * from.row_pitch, block * to.block_pitch + row * to.row_pitch);
        }
    }
}

TEST_F(GpuRows, PaddingPutsZerosBehindRowsAndBlocks) {
    Random random(3);
    for (int i = 0; i < 60; ++i) {
        const PaddedTensor tensor = random_tensor(random, false);
        const std::vector<unsigned char> source = random_bytes(random);
        std::vector<unsigned char> expected(kRoom, kUntouched);
        ASSERT_TRUE(put(narrow_.get(), source).ok() && put(wide_.get(), expected).ok());
        const std::int64_t skew = random.between(0, 40), bytes = tensor.padded.blocks * tensor.padded.block_pitch;
        std::memset(expected.data(), 0, static_cast<std::size_t>(round_up(bytes, kRowChunkBytes)));
        for_rows(tensor, [&](std::int64_t from, std::int64_t to) {
            std::memcpy(expected.data() + to, source.data() + skew + from,
                        static_cast<std::size_t>(tensor.given.row_bytes));
        });
        const auto task = padding_task(tensor);
        ASSERT_TRUE(task.has_value());
        ASSERT_NO_FATAL_FAILURE(run(*task, skew));
        ASSERT_EQ(get(wide_.get()), expected) << "case " << i;
        ASSERT_EQ(get(narrow_.get()), source) << "case " << i;
    }
}

TEST_F(GpuRows, CroppingWritesTheRowsAndNothingElse) {
    Random random(4);
    for (int i = 0; i < 60; ++i) {
        const PaddedTensor tensor = random_tensor(random, true);
        const std::vector<unsigned char> source = random_bytes(random);
        std::vector<unsigned char> expected(kRoom, kUntouched);
        ASSERT_TRUE(put(wide_.get(), source).ok() && put(narrow_.get(), expected).ok());
        const std::int64_t skew = random.between(0, 40);
        for_rows(tensor, [&](std::int64_t to, std::int64_t from) {
            std::memcpy(expected.data() + skew + to, source.data() + from,
                        static_cast<std::size_t>(tensor.given.row_bytes));
        });
        const auto task = cropping_task(tensor);
        ASSERT_TRUE(task.has_value());
        ASSERT_NO_FATAL_FAILURE(run(*task, skew));
        ASSERT_EQ(get(narrow_.get()), expected) << "case " << i;
    }
}

TEST_F(GpuRows, SeveralTensorsArePaddedByOneRun) {
    constexpr std::size_t kTensors = kMaxRowTasks + 2, kEach = 1024;
    PaddedTensor tensor;
    tensor.given = {1, 3, 10, 10, 30}, tensor.padded = {1, 4, 16, 16, 64};
    const auto rows = RowLaunch::make(std::vector(kTensors, padding_task(tensor).value()), *device, *builder);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    std::vector<unsigned char> source(kRoom);
    std::iota(source.begin(), source.end(), 1);
    ASSERT_TRUE(put(narrow_.get(), source).ok() && put(wide_.get(), std::vector(kRoom, kUntouched)).ok());
    std::vector<RowPointers> pointers;
    for (std::size_t i = 0; i < kTensors; ++i) {
        pointers.push_back({static_cast<char*>(narrow_.get()) + i, static_cast<char*>(wide_.get()) + i * kEach});
    }
    pointers[1].narrow = nullptr;
    ASSERT_TRUE(rows->run(pointers, kDefaultStream).ok());
    const auto got = get(wide_.get());
    for (std::size_t i = 0; i < kTensors; ++i) {
        const unsigned char first = i == 1 ? kUntouched : source[i];
        EXPECT_EQ(got[i * kEach], first) << i;
        EXPECT_EQ(got[i * kEach + 26], i == 1 ? kUntouched : 0) << i;
        EXPECT_EQ(got[i * kEach + 64], kUntouched) << i;
    }
}

TEST_F(GpuRows, UnsuitableRowsAreLeftToTheDevice) {
    PaddedTensor tensor;
    tensor.given = {1, 3, 10, 12, 36}, tensor.padded = {1, 4, 16, 16, 64};
    EXPECT_TRUE(padding_task(tensor).has_value());
    EXPECT_FALSE(cropping_task(tensor).has_value()) << "gaps between the rows that are written";
    tensor.padded = {1, 4, 16, 20, 80};
    EXPECT_FALSE(padding_task(tensor).has_value()) << "gaps between the rows that are written";
    tensor.padded = {std::int64_t{1} << 31, 4, 16, 16, 64};
    EXPECT_FALSE(padding_task(tensor).has_value()) << "128 GiB";
}

// Runs the kernel on the problem, judges the result, and says what it noted.
std::vector<Note> notes_of_right_run(Device& device, Builder& builder, const Problem& problem,
                                     const std::string& name) {
    const Kernel kernel = make_kernel(parse_kernel_name(name).value());
    auto ready = Executable::prepare(problem, kernel, device, builder);
    EXPECT_TRUE(ready.ok()) << print_problem(problem) << ": " << ready.error().message;
    auto tensors = Tensors::make(problem, 7).value();
    auto on_device = DeviceTensors::make(device, tensors).value();
    const float alpha = 0.75f * suggested_alpha(problem), beta = problem.beta ? 0.5f : 0.0f;
    const std::vector<Note> notes = ready->notes();
    auto bound = BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), device,
                                {&on_device.operands(), 1}, alpha, beta);
    EXPECT_TRUE(bound.ok() && bound->run().ok() && on_device.fetch().ok());
    const VerifyReport report = verify_result(tensors, alpha, beta);
    EXPECT_TRUE(report.ok) << print_problem(problem) << ": " << describe(report);
    return notes;
}

// All directions, with what comes in and goes out padded, and vectors and D tensors beside them.
TEST_F(GpuRows, OddChannelsRunOnKernelsOfWholeChunks) {
    if (device->arch().backend != Backend::cuda) GTEST_SKIP() << "the kernel is CUDA's";
    const std::string shape = ":n=2,g=1,c=21,k=13,in=7x6,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";
    for (const std::string op : {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"}) {
        for (const std::string rest : {"", ",beta=1", op == "conv_fwd" ? ",epilogue=bias+add+relu" : ",d=add"}) {
            const std::string name = "grouped_" + op +
                                     "_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_16x8x16_va8_vb8_vc8@" +
                                     device->arch().name;
            const auto notes = notes_of_right_run(*device, *builder, parse_problem(op + shape + rest).value(), name);
            ASSERT_EQ(notes.size(), 1u) << notes.back().message;
            EXPECT_EQ(notes.front().kind, "padding");
        }
    }
}

// Patches of an image of three channels, whose taps are channels for the kernel; the second also pads them.
TEST_F(GpuRows, PatchesRunOnKernelsOfWholeChunks) {
    if (device->arch().backend != Backend::cuda) GTEST_SKIP() << "the kernel is CUDA's";
    for (const std::string op : {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"}) {
        const std::string name = "grouped_" + op +
                                 "_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_16x8x16_va8_vb8_vc8@" +
                                 device->arch().name;
        for (const std::string rest : {"", ",beta=1", ",d=add"}) {
            const std::string shape = ":n=2,c=3,k=16,dtype=bf16" + rest;
            const auto whole = notes_of_right_run(
                *device, *builder, parse_problem(op + shape + ",in=24x40,filter=8x8,stride=8x8").value(), name);
            EXPECT_TRUE(whole.empty()) << whole.front().message;
            const auto odd = notes_of_right_run(
                *device, *builder, parse_problem(op + shape + ",in=21x28,filter=7x7,stride=7x7").value(), name);
            ASSERT_EQ(odd.size(), 1u);
            EXPECT_NE(odd.front().message.find("c from 21 to 24"), std::string::npos) << odd.front().message;
        }
    }
}

}  // namespace
}  // namespace tilewise
