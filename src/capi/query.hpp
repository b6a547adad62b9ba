// SPDX-License-Identifier: MIT
// How the C functions read which kernels a caller asks for.
#pragma once

#include "base/result.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise::capi {

// {"arch", "rule_set", and with `has_kernels` "op", "dtype"}, all optional; NULL or "" for none. A list of kernels may name
// an operation and types, a problem has its own.
Result<KernelQuery> read_query(const char* json, bool has_kernels);

// An arch by name; NULL or "": that of the host's CPU.
Result<const ArchSpec*> read_arch(const char* name);

}  // namespace tilewise::capi
