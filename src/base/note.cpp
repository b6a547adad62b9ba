// SPDX-License-Identifier: MIT
#include "base/note.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace tilewise {

std::vector<Note> joined(std::span<const Note> first, std::span<const Note> second) {
    std::vector<Note> notes(first.begin(), first.end());
    for (const Note& note : second) {
        if (std::find(first.begin(), first.end(), note) == first.end()) notes.push_back(note);
    }
    return notes;
}

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
