// SPDX-License-Identifier: MIT
// A GPU that is not there: runs GPU kernels on the host, thread by thread (grid.hpp), from the same templates, compiled by
// the host's compiler with the twins of kernels/emulate. For small problems only: a thread of a block is a fiber of this
// process. Says what a GPU would not: which thread reads what nobody has written, or writes where it must not, and who waits
// for whom when nothing goes on.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "config/arch_spec.hpp"
#include "device/device.hpp"

namespace tilewise {

// For kernels of this arch, which must outlive the device. The order of threads comes from the seed and the number of the
// launch; TILEWISE_EMULATE_SEED overrides it.
Result<std::unique_ptr<Device>> make_emulated_device(const ArchSpec& arch, std::uint64_t seed = 1);

}  // namespace tilewise
