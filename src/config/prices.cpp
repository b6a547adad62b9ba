// SPDX-License-Identifier: MIT
#include "config/prices.hpp"

#include <array>
#include <type_traits>

namespace tilewise {
namespace {

constexpr std::size_t kPriceCount = sizeof(Prices) / sizeof(Price);
static_assert(std::is_standard_layout_v<Prices> && std::is_trivially_copyable_v<Prices>);

constexpr std::array<std::string_view, kPriceCount> kPriceNames = {
#define TILEWISE_PRICES_BEGIN(backend, group)
#define TILEWISE_PRICE(name) #name,
#define TILEWISE_PRICES_END(group)
#include "config/prices.def"
#undef TILEWISE_PRICES_BEGIN
#undef TILEWISE_PRICE
#undef TILEWISE_PRICES_END
};

constexpr PriceGroup group_of(Backend backend, std::string_view name, std::size_t offset, std::size_t size) {
    const std::size_t first = offset / sizeof(Price), count = size / sizeof(Price);
    return {backend, name, std::span(kPriceNames).subspan(first, count), first};
}

constexpr PriceGroup kPriceGroups[] = {
#define TILEWISE_PRICES_BEGIN(backend, group) \
    group_of(Backend::backend, #group, offsetof(Prices, group), sizeof(Prices::group)),
#define TILEWISE_PRICE(name)
#define TILEWISE_PRICES_END(group)
#include "config/prices.def"
#undef TILEWISE_PRICES_BEGIN
#undef TILEWISE_PRICE
#undef TILEWISE_PRICES_END
};

}  // namespace

std::span<const PriceGroup> price_groups() { return kPriceGroups; }

// Prices are nothing but Price after Price.
std::span<Price> all_prices(Prices& prices) { return {reinterpret_cast<Price*>(&prices), kPriceCount}; }
std::span<const Price> all_prices(const Prices& prices) {
    return {reinterpret_cast<const Price*>(&prices), kPriceCount};
}

}  // namespace tilewise
