// SPDX-License-Identifier: Apache-2.0
// Sentences that differ in their numbers only.
#pragma once

#include <span>
#include <string>

namespace kvbench::report {

/// The sentence with # for each number that stands alone, and the word behind it in the singular: equal for "with 1
/// token" and "with 48 tokens".
std::string without_numbers(const std::string& sentence);

/// One sentence for several that are equal without_numbers(): "at least 100 to 128.6 %". `sentences` must not be empty.
std::string with_ranges(std::span<const std::string> sentences);

/// Words in lines of at most `width` characters where possible; lines after the first begin with `indent` spaces.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace kvbench::report
