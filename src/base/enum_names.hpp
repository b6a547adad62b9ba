// SPDX-License-Identifier: MIT
// An enum's names, given once as a table in the enum's order: printing is an index, parsing a search, and the
// error for an unknown word lists what there is. Specialise enum_names<E> beside the enum.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/result.hpp"
#include "base/text.hpp"

namespace tilewise {

template <class E>
struct EnumNames;  // specialise: static constexpr std::string_view kind; static constexpr std::array names;

template <class E>
constexpr std::string_view name_of(E value) {
    return EnumNames<E>::names[static_cast<std::size_t>(value)];
}

template <class E>
Result<E> parse_enum(std::string_view word) {
    for (std::size_t i = 0; i < EnumNames<E>::names.size(); ++i) {
        if (EnumNames<E>::names[i] == word) return static_cast<E>(i);
    }
    return usage_error(unknown_word(EnumNames<E>::kind, word, EnumNames<E>::names));
}

}  // namespace tilewise
