// SPDX-License-Identifier: MIT
#include "device/emulated/emulated_device.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/text.hpp"
#include "device/device_error.hpp"
#include "device/emulated/emulated_launch.hpp"
#include "device/emulated/fiber_stack.hpp"
#include "device/host_memory.hpp"
#include "device/host_recording.hpp"
#include "device/host_rows.hpp"
#include "kernels/common/machine.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kAllocationAlignment = 256;  // as CUDA's

class EmulatedDevice final : public Device {
public:
    EmulatedDevice(const ArchSpec& arch, std::uint64_t seed)
        : arch_(arch), name_("emulated:" + arch.name), identity_("emulated; " + arch.name) {
        machine_->seed = seed;
        machine_->lanes = arch.wave_size;
        machine_->flushes_subnormals = arch.flushes_subnormals;
    }

    const std::string& name() const override { return name_; }
    const std::string& identity() const override { return identity_; }
    const ArchSpec& arch() const override { return arch_; }
    int max_threads() const override { return 1; }
    std::optional<int> driver_version() const override { return std::nullopt; }
    std::string_view code_suffix() const override { return kEmulatedCode; }
    std::optional<Rejected> refuses(const KernelConfig&) const override { return std::nullopt; }

    Result<void*> allocate(std::size_t bytes) override {
        void* const memory = allocate_host(bytes, kAllocationAlignment);
        if (!memory) return device_error(fmt::format("cannot allocate {} bytes", bytes));
        std::memset(memory, kEmulatedPoison, bytes);  // nobody may count on zeros
        const std::scoped_lock lock(emulated_launches());
        machine_->memory.add(memory, bytes);
        return memory;
    }
    void release(void* memory) override {
        {
            const std::scoped_lock lock(emulated_launches());
            machine_->memory.remove(memory);
        }
        std::free(memory);
    }
    // Kernels see only what was allocated here, so that an access elsewhere is found.
    bool shares_host_memory() const override { return false; }
    Status copy(void* to, const void* from, std::size_t bytes, Stream) override {
        if (bytes > 0) std::memcpy(to, from, bytes);
        return {};
    }
    Status copy_rows(const RowCopy& copy, Stream) override { return copy_host_rows(copy, 1), Status(); }
    Status clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows, Stream) override {
        return clear_host_rows(memory, pitch, row_bytes, rows, 1), Status();
    }
    Status synchronize(Stream) override { return {}; }
    bool is_capturing(Stream) const override { return false; }
    Result<std::unique_ptr<Recording>> record(const RecordedWork& work, std::int64_t calls) override {
        return std::unique_ptr<Recording>(std::make_unique<HostRecording>(work, calls));
    }

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) override { return load_emulated_code(kernel); }
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs&,
                                                  LaunchPlan plan) override {
        return prepare_emulated_launch(machine_, std::move(code), std::get<GpuGrid>(std::move(plan.share)));
    }

private:
    const ArchSpec& arch_;
    std::string name_, identity_;
    std::shared_ptr<EmulatedMachine> machine_ = std::make_shared<EmulatedMachine>();
};

}  // namespace

Result<std::unique_ptr<Device>> make_emulated_device(const ArchSpec& arch, std::uint64_t seed) {
    if (!kHasFibers) return device_error("GPUs are emulated on x86-64 only, and not under sanitizers");
    if (!arch.is_gpu()) {
        return device_error(fmt::format("arch {} is of {}; only GPUs are emulated", arch.name, name_of(arch.backend)));
    }
    if (const char* text = secure_getenv("TILEWISE_EMULATE_SEED")) {
        const auto number = parse_integer(text);
        if (!number || *number < 0) return usage_error(fmt::format("TILEWISE_EMULATE_SEED={} is no number", text));
        seed = static_cast<std::uint64_t>(*number);
    }
    return std::unique_ptr<Device>(std::make_unique<EmulatedDevice>(arch, seed));
}

}  // namespace tilewise
