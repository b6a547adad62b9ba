// SPDX-License-Identifier: MIT
// What the functions of the fake HIP runtime have in common: how a call is made, and what is allowed while a stream is captured.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include "device/hip/fake_state.hpp"

#define FAKE_HIP extern "C" __attribute__((visibility("default")))

namespace fake_hip {

void start(FakeState& all);  // reads the environment

// Every call goes through this: one at a time, into the trace, and failing where it was told to.
template <class Function>
HipResult call(const char* name, const Function& function, std::string_view more = {}) {
    FakeState& all = state();
    const std::scoped_lock lock(all.mutex);
    if (!all.is_started) start(all);
    all.trace += fmt::format("{}{}{}\n", name, more.empty() ? "" : " ", more);
    if (const auto told = all.failing.find(name); told != all.failing.end()) {
        const HipResult code = told->second;
        all.failing.erase(told);
        return code;
    }
    return function(all);
}

inline bool is_captured(const FakeState& all) {
    return std::any_of(all.streams.begin(), all.streams.end(), [](const FakeStream* s) { return s->is_capturing; });
}
// What may not happen while something is captured, unless the thread says that it has nothing to do with that.
template <class Function>
HipResult unsafe_call(const char* name, const Function& function) {
    return call(name, [&](FakeState& all) {
        return is_captured(all) && capture_mode() != kCaptureRelaxed ? kCaptureUnsupported : function(all);
    });
}

inline FakeStream* own(HipStream stream) { return reinterpret_cast<FakeStream*>(stream); }
inline bool is_known(const FakeState& all, HipStream stream) {
    return !stream || (all.streams.contains(own(stream)) && own(stream)->device == current_device());
}

// Done at once, or kept by a stream that is captured.
inline HipResult enqueue(FakeState& all, HipStream stream, FakeWork work) {
    if (!is_known(all, stream)) return kInvalidHandle;
    if (!stream) return is_captured(all) && capture_mode() != kCaptureRelaxed ? kCaptureUnsupported : work();
    if (own(stream)->is_broken) return kCaptureBroken;
    if (!own(stream)->is_capturing) return work();
    own(stream)->captured.push_back(std::move(work));
    return kSuccess;
}

}  // namespace fake_hip
