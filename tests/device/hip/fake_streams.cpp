// SPDX-License-Identifier: MIT
// The functions of the fake HIP runtime, by the names of the real one: streams, events and graphs.
#include <chrono>

#include "device/hip/fake_call.hpp"

namespace fake_hip {
namespace {

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace
}  // namespace fake_hip

using namespace fake_hip;

FAKE_HIP HipResult hipStreamCreateWithFlags(HipStream* stream, unsigned flags) {
    return unsafe_call("hipStreamCreateWithFlags", [&](FakeState& all) {
        if (flags > 1) return kInvalidValue;
        auto* made = new FakeStream;
        made->device = current_device();
        all.streams.insert(made);
        *stream = reinterpret_cast<HipStream>(made);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipStreamDestroy(HipStream stream) {
    return call("hipStreamDestroy", [&](FakeState& all) {
        if (all.streams.erase(own(stream)) == 0) return kInvalidHandle;
        delete own(stream);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipStreamSynchronize(HipStream stream) {
    return call("hipStreamSynchronize", [&](FakeState& all) {
        if (!is_known(all, stream)) return kInvalidHandle;
        if (stream && own(stream)->is_capturing) return own(stream)->is_broken = true, kCaptureUnsupported;
        return is_captured(all) && capture_mode() != kCaptureRelaxed ? kCaptureUnsupported : kSuccess;
    });
}
FAKE_HIP HipResult hipStreamIsCapturing(HipStream stream, GpuCaptureStatus* status) {
    return call("hipStreamIsCapturing", [&](FakeState& all) {
        if (!is_known(all, stream)) return kInvalidHandle;
        *status = stream && own(stream)->is_capturing ? kCaptureActive : kCaptureNone;
        return kSuccess;
    });
}
FAKE_HIP HipResult hipStreamBeginCapture(HipStream stream, GpuCaptureMode mode) {
    return call("hipStreamBeginCapture", [&](FakeState& all) {
        if (!stream || !is_known(all, stream)) return kCaptureUnsupported;
        if (own(stream)->is_capturing) return kInvalidValue;
        own(stream)->is_capturing = true, own(stream)->mode = mode;
        return kSuccess;
    });
}
FAKE_HIP HipResult hipStreamEndCapture(HipStream stream, HipGraph* graph) {
    return call("hipStreamEndCapture", [&](FakeState& all) {
        if (!stream || !is_known(all, stream) || !own(stream)->is_capturing) return kCaptureUnmatched;
        own(stream)->is_capturing = false;
        auto works = std::make_unique<FakeWorks>(std::exchange(own(stream)->captured, {}));
        if (std::exchange(own(stream)->is_broken, false)) return kCaptureBroken;
        *graph = reinterpret_cast<HipGraph>(works.get());
        all.graphs.insert(works.release());
        return kSuccess;
    });
}
FAKE_HIP HipResult hipThreadExchangeStreamCaptureMode(GpuCaptureMode* mode) {
    return call("hipThreadExchangeStreamCaptureMode",
                [&](FakeState&) { return *mode = std::exchange(capture_mode(), *mode), kSuccess; });
}
FAKE_HIP HipResult hipGraphInstantiateWithFlags(HipGraphExec* exec, HipGraph graph, unsigned long long) {
    return call("hipGraphInstantiateWithFlags", [&](FakeState& all) {
        auto* const works = reinterpret_cast<FakeWorks*>(graph);
        if (!all.graphs.contains(works)) return kInvalidValue;
        auto* const made = new FakeWorks(*works);
        all.execs.insert(made);
        *exec = reinterpret_cast<HipGraphExec>(made);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipGraphUpload(HipGraphExec exec, HipStream stream) {
    return call("hipGraphUpload", [&](FakeState& all) {
        return all.execs.contains(reinterpret_cast<FakeWorks*>(exec)) && is_known(all, stream) ? kSuccess
                                                                                               : kInvalidValue;
    });
}
FAKE_HIP HipResult hipGraphLaunch(HipGraphExec exec, HipStream stream) {
    return call("hipGraphLaunch", [&](FakeState& all) {
        auto* const works = reinterpret_cast<FakeWorks*>(exec);
        if (!all.execs.contains(works) || !is_known(all, stream)) return kInvalidValue;
        for (const FakeWork& work : *works) {
            if (const HipResult code = work(); code != kSuccess) return code;
        }
        return kSuccess;
    });
}
FAKE_HIP HipResult hipGraphExecDestroy(HipGraphExec exec) {
    return call("hipGraphExecDestroy", [&](FakeState& all) {
        if (all.execs.erase(reinterpret_cast<FakeWorks*>(exec)) == 0) return kInvalidValue;
        delete reinterpret_cast<FakeWorks*>(exec);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipGraphDestroy(HipGraph graph) {
    return call("hipGraphDestroy", [&](FakeState& all) {
        if (all.graphs.erase(reinterpret_cast<FakeWorks*>(graph)) == 0) return kInvalidValue;
        delete reinterpret_cast<FakeWorks*>(graph);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipEventCreateWithFlags(HipEvent* event, unsigned) {
    return call("hipEventCreateWithFlags", [&](FakeState& all) {
        *event = reinterpret_cast<HipEvent>(new char);
        all.events[*event] = 0;
        return kSuccess;
    });
}
FAKE_HIP HipResult hipEventDestroy(HipEvent event) {
    return call("hipEventDestroy", [&](FakeState& all) {
        if (all.events.erase(event) == 0) return kInvalidHandle;
        delete reinterpret_cast<char*>(event);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipEventRecord(HipEvent event, HipStream stream) {
    return call("hipEventRecord", [&](FakeState& all) {
        if (!all.events.contains(event) || !is_known(all, stream)) return kInvalidHandle;
        return all.events[event] = now_ms(), kSuccess;
    });
}
FAKE_HIP HipResult hipEventSynchronize(HipEvent event) {
    return unsafe_call("hipEventSynchronize",
                       [&](FakeState& all) { return all.events.contains(event) ? kSuccess : kInvalidHandle; });
}
FAKE_HIP HipResult hipEventElapsedTime(float* milliseconds, HipEvent begin, HipEvent end) {
    return call("hipEventElapsedTime", [&](FakeState& all) {
        if (!all.events.contains(begin) || !all.events.contains(end)) return kInvalidHandle;
        *milliseconds = static_cast<float>(all.events[end] - all.events[begin]);
        return kSuccess;
    });
}
