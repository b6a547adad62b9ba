// SPDX-License-Identifier: MIT
// The archs the library knows: those embedded in it, and those a user adds from files. A plain value: make one,
// add to it, hand it on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/arch_spec.hpp"

namespace tilewise {

class ArchCatalog {
public:
    static Result<ArchCatalog> embedded();  // an error means that an embedded file is broken

    Status add_file(const std::string& path);  // a file with the name of a known arch replaces it
    void add(ArchSpec arch);

    Result<const ArchSpec*> find(std::string_view name) const;  // an error lists the names there are
    const std::vector<ArchSpec>& archs() const { return archs_; }

private:
    std::vector<ArchSpec> archs_;  // sorted by name
};

}  // namespace tilewise
