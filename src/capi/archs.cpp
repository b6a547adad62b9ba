// SPDX-License-Identifier: MIT
#include "capi/archs.hpp"

#include <cstdlib>

#include "device/cpu/host_cpu.hpp"

namespace tilewise::capi {

const Result<ArchCatalog>& archs() {
    // Never destroyed: another static of the program may still hold a context when the process ends.
    static const auto* catalog = new Result<ArchCatalog>([] {
        auto embedded = archs_here();
        const char* file = secure_getenv("TILEWISE_ARCH_FILE");
        if (embedded && file && *file) {
            if (auto status = embedded->add_file(file); !status) return Result<ArchCatalog>(status.error());
        }
        return embedded;
    }());
    return *catalog;
}

}  // namespace tilewise::capi
