// SPDX-License-Identifier: Apache-2.0
#include <kvbench/allocate/engines.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::allocate {
namespace {

using methods::Shape;

bool is_exact(const replay::MethodChoice& method) { return method.info->kind == methods::Kind::exact; }

std::string setting_in(const EngineInfo& engine, const replay::MethodChoice& method,
                       std::optional<Index> channels = {}) {
  return methods::setting_in(engine.engine, method.info->name, method.params.text(), channels);
}

bool keeps_layers(const EngineInfo& engine) { return engine.shape == Shape::whole || engine.shape == Shape::ends; }

/// Whether a plan can have it. PerLayerCompressionPress wraps a press that scores tokens, no other wrapper.
bool can_set(const EngineInfo& engine, const replay::MethodChoice& method, Index channels) {
  if (is_exact(method)) return keeps_layers(engine);
  const std::string setting = setting_in(engine, method, channels);
  return !setting.empty() && (engine.shape != Shape::shares || setting.ends_with("Press()"));
}

std::string name_of(const replay::MethodChoice& method) {
  const std::string params = method.params.text();
  return params.empty() ? method.info->name : fmt::format("{}[{}]", method.info->name, params);
}

/// The choices without the entries that `keep` does not take.
template <class F>
Choices restricted(Choices choices, F keep) {
  for (std::size_t l = 0; l < choices.layers; ++l) {
    for (std::size_t e = 0; e < choices.entries; ++e) {
      if (!keep(e)) choices.cost[choices.at(l, e)] = -1;
    }
  }
  return choices;
}

void take_better(const Choices& choices, std::optional<Plan>& best, std::optional<Plan> plan) {
  if (plan && (!best || damage_of(choices, *plan) < damage_of(choices, *best))) best = std::move(plan);
}

/// The plan of least damage that gives one entry to the `first` first and the `last` last layers, another to the rest.
class EndsSolver {
 public:
  EndsSolver(const Choices& choices, std::int64_t budget) : choices_(choices), budget_(budget) {
    for (std::size_t e = 0; e < choices.entries; ++e) {
      std::vector<Sum>& sums = sums_.emplace_back(1);
      for (std::size_t l = 0; l < choices.layers; ++l) {
        const std::size_t at = choices.at(l, e);
        sums.push_back({sums.back().damage + choices.damage[at], sums.back().cost + choices.cost[at],
                        sums.back().missing + (choices.has(l, e) ? 0 : 1)});
      }
    }
  }

  void take(std::size_t rest, std::size_t end) {
    const std::size_t layers = choices_.layers;
    for (std::size_t first = 0; first < layers; ++first) {
      for (std::size_t last = 0; first + last < layers; ++last) {
        if (end == rest && first + last > 0) return;
        const Sum sum =
            between(end, 0, first) + between(rest, first, layers - last) + between(end, layers - last, layers);
        if (sum.missing > 0 || sum.cost > budget_ || (best_ && sum.damage >= least_)) continue;
        least_ = sum.damage;
        best_ = Plan(layers, rest);
        std::fill_n(best_->begin(), first, end);
        std::fill_n(best_->rbegin(), last, end);
      }
    }
  }

  const std::optional<Plan>& best() const { return best_; }

 private:
  struct Sum {
    double damage = 0;
    std::int64_t cost = 0, missing = 0;  ///< layers that cannot have the entry
    Sum operator+(const Sum& o) const { return {damage + o.damage, cost + o.cost, missing + o.missing}; }
  };

  Sum between(std::size_t entry, std::size_t begin, std::size_t end) const {
    const Sum &a = sums_[entry][begin], &b = sums_[entry][end];
    return {b.damage - a.damage, b.cost - a.cost, b.missing - a.missing};
  }

  const Choices& choices_;
  std::int64_t budget_;
  std::vector<std::vector<Sum>> sums_;  ///< [entries][layers + 1], over the layers before
  double least_ = 0;
  std::optional<Plan> best_;
};

std::optional<Plan> solve_ends(std::span<const MenuEntry> menu, const Choices& choices, std::int64_t budget) {
  EndsSolver solver(choices, budget);
  for (std::size_t rest = 0; rest < menu.size(); ++rest) {
    for (std::size_t end = 0; end < menu.size() && !is_exact(menu[rest].method); ++end) solver.take(rest, end);
  }
  return solver.best();
}

}  // namespace

std::vector<replay::MethodChoice> menu_of(const EngineInfo& engine, Index channels) {
  std::vector<replay::MethodChoice> menu;
  for (const auto& [info, settings] : methods::rows_of_engine(engine.engine, channels)) {
    const replay::MethodChoice choice{info, info->bind(settings)};
    if (can_set(engine, choice, channels)) menu.push_back(choice);
  }
  if (menu.empty()) throw Error("--for {}: it has nothing for heads of {} channels", engine.name(), channels);
  const methods::MethodInfo& exact = methods::find_method("exact");
  if (keeps_layers(engine)) menu.push_back({&exact, exact.bind({})});
  return menu;
}

void check_menu(const EngineInfo& engine, std::span<const replay::MethodChoice> menu, Index channels) {
  for (const replay::MethodChoice& method : menu) {
    if (can_set(engine, method, channels)) continue;
    std::vector<std::string> names;
    for (const replay::MethodChoice& known : menu_of(engine, channels)) names.push_back(name_of(known));
    throw Error("--menu: {} has no {}, or computes it in another way; for this model it has {}", engine.name(),
                name_of(method), fmt::join(names, ", "));
  }
}

std::optional<Plan> solve_for(const EngineInfo& engine, std::span<const MenuEntry> menu, const Choices& choices,
                              std::int64_t budget) {
  if (engine.shape == Shape::ends) return solve_ends(menu, choices, budget);
  std::optional<Plan> best;
  for (std::size_t e = 0; e < menu.size(); ++e) {
    const auto kept = [&](std::size_t other) {
      switch (engine.shape) {
        case Shape::whole:
          return other == e || is_exact(menu[other].method);
        case Shape::shares:
          return same(menu[other].method, menu[e].method);
        default:
          return other == e;
      }
    };
    if (engine.shape == Shape::shares && e > 0 && same(menu[e].method, menu[e - 1].method)) continue;
    take_better(choices, best, solve(restricted(choices, kept), budget));
  }
  return best;
}

std::optional<Plan> whole_ends(const Damages& damages, const Plan& plan) {
  const auto exact = std::ranges::find_if(damages.menu, [](const MenuEntry& e) { return is_exact(e.method); });
  if (exact == damages.menu.end()) return std::nullopt;
  const auto whole = static_cast<std::size_t>(exact - damages.menu.begin());
  std::map<std::size_t, std::size_t> counts;
  for (const std::size_t entry : plan) {
    if (entry != whole) ++counts[entry];
  }
  if (counts.empty()) return std::nullopt;
  const std::size_t format = std::ranges::max_element(counts, {}, [](const auto& of) { return of.second; })->first;
  constexpr std::int64_t ends = 2;
  Plan out;
  for (const methods::PlanPlace& place : damages.places)
    out.push_back(place.layer < ends || place.layer >= damages.model_layers - ends ? whole : format);
  const auto rounded = static_cast<std::size_t>(std::ranges::count(out, format));
  if (rounded == 0 || rounded == out.size()) return std::nullopt;
  for (std::size_t l = 0; l < out.size(); ++l) {
    if (damages.cost[l * damages.menu.size() + out[l]] < 0) return std::nullopt;
  }
  return out;
}

namespace {

/// The word behind a flag.
std::string_view word_behind(std::string_view flag, std::string_view flags) {
  const std::string_view rest = flags.substr(flags.find(flag) + flag.size() + 1);
  return rest.substr(0, rest.find(' '));
}

/// The flags of a plan of ends. ik_llama.cpp counts the layers of the model, also those without a place.
std::string ends_text(const EngineInfo& engine, const Damages& damages, const Plan& plan) {
  std::size_t first = 0, last = 0;
  while (first < plan.size() && plan[first] == plan.front()) ++first;
  while (last < plan.size() && plan[plan.size() - 1 - last] == plan.back()) ++last;
  const bool same_everywhere = first == plan.size();
  // Of three segments the middle one is the rest; of two, the format that is no f16, so that it can be rotated.
  const bool front_is_rest =
      same_everywhere ||
      (first + last == plan.size() &&
       (is_exact(damages.menu[plan.back()].method) || (!is_exact(damages.menu[plan.front()].method) && first >= last)));
  const bool back_is_rest = !front_is_rest && first + last == plan.size();
  const std::size_t rest = front_is_rest ? plan.front() : back_is_rest ? plan.back() : plan[first];
  const auto flags_of = [&](std::size_t entry) {
    const std::string flags = setting_in(engine, damages.menu[entry].method);
    return flags.empty() ? "-ctk f16 -ctv f16" : flags;
  };
  const std::string own = flags_of(rest);
  std::string text = fmt::format("{} -ctk {} -ctv {}{}", engine.program, word_behind("-ctk", own),
                                 word_behind("-ctv", own), own.ends_with(" -khad -vhad") ? " -khad -vhad" : "");
  const auto add = [&](std::string_view end, std::size_t entry, std::int64_t count) {
    const std::string of_end = flags_of(entry);
    for (const std::string_view flag : {"-ctk", "-ctv"}) {
      const std::string_view type = word_behind(flag, of_end);
      if (type != word_behind(flag, own)) text += fmt::format(" {}-{} {},{}", flag, end, type, count);
    }
  };
  if (!front_is_rest) add("first", plan.front(), damages.places[first - 1].layer + 1);
  if (!back_is_rest && !same_everywhere)
    add("last", plan.back(), damages.model_layers - damages.places[plan.size() - last].layer);
  return text;
}

/// The flags of a plan with layers in the type of the model. Layers without a place have a window.
std::string whole_text(const EngineInfo& engine, const Damages& damages, const Plan& plan) {
  std::string flags, skipped = std::ssize(damages.places) < damages.model_layers ? " sliding_window" : "";
  for (std::size_t l = 0; l < plan.size(); ++l) {
    const replay::MethodChoice& method = damages.menu[plan[l]].method;
    if (is_exact(method)) {
      skipped += fmt::format(" {}", damages.places[l].layer);
    } else {
      flags = ' ' + setting_in(engine, method);
    }
  }
  return std::string(engine.program) + flags +
         (flags.empty() || skipped.empty() ? "" : " --kv-cache-dtype-skip-layers" + skipped);
}

/// Presses by layer of the model; those without a place keep all.
std::vector<std::string> shares_text(const EngineInfo& engine, const Damages& damages, const Plan& plan) {
  const std::string press = setting_in(engine, damages.menu[plan.front()].method);
  constexpr double less = 5e-6;  // kvpress keeps int(n (1 - ratio)) tokens, which must not lose one by rounding
  std::vector<std::string> ratios(static_cast<std::size_t>(damages.model_layers), "0");
  for (std::size_t l = 0; l < plan.size(); ++l) {
    const double kept = damages.kept[l * damages.menu.size() + plan[l]];
    if (kept < 1) ratios[static_cast<std::size_t>(damages.places[l].layer)] = fmt::format("{:.6f}", 1 - kept - less);
  }
  return {fmt::format("from kvpress import PerLayerCompressionPress, {}", press.substr(0, press.find('('))),
          fmt::format("press = PerLayerCompressionPress({}, compression_ratios=[{}])", press, fmt::join(ratios, ", "))};
}

}  // namespace

std::vector<std::string> settings_of(const EngineInfo& engine, const Damages& damages, const Plan& plan) {
  switch (engine.shape) {
    case Shape::shares:
      return shares_text(engine, damages, plan);
    case Shape::whole:
      return {whole_text(engine, damages, plan)};
    case Shape::ends:
      return {ends_text(engine, damages, plan)};
    case Shape::equal:
      break;
  }
  return {fmt::format("{} {}", engine.program, setting_in(engine, damages.menu[plan.front()].method))};
}

}  // namespace kvbench::allocate
