// SPDX-License-Identifier: MIT
// A GPU of threads: the few functions of kernels/cuda/primitives.hpp that the checking kernels need, and a device that runs
// those two kernels with them, one block at a time. So the kernels and all that drives them are tested without a GPU.
#pragma once

#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "device/device.hpp"
#include "kernels/gpu/types.hpp"

namespace tilewise::gpu {

struct TwinThread {
    int thread = 0, threads = 1;
    unsigned block = 0, blocks = 1;
    std::barrier<>* barrier = nullptr;
};
inline thread_local TwinThread twin_thread;

inline int thread_index() { return twin_thread.thread; }
inline int block_threads() { return twin_thread.threads; }
inline u32 block_index() { return twin_thread.block; }
inline u32 block_count() { return twin_thread.blocks; }
inline void sync_block() { twin_thread.barrier->arrive_and_wait(); }
inline void griddep_wait() {}
inline void atomicAdd(u64* to, u64 value) { std::atomic_ref(*to) += value; }
inline void atomicMin(u64* to, u64 value) {
    std::atomic_ref shared(*to);
    u64 seen = shared;
    while (value < seen && !shared.compare_exchange_weak(seen, value)) {
    }
}

}  // namespace tilewise::gpu

#include "kernels/gpu/conv_reference.hpp"
#include "kernels/gpu/fill.hpp"

namespace tilewise {

using TwinKernel = void (*)(const KernelArgs& args);

inline void run_on_twin(TwinKernel kernel, const KernelArgs& args, int blocks, int threads) {
    std::barrier<> barrier(threads);
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t) {
        team.emplace_back([&, t] {
            for (int block = 0; block < blocks; ++block) {
                gpu::twin_thread = {t, threads, static_cast<unsigned>(block), static_cast<unsigned>(blocks), &barrier};
                kernel(args);
                barrier.arrive_and_wait();
            }
        });
    }
}

// Memory of its own, as a GPU has: what is copied to or from it must be announced by copy. Code is known by its name.
class TwinDevice final : public Device {
public:
    explicit TwinDevice(ArchSpec arch) : arch_(std::move(arch)) { arch_.units = 1; }

    const std::string& name() const override { return name_; }
    const std::string& identity() const override { return name_; }
    const ArchSpec& arch() const override { return arch_; }
    int max_threads() const override { return 1; }
    std::optional<int> driver_version() const override { return {}; }
    std::optional<Rejected> refuses(const KernelConfig&) const override { return {}; }
    Result<void*> allocate(std::size_t bytes) override {
        constexpr std::size_t kAlign = 4096;
        void* memory = std::aligned_alloc(kAlign, (bytes + kAlign) / kAlign * kAlign);
        std::memset(memory, 0x5a, bytes);  // nobody may count on what is there
        held_.insert(memory);
        return memory;
    }
    void release(void* memory) override {
        held_.erase(memory);
        std::free(memory);
    }
    bool shares_host_memory() const override { return false; }
    Status copy(void* to, const void* from, std::size_t bytes, Stream) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    Status copy_rows(const RowCopy&, Stream) override { return unsupported_error("the twin pads nothing"); }
    Status clear_rows(void*, std::int64_t, std::int64_t, std::int64_t, Stream) override {
        return unsupported_error("the twin pads nothing");
    }
    Status synchronize(Stream) override { return {}; }
    bool is_capturing(Stream) const override { return false; }
    Result<std::unique_ptr<Recording>> record(const RecordedWork&, std::int64_t) override {
        return unsupported_error("the twin records nothing");
    }

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) override {
        const std::string called = kernel.manifest.kernel.substr(0, kernel.manifest.kernel.find('@'));
        auto code = std::make_shared<TwinCode>();
        if (called == "check_fill") code->kernel = gpu::do_buffer_task;
        for (TwinKernel found : {reference<gpu::MatrixOperands>(called, "check_reference"),
                                 reference<gpu::ForwardOperands>(called, "check_reference_fwd"),
                                 reference<gpu::BackwardDataOperands>(called, "check_reference_bwd_data"),
                                 reference<gpu::BackwardWeightOperands>(called, "check_reference_bwd_weight")}) {
            if (found) code->kernel = found;
        }
        if (!code->kernel) return unsupported_error("the twin does not know " + called);
        return std::shared_ptr<const Code>(std::move(code));
    }
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs&,
                                                  LaunchPlan plan) override {
        auto launch = std::make_unique<TwinLaunch>();
        launch->kernel = std::static_pointer_cast<const TwinCode>(code)->kernel;
        launch->blocks = plan.gpu()->blocks;
        // Filling takes blocks of any size; few threads are quicker here.
        launch->threads = launch->kernel == gpu::do_buffer_task ? 3 : plan.gpu()->block.threads;
        return std::unique_ptr<const Launch>(std::move(launch));
    }
    std::size_t held() const { return held_.size(); }

private:
    template <class Operands>
    static TwinKernel reference(const std::string& called, const std::string& name) {
        if (called == name) return gpu::judge_result<false, Operands>;
        return called == name + "_squares" ? gpu::judge_result<true, Operands> : nullptr;
    }

    struct TwinCode final : Code {
        std::int64_t packed_b_bytes(const KernelArgs&) const override { return 0; }
        TwinKernel kernel = nullptr;
    };
    struct TwinLaunch final : Launch {
        Status run(const KernelArgs& args, Stream) const override {
            run_on_twin(kernel, args, blocks, threads);
            return {};
        }
        Status pack_b(const KernelArgs&, void*, Stream) const override { return unsupported_error("not packed"); }
        TwinKernel kernel = nullptr;
        int blocks = 0, threads = 0;
    };

    std::string name_ = "twin";
    ArchSpec arch_;
    std::set<void*> held_;
};

}  // namespace tilewise
