// SPDX-License-Identifier: MIT
// Compression of many kernels at once, which are much alike: LZ77 whose window is the whole block, then prefix codes. Encoding takes
// its time; decoding does not, needs no memory but its result, and takes any bytes: what is no compressed block is an error.
//
// A block is a stream of bits, the lowest bit of a byte first. It begins with the lengths of all codes, four bits each, in the order
// of CodeTables (compressed_block.hpp); codes are canonical. Then, until all bytes are there:
//
//   run      how many literals follow (a number), then that many
//   offset   how far back the match begins: one of the last three offsets, or a new one: a number of 16 bytes, and the rest
//   length   of the match, less kMinMatch (a number)
//
// A literal is the difference to the byte at the last offset, since kernels differ in a field of an instruction here and there. A
// number below 16 is a symbol; of a larger one the symbol has the highest two bits, and the others follow as they are.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace tilewise {

inline constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 25;  // before compression

// At most kMaxBlockBytes. The same bytes always give the same block.
std::string compress(std::string_view bytes);
// `size` bytes, exactly; at most kMaxBlockBytes.
Result<std::string> decompress(std::string_view block, std::size_t size);

}  // namespace tilewise
