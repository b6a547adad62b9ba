// SPDX-License-Identifier: MIT
// A note says what was done otherwise than it should be, though it was done: a kernel that could not be kept, a choice made on less
// than was asked for. Plans and executables carry notes, so that nothing is substituted, padded or slowed in silence;
// whoever wants none of it (--strict) turns them into an error.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace tilewise {

struct Note {
    std::string kind;  // one word, for programs: "cache", "tuning", "measure", "records", "capture", "padding"
    ErrorCode code = ErrorCode::check_failed;  // of the error that it is where notes are forbidden
    std::string message;                       // what, why, and the way out

    bool operator==(const Note&) const = default;
};

// Both lists, a note that is in both only once: a plan foresees what its executable does.
std::vector<Note> joined(std::span<const Note> first, std::span<const Note> second);

Json notes_to_json(std::span<const Note> notes);  // [{kind, message}]

// An error of the first note, saying how many more there are; fine when there is none.
Status forbid(std::span<const Note> notes);

}  // namespace tilewise
