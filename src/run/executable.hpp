// SPDX-License-Identifier: MIT
// A plan made ready: code built and loaded, geometry and workspace size known. A launch is one call with the operands,
// and allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/note.hpp"
#include "base/result.hpp"
#include "build/builder.hpp"
#include "device/device.hpp"
#include "family/problem_to_run.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"
#include "run/kernel_code.hpp"
#include "run/overlap.hpp"
#include "run/padded_launch.hpp"
#include "run/zeroed_launch.hpp"

namespace tilewise {

// The operands of one launch, in the order and types the problem names. What the problem does not have stays null. C and the
// workspace share no byte with anything else, but that a D tensor may be C itself.
struct Operands {
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
    const void* bias = nullptr;
    std::array<const void*, kMaxDTensors> d{};
    const float* scale_a = nullptr;
    const float* scale_b = nullptr;
    float alpha = 1;
    float beta = 0;
    void* workspace = nullptr;  // of workspace_bytes(), where that is not 0
};

// Fills in what a problem says of a launch: sizes, strides and operations, but no pointers, scalars or ways to compute it.
KernelArgs problem_args(const Problem& problem);

class Executable;

// Where a better executable appears, once, while another one serves.
class Replacement {
public:
    const Executable* get() const { return ready_.load(std::memory_order_acquire); }
    void set(std::shared_ptr<const Executable> better) {
        kept_ = std::move(better);
        ready_.store(kept_.get(), std::memory_order_release);
    }

private:
    std::shared_ptr<const Executable> kept_;
    std::atomic<const Executable*> ready_{nullptr};
};

class Executable {
public:
    // Builds (or finds) and loads the kernel for the problem on the device. A kernel that needs aligned sizes gets the
    // problem padded, and a note says so. Where the result is empty, nothing is built and a launch does nothing.
    // Whoever has searched for the plan of the launch already gives it as `searched`.
    static Result<Executable> prepare(const Problem& problem, const Kernel& kernel, Device& device, Builder& builder,
                                      const LaunchPlan* searched = nullptr);

    // Launches from the moment that the better one is there are its own; a launch that runs already ends as it began. Its workspace
    // is what both can do with. B must not be packed ahead.
    void serve_until(std::shared_ptr<const Replacement> better, std::int64_t its_workspace_bytes, Note note);
    bool is_serving() const { return better_ && !better_->get(); }

    std::int64_t workspace_bytes() const { return workspace_bytes_; }
    std::int64_t packed_b_bytes() const { return packed_b_bytes_; }  // 0 when B is read as it is
    const BuiltKernel& built() const { return now().built_; }
    int threads() const { return now().threads_; }  // of a CPU; 0 on a GPU, and where nothing is launched
    const std::vector<Note>& notes() const { return now().notes_; }  // what is not as it should be about getting ready

    Status launch(const Operands& operands, Stream stream = kDefaultStream) const;
    // Writes B in the form that launches of this executable read it; once for many launches.
    Status pack_b(const void* b, void* packed, Stream stream = kDefaultStream) const;

private:
    Executable() = default;
    static Result<Executable> prepare_padded(const Problem& problem, const PaddedProblem& padded, const Kernel& kernel,
                                             Device& device, Builder& builder);
    static Result<Executable> prepare_zeroed(const Problem& problem, const Kernel& kernel, Device& device,
                                             Builder& builder);
    const Executable& now() const {
        const Executable* better = better_ ? better_->get() : nullptr;
        return better ? *better : *this;
    }
    Status launch_this(const Operands& operands, Stream stream) const;
    void note_operands(const Problem& problem);
    Status check_operands(const Operands& operands) const;
    Status check_alignment(const Operands& operands) const;

    BuiltKernel built_;
    std::vector<Note> notes_;
    std::shared_ptr<const Launch> launch_;
    std::shared_ptr<const PaddedLaunch> padded_;  // then launch_ is null
    std::shared_ptr<const ZeroedLaunch> zeroed_;  // likewise
    bool launches_nothing_ = false;               // the result is empty
    KernelArgs args_{};                           // everything but the pointers and scalars
    int threads_ = 0;
    std::string label_, how_;  // for telling of runs
    std::int64_t workspace_bytes_ = 0;
    std::int64_t packed_b_bytes_ = 0;
    std::array<std::size_t, 3> access_bytes_ = {1, 1, 1};  // what the pointers of A, B and C must be multiples of
    bool has_beta_ = false, has_bias_ = false, has_scales_ = false;
    std::size_t d_count_ = 0;
    OverlapCheck overlap_;
    std::shared_ptr<const Replacement> better_;
};

// The number of threads that share a launch; null on a GPU, and where nothing is launched.
Json threads_json(const Executable& executable);

}  // namespace tilewise
