// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/method_slips.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/ranges.h>

#include <kvbench/config/method_flags.hpp>
#include <kvbench/core/budget.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/sets.hpp>

namespace kvbench::app {
namespace {

/// nullptr where no method has the name.
const methods::MethodInfo* find_if_any(const std::string& name) {
  try {
    return &methods::find_method(name);
  } catch (const std::exception&) {  // a name that is no method, or a file that cannot be read
    return nullptr;
  }
}

/// The parameter of a method that users write as `word`, "max-pairs" or "MAX_PAIRS"; of a composition also that of its
/// quantiser. "": none.
std::string parameter_of(const methods::MethodInfo& method, const std::string& word) {
  std::string wanted = word;
  std::ranges::replace(wanted, '-', '_');
  const auto is = [&](const methods::ParamSpec& spec) {
    return same_name(spec.name, wanted) || same_name(spec.name.substr(spec.name.rfind('.') + 1), wanted);
  };
  const auto found = std::ranges::find_if(method.params, is);
  return found == method.params.end() ? "" : found->name;
}

/// The item of a list of methods with one more setting; "" where its method has no such parameter, or sets it already.
std::string with_setting(const std::string& item, const std::string& word, const std::string& value) {
  std::optional<methods::MethodName> text = methods::parse_method_text(item);
  const methods::MethodInfo* method = text ? find_if_any(text->name()) : nullptr;
  const std::string name = method != nullptr ? parameter_of(*method, word) : "";
  const std::string settings = text ? text->settings.value_or("") : "";
  if (name.empty() || settings.find(name + "=") != settings.npos) return "";
  text->settings =
      fmt::format("{}{}{}={}", settings, settings.empty() ? "" : ",", name, value.empty() ? "VALUE" : value);
  return text->text();
}

/// The methods of a set; of an item that is none, the item.
std::vector<std::string> methods_of(const std::string& item) {
  std::vector<std::string> names;
  for (const auto& [info, settings] : methods::rows_of_set(item)) {
    if (std::ranges::find(names, info->name) == names.end()) names.push_back(info->name);
  }
  return names.empty() ? std::vector{item} : names;
}

/// The items between commas of the values of an option.
std::vector<std::string> items_of(const CLI::Option& option) {
  std::vector<std::string> items;
  for (const std::string& list : option.results()) {
    try {
      std::ranges::move(config::split_items(list), std::back_inserter(items));
    } catch (const Error&) {  // an empty item, of which the program complains once its flags are right
    }
  }
  return items;
}

/// The list with the parameter in each of its methods that has it, "snapkv[window=16],h2o"; of sets these methods
/// alone. "": none has it.
std::string with_parameter(const std::vector<std::string>& items, const std::string& word, const std::string& value) {
  std::vector<std::string> all;
  bool found = false;
  for (const std::string& item : items) {
    const std::vector<std::string> methods = methods_of(item);
    for (const std::string& method : methods) {
      const std::string with = with_setting(method, word, value);
      found |= !with.empty();
      if (!with.empty() || method == item) all.push_back(with.empty() ? method : with);
    }
  }
  return found ? fmt::format("{}", fmt::join(all, ",")) : "";
}

/// The list without a method that stands behind it as if it were a flag; "" for other words.
std::string without(const std::vector<std::string>& items, const std::string& flag) {
  const std::string word = flag.substr(1);
  if (word.starts_with('-') || (!methods::is_set(word) && find_if_any(word) == nullptr)) return "";
  return fmt::format("{},{}", fmt::join(items, ","), flag);
}

}  // namespace

bool is_method(const std::string& file) {
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown) || unknown) return false;
  const std::optional<methods::MethodName> text = methods::parse_method_text(file);
  return text && text->origin == methods::Origin::kvbench && find_if_any(text->name()) != nullptr;
}

void refuse_value_of_flag(const std::string& path, const char* methods) {
  if (is_method(path)) throw Error("{0}: there is no such trace; give a method as {1} {0}", path, methods);
  std::error_code unknown;  // what cannot be looked at is no such value, and the reader says what is wrong
  if (!std::filesystem::exists(path, unknown) && !unknown && Budget::find(path))
    throw Error("{0}: there is no such trace; give a budget as --budget {0}", path);
}

std::string method_advice(const CLI::App& parsed, const std::string& flag, const std::string& value) {
  const std::string word = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::vector<std::string> givers(std::begin(flags_of_methods), std::end(flags_of_methods));
  givers.emplace_back("name");  // of kvbench methods
  for (const std::string& giver : givers) {
    const CLI::Option* option = parsed.get_option_no_throw(giver);
    if (option == nullptr || option->empty()) continue;
    std::vector<std::string> items = items_of(*option);
    if (option->get_positional()) std::erase(items, value);  // which it has taken
    const std::string name = option->get_positional() ? "" : giver + " ";
    if (const std::string right = with_parameter(items, word, value); !right.empty())
      return fmt::format(" {} is a parameter of a method; write {}\"{}\".", word, name, right);
    if (const std::string right = without(items, flag); !right.empty())
      return fmt::format(" To leave it out, write {}\"{}\".", name, right);
  }
  return "";
}

}  // namespace kvbench::app
