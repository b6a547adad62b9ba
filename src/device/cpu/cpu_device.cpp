// SPDX-License-Identifier: MIT
#include "device/cpu/cpu_device.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/files.hpp"
#include "base/text.hpp"
#include "build/checked_code.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/cpu/thread_pool.hpp"
#include "device/device_error.hpp"
#include "device/host_memory.hpp"
#include "device/host_recording.hpp"
#include "device/host_rows.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

class CpuCode final : public Code {
public:
    CpuCode(void* handle, const CpuKernel* kernel) : handle_(handle), kernel_(kernel) {}
    ~CpuCode() override { dlclose(handle_); }
    CpuCode(const CpuCode&) = delete;
    CpuCode& operator=(const CpuCode&) = delete;

    const CpuKernel& kernel() const { return *kernel_; }
    std::int64_t packed_b_bytes(const KernelArgs& args) const override {
        return kernel_->packed_b_bytes ? kernel_->packed_b_bytes(&args) : 0;
    }

private:
    void* handle_;
    const CpuKernel* kernel_;
};

// Scratch memory of the calling thread: grows to what was ever asked for, is kept, and ends with the thread.
class Scratch {
public:
    ~Scratch() { std::free(memory_); }
    void* at_least(std::size_t bytes) {
        if (bytes > bytes_) {
            std::free(memory_);
            memory_ = allocate_host(bytes, kAlignment);
            bytes_ = memory_ ? bytes : 0;
        }
        return memory_;
    }

private:
    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

// Null where there is no memory. A kernel that needs none gets a little, so that null has one meaning.
void* thread_scratch(std::size_t bytes) {
    thread_local Scratch scratch;
    return scratch.at_least(std::max<std::size_t>(1, bytes));
}

// Kernels are compiled without sanitizers. Where the library has the address sanitizer, a mark behind their scratch memory shows
// whether they write beyond it.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kMarkBytes = 64;
#else
constexpr std::size_t kMarkBytes = 0;
#endif
constexpr unsigned char kMark = 0xa5;

void put_mark(void* scratch, std::size_t bytes) {
    std::fill_n(static_cast<unsigned char*>(scratch) + bytes, kMarkBytes, kMark);
}
void check_mark(const void* scratch, std::size_t bytes) {
    const auto* mark = static_cast<const unsigned char*>(scratch) + bytes;
    if (std::all_of(mark, mark + kMarkBytes, [](unsigned char byte) { return byte == kMark; })) return;
    std::fputs("a kernel has written behind its scratch memory\n", stderr);
    std::abort();
}

struct Task {
    const CpuKernel* kernel;
    const KernelArgs* args;
    const KernelPart* parts;
    void* packed;
    std::atomic<bool> out_of_memory{false};
};

void run_part(void* context, int index) {
    auto& task = *static_cast<Task*>(context);
    const auto bytes = static_cast<std::size_t>(task.kernel->scratch_bytes(task.args));
    void* scratch = thread_scratch(bytes + kMarkBytes);
    if (!scratch) {
        task.out_of_memory = true;
        return;
    }
    put_mark(scratch, bytes);
    task.kernel->run(task.args, task.parts + index, scratch);
    check_mark(scratch, bytes);
}

void expand_part(void* context, int index) {
    auto& task = *static_cast<Task*>(context);
    task.kernel->expand(task.args, task.parts + index);
}

void reduce_part(void* context, int index) {
    auto& task = *static_cast<Task*>(context);
    task.kernel->reduce(task.args, task.parts + index);
}

void pack_part(void* context, int index) {
    auto& task = *static_cast<Task*>(context);
    task.kernel->pack_b(task.args, task.parts + index, task.packed);
}

Error no_memory(const KernelArgs& args) {
    return device_error(
        fmt::format("out of memory for the packing buffers of a {}x{}x{} product", args.m, args.n, args.k));
}

class CpuLaunch final : public Launch {
public:
    CpuLaunch(std::shared_ptr<const CpuCode> code, CpuParts parts) : code_(std::move(code)), parts_(std::move(parts)) {}

    Status run(const KernelArgs& args, Stream) const override {
        Task task{&code_->kernel(), &args, parts_.expand.data(), nullptr, {}};
        ThreadPool& pool = ThreadPool::instance();
        if (!parts_.expand.empty()) {
            pool.run(static_cast<int>(parts_.expand.size()), parts_.threads, expand_part, &task);
        }
        task.parts = parts_.run.data();
        pool.run(static_cast<int>(parts_.run.size()), parts_.threads, run_part, &task);
        if (task.out_of_memory) return no_memory(args);
        if (!parts_.reduce.empty()) {
            task.parts = parts_.reduce.data();
            pool.run(static_cast<int>(parts_.reduce.size()), parts_.threads, reduce_part, &task);
        }
        return {};
    }

    Status pack_b(const KernelArgs& args, void* packed, Stream) const override {
        if (!code_->kernel().pack_b) return unsupported_error("this kernel reads B as it is; there is nothing to pack");
        KernelPart whole{0, args.m, 0, args.n, 0, args.batch, 0};
        Task task{&code_->kernel(), &args, &whole, packed, {}};
        ThreadPool::instance().run(1, parts_.threads, pack_part, &task);
        return {};
    }

private:
    std::shared_ptr<const CpuCode> code_;
    CpuParts parts_;
};

// The system's entry of this name for the first CPU.
std::optional<std::string> cpu_info(std::string_view name) {
    const auto text = read_file("/proc/cpuinfo");
    if (!text) return std::nullopt;
    for (const std::string_view line : split(*text, '\n')) {
        if (line.starts_with(name)) return std::string(trim(line.substr(line.find(':') + 1)));
    }
    return std::nullopt;
}

class CpuDevice final : public Device {
public:
    CpuDevice(const ArchSpec& arch, int threads) : arch_(arch), threads_(threads) {
        identity_ = fmt::format("{}; {}; {} threads", cpu_info("model name").value_or("x86-64"), arch.name, threads);
    }

    const std::string& name() const override { return name_; }
    const std::string& identity() const override { return identity_; }
    const ArchSpec& arch() const override { return arch_; }
    int max_threads() const override { return threads_; }
    std::optional<int> driver_version() const override { return std::nullopt; }
    std::optional<double> clock_mhz() const override {
        const double mhz = std::strtod(cpu_info("cpu MHz").value_or("0").c_str(), nullptr);
        return mhz > 0 ? std::optional(mhz) : std::nullopt;
    }
    std::optional<Rejected> refuses(const KernelConfig& config) const override {
        for (const std::string& need : kernel_features(config, arch_)) {
            if (std::find(features_.begin(), features_.end(), need) == features_.end()) {
                return Rejected{"fit_cpu_feature", "a CPU without " + need, "a CPU that has it"};
            }
        }
        return std::nullopt;
    }

    Result<void*> allocate(std::size_t bytes) override {
        void* const memory = allocate_host(bytes, kAlignment);
        if (!memory) return device_error(fmt::format("cannot allocate {} bytes", bytes));
        std::memset(memory, 0, bytes);  // so that the first run does not pay for fresh pages
        return memory;
    }
    void release(void* memory) override { std::free(memory); }
    bool shares_host_memory() const override { return true; }
    Status copy(void* to, const void* from, std::size_t bytes, Stream) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    Status copy_rows(const RowCopy& copy, Stream) override { return copy_host_rows(copy, threads_), Status(); }
    Status clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows, Stream) override {
        return clear_host_rows(memory, pitch, row_bytes, rows, threads_), Status();
    }
    Status synchronize(Stream) override { return {}; }
    bool is_capturing(Stream) const override { return false; }
    Result<std::unique_ptr<Recording>> record(const RecordedWork& work, std::int64_t calls) override {
        return std::unique_ptr<Recording>(std::make_unique<HostRecording>(work, calls));
    }

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& built) override {
        const auto checked = CheckedCode::open(built);
        if (!checked) return checked.error();
        void* handle = dlopen(checked->path().c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) return device_error(fmt::format("cannot load kernel: {}", dlerror()));
        const auto* kernel = static_cast<const CpuKernel*>(dlsym(handle, kKernelSymbol));
        if (!kernel || kernel->abi != kKernelAbi) {
            const std::string have = kernel ? fmt::format("kernel ABI {}", kernel->abi) : "no kernel table";
            dlclose(handle);
            // Not what was built: whoever asks for it has it built anew.
            return Error{ErrorCode::toolchain,
                         fmt::format("{}: has {}; need kernel ABI {}", built.path, have, kKernelAbi)};
        }
        if (kernel->enter_thread && kernel->enter_thread() != 0) {
            dlclose(handle);
            return device_error("the system does not let this process use the CPU's matrix tiles (AMX)");
        }
        return std::shared_ptr<const Code>(std::make_shared<CpuCode>(handle, kernel));
    }

    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs& args,
                                                  LaunchPlan plan) override {
        auto cpu_code = std::static_pointer_cast<const CpuCode>(std::move(code));
        const auto bytes = static_cast<std::size_t>(cpu_code->kernel().scratch_bytes(&args));
        if (!thread_scratch(bytes)) return no_memory(args);
        return std::unique_ptr<const Launch>(
            std::make_unique<CpuLaunch>(std::move(cpu_code), std::get<CpuParts>(std::move(plan.share))));
    }

private:
    const ArchSpec& arch_;
    int threads_;
    std::vector<std::string> features_ = host_cpu_features();
    std::string name_ = "cpu";
    std::string identity_;
};

}  // namespace

Result<std::unique_ptr<Device>> make_cpu_device(const ArchSpec& arch, int threads) {
    if (arch.is_gpu()) return unsupported_error(fmt::format("{} is not a CPU", arch.name));
    const auto have = host_cpu_features();
    for (const std::string& need : arch.cpu_features) {
        if (std::find(have.begin(), have.end(), need) == have.end()) {
            return device_error(fmt::format("this CPU cannot run {}: it lacks {}", arch.name, need));
        }
    }
    if (threads < 0 || threads > usable_cpus()) {
        return usage_error(fmt::format("{} threads: 1 to {} CPUs are usable, or 0 for all", threads, usable_cpus()));
    }
    const auto count = threads == 0 ? default_threads() : Result<int>(threads);
    if (!count) return count.error();
    return std::unique_ptr<Device>(std::make_unique<CpuDevice>(arch, *count));
}

}  // namespace tilewise
