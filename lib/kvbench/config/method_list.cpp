// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/method_list.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/config/method_flags.hpp>
#include <kvbench/config/named_files.hpp>

namespace kvbench::config {
namespace {

constexpr std::size_t most_combinations = 10000;  // more is a mistake in the file

bool is_scalar(const Value& value) { return value.kind != Value::Kind::list && value.kind != Value::Kind::table; }

/// The values of a parameter: one value, or those of a list.
std::vector<Value> parameter_values(const Member& parameter) {
  const Value& value = parameter.value;
  const std::vector<Value> values = value.kind == Value::Kind::list ? value.items : std::vector{value};
  if (values.empty()) fail_at(value.place, "parameter '{}' has no value; give at least one", parameter.key);
  for (const Value& item : values) {
    if (!is_scalar(item))
      fail_at(item.place, "parameter '{}' takes a value or a list of values, not {}", parameter.key, describe(item));
  }
  return values;
}

struct Setting {
  methods::Assignment assignment;
  Place key, value;
};

std::vector<methods::Assignment> assignments_of(const std::vector<Setting>& settings) {
  std::vector<methods::Assignment> out;
  for (const Setting& setting : settings) out.push_back(setting.assignment);
  return out;
}

/// The error in these settings; "" where there is none.
std::string error_in(const methods::MethodInfo& info, const std::vector<Setting>& settings) {
  try {
    info.bind(assignments_of(settings));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Binds the settings. An Error has the place of the setting that is wrong by itself, else that of the method.
methods::Params bound(const methods::MethodInfo& info, const std::vector<Setting>& settings, const Place& place) {
  const std::string wrong = error_in(info, settings);
  if (wrong.empty()) return info.bind(assignments_of(settings));
  for (const Setting& setting : settings) {
    if (error_in(info, {setting}) != wrong) continue;
    const bool known =
        std::ranges::find(info.params, setting.assignment.name, &methods::ParamSpec::name) != info.params.end();
    fail_at(known ? setting.value : setting.key, "{}", wrong);
  }
  fail_at(place, "{}", wrong);
}

class MethodList {
 public:
  void add(const Value& item) {
    if (item.kind == Value::Kind::table) return add_table(item);
    if (item.kind != Value::Kind::text) {
      fail_at(item.place, "a method is a name, or a table such as {{name = \"subgen\", t = 4}}, not {}",
              describe(item));
    }
    const bool out = leaves_out(item.text);
    bool found = false;
    const auto rows = with_place(item.place, [&] { return rows_of_item(item.text.substr(out ? 1 : 0), &item.place); });
    for (const auto& [info, settings] : rows) {
      std::vector<Setting> own;
      for (const methods::Assignment& setting : settings) own.push_back({setting, item.place, item.place});
      if (out)
        found |= leave_out(choices, {info, bound(*info, own, item.place)}, !own.empty());
      else
        add_choice(*info, own, item.place);
    }
    if (out) with_place(item.place, [&] { check_left(item.text, found, choices); });
  }

  std::vector<replay::MethodChoice> choices;

 private:
  void add_table(const Value& table) {
    const auto name = std::ranges::find(table.members, "name", &Member::key);
    if (name == table.members.end() || name->value.kind != Value::Kind::text) {
      fail_at(table.place, "a table of 'methods' needs the name of the method, such as {{name = \"subgen\", t = 4}}");
    }
    const methods::MethodInfo& info = with_place(name->value.place, [&]() -> const methods::MethodInfo& {
      return methods::find_method(method_name(name->value.place, methods::parse_method_name(name->value.text)));
    });
    std::vector<Axis> axes;
    for (const Member& member : table.members) {
      if (member.key != "name" && member.key != "zip") axes.push_back({&member});
    }
    const auto zip = std::ranges::find(table.members, "zip", &Member::key);
    if (zip != table.members.end()) join_axes(zip->value, axes);
    std::vector<Setting> settings;
    combine(info, axes, 0, settings, table.place);
  }

  /// Parameters whose lists advance together: a single one, or those that `zip` names.
  using Axis = std::vector<const Member*>;

  /// Joins the axes of the parameters in `names` into one, at the position of the first of them.
  static void join_axes(const Value& names, std::vector<Axis>& axes) {
    const std::vector<Value> list = names.kind == Value::Kind::list ? names.items : std::vector{names};
    Axis joined;
    for (const Value& name : list) {
      const auto axis =
          std::ranges::find_if(axes, [&](const Axis& a) { return a.size() == 1 && a.front()->key == name.text; });
      if (axis == axes.end())
        fail_at(name.place, "'zip' names '{}', which is not a parameter of this table", name.text);
      if (!joined.empty() && parameter_values(*joined.front()).size() != parameter_values(*axis->front()).size()) {
        fail_at(name.place, "'zip' joins lists of different lengths: {} items of '{}', {} of '{}'",
                parameter_values(*joined.front()).size(), joined.front()->key, parameter_values(*axis->front()).size(),
                name.text);
      }
      joined.push_back(axis->front());
      if (joined.size() > 1) axes.erase(axis);
    }
    for (Axis& axis : axes) {
      if (!joined.empty() && axis.front() == joined.front()) axis = joined;
    }
  }

  void combine(const methods::MethodInfo& info, const std::vector<Axis>& axes, std::size_t next,
               std::vector<Setting>& settings, const Place& place) {
    if (next == axes.size()) return add_choice(info, settings, place);
    const std::size_t before = settings.size(), count = parameter_values(*axes[next].front()).size();
    for (std::size_t i = 0; i < count; ++i) {
      for (const Member* parameter : axes[next]) {
        const Value value = parameter_values(*parameter)[i];
        settings.push_back(
            {setting_of(value.place, info, {parameter->key, value.text}), parameter->place, value.place});
      }
      combine(info, axes, next + 1, settings, place);
      settings.resize(before);
    }
  }

  void add_choice(const methods::MethodInfo& info, const std::vector<Setting>& settings, const Place& place) {
    replay::MethodChoice choice{&info, bound(info, settings, place)};
    if (std::ranges::any_of(choices, [&](const replay::MethodChoice& m) { return same(m, choice); })) {
      const std::string& text = choice.params.text();
      fail_at(place, "'{}' with {} is listed twice", info.name, text.empty() ? "its default parameters" : text);
    }
    if (choices.size() == most_combinations) {
      fail_at(place, "more than {} combinations of methods and parameters", most_combinations);
    }
    choices.push_back(std::move(choice));
  }
};

}  // namespace

std::vector<replay::MethodChoice> read_methods(const Value& value) {
  MethodList list;
  if (value.kind == Value::Kind::list)
    std::ranges::for_each(value.items, [&](const Value& item) { list.add(item); });
  else
    list.add(value);
  return std::move(list.choices);
}

}  // namespace kvbench::config
