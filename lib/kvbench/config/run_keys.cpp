// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/run_keys.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <span>

#include <kvbench/config/field_names.hpp>
#include <kvbench/config/method_list.hpp>
#include <kvbench/config/request_text.hpp>
#include <kvbench/core/suggest.hpp>

namespace kvbench::config {
namespace {

/// A key with its value, and functions to read it. A value of the wrong kind is rejected with its place and what the
/// key takes.
class Entry {
 public:
  Entry(const Member& member, const char* accepts) : member_(member), accepts_(accepts) {}

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
  const char* accepts_;
};

struct Key {
  const char* name;
  const char* accepts;
  void (*set)(const Entry&, SweepRun&);
  const char* example;
  const char* doc;
};

/// A path relative to the folder of the sweep file.
std::string path_of(const Entry& entry, const Value& item) {
  const std::filesystem::path folder = std::filesystem::path(item.place.file).parent_path();
  return (folder / entry.text(item)).lexically_normal().string();
}

void set_traces(const Entry& entry, SweepRun& run) {
  run.traces.clear();
  for (const Value& item : entry.items()) run.traces.push_back({path_of(entry, item), item.place});
}

void set_budgets(const Entry& entry, SweepRun& run) {
  run.request.budgets.clear();
  for (const Value& item : entry.items()) {
    if (item.kind != Value::Kind::integer && item.kind != Value::Kind::text) entry.reject(item);
    run.request.budgets.push_back(with_place(item.place, [&] { return Budget::parse(item.text); }));
  }
  if (run.request.budgets.empty()) entry.reject(entry.value());
}

void set_seeds(const Entry& entry, SweepRun& run) {
  const bool list = entry.value().kind == Value::Kind::list;
  if (!list && entry.value().kind != Value::Kind::integer) entry.reject(entry.value());
  const std::vector<std::int64_t> numbers = entry.integers();
  run.request.seeds = entry.check([&] { return list ? listed_seeds(numbers) : first_seeds(numbers[0]); });
}

void set_protect(const Entry& entry, SweepRun& run, bool outside) {
  if (entry.value().kind != Value::Kind::list) entry.reject(entry.value());
  const std::vector<std::int64_t> numbers = entry.integers();
  entry.check([&] { set_protection(run.request, numbers, outside); });
}

void set_measures(const Entry& entry, SweepRun& run) {
  run.measures.clear();
  for (const Value& item : entry.items()) {
    const bounds::Measure measure = entry.choice(item, bounds::measures());
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
    Exclusion exclusion{.place = item.place, .where = {}};
    for (const Member& member : item.members) exclusion.where.emplace_back(member.key, entry.scalar(member.value));
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

const Key keys[] = {
    {"traces", "paths of traces", set_traces, R"(["../traces/smollm2-135m.h5"])",
     "paths, relative to the folder of this file"},
    {"methods", "methods", [](const Entry& e, SweepRun& run) { run.request.methods = read_methods(e.value()); },
     R"(["snapkv", { name = "subgen", t = [2, 4] }])",
     "names, \"all\", or tables with parameters; lists of values expand to all combinations"},
    {"measure", "names of measures", set_measures, R"(["clusterability"])",
     "measures of keys and values: clusterability, similarity-by-distance"},
    {"budgets", "numbers of tokens such as 256, shares such as \"25%\", and bytes such as \"512KiB\"", set_budgets,
     R"(["25%", 256, "512KiB"])", "shares of the context, tokens per kv head, or bytes of keys and values per kv head"},
    {"seeds", "a number of seeds, or a list of them", set_seeds, "5",
     "number of seeds, or a list such as [3, 4]; for methods with randomness"},
    {"calibrate", "TRACE.h5 or TRACE.h5:PROMPT",
     [](const Entry& e, SweepRun& run) { run.calibrate = path_of(e, e.value()); }, R"("../traces/smollm2-135m.h5:1")",
     "another text, on which methods calibrate (infinigen, kvquant-nofisher); relative to the folder of this file"},
    {"protocol", "names", [](const Entry& e, SweepRun& run) { set_choices(e, protocols(), run.protocols); },
     R"(["prefill", "decode"])", "auto, prefill, decode, stream; one pass per protocol"},
    {"device", "names", [](const Entry& e, SweepRun& run) { set_choices(e, devices, run.devices); }, R"("cpu")",
     "cpu, cuda, auto, ref; one pass per device; --device overrides it"},
    {"decoded", "a name",
     [](const Entry& e, SweepRun& run) { run.request.decoded = e.choice(e.value(), decoded_policies()); },
     R"("method")", "decode: method (the method compresses decoded tokens) or keep (they are kept exactly)"},
    {"window", "a number of tokens, at least 1",
     [](const Entry& e, SweepRun& run) { run.request.window = e.integer(e.value(), 1); }, "256",
     "prefill: number of last tokens that are kept exactly"},
    {"layers", "numbers of layers", [](const Entry& e, SweepRun& run) { run.request.layers = e.integers(); }, "[0, 4]",
     "layers of the model; default: all layers of the trace"},
    {"heads", "numbers of kv heads", [](const Entry& e, SweepRun& run) { run.request.kv_heads = e.integers(); }, "[0]",
     "kv heads; default: all"},
    {"prompts", "names of prompt groups", [](const Entry& e, SweepRun& run) { run.request.prompts = e.texts(); },
     R"(["0"])", "prompt groups; default: all"},
    {"protect", "[first, last] tokens", [](const Entry& e, SweepRun& run) { set_protect(e, run, false); }, "[4, 64]",
     "numbers of first and last tokens of the context that are kept exactly, inside the budget"},
    {"protect_outside", "[first, last] tokens", [](const Entry& e, SweepRun& run) { set_protect(e, run, true); },
     "[256, 0]", "the same outside the budget; give one of the two"},
    {"dense_layers", "a number of layers",
     [](const Entry& e, SweepRun& run) { run.request.dense_layers = e.integer(e.value(), 0); }, "2",
     "number of first layers that are kept exactly"},
    {"recall_sinks", "true or false", [](const Entry& e, SweepRun& run) { run.request.recall_sinks = e.flag(); },
     "false", "whether recall counts protected tokens"},
    {"exclude", "tables such as { method = \"mesh\", budget = \"25%\" }", set_exclusions,
     R"([{ method = "subgen", t = 4, budget = 256 }])",
     "configurations that do not run, by method, its parameters, budget, trace, protocol, device"},
    {"zip", "names of keys", set_zip, R"(["traces", "budgets"])",
     "lists that advance together instead of being combined: traces, protocol, device, budgets, layers, prompts"},
};

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
  for (const Key& key : keys) out.push_back({key.name, key.example, key.doc});
  return out;
}

std::string key_of(std::string_view field) {
  static const std::map<std::string_view, const char*> others = {{"backend", "device"},
                                                                 {"calibration", "calibrate"},
                                                                 {"kv_heads", "heads"},
                                                                 {"protect_first", "protect"},
                                                                 {"protect_last", "protect"}};
  if (const auto other = others.find(field); other != others.end()) return other->second;
  const bool same = std::ranges::any_of(keys, [&](const Key& key) { return key.name == field; });
  return std::string(same ? field : "");
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
    const Key* key = std::ranges::find_if(keys, [&](const Key& k) { return member.key == k.name; });
    if (key == std::end(keys)) {
      std::vector<std::string> known;
      for (const Key& k : keys) known.emplace_back(k.name);
      reject_key(member, known, "a run");
    }
    key->set(Entry(member, key->accepts), run);
    run.places[member.key] = member.value.place;
  }
}

}  // namespace kvbench::config
