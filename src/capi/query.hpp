// SPDX-License-Identifier: MIT
// How the C functions read which kernels a caller asks for.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "registry/rule_set_registry.hpp"
#include "select/select_options.hpp"

namespace tilewise::capi {

struct Query : KernelQuery {
    bool only_available = false;  // kernels that there is code for
};

// {"arch", "rule_set", and with `has_kernels` "op", "dtype", "available"}, all optional; NULL or "" for none. A list of
// kernels may name an operation and types, a problem has its own. Where a strategy is asked for, "strategy" too: one that needs no device.
Result<Query> read_query(const char* text, bool has_kernels, Strategy* strategy = nullptr);

Result<std::vector<Kernel>> list(const Query& query);

// An arch by name; NULL or "": that of the host's CPU.
Result<const ArchSpec*> read_arch(const char* name);

}  // namespace tilewise::capi
