// SPDX-License-Identifier: MIT
// How the C functions read which kernels a caller asks for.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "registry/rule_set_registry.hpp"
#include "select/select_options.hpp"

namespace tilewise::capi {

struct Query : KernelQuery {
    bool only_available = false;  // kernels that there is code for
};

// How one of the kernels is to be chosen, without a device.
struct ChoiceQuery {
    Strategy strategy = SelectOptions{}.strategy;
    std::string model_dir{};  // a folder of models that is asked before the usual ones
    int threads = 0;          // of a CPU; 0: as many as there are
};

// {"arch", "rule_set", and with `has_kernels` "op", "dtype", "available"}, all optional; NULL or "" for none. A list of
// kernels may name an operation and types, a problem has its own. Where a choice is asked for, "strategy", "model_dir" and "threads" too.
Result<Query> read_query(const char* text, bool has_kernels, ChoiceQuery* choice = nullptr);

Result<std::vector<Kernel>> list(const Query& query);

// An arch by name; NULL or "": that of the host's CPU.
Result<const ArchSpec*> read_arch(const char* name);

}  // namespace tilewise::capi
