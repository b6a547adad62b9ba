// SPDX-License-Identifier: MIT
// The words for a verification report.
#include <fmt/core.h>

#include "measure/verify.hpp"

namespace tilewise {
namespace {

std::string coverage(const VerifyReport& r) {
    std::string text = fmt::format("{} elements checked one by one ({}", r.checked, name_of(r.method));
    if (r.projected > 0) text += fmt::format("; {} projected", r.projected);
    return text + ")";
}

std::string failing_element(const VerifyReport& r) {
    const VerifyFailure& f = *r.failure;
    const std::string got =
        f.unwritten ? fmt::format("{:.9g}, the poison: it was never written", f.got) : fmt::format("{:.9g}", f.got);
    return fmt::format("batch {}, row {}, column {}: expected {:.9g} within {:.3g}, got {}; {} wrong of ", f.batch,
                       f.row, f.col, f.expected, f.tolerance, got, r.failed);
}

}  // namespace

std::string describe(const VerifyReport& r) {
    std::string text = r.ok ? "ok: " : "wrong: ";
    if (!r.guards.empty()) text += r.guards + "; ";
    if (r.failure) text += failing_element(r);
    text += coverage(r);
    return text + fmt::format(", largest error {:.3g} where {:.3g} is allowed", r.max_error, r.tolerance);
}

}  // namespace tilewise
