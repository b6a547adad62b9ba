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

namespace tilewise {

struct TimeRecord {
    std::string problem;
    std::string kernel;  // its name
    double time_us = 0;
};

// Of a table with a header (RFC 4180) and at least the columns problem, kernel_name, time_us and status. Records of failures and
// without a time are counted and left out.
struct TimeRecords {
    std::vector<TimeRecord> records;
    std::size_t left_out = 0;
};
Result<TimeRecords> read_time_records(std::string_view text, const std::string& file);

struct FamilyFit {
    std::size_t records = 0;
    double before = 0, after = 0;  // root mean square of the error of the logarithm of the time
};

struct PriceFit {
    Chip chip;  // with the prices that were found
    std::map<FamilyId, FamilyFit> families;
    std::vector<std::size_t> fitted,
        unused;                // of all_prices(): those that changed or might have, and those no record depends on
    std::size_t left_out = 0;  // records whose kernel or problem this library, or this chip, does not have
};

// Kernels of other backends, and of other families where one is given, are left out. Launches are those that the chip's prices choose to
// begin with. An error says that no record is left.
Result<PriceFit> fit_prices(const Chip& chip, const std::vector<TimeRecord>& records, const ArchCatalog& archs,
                            int threads, const FamilyId* family = nullptr);

}  // namespace tilewise
