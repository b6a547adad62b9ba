// SPDX-License-Identifier: MIT
#include "device/described_device.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "config/geometry.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/device_error.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

Error described_only(const std::string& name) {
    return device_error(fmt::format("{} is only described in this process: nothing runs on it", name));
}

struct DeviceFacts {
    std::string name, identity, code_suffix;
    int max_threads = 1;
    std::optional<int> driver_version;
    std::optional<double> clock_mhz;
};

class DescribedDevice final : public Device {
public:
    DescribedDevice(ArchSpec arch, DeviceFacts facts) : arch_(std::move(arch)), facts_(std::move(facts)) {
        for (const std::string_view suffix : code_suffixes(arch_)) {
            if (suffix == facts_.code_suffix) code_suffix_ = suffix;
        }
        if (facts_.code_suffix == kEmulatedCode) code_suffix_ = kEmulatedCode;
    }

    const std::string& name() const override { return facts_.name; }
    const std::string& identity() const override { return facts_.identity; }
    const ArchSpec& arch() const override { return arch_; }
    int max_threads() const override { return facts_.max_threads; }
    std::optional<int> driver_version() const override { return facts_.driver_version; }
    std::optional<double> clock_mhz() const override { return facts_.clock_mhz; }
    std::string_view code_suffix() const override { return code_suffix_; }
    std::optional<Rejected> refuses(const KernelConfig& config) const override {
        if (arch_.is_gpu()) return std::nullopt;
        for (const std::string& need : kernel_features(config, arch_)) {
            if (std::find(features_.begin(), features_.end(), need) == features_.end()) {
                return Rejected{"fit_cpu_feature", "a CPU without " + need, "a CPU that has it"};
            }
        }
        return std::nullopt;
    }

    Result<void*> allocate(std::size_t) override { return described_only(name()); }
    void release(void*) override {}
    bool shares_host_memory() const override { return !arch_.is_gpu(); }
    Status copy(void*, const void*, std::size_t, Stream) override { return described_only(name()); }
    Status copy_rows(const RowCopy&, Stream) override { return described_only(name()); }
    Status clear_rows(void*, std::int64_t, std::int64_t, std::int64_t, Stream) override {
        return described_only(name());
    }
    Status synchronize(Stream) override { return {}; }
    bool is_capturing(Stream) const override { return false; }
    Result<std::unique_ptr<Recording>> record(const RecordedWork&, std::int64_t) override {
        return described_only(name());
    }
    Result<std::shared_ptr<const Code>> load(const BuiltKernel&) override { return described_only(name()); }
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code>, const KernelArgs&, LaunchPlan) override {
        return described_only(name());
    }

private:
    ArchSpec arch_;
    DeviceFacts facts_;
    std::string_view code_suffix_;
    std::vector<std::string> features_ = host_cpu_features();
};

std::size_t count_fp32_tiles(const ArchSpec& arch) {
    const WarpTiles* tiles = arch.find_warp_tiles({DType::fp32, DType::fp32});
    return tiles ? tiles->tiles.size() : 0;
}

}  // namespace

Json describe_device(const Device& device, const ArchCatalog& archs) {
    const ArchSpec& arch = device.arch();
    const auto listed = archs.find(arch.name);
    const bool lacks_doubles = listed && count_fp32_tiles(arch) < count_fp32_tiles(**listed);
    const auto driver = device.driver_version();
    const auto clock = device.clock_mhz();
    return Json::object({{"name", device.name()},
                         {"identity", device.identity()},
                         {"arch", arch.name},
                         {"units", arch.units},
                         {"cache_bytes", arch.cache_bytes},
                         {"shared_bytes", arch.shared_bytes},
                         {"lacks_doubles", lacks_doubles},
                         {"code_suffix", device.code_suffix()},
                         {"max_threads", device.max_threads()},
                         {"driver_version", driver ? Json(*driver) : Json()},
                         {"clock_mhz", clock ? Json(*clock) : Json()}});
}

Result<std::unique_ptr<Device>> make_described_device(const Json& description, const ArchCatalog& archs) {
    const auto text = [&](std::string_view key) {
        const Json* found = description.find(key);
        return found && found->string() ? *found->string() : std::string();
    };
    const auto number = [&](std::string_view key) -> std::optional<std::int64_t> {
        const Json* found = description.find(key);
        return found && found->integer() ? std::optional(*found->integer()) : std::nullopt;
    };
    const auto listed = archs.find(text("arch"));
    if (!listed) return listed.error();
    ArchSpec arch = **listed;
    arch.units = static_cast<int>(number("units").value_or(arch.units));
    arch.cache_bytes = number("cache_bytes").value_or(arch.cache_bytes);
    arch.shared_bytes = number("shared_bytes").value_or(arch.shared_bytes);
    const Json* lacks_doubles = description.find("lacks_doubles");
    if (lacks_doubles && lacks_doubles->boolean() && *lacks_doubles->boolean()) leave_out_doubles(arch);
    DeviceFacts facts{text("name"), text("identity"), text("code_suffix"), 1, std::nullopt, std::nullopt};
    facts.max_threads = static_cast<int>(number("max_threads").value_or(1));
    if (const auto driver = number("driver_version")) facts.driver_version = static_cast<int>(*driver);
    const Json* clock = description.find("clock_mhz");
    if (clock && clock->real()) facts.clock_mhz = *clock->real();
    if (clock && clock->integer()) facts.clock_mhz = static_cast<double>(*clock->integer());
    return std::unique_ptr<Device>(std::make_unique<DescribedDevice>(std::move(arch), std::move(facts)));
}

}  // namespace tilewise
