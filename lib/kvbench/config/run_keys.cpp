// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/run_keys.hpp>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <span>

#include <kvbench/config/field_names.hpp>
#include <kvbench/config/method_flags.hpp>
#include <kvbench/config/method_list.hpp>
#include <kvbench/config/named_files.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/replay/plan/fields.hpp>

namespace kvbench::config {
namespace {

using replay::ReplayRequest;

/// A key with its value, and functions to read it. A value of the wrong kind is rejected with its place and what the
/// key takes.
class Entry {
 public:
  Entry(const Member& member, const std::string& accepts) : member_(member), accepts_(accepts) {}

  [[noreturn]] void reject(const Value& value) const {
    fail_at(value.place, "'{}' takes {}, not {}", member_.key, accepts_, describe(value));
  }
  const Value& value() const { return member_.value; }

  /// Calls `work`; an Error is rethrown with the place of the value and with this key for the fields that it names.
  template <class F>
  decltype(auto) check(F work) const {
    try {
      return work();
    } catch (const Error& error) {
      const auto key = [&](std::string_view) { return "'" + member_.key + "'"; };
      fail_at(value().place, "{}", rename_fields(error.what(), key));
    }
  }

  /// The items of a list; any other value counts as a list of one item.
  std::span<const Value> items() const {
    if (value().kind == Value::Kind::list) return value().items;
    return {&value(), 1};
  }
  const std::string& text(const Value& value) const {
    if (value.kind != Value::Kind::text) reject(value);
    return value.text;
  }
  std::int64_t integer(const Value& value, std::int64_t least) const {
    std::int64_t number = 0;
    if (value.kind == Value::Kind::integer)
      std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
    if (value.kind != Value::Kind::integer || number < least) reject(value);
    return number;
  }
  std::vector<std::int64_t> integers() const {
    std::vector<std::int64_t> numbers;
    for (const Value& item : items()) numbers.push_back(integer(item, 0));
    return numbers;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const Value& item : items()) out.push_back(text(item));
    return out;
  }
  /// The text of a value that is neither a list nor a table.
  const std::string& scalar(const Value& value) const {
    if (value.kind == Value::Kind::list || value.kind == Value::Kind::table) reject(value);
    return value.text;
  }
  bool flag() const {
    if (value().kind != Value::Kind::flag) reject(value());
    return value().text == "true";
  }
  template <class T>
  T choice(const Value& value, const std::map<std::string, T>& names) const {
    const auto found = names.find(text(value));
    if (found != names.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [name, unused] : names) known.push_back(name);
    fail_at(value.place, "'{}' is not a value of '{}'.{} It takes {}.", value.text, member_.key,
            did_you_mean(value.text, known), fmt::join(known, ", "));
  }

 private:
  const Member& member_;
  const std::string& accepts_;
};

struct Key {
  std::string name, accepts;
  std::function<void(const Entry&, SweepRun&)> set;
  std::string example, doc;
};

void set_traces(const Entry& entry, SweepRun& run) {
  run.traces.clear();
  for (const Value& item : entry.items()) run.traces.push_back({path_of(item.place, entry.text(item)), item.place});
}

void set_measures(const Entry& entry, SweepRun& run) {
  run.measures.clear();
  for (const Value& item : entry.items()) {
    const measures::Measure measure = entry.choice(item, measures::names());
    if (std::ranges::find(run.measures, measure) != run.measures.end())
      fail_at(item.place, "'{}' is given twice", item.text);
    run.measures.push_back(measure);
  }
}

template <class T>
void set_choices(const Entry& entry, const std::map<std::string, T>& names, std::vector<T>& out) {
  out.clear();
  for (const Value& item : entry.items()) out.push_back(entry.choice(item, names));
  if (out.empty()) entry.reject(entry.value());
}

const std::map<std::string, std::string> devices = {{"cpu", "cpu"}, {"cuda", "cuda"}, {"auto", "auto"}, {"ref", "ref"}};

void set_exclusions(const Entry& entry, SweepRun& run) {
  run.exclusions.clear();
  for (const Value& item : entry.items()) {
    if (item.kind != Value::Kind::table || item.members.empty()) entry.reject(item);
    Exclusion exclusion{.place = item.place};
    for (const Member& member : item.members) {
      std::string text = entry.scalar(member.value);
      if (member.key == "method") text = method_name(item.place, methods::parse_method_name(text)).name();
      exclusion.where.emplace_back(member.key, std::move(text));
    }
    run.exclusions.push_back(std::move(exclusion));
  }
}

void set_zip(const Entry& entry, SweepRun& run) {
  run.zip = entry.texts();
  for (const Value& item : entry.items()) {
    if (std::ranges::find(zip_keys(), item.text) != zip_keys().end()) continue;
    fail_at(item.place, "'zip' cannot join '{}'.{} It can join {}.", item.text, did_you_mean(item.text, zip_keys()),
            fmt::join(zip_keys(), ", "));
  }
}

/// Sets a field of the request from the value of its key, by the type of the field.
struct FieldSetter {
  const Entry& entry;
  const replay::RequestField& field;
  SweepRun& run;

  void operator()(std::vector<replay::MethodChoice> ReplayRequest::*member) const {
    run.request.*member = read_methods(entry.value());
  }
  void operator()(std::vector<Budget> ReplayRequest::*member) const {
    std::vector<Budget>& budgets = run.request.*member;
    budgets.clear();
    for (const Value& item : entry.items()) {
      if (item.kind != Value::Kind::integer && item.kind != Value::Kind::text) entry.reject(item);
      budgets.push_back(with_place(item.place, [&] { return Budget::parse(item.text); }));
    }
    if (budgets.empty()) entry.reject(entry.value());
  }
  /// Opened with the traces.
  void operator()(std::optional<replay::Calibration> ReplayRequest::*) const {
    run.calibrate = path_of(entry.value().place, entry.text(entry.value()));
  }
  void operator()(std::vector<std::uint32_t> ReplayRequest::*member) const {
    const bool list = entry.value().kind == Value::Kind::list;
    if (!list && entry.value().kind != Value::Kind::integer) entry.reject(entry.value());
    const std::vector<std::int64_t> numbers = entry.integers();
    run.request.*member = entry.check([&] { return seeds_of(numbers, !list); });
  }
  void operator()(std::vector<std::int64_t> ReplayRequest::*member) const { run.request.*member = entry.integers(); }
  void operator()(std::vector<std::string> ReplayRequest::*member) const { run.request.*member = entry.texts(); }
  /// A list makes one step for each.
  void operator()(replay::Protocol ReplayRequest::*) const {
    set_choices(entry, replay::value_names<replay::Protocol>(), run.protocols);
  }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(E ReplayRequest::*member) const {
    run.request.*member = entry.choice(entry.value(), replay::value_names<E>());
  }
  template <class Number>
  requires std::is_assignable_v<Number&, Index>
  void operator()(Number ReplayRequest::*member) const {
    run.request.*member = entry.integer(entry.value(), field.use.least);
  }
  void operator()(bool ReplayRequest::*member) const { run.request.*member = entry.flag(); }
  void operator()(replay::Protection protection) const {
    if (entry.value().kind != Value::Kind::list) entry.reject(entry.value());
    const std::vector<std::int64_t> numbers = entry.integers();
    entry.check([&] { set_protection(run.request, numbers, protection.outside); });
  }
};

/// The keys that set fields of the request, and those of a sweep alone.
std::vector<Key> all_keys() {
  std::vector<Key> keys = {{"traces", "paths of traces", set_traces, R"(["../traces/smollm2-135m.h5"])",
                            "paths, relative to the folder of this file"}};
  for (const replay::RequestField& field : replay::request_fields()) {
    if (field.key.name.empty()) continue;
    const auto set = [&field](const Entry& entry, SweepRun& run) {
      std::visit(FieldSetter{entry, field, run}, field.member);
    };
    keys.push_back({std::string(field.key.name), field.key.accepts, set, field.key.example, field.key.doc});
  }
  keys.insert(
      keys.end(),
      {{"device", "names", [](const Entry& e, SweepRun& run) { set_choices(e, devices, run.devices); }, R"("cpu")",
        "cpu, cuda, auto, ref; one pass per device; --device overrides it"},
       {"measure", "names of measures", set_measures, R"(["clusterability"])",
        "measures of keys and values: clusterability, similarity-by-distance"},
       {"exclude", "tables such as { method = \"mesh\", budget = \"25%\" }", set_exclusions,
        R"([{ method = "subgen", t = 4, budget = 256 }])",
        "configurations that do not run, by method, its parameters, budget, trace, protocol, device"},
       {"zip", "names of keys", set_zip, R"(["traces", "budgets"])",
        "lists that advance together instead of being combined: traces, protocol, device, budgets, layers, prompts"}});
  return keys;
}

const std::vector<Key>& keys() {
  static const std::vector<Key> all = all_keys();
  return all;
}

}  // namespace

const std::vector<std::string>& zip_keys() {
  static const std::vector<std::string> keys = {"traces", "protocol", "device", "budgets", "layers", "prompts"};
  return keys;
}

std::size_t list_size(const SweepRun& run, const std::string& key) {
  const std::size_t sizes[] = {run.traces.size(),          run.protocols.size(),      run.devices.size(),
                               run.request.budgets.size(), run.request.layers.size(), run.request.prompts.size()};
  return sizes[std::ranges::find(zip_keys(), key) - zip_keys().begin()];
}

std::vector<RunKey> run_keys() {
  std::vector<RunKey> out;
  for (const Key& key : keys()) out.push_back({key.name, key.example, key.doc});
  return out;
}

std::string key_of(std::string_view field) {
  if (const replay::RequestField* found = replay::find_field(field)) return std::string(found->key.name);
  if (field == "backend") return "device";
  return std::string(std::ranges::find(keys(), field, &Key::name) == keys().end() ? "" : field);
}

void reject_key(const Member& member, const std::vector<std::string>& known, const std::string& where) {
  fail_at(member.place, "{} has no key '{}'.{} It has {}.", where, member.key, did_you_mean(member.key, known),
          fmt::join(known, ", "));
}

void set_run(const std::vector<Member>& members, SweepRun& run) {
  const auto protects = std::ranges::find(members, "protect", &Member::key);
  if (protects != members.end() && std::ranges::find(members, "protect_outside", &Member::key) != members.end()) {
    fail_at(protects->place, "give 'protect' or 'protect_outside', not both");
  }
  for (const Member& member : members) {
    const auto key = std::ranges::find(keys(), member.key, &Key::name);
    if (key == keys().end()) {
      std::vector<std::string> known;
      for (const Key& k : keys()) known.push_back(k.name);
      reject_key(member, known, "a run");
    }
    key->set(Entry(member, key->accepts), run);
    run.places[member.key] = member.value.place;
  }
}

}  // namespace kvbench::config
