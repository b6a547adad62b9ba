// SPDX-License-Identifier: MIT
// Prices of a chip from measured times: those for which the work of the measured kernels takes about as long as they did. By least squares
// of the logarithms of times, over the logarithms of prices, so that no price leaves what is above 0 and a tenth counts alike for
// short and for long times.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "config/chip.hpp"
#include "config/family_id.hpp"
#include "measure/record.hpp"

namespace tilewise {

struct FamilyFit {
    std::size_t records = 0;
    double before = 0, after = 0;  // root mean square of the error of the logarithm of the time
};

struct PriceFit {
    Chip chip;  // with the prices that were found
    std::map<FamilyId, FamilyFit> families;
    std::vector<std::size_t> fitted,
        unused;  // of all_prices(): those that changed or might have, and those no record depends on
    std::size_t left_out =
        0;  // records of failures, and whose kernel or problem this library, or this chip, does not have
};

struct FitOptions {
    const FamilyId* family = nullptr;  // whose records count; null: every family's
    // How strongly prices stay where they are: a price that becomes e times as large counts as so many records that are e times off.
    double hold = 1e-9;
};

// Failures, and kernels of other backends, are left out. Launches are those that the chip's prices choose to begin with. An error says
// that no record is left.
Result<PriceFit> fit_prices(const Chip& chip, const std::vector<Record>& records, const ArchCatalog& archs, int threads,
                            const FitOptions& options = {});

}  // namespace tilewise
