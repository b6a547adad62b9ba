// SPDX-License-Identifier: MIT
// The prices of a chip, as config/prices.def lists them: prices.block_product.fill_us and so on. Work (base/work.hpp) is counted by the
// families and priced by these.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/work.hpp"
#include "config/backend.hpp"

namespace tilewise {

struct Prices {
// NOLINTBEGIN(bugprone-macro-parentheses): names of members cannot be in any
#define TILEWISE_PRICES_BEGIN(backend, group) struct {
#define TILEWISE_PRICE(name) Price name;
#define TILEWISE_PRICES_END(group) \
    }                              \
    group;
#include "config/prices.def"
#undef TILEWISE_PRICES_BEGIN
#undef TILEWISE_PRICE
#undef TILEWISE_PRICES_END
    // NOLINTEND(bugprone-macro-parentheses)
};

struct PriceGroup {
    Backend backend;  // of the chips that have them
    std::string_view name;
    std::span<const std::string_view> prices;
    std::size_t first;  // of its prices among all
};
std::span<const PriceGroup> price_groups();

// All prices in the order of the groups.
std::span<Price> all_prices(Prices& prices);
std::span<const Price> all_prices(const Prices& prices);

}  // namespace tilewise
