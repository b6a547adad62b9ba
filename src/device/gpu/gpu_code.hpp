// SPDX-License-Identifier: MIT
// A kernel's code on a GPU: a module of the driver, and the functions in it.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>

#include "device/device.hpp"
#include "device/device_error.hpp"
#include "device/gpu/gpu_functions.hpp"
#include "device/gpu/gpu_scope.hpp"

namespace tilewise {

template <class Driver>
class GpuCode : public Code {
public:
    GpuCode(const Driver& driver, typename Driver::Context context) : driver_(driver), context_(context) {}
    ~GpuCode() override {
        if (!module_) return;
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        driver_.module_unload(module_);
    }
    GpuCode(const GpuCode&) = delete;
    GpuCode& operator=(const GpuCode&) = delete;

    std::int64_t packed_b_bytes(const KernelArgs&) const override { return 0; }
    const GpuFunctions<typename Driver::Function>& functions() const { return functions_; }

    Status load(const std::string& image) {
        auto status = driver_.check(driver_.module_load_data(&module_, image.data()), "ModuleLoadData");
        if (status) status = driver_.check(find(functions_.kernel, kKernelSymbol), "ModuleGetFunction");
        if (!status) return status;
        if (find(functions_.reduce, kReduceSymbol) != Driver::kSuccess) functions_.reduce = nullptr;
        if (find(functions_.pack, kPackSymbol) != Driver::kSuccess) functions_.pack = nullptr;
        if (find(functions_.pack_b, kPackBSymbol) != Driver::kSuccess) functions_.pack_b = nullptr;
        return {};
    }

protected:
    const Driver& driver_;

private:
    auto find(typename Driver::Function& function, const char* symbol) const {
        return driver_.module_get_function(&function, module_, symbol);
    }

    typename Driver::Context context_;
    typename Driver::Module module_ = nullptr;
    GpuFunctions<typename Driver::Function> functions_;
};

// `OwnCode` is GpuCode, or a vendor's with more.
template <class OwnCode, class Driver>
Result<std::shared_ptr<const Code>> load_gpu_code(const Driver& driver, typename Driver::Context context,
                                                  const std::string& image, const std::string& kernel) {
    const ContextScope scope(driver, context);
    const OutsideCapture outside(driver);
    auto code = std::make_shared<OwnCode>(driver, context);
    if (auto status = code->load(image); !status) {
        return device_error(fmt::format("kernel {}: {}", kernel, status.error().message));
    }
    return std::shared_ptr<const Code>(std::move(code));
}

}  // namespace tilewise
