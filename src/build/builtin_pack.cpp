// SPDX-License-Identifier: MIT
#include "build/builtin_pack.hpp"

#include <atomic>
#include <memory>

namespace tilewise {

// Weak, so that a program linked with the kernels has those.
__attribute__((weak)) std::string_view builtin_pack_bytes() { return {}; }

const Pack& builtin_pack() {
    // No lock: a fork while another thread holds it would leave the child waiting. Reading twice does no harm.
    static constinit std::atomic<const Pack*> known = nullptr;
    if (const Pack* pack = known.load()) return *pack;
    auto pack = Pack::from_memory(builtin_pack_bytes(), "built in");
    auto fresh = std::make_unique<const Pack>(pack ? std::move(*pack) : Pack());
    const Pack* before = nullptr;
    if (known.compare_exchange_strong(before, fresh.get())) return *fresh.release();
    return *before;
}

}  // namespace tilewise
