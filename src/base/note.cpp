// SPDX-License-Identifier: MIT
#include "base/note.hpp"

#include <fmt/core.h>

namespace tilewise {

Json notes_to_json(std::span<const Note> notes) {
    Json::Array items;
    for (const Note& note : notes) items.push_back(Json::object({{"kind", note.kind}, {"message", note.message}}));
    return Json(std::move(items));
}

Status forbid(std::span<const Note> notes) {
    if (notes.empty()) return {};
    const std::string more = notes.size() > 1 ? fmt::format(" (and {} more)", notes.size() - 1) : "";
    return Error{notes.front().code,
                 fmt::format("strict: {} is not allowed: {}{}", notes.front().kind, notes.front().message, more)};
}

}  // namespace tilewise
