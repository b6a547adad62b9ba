// SPDX-License-Identifier: MIT
// Tests on a twin of a GPU (gpu_twin.hpp). Its check kernels are asked of NVRTC, although the twin runs them as threads.
#pragma once

#include <memory>

#include "build/build_testing.hpp"
#include "build/nvrtc.hpp"
#include "config/archs.hpp"
#include "measure/gpu_twin.hpp"

namespace tilewise {

class TwinTest : public build_testing::BuildTest {
protected:
    void SetUp() override {
        BuildTest::SetUp();
        if (const auto found = find_nvrtc("", std::nullopt); !found) GTEST_SKIP() << found.error().message;
        device = std::make_unique<TwinDevice>(arch_named("sm_90a"));
        builder = std::make_unique<Builder>(settings_);
    }

    std::unique_ptr<TwinDevice> device;
    std::unique_ptr<Builder> builder;
};

}  // namespace tilewise
