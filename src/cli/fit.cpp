// SPDX-License-Identifier: MIT
// tilewise fit: the prices of a chip from measured times.
#include <fmt/core.h>

#include <charconv>

#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "config/price_names.hpp"
#include "device/cpu/thread_pool.hpp"
#include "measure/record_csv.hpp"
#include "select/fit_prices.hpp"

namespace tilewise::cli {
namespace {

// The chip of a file, or of the library.
Result<Chip> chip_named(const std::string& name) {
    if (!name.ends_with(".json")) return find_chip(name);
    const auto text = read_file(name);
    if (!text) return text.error();
    return parse_chip(*text, name);
}

Result<double> parse_hold(std::string_view text) {
    double hold = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hold);
    if (error == std::errc() && end == text.data() + text.size() && hold > 0) return hold;
    return usage_error(fmt::format("--hold '{}': need a number above 0, such as 1", text));
}

std::string report_of(const PriceFit& fit) {
    Table table({"family", "records", "error before", "after"});
    for (const auto& [family, errors] : fit.families) {
        table.add({std::string(name_of(family)), fmt::format("{}", errors.records),
                   fmt::format("{:.1f} %", 100 * errors.before), fmt::format("{:.1f} %", 100 * errors.after)});
    }
    std::string text = fmt::format("{}\n{} prices fitted", table.text(), fit.fitted.size());
    if (fit.left_out > 0) text += fmt::format("; {} records left out", fit.left_out);
    if (!fit.unused.empty()) text += "; as they were, since no record depends on them:";
    for (const std::size_t index : fit.unused) text += fmt::format("\n  {}", price_name(index));
    return text;
}

Json names_of_prices(const std::vector<std::size_t>& prices) {
    Json::Array names;
    for (const std::size_t index : prices) names.push_back(price_name(index));
    return names;
}

Json fit_to_json(const PriceFit& fit) {
    Json::Array families;
    for (const auto& [family, errors] : fit.families) {
        families.push_back(Json::object({{"family", name_of(family)},
                                         {"records", errors.records},
                                         {"error_before", errors.before},
                                         {"error_after", errors.after}}));
    }
    return Json::object({{"chip", chip_to_json(fit.chip)},
                         {"families", Json(std::move(families))},
                         {"fitted", names_of_prices(fit.fitted)},
                         {"unused", names_of_prices(fit.unused)},
                         {"left_out", fit.left_out}});
}

}  // namespace

Result<int> run_fit(Context& context) {
    const Arguments& arguments = context.arguments;
    const auto chip_name = arguments.value("chip");
    if (!chip_name) return usage_error("fit needs --chip: the chip that the records were measured on");
    const auto chip = chip_named(std::string(*chip_name));
    if (!chip) return chip.error();
    std::optional<FamilyId> family;
    if (const auto name = arguments.value("family")) {
        const auto parsed = parse_enum<FamilyId>(*name);
        if (!parsed) return parsed.error();
        family = *parsed;
    }
    const auto threads = chosen_threads(context);
    if (!threads) return threads.error();
    const std::string file(arguments.operands().front());
    const auto records = read_records(file);
    if (!records) return records.error();
    FitOptions options{.family = family ? &*family : nullptr};
    if (const auto text = arguments.value("hold")) {
        const auto hold = parse_hold(*text);
        if (!hold) return hold.error();
        options.hold = *hold;
    }
    const auto fit = fit_prices(*chip, *records, context.archs, *threads, options);
    if (!fit) return fit.error();
    const std::string fitted = chip_to_json(fit->chip).dump(2) + "\n";
    const auto out = arguments.value("out");
    if (out) {
        if (auto status = write_file(std::string(*out), fitted); !status) return status.error();
    }
    if (context.json) return print(fit_to_json(*fit).dump()), 0;
    if (out) return print(report_of(*fit)), 0;
    print_error(report_of(*fit));
    return print(chip_to_json(fit->chip).dump(2)), 0;
}

}  // namespace tilewise::cli
