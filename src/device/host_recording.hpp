// SPDX-License-Identifier: MIT
// The recording of devices whose work the host does itself, call by call.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "device/device.hpp"

namespace tilewise {

class HostRecording final : public Recording {
public:
    HostRecording(RecordedWork work, std::int64_t calls) : work_(std::move(work)), calls_(calls) {}

    Result<double> replay() override {
        const auto begin = std::chrono::steady_clock::now();
        for (std::int64_t i = 0; i < calls_; ++i) {
            if (auto status = work_(kDefaultStream, i); !status) return status.error();
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

private:
    RecordedWork work_;
    std::int64_t calls_;
};

}  // namespace tilewise
