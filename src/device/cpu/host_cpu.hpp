// SPDX-License-Identifier: MIT
// Finds out what the CPU in front of us can do, in the words of the arch files.
#pragma once

#include <string>
#include <vector>

#include "config/arch_catalog.hpp"

namespace tilewise {

std::vector<std::string> host_cpu_features();  // usable ones only: the operating system saves their registers

// Vendor and family: "AuthenticAMD 26".
std::string host_cpu_family();

// Every embedded arch with the chip that this CPU is, where there is one for it: work is priced as it is here. Another machine's arch is
// asked for by its own file.
Status take_host_chip(ArchCatalog& catalog);
// As ArchCatalog::embedded, with this.
Result<ArchCatalog> archs_here();

// The CPU arch whose required features the host has, the most demanding one if there are several.
Result<const ArchSpec*> host_cpu_arch(const ArchCatalog& catalog);

}  // namespace tilewise
