// SPDX-License-Identifier: MIT
#include "measure/device_tensors.hpp"

#include "measure/device_memory.hpp"

namespace tilewise {
namespace {

void set_operand(Operands& o, std::size_t index, void* at) {
    switch (index) {
        case 0: o.a = at; break;
        case 1: o.b = at; break;
        case 2: o.c = at; break;
        case 3: o.bias = at; break;
        case 4: o.scale_a = static_cast<const float*>(at); break;
        case 5: o.scale_b = static_cast<const float*>(at); break;
        default: o.d[index - 6] = at;
    }
}

constexpr std::size_t kOutput = 2;

}  // namespace

Result<DeviceTensors> DeviceTensors::make(Device& device, const Tensors& tensors) {
    DeviceTensors made(device, tensors);
    const auto buffers = tensors.buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const GuardedBuffer* buffer = buffers[i];
        std::shared_ptr<void> copy;
        if (buffer && !device.shares_host_memory()) {
            auto memory = device_memory(device, buffer->whole_bytes());
            if (!memory) return memory.error();
            copy = std::move(*memory);
            const auto bytes = static_cast<std::size_t>(buffer->whole_bytes());
            if (auto status = device.copy(copy.get(), buffer->whole(), bytes, kDefaultStream); !status) {
                return status.error();
            }
        }
        if (buffer) {
            std::byte* whole = copy ? static_cast<std::byte*>(copy.get()) : buffer->whole();
            set_operand(made.operands_, i, whole + buffer->front_bytes());
        }
        made.copies_.push_back(std::move(copy));
    }
    return made;
}

Status DeviceTensors::fetch() const {
    const auto buffers = tensors_->buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        if (!copies_[i]) continue;
        const auto bytes = static_cast<std::size_t>(buffers[i]->whole_bytes());
        if (auto status = device_->copy(buffers[i]->whole(), copies_[i].get(), bytes, kDefaultStream); !status) {
            return status;
        }
    }
    return {};
}

Status DeviceTensors::fetch_output() const {
    if (!copies_[kOutput]) return {};
    const GuardedBuffer& c = *tensors_->buffers()[kOutput];
    return device_->copy(c.whole(), copies_[kOutput].get(), static_cast<std::size_t>(c.whole_bytes()), kDefaultStream);
}

Status DeviceTensors::send_output() const {
    if (!copies_[kOutput]) return {};
    const GuardedBuffer& c = *tensors_->buffers()[kOutput];
    return device_->copy(copies_[kOutput].get(), c.whole(), static_cast<std::size_t>(c.whole_bytes()), kDefaultStream);
}

}  // namespace tilewise
