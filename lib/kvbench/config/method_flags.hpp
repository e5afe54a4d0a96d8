// SPDX-License-Identifier: Apache-2.0
// Parts of a replay request as users write them, in flags of `kvbench replay` and keys of sweep files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/config/value.hpp>
#include <kvbench/methods/sets.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

/// The items of a list between commas, where those inside brackets do not count. Throws Error for an empty item, naming
/// the field.
std::vector<std::string> split_items(const std::string& list, std::string_view field = "methods");

/// What an item of a list of methods names, without its dash: the rows of a set, or a method with settings. `place`: as
/// for method_of(). Throws Error, naming the item.
std::vector<methods::MethodSettings> rows_of_item(const std::string& item, const Place* place = nullptr);
/// Whether an item of a list of methods leaves out what it names: "-knorm".
constexpr bool leaves_out(std::string_view item) { return item.starts_with('-'); }
/// Removes the rows of this method: with settings those of `choice` alone, else all. Returns whether there was one.
bool leave_out(std::vector<replay::MethodChoice>& choices, const replay::MethodChoice& choice, bool with_settings);
/// Throws Error, naming the item, where it found nothing to leave out, or left no choice.
void check_left(std::string_view item, bool found, std::span<const replay::MethodChoice> choices);

/// The methods that the flags --method and --set of `kvbench replay` name. An item of `methods` is a name, the name of
/// a set (rows_of_set()), or a name with settings, such as "snapkv[window=64,kernel=5]"; several items may name one
/// method with different settings. An item with a dash, "-knorm", leaves out what stands before it: all rows of the
/// method, of each method of a set, or with settings that row alone. An item of `settings` is METHOD.PARAMETER=VALUE
/// and holds for every item of that method which does not set the parameter itself. A method with the same parameters
/// runs once. Throws Error, naming the fields `methods` and `settings`, for texts that cannot be read, unknown names,
/// bad values, settings of methods that are not listed, and where an item leaves nothing out, or all.
std::vector<replay::MethodChoice> parse_methods(const std::vector<std::string>& methods,
                                                const std::vector<std::string>& settings);

/// These seeds; with `count` the first of them is their number, and they are the seeds from 0. Throws Error for none,
/// for more than 100000, and unless 0 <= seed < 2^32.
std::vector<std::uint32_t> seeds_of(std::span<const std::int64_t> numbers, bool count);

/// Sets the numbers of first and last tokens of the context that the harness keeps exactly, inside or outside the
/// budget. Throws Error unless there are two numbers >= 0.
void set_protection(replay::ReplayRequest& request, std::span<const std::int64_t> first_last, bool outside);

}  // namespace kvbench::config
