// SPDX-License-Identifier: Apache-2.0
#include <kvbench/allocate/engines.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/engines.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::allocate {
namespace {

/// llama.cpp: see methods/engines.cpp. ik_llama.cpp: common/common.cpp (-ctk-first TYPE,N) and src/llama.cpp, which
/// counts all layers of a model. vLLM: CacheConfig.kv_cache_dtype_skip_layers, which takes numbers of layers, and
/// `sliding_window` for those with a window. kvpress: presses/per_layer_compression_press.py, which takes presses that
/// score tokens.
constexpr Engine table[] = {
    {"llama.cpp", "5a4d0feca of September 2026", Shape::equal, "has one type of keys and one of values in all layers",
     "llama-server -m MODEL.gguf"},
    {"mlx-lm", "0.32", Shape::equal, "has one number of bits in all layers",
     "mlx_lm.generate --model MODEL --prompt TEXT"},
    {"ik_llama.cpp", "8337e4cd of August 2026", Shape::ends,
     "can give the first and the last layers other types than the rest", "llama-server -m MODEL.gguf -fa on"},
    {"vLLM", "0.21", Shape::whole, "can leave layers in the type of the model, and has one format for the rest",
     "vllm serve MODEL"},
    {"kvpress", "0.5.5", Shape::shares, "can keep another share of the tokens in each layer, with one press", ""},
};

bool is_exact(const replay::MethodChoice& method) { return method.info->kind == methods::Kind::exact; }

replay::MethodChoice choice_of(std::string_view name, const std::vector<methods::Assignment>& settings = {}) {
  const methods::MethodInfo& info = methods::find_method(name);
  return {&info, info.bind(settings)};
}

/// Types of keys and values of ik_llama.cpp that kvbench has. Its iq4_nl chooses another scale (ggml-quants.c); q8_KV
/// rounds as int8[group=0,form=vllm], with 4 more bytes a row.
constexpr std::pair<std::string_view, std::string_view> ik_types[] = {
    {"q8_0", "q8_0"}, {"q8_0", "q6_0"}, {"q8_0", "q5_1"}, {"q8_0", "q5_0"}, {"q8_0", "q4_1"}, {"q6_0", "q6_0"},
    {"q6_0", "q5_0"}, {"q5_1", "q5_1"}, {"q5_0", "q5_0"}, {"q4_1", "q4_1"}, {"q4_0", "q4_0"}};

/// Its rotation (-khad -vhad) spans a whole head; that of llama.cpp, which kvbench has, 64 channels of values.
bool ik_rotates(Index channels) { return channels == 64; }

replay::MethodChoice ik_choice(std::pair<std::string_view, std::string_view> types, Index channels) {
  std::vector<methods::Assignment> settings = {{"hadamard", ik_rotates(channels) ? "true" : "false"}};
  if (types.first == "q4_0") settings.push_back({"form", "ik"});
  if (types.first != types.second) settings.push_back({"values", std::string(types.second)});
  return choice_of(types.first, settings);
}

std::vector<replay::MethodChoice> formats_of(const Engine& engine, Index channels) {
  std::vector<replay::MethodChoice> out;
  if (engine.shape == Shape::ends) {
    for (const auto& types : ik_types) out.push_back(ik_choice(types, channels));
    return out;
  }
  for (auto [info, settings] : methods::rows_of_engine(engine.name)) {
    // llama.cpp rotates heads that blocks of 64 channels fill; mlx refuses groups that do not fill a head.
    for (methods::Assignment& of : settings) {
      if (of.name == "hadamard" && channels % 64 != 0) of.value = "false";
      if (of.name == "group" && of.value == "64" && channels % 64 != 0) of.value = "32";
    }
    const replay::MethodChoice choice{info, info->bind(settings)};
    // PerLayerCompressionPress wraps a press that scores tokens, no other wrapper.
    const std::string press = methods::setting_in(engine.name, info->name, choice.params.text());
    if (engine.shape != Shape::shares || press.ends_with("Press()")) out.push_back(choice);
  }
  return out;
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

std::span<const Engine> engines() { return table; }

std::vector<replay::MethodChoice> menu_of(const Engine& engine, Index channels) {
  std::vector<replay::MethodChoice> menu = formats_of(engine, channels);
  if (engine.shape == Shape::whole || engine.shape == Shape::ends) menu.push_back(choice_of("exact"));
  return menu;
}

void check_menu(const Engine& engine, std::span<const replay::MethodChoice> menu, Index channels) {
  const std::vector<replay::MethodChoice> known = menu_of(engine, channels);
  for (const replay::MethodChoice& method : menu) {
    if (std::ranges::any_of(known, [&](const replay::MethodChoice& k) { return same(k, method); })) continue;
    // Groups of mlx-lm, of which the menu has one.
    if (engine.name == "mlx-lm" && !methods::setting_in(engine.name, method.info->name, method.params.text()).empty() &&
        channels % method.info->block(method.params).channels == 0)
      continue;
    std::vector<std::string> names;
    for (const replay::MethodChoice& k : known) names.push_back(name_of(k));
    throw Error("--menu: {} has no {}, or computes it in another way; for this model it has {}", engine.name,
                name_of(method), fmt::join(names, ", "));
  }
}

std::optional<Plan> solve_for(const Engine& engine, std::span<const MenuEntry> menu, const Choices& choices,
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

/// Names of types of keys and values, as ik_llama.cpp takes them.
std::pair<std::string_view, std::string_view> ik_types_of(const replay::MethodChoice& method) {
  for (const auto& types : ik_types) {
    for (const Index channels : {64, 128}) {
      if (same(method, ik_choice(types, channels))) return types;
    }
  }
  return {"f16", "f16"};
}

bool is_rotated(const replay::MethodChoice& method) {
  return std::ranges::any_of(ik_types, [&](const auto& types) { return same(method, ik_choice(types, 64)); });
}

/// The flags of a plan of ends. ik_llama.cpp counts the layers of the model, also those without a place.
std::string ends_text(const Engine& engine, const Damages& damages, const Plan& plan) {
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
  const auto& method = damages.menu[rest].method;
  const auto [keys, values] = ik_types_of(method);
  std::string text =
      fmt::format("{} -ctk {} -ctv {}{}", engine.program, keys, values, is_rotated(method) ? " -khad -vhad" : "");
  const auto add = [&](std::string_view end, std::size_t entry, std::int64_t count) {
    const auto [end_keys, end_values] = ik_types_of(damages.menu[entry].method);
    if (end_keys != keys) text += fmt::format(" -ctk-{} {},{}", end, end_keys, count);
    if (end_values != values) text += fmt::format(" -ctv-{} {},{}", end, end_values, count);
  };
  if (!front_is_rest) add("first", plan.front(), damages.places[first - 1].layer + 1);
  if (!back_is_rest && !same_everywhere)
    add("last", plan.back(), damages.model_layers - damages.places[plan.size() - last].layer);
  return text;
}

/// The flags of a plan with layers in the type of the model. Layers without a place have a window.
std::string whole_text(const Engine& engine, const Damages& damages, const Plan& plan) {
  std::string flags, skipped = std::ssize(damages.places) < damages.model_layers ? " sliding_window" : "";
  for (std::size_t l = 0; l < plan.size(); ++l) {
    const replay::MethodChoice& method = damages.menu[plan[l]].method;
    if (is_exact(method)) {
      skipped += fmt::format(" {}", damages.places[l].layer);
    } else {
      flags = ' ' + methods::setting_in(engine.name, method.info->name, method.params.text());
    }
  }
  return std::string(engine.program) + flags +
         (flags.empty() || skipped.empty() ? "" : " --kv-cache-dtype-skip-layers" + skipped);
}

/// Presses by layer of the model; those without a place keep all.
std::vector<std::string> shares_text(const Engine& engine, const Damages& damages, const Plan& plan) {
  const replay::MethodChoice& method = damages.menu[plan.front()].method;
  const std::string press = methods::setting_in(engine.name, method.info->name, method.params.text());
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

std::vector<std::string> settings_of(const Engine& engine, const Damages& damages, const Plan& plan) {
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
  const replay::MethodChoice& method = damages.menu[plan.front()].method;
  return {
      fmt::format("{} {}", engine.program, methods::setting_in(engine.name, method.info->name, method.params.text()))};
}

}  // namespace kvbench::allocate
