// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_recording.hpp"

#include "device/cuda/context_scope.hpp"

namespace tilewise {
namespace {

using namespace cuda_driver;

constexpr unsigned kNonBlockingStream = 1;

class GraphRecording final : public Recording {
public:
    GraphRecording(const Driver& driver, CUcontext context) : driver_(driver), context_(context) {}
    ~GraphRecording() override {
        const ContextScope scope(driver_, context_);
        if (begin_) driver_.event_destroy(begin_);
        if (end_) driver_.event_destroy(end_);
        if (exec_) driver_.graph_exec_destroy(exec_);
        if (stream_) driver_.stream_destroy(stream_);
    }

    Status capture(const RecordedWork& work, std::int64_t calls) {
        // A stream of its own: the default one cannot be captured.
        auto status = driver_.check(driver_.stream_create(&stream_, kNonBlockingStream), "cuStreamCreate");
        if (status) {
            status = driver_.check(driver_.stream_begin_capture(stream_, kCaptureThreadLocal), "cuStreamBeginCapture");
        }
        if (!status) return status;
        for (std::int64_t i = 0; i < calls && status; ++i) status = work(stream_, i);
        CUgraph graph = nullptr;
        const auto ended = driver_.stream_end_capture(stream_, &graph);
        if (status) status = driver_.check(ended, "cuStreamEndCapture");
        if (status) status = driver_.check(driver_.graph_instantiate(&exec_, graph, 0), "cuGraphInstantiate");
        if (graph) driver_.graph_destroy(graph);
        // Now, not in the first replay, whose time it would be part of.
        if (status) status = driver_.check(driver_.graph_upload(exec_, stream_), "cuGraphUpload");
        if (status) status = driver_.check(driver_.stream_synchronize(stream_), "cuStreamSynchronize");
        if (status) status = driver_.check(driver_.event_create(&begin_, 0), "cuEventCreate");
        if (status) status = driver_.check(driver_.event_create(&end_, 0), "cuEventCreate");
        return status;
    }

    Result<double> replay() override {
        const ContextScope scope(driver_, context_);
        auto status = driver_.check(driver_.event_record(begin_, stream_), "cuEventRecord");
        if (status) status = driver_.check(driver_.graph_launch(exec_, stream_), "cuGraphLaunch");
        if (status) status = driver_.check(driver_.event_record(end_, stream_), "cuEventRecord");
        if (status) status = driver_.check(driver_.event_synchronize(end_), "cuEventSynchronize");
        float milliseconds = 0;
        if (status)
            status = driver_.check(driver_.event_elapsed_time(&milliseconds, begin_, end_), "cuEventElapsedTime");
        if (!status) return status.error();
        return milliseconds * 1e-3;
    }

private:
    const Driver& driver_;
    CUcontext context_;
    CUstream stream_ = nullptr;
    CUgraphExec exec_ = nullptr;
    CUevent begin_ = nullptr, end_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Recording>> record_graph(const Driver& driver, CUcontext context, const RecordedWork& work,
                                                std::int64_t calls) {
    const ContextScope scope(driver, context);
    const OutsideCapture outside(driver);
    auto recording = std::make_unique<GraphRecording>(driver, context);
    if (auto status = recording->capture(work, calls); !status) return status.error();
    return std::unique_ptr<Recording>(std::move(recording));
}

}  // namespace tilewise
