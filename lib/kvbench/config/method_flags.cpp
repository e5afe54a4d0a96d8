// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/method_flags.hpp>

#include <algorithm>
#include <numeric>
#include <optional>

#include <kvbench/config/named_files.hpp>
#include <kvbench/config/plan_file.hpp>
#include <kvbench/config/scores_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/find_method.hpp>

namespace kvbench::config {
namespace {

/// What reads lists of methods knows the files that they name.
const struct FilesOfMethods {
  FilesOfMethods() {
    methods::set_definer(methods::Origin::plan, {&find_plan});
    methods::set_definer(methods::Origin::scores, {&find_scores});
  }
} files_of_methods;

/// METHOD.PARAMETER=VALUE. A method that is a path has dots, and a parameter of a quantiser has one, so that where the
/// method ends is known for the methods that run.
struct SetFlag {
  std::string text;
  std::size_t equals;

  std::string_view place() const { return std::string_view(text).substr(0, equals); }

  /// What it sets of a method; nothing of others.
  std::optional<methods::Assignment> of(const methods::MethodInfo& info) const {
    std::vector<std::string> names = info.aliases;
    names.push_back(info.name);
    for (const std::string& name : names) {
      if (name.size() < equals && text[name.size()] == '.' && same_name(place().substr(0, name.size()), name))
        return methods::Assignment{text.substr(name.size() + 1, equals - name.size() - 1), text.substr(equals + 1)};
    }
    return std::nullopt;
  }

  /// The method that is meant where it is none of those that run.
  std::string method() const {
    const std::size_t function = place().find(".py:");
    return text.substr(0, text.find('.', function == text.npos ? 0 : function + 1));
  }
};

SetFlag parse_set_flag(const std::string& text) {
  const std::size_t equals = text.find('='), dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    throw Error("`settings` '{}' is not METHOD.PARAMETER=VALUE, such as subgen.delta=4", text);
  }
  return {text, equals};
}

class MethodFlags {
 public:
  explicit MethodFlags(const std::vector<std::string>& settings) {
    for (const std::string& text : settings) {
      settings_.push_back(parse_set_flag(text));
      const auto same = [&](const SetFlag& other) { return same_name(other.place(), settings_.back().place()); };
      if (std::ranges::count_if(settings_, same) > 1) throw Error("`settings` '{}' is given twice; give it once", text);
    }
  }

  void add(const std::string& item) {
    if (!leaves_out(item)) {
      for (const methods::MethodSettings& row : rows_of_item(item)) add_once(chosen(row));
      return;
    }
    bool found = false;
    for (const methods::MethodSettings& row : rows_of_item(item.substr(1)))
      found |= leave_out(choices_, chosen(row), !row.settings.empty());
    check_left(item, found, choices_);
  }

  std::vector<replay::MethodChoice> choices() const {
    for (const SetFlag& setting : settings_) {
      if (std::ranges::any_of(choices_, [&](const replay::MethodChoice& m) { return setting.of(*m.info).has_value(); }))
        continue;
      throw Error("`settings` '{}' is for a method that is not replayed; add `methods` {}", setting.text,
                  methods::find_method(setting.method()).name);
    }
    return choices_;
  }

 private:
  /// The settings of the row come after those that hold for all items of the method, and so replace them.
  replay::MethodChoice chosen(const methods::MethodSettings& row) const {
    std::vector<methods::Assignment> all;
    for (const SetFlag& setting : settings_) {
      if (std::optional<methods::Assignment> own = setting.of(*row.info)) all.push_back(*std::move(own));
    }
    all.insert(all.end(), row.settings.begin(), row.settings.end());
    return {row.info, row.info->bind(all)};
  }

  void add_once(const replay::MethodChoice& choice) {
    const auto is = [&](const replay::MethodChoice& m) { return same(m, choice); };
    if (std::ranges::none_of(choices_, is)) choices_.push_back(choice);
  }

  std::vector<SetFlag> settings_;
  std::vector<replay::MethodChoice> choices_;
};

bool has_path(const std::string& item) { return methods::parse_method_name(item).origin != methods::Origin::kvbench; }

bool is_readable(const std::string& item) {
  try {
    return !rows_of_item(item.substr(leaves_out(item) ? 1 : 0)).empty();
  } catch (const std::exception&) {  // of whatever kind: the first error is told
    return false;
  }
}

/// Whether a comma of a path may have parted this item, which is wrong, from the next or the one before it.
bool is_parted(const std::vector<std::string>& items, std::size_t wrong) {
  const bool first = wrong == 0, last = wrong + 1 == items.size();
  if (has_path(items[wrong])) return !last && !is_readable(items[wrong + 1]);
  return (!first && has_path(items[wrong - 1])) || (!last && has_path(items[wrong + 1]));
}

}  // namespace

std::vector<std::string> split_items(const std::string& list, std::string_view field) {
  std::vector<std::string> items(1);
  const bool pairs = std::ranges::count(list, '(') == std::ranges::count(list, ')');  // else they are of a path
  int depth = 0;
  for (const char c : list) {
    if (c == '[' || c == '{' || (c == '(' && pairs)) ++depth;
    if (c == ']' || c == '}' || (c == ')' && pairs)) --depth;
    if (c == ',' && depth <= 0)
      items.emplace_back();
    else
      items.back() += c;
  }
  for (std::string& item : items) item = std::string(trimmed(item));
  if (std::ranges::count(items, "") > 0) throw Error("`{}`: '{}' has an empty item", field, list);
  return items;
}

std::vector<methods::MethodSettings> rows_of_item(const std::string& item, const Place* place) {
  if (auto rows = methods::rows_of_set(item); !rows.empty()) return rows;
  const std::optional<methods::MethodName> name = methods::parse_method_text(item);
  if (name && methods::is_set(name->name()))
    throw Error("{}: {} has no parameters; set those of one method{}", item_text(item, place), name->name(),
                place != nullptr ? "" : " with `settings`");
  return {method_of(item, place)};
}

bool leave_out(std::vector<replay::MethodChoice>& choices, const replay::MethodChoice& choice, bool with_settings) {
  return std::erase_if(choices, [&](const replay::MethodChoice& m) {
           return with_settings ? same(m, choice) : m.info == choice.info;
         }) > 0;
}

void check_left(std::string_view item, bool found, std::span<const replay::MethodChoice> choices) {
  if (!found)
    throw Error("'{}' leaves out nothing: no item before it has such a method; write it behind one that has", item);
  if (choices.empty()) throw Error("'{}' leaves out all methods that stand before it; name another one first", item);
}

std::vector<replay::MethodChoice> parse_methods(const std::vector<std::string>& methods,
                                                const std::vector<std::string>& settings) {
  MethodFlags flags(settings);
  for (const std::string& list : methods) {
    const std::vector<std::string> items = split_items(list);
    for (std::size_t i = 0; i < items.size(); ++i) {
      try {
        flags.add(items[i]);
      } catch (const Error& error) {
        if (is_parted(items, i)) throw Error("{}", with_path_hint(error.what()));
        throw;
      }
    }
  }
  return flags.choices();
}

std::vector<std::uint32_t> seeds_of(std::span<const std::int64_t> numbers, bool count) {
  constexpr std::int64_t most_seeds = 100000;
  if (count && (numbers[0] < 1 || numbers[0] > most_seeds))
    throw Error("`seeds` is {}; give a number of seeds from 1 to {}, or a list of seeds", numbers[0], most_seeds);
  if (numbers.empty()) throw Error("`seeds`: the list is empty; give at least one seed");
  if (std::ssize(numbers) > most_seeds)
    throw Error("`seeds`: the list has {} seeds; give at most {}", numbers.size(), most_seeds);
  std::vector<std::uint32_t> seeds(numbers.begin(), numbers.end());
  for (const std::int64_t seed : numbers) {
    if (seed < 0 || seed > 0xffffffffll) throw Error("`seeds`: {} is not between 0 and 2^32 - 1", seed);
  }
  if (count) seeds.resize(static_cast<std::size_t>(numbers[0])), std::iota(seeds.begin(), seeds.end(), 0u);
  return seeds;
}

void set_protection(replay::ReplayRequest& request, std::span<const std::int64_t> first_last, bool outside) {
  if (first_last.size() != 2 || first_last[0] < 0 || first_last[1] < 0) {
    throw Error(
        "{}: give two numbers, of first and of last tokens of the context that are kept exactly, such as 4 and 64",
        outside ? "`protect_outside`" : "`protect_first` and `protect_last`");
  }
  request.protect_first = first_last[0];
  request.protect_last = first_last[1];
  request.protect_outside = outside;
}

}  // namespace kvbench::config
