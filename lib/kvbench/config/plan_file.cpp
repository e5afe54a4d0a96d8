// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/plan_file.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/config/file_digest.hpp>
#include <kvbench/config/named_files.hpp>
#include <kvbench/config/run_keys.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::config {
namespace {

using methods::LayerMethod;
using methods::LayerPlan;
using methods::MethodInfo;
using methods::PlannedBudget;
using methods::PlanPlace;

constexpr std::uint64_t largest_plan = 4 << 20;  // bytes: 50 budgets of 1000 kv heads
constexpr std::int64_t most_layers = 10000, most_heads = 10000;

/// The members of a table, each of which has one of these keys. Throws Error where one is missing that is not the
/// optional one.
std::vector<const Value*> members_of(const Value& table, const std::vector<std::string>& keys, const char* where,
                                     const std::vector<std::string>& optional = {}) {
  if (table.kind != Value::Kind::table) fail_at(table.place, "{} is a table, not {}", where, describe(table));
  std::vector<const Value*> found(keys.size());
  for (const Member& member : table.members) {
    const auto key = std::ranges::find(keys, member.key);
    if (key == keys.end()) reject_key(member, keys, where);
    found[static_cast<std::size_t>(key - keys.begin())] = &member.value;
  }
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (found[k] == nullptr && std::ranges::find(optional, keys[k]) == optional.end())
      fail_at(table.place, "'{}' is missing: {} has {}", keys[k], where, fmt::join(keys, ", "));
  }
  return found;
}

const std::string& text_of(const Value& value, const char* what) {
  if (value.kind == Value::Kind::text) return value.text;
  fail_at(value.place, "{} is a text, not {}", what, describe(value));
}

const std::vector<Value>& items_of(const Value& value, const char* what) {
  if (value.kind == Value::Kind::list && !value.items.empty()) return value.items;
  fail_at(value.place, "{} are a list with at least one item, not {}", what,
          value.kind == Value::Kind::list ? "an empty one" : describe(value));
}

std::int64_t number_of(const Value& value, std::int64_t least, std::int64_t limit, const std::string& what) {
  std::int64_t number = -1;
  if (value.kind == Value::Kind::integer)
    std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
  if (value.kind == Value::Kind::integer && number >= least && number <= limit) return number;
  fail_at(value.place, "{} is a whole number from {} to {}, not {}", what, least, limit, describe(value));
}

Budget memory_of(const Value& value) {
  const std::string& text = text_of(value, "a budget");
  const Budget budget = with_place(value.place, [&] { return Budget::parse(text); });
  if (budget.cost() != CostKind::memory)
    fail_at(value.place, "a plan divides memory; write a budget such as \"25%mem\", not \"{}\"", text);
  return budget;
}

LayerMethod method_of_line(const Value& value, Budget budget) {
  const std::string& text = text_of(value, "a method");
  return with_place(value.place, [&] {
    if (methods::is_plan(text)) throw Error("'{}' is a plan; name a method for each layer", text);
    const auto [info, settings] = method_of(text, &value.place);
    methods::Params params = info->bind(settings);
    if (info->divides(params))
      throw Error("{} divides its budget among layers itself; name another method", info->name);
    return LayerMethod{info, std::move(params), std::move(budget)};
  });
}

void add_line(const Value& line, std::int64_t model_layers, PlannedBudget& plan) {
  const auto parts = members_of(line, {"layer", "method", "budget", "kv_head"}, "a line of 'layers'", {"kv_head"});
  PlanPlace place{number_of(*parts[0], 0, model_layers - 1, "a layer")};
  if (parts[3] != nullptr) place.kv_head = number_of(*parts[3], 0, most_heads - 1, "a kv head");
  const bool of_head = place.kv_head != PlanPlace::all_heads;
  if (plan.at(place.layer, place.kv_head) != nullptr || (!of_head && plan.lines_of(place.layer) > 0))
    fail_at(line.place, "{} has two lines; leave one of them out",
            of_head ? fmt::format("kv head {} of layer {}", place.kv_head, place.layer)
                    : fmt::format("layer {}", place.layer));
  plan.lines.emplace(place, method_of_line(*parts[1], memory_of(*parts[2])));
}

/// Throws Error where the layers may hold more than the budget: their exact caches are of one size, as are those of the
/// kv heads of a layer.
void check_sum(const Value& table, const PlannedBudget& plan, std::int64_t model_layers) {
  constexpr double rounding = 1e-9;
  std::map<std::int64_t, std::pair<double, double>> layers;  // shares and lines
  for (const auto& [place, method] : plan.lines) {
    auto& [shares, lines] = layers[place.layer];
    shares += method.budget.share(), lines += 1;
  }
  double mean = 0;
  for (const auto& [layer, of] : layers) mean += of.first / of.second / static_cast<double>(layers.size());
  if (mean <= plan.budget.share() + rounding) return;
  const bool all = std::ssize(layers) == model_layers;
  fail_at(table.place, "{} hold {:.6g} % of the memory on average, and the plan is for {}; lower their budgets{}",
          all ? "the layers" : fmt::format("{} of {} layers", layers.size(), model_layers), 100 * mean,
          plan.budget.text(), all ? "" : ", or add lines of the others");
}

PlannedBudget read_planned(const Value& table, std::int64_t model_layers) {
  const std::vector<std::string> for_readers = {"confirmed", "settings", "beside"};
  const auto parts =
      members_of(table, {"budget", "layers", "confirmed", "settings", "beside"}, "a block [[plans]]", for_readers);
  if (parts[2] != nullptr && parts[2]->kind != Value::Kind::flag)
    fail_at(parts[2]->place, "'confirmed' is true or false, not {}", describe(*parts[2]));
  for (const std::size_t texts : {3, 4}) {
    if (parts[texts] == nullptr) continue;
    for (const Value& text : items_of(*parts[texts], "'settings' and 'beside'")) text_of(text, "each of them");
  }
  PlannedBudget plan{memory_of(*parts[0]), {}};
  for (const Value& line : items_of(*parts[1], "'layers'")) add_line(line, model_layers, plan);
  check_sum(table, plan, model_layers);
  return plan;
}

/// Calls visit(place, method) for all lines at all budgets.
template <class F>
void for_each_line(const LayerPlan& plan, F visit) {
  for (const PlannedBudget& budget : plan.budgets) {
    for (const auto& [place, method] : budget.lines) visit(place, method);
  }
}

/// Throws Error where lines are about single kv heads, and a method needs all of a layer: it would run beside them.
void check_heads(const Value& plans, const LayerPlan& plan) {
  bool by_head = false;
  const LayerMethod* joins = nullptr;
  for_each_line(plan, [&](const PlanPlace& place, const LayerMethod& method) {
    by_head |= place.kv_head != PlanPlace::all_heads;
    if (!method.info->heads_alone(method.params)) joins = &method;
  });
  if (by_head && joins != nullptr)
    fail_at(plans.place,
            "{} needs all kv heads of a layer at once, and a plan with lines for single ones has none "
            "that does; name another method, or leave kv_head out",
            joins->info->name);
}

LayerPlan read_plan(const Value& file) {
  const auto parts = members_of(file, {"model", "model_layers", "traces", "plans"}, "a plan");
  LayerPlan plan{.model = text_of(*parts[0], "'model'")};
  plan.model_layers = number_of(*parts[1], 1, most_layers, "'model_layers'");
  for (const Value& digest : items_of(*parts[2], "'traces'")) text_of(digest, "a digest");
  for (const Value& table : items_of(*parts[3], "'plans'")) {
    PlannedBudget planned = read_planned(table, plan.model_layers);
    if (std::ranges::count(plan.budgets, planned.budget, &PlannedBudget::budget) > 0)
      fail_at(table.place, "there are two plans for {}; leave one of them out", planned.budget.text());
    plan.budgets.push_back(std::move(planned));
  }
  check_heads(*parts[3], plan);
  return plan;
}

/// What commands ask of a method before it runs holds for a plan where it holds for one of its methods.
void add_traits(const LayerPlan& plan, MethodInfo& info) {
  bool together = false;
  for_each_line(plan, [&](const PlanPlace&, const LayerMethod& method) {
    const MethodInfo& of = *method.info;
    info.seeded |= of.depends_on_seed(method.params);
    info.observes |= of.observes, info.calibrates_on = std::max(info.calibrates_on, of.calibrates_on);
    info.speculates |= of.speculates, info.rounds |= of.rounds;
    if (!of.trace_sha256.empty()) info.trace_sha256 = of.trace_sha256;
    for (const methods::Part part : of.needs) {
      if (std::ranges::find(info.needs, part) == info.needs.end()) info.needs.push_back(part);
    }
    if (of.granularity != methods::Granularity::layer) return;
    info.granularity = methods::Granularity::layer;
    together |= !of.heads_alone(method.params);
  });
  if (info.granularity == methods::Granularity::layer)
    info.independent_heads = [together](const methods::Params&) { return !together; };
}

methods::Params bind_plan(const std::string& name, const std::string& digest,
                          const std::shared_ptr<const LayerPlan>& plan, std::span<const methods::Assignment> settings) {
  std::vector<methods::Assignment> own(settings.begin(), settings.end());
  std::string text = take_digest(name, digest, own);
  if (!own.empty()) throw Error("{} has no parameter '{}'; its file says what each layer runs", name, own[0].name);
  return {plan, std::move(text)};
}

MethodInfo plan_method(const std::string& name, const std::string& digest, LayerPlan read) {
  const auto plan = std::make_shared<const LayerPlan>(std::move(read));
  MethodInfo info{.name = name,
                  .paper = "a plan of kvbench allocate",
                  .summary = "a method and a budget for each layer of " + plan->model};
  add_traits(*plan, info);
  info.params = {digest_param(digest)};
  info.bind = [=](std::span<const methods::Assignment> settings) { return bind_plan(name, digest, plan, settings); };
  info.prepare = [name](std::span<const methods::HeadPrompt>, const methods::Params&, Backend&) -> methods::MakeCaches {
    throw methods::Unavailable(name + " runs in the layers of its model alone; test the methods that it names");
  };
  return info;
}

/// A text in quotes, as TOML has it.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string list_of(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(quoted(text));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

}  // namespace

const methods::MethodInfo& find_plan(const methods::MethodName& name) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, MethodInfo> known;  // by name and digest
  if (name.file.empty()) throw Error("'{}' does not name a file of a plan; write plan:FILE.toml", name.base);
  const std::string text = toml_text(name.file, "a plan", largest_plan);
  const std::string digest = trace::Sha256().add(text).hex();
  const std::lock_guard lock(mutex);
  const std::pair key(name.base, digest);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, plan_method(name.base, digest, read_plan(parse_toml(name.file, text)))).first->second;
}

std::string plan_text(const LayerPlan& plan, const PlanOrigin& origin) {
  std::string out;
  std::istringstream told(origin.told);
  for (std::string line; std::getline(told, line);) out += line.empty() ? "#\n" : fmt::format("# {}\n", line);
  out += fmt::format("model = {}\nmodel_layers = {}\ntraces = {}\n", quoted(plan.model), plan.model_layers,
                     list_of(origin.traces));
  for (std::size_t p = 0; p < plan.budgets.size(); ++p) {
    const PlannedBudget& planned = plan.budgets[p];
    out += fmt::format("\n[[plans]]\nbudget = {}\n", quoted(planned.budget.text()));
    if (p < origin.notes.size() && origin.notes[p].confirmed)
      out += fmt::format("confirmed = {}\n", *origin.notes[p].confirmed);
    if (p < origin.notes.size() && !origin.notes[p].settings.empty())
      out += fmt::format("settings = {}\n", list_of(origin.notes[p].settings));
    if (p < origin.notes.size() && !origin.notes[p].beside.empty())
      out += fmt::format("beside = {}\n", list_of(origin.notes[p].beside));
    out += "layers = [\n";
    for (const auto& [place, method] : planned.lines) {
      const std::string named = method_beside(origin.path, *method.info, method.params);
      const bool of_head = place.kv_head != PlanPlace::all_heads;
      out += fmt::format("  {{ layer = {}{}, method = {}, budget = {} }},\n", place.layer,
                         of_head ? fmt::format(", kv_head = {}", place.kv_head) : "", quoted(named),
                         quoted(method.budget.text()));
    }
    out += "]\n";
  }
  return out;
}

}  // namespace kvbench::config
