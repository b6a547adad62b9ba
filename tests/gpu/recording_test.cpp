// SPDX-License-Identifier: MIT
// Measuring relies on this: work is recorded on a stream that is not the program's, and replayed with a clock of its own.
#include "gpu/gpu_testing.hpp"

namespace tilewise {
namespace {

TEST(GpuRecording, HasAStreamOfItsOwn) {
    auto device = make_device(variable("TILEWISE_TEST_DEVICE", "cuda:0"), embedded_archs());
    if (!device) GTEST_SKIP() << device.error().message;
    std::int64_t calls = 0;
    const auto work = [&](Stream stream, std::int64_t index) -> Status {
        EXPECT_NE(stream, kDefaultStream);
        EXPECT_TRUE((*device)->is_capturing(stream));
        EXPECT_EQ(index, calls++);
        return {};
    };
    auto recording = (*device)->record(work, 3);
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    EXPECT_EQ(calls, 3);
    for (int i = 0; i < 2; ++i) {
        const auto seconds = (*recording)->replay();
        ASSERT_TRUE(seconds.ok()) << seconds.error().message;
        EXPECT_GE(*seconds, 0);
    }
}

}  // namespace
}  // namespace tilewise
