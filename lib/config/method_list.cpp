// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/method_list.hpp>

#include <algorithm>

#include <kvbench/methods/registry.hpp>

namespace kvbench::config {
namespace {

constexpr std::size_t most_combinations = 10000;  // a slip of the pen, not a sweep

bool is_scalar(const Value& value) { return value.kind != Value::Kind::list && value.kind != Value::Kind::table; }

/// The values that a parameter takes: one, or those of a list.
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
  Assignment assignment;
  Place key, value;
};

std::vector<Assignment> assignments_of(const std::vector<Setting>& settings) {
  std::vector<Assignment> out;
  for (const Setting& setting : settings) out.push_back(setting.assignment);
  return out;
}

/// What is wrong with these settings, or "".
std::string complaint(const MethodInfo& info, const std::vector<Setting>& settings) {
  try {
    info.bind(assignments_of(settings));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Points at the one setting that is wrong by itself, else at the method.
Params bind(const MethodInfo& info, const std::vector<Setting>& settings, const Place& place) {
  const std::string wrong = complaint(info, settings);
  if (wrong.empty()) return info.bind(assignments_of(settings));
  for (const Setting& setting : settings) {
    if (complaint(info, {setting}) != wrong) continue;
    const bool known = std::ranges::find(info.params, setting.assignment.name, &ParamSpec::name) != info.params.end();
    fail_at(known ? setting.value : setting.key, "{}", wrong);
  }
  fail_at(place, "{}", wrong);
}

class MethodList {
 public:
  void add(const Value& item) {
    if (item.kind == Value::Kind::table) return add_table(item);
    if (item.kind != Value::Kind::text) {
      fail_at(item.place, "a method is a name, or a table such as {{name = \"subgen\", t = 4}}, not {}", describe(item));
    }
    if (item.text == "all") {
      for (const MethodInfo& info : all_methods()) add_choice(info, {}, item.place);
    } else {
      add_choice(with_place(item.place, [&]() -> const MethodInfo& { return find_method(item.text); }), {}, item.place);
    }
  }

  std::vector<MethodChoice> choices;

 private:
  void add_table(const Value& table) {
    const auto name = std::ranges::find(table.members, "name", &Member::key);
    if (name == table.members.end() || name->value.kind != Value::Kind::text) {
      fail_at(table.place, "a table of `methods` needs the method's name, such as {{name = \"subgen\", t = 4}}");
    }
    const MethodInfo& info =
        with_place(name->value.place, [&]() -> const MethodInfo& { return find_method(name->value.text); });
    std::vector<const Member*> parameters;
    for (const Member& member : table.members) {
      if (member.key != "name") parameters.push_back(&member);
    }
    std::vector<Setting> settings;
    combine(info, parameters, 0, settings, table.place);
  }

  void combine(const MethodInfo& info, const std::vector<const Member*>& parameters, std::size_t next,
               std::vector<Setting>& settings, const Place& place) {
    if (next == parameters.size()) return add_choice(info, settings, place);
    for (const Value& value : parameter_values(*parameters[next])) {
      settings.push_back({{parameters[next]->key, value.text}, parameters[next]->place, value.place});
      combine(info, parameters, next + 1, settings, place);
      settings.pop_back();
    }
  }

  void add_choice(const MethodInfo& info, const std::vector<Setting>& settings, const Place& place) {
    MethodChoice choice{&info, bind(info, settings, place)};
    const auto same = [&](const MethodChoice& m) { return m.info == &info && m.params.text() == choice.params.text(); };
    if (std::ranges::any_of(choices, same)) {
      const std::string& text = choice.params.text();
      fail_at(place, "'{}' with {} stands twice in this list", info.name, text.empty() ? "its default parameters" : text);
    }
    if (choices.size() == most_combinations) {
      fail_at(place, "more than {} combinations of methods and parameters", most_combinations);
    }
    choices.push_back(std::move(choice));
  }
};

}  // namespace

std::vector<MethodChoice> read_methods(const Value& value) {
  MethodList list;
  if (value.kind == Value::Kind::list)
    std::ranges::for_each(value.items, [&](const Value& item) { list.add(item); });
  else
    list.add(value);
  return std::move(list.choices);
}

}  // namespace kvbench::config
