// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>

#include <kvbench/allocate/engines.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>
#include <support/messages.hpp>

using namespace kvbench;
using namespace kvbench::allocate;

namespace {

const methods::EngineInfo& engine(std::string_view name) { return methods::engine_of_flag("--for", name); }

MenuEntry entry(std::string_view name, const char* budget = "100%mem",
                const std::vector<methods::Assignment>& settings = {}) {
  const methods::MethodInfo& info = methods::find_method(name);
  return {{&info, info.bind(settings)}, Budget::parse(budget)};
}

/// Of a model with these layers, all of them compressed. Costs by entry, equal in all layers.
Damages damages_of(std::vector<MenuEntry> menu, std::int64_t layers, const std::vector<std::int64_t>& costs) {
  Damages out{.model = "m", .model_layers = layers, .menu = std::move(menu)};
  for (std::int64_t l = 0; l < layers; ++l) {
    out.places.push_back({l});
    out.cost.insert(out.cost.end(), costs.begin(), costs.end());
  }
  out.kept.assign(out.cost.size(), 1);
  return out;
}

/// Calls `take` with every plan of these choices.
template <class F>
void for_all_plans(const Choices& choices, F take) {
  for (Plan plan(choices.layers, 0);;) {
    take(plan);
    std::size_t l = 0;
    while (l < choices.layers && ++plan[l] == choices.entries) plan[l++] = 0;
    if (l == choices.layers) return;
  }
}

/// Whether it is one entry, or one in the middle and another at both ends or at one of them.
bool has_ends(const Plan& plan, std::size_t exact) {
  for (std::size_t first = 0; first < plan.size(); ++first) {
    for (std::size_t last = 0; first + last < plan.size(); ++last) {
      std::vector<std::size_t> ends(plan.begin(), plan.begin() + static_cast<std::ptrdiff_t>(first));
      ends.insert(ends.end(), plan.end() - static_cast<std::ptrdiff_t>(last), plan.end());
      const std::vector<std::size_t> rest(plan.begin() + static_cast<std::ptrdiff_t>(first),
                                          plan.end() - static_cast<std::ptrdiff_t>(last));
      const auto one = [](const std::vector<std::size_t>& of) {
        return std::ranges::all_of(of, [&](std::size_t e) { return e == of.front(); });
      };
      if (one(ends) && one(rest) && rest.front() != exact) return true;
    }
  }
  return false;
}

/// Random damages of 5 layers, in some of which an entry cannot be.
Choices random_choices(std::uint32_t seed, std::size_t entries) {
  std::mt19937 draw(seed);
  Choices out{5, entries, {}, {}};
  for (std::size_t i = 0; i < 5 * entries; ++i) {
    out.damage.push_back(static_cast<double>(draw() % 1000));
    out.cost.push_back(draw() % 8 == 0 ? -1 : static_cast<std::int64_t>(20 + draw() % 80));
  }
  return out;
}

}  // namespace

TEST_CASE("the plan of ik_llama.cpp is the best of all that have its shape") {
  const std::vector<MenuEntry> menu = {entry("q8_0"), entry("q5_1"), entry("q4_1"), entry("exact")};
  std::size_t found = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Choices choices = random_choices(seed, menu.size());
    for (const std::int64_t budget : {200, 300, 400}) {
      double least = INFINITY;
      for_all_plans(choices, [&](const Plan& plan) {
        for (std::size_t l = 0; l < plan.size(); ++l) {
          if (!choices.has(l, plan[l])) return;
        }
        if (cost_of(choices, plan) <= budget && has_ends(plan, 3)) least = std::min(least, damage_of(choices, plan));
      });
      const std::optional<Plan> best = solve_for(engine("ik_llama.cpp"), menu, choices, budget);
      REQUIRE(best.has_value() == std::isfinite(least));
      if (!best) continue;
      ++found;
      CHECK(has_ends(*best, 3));
      CHECK(cost_of(choices, *best) <= budget);
      CHECK(damage_of(choices, *best) == doctest::Approx(least));
    }
  }
  CHECK(found > 100);
}

// Format 0 does 9 in layer 1 and 1 elsewhere, format 1 does 2 everywhere; whole layers cost 100, formats 50.
TEST_CASE("vLLM has one format and whole layers, whichever they are") {
  const std::vector<MenuEntry> menu = {entry("fp8"), entry("fp8", "100%mem", {{"form", "e5m2"}}), entry("exact")};
  const Choices choices{
      4, 3, {1, 2, 0, 9, 2, 0, 1, 2, 0, 1, 2, 0}, {50, 50, 100, 50, 50, 100, 50, 50, 100, 50, 50, 100}};
  CHECK(solve_for(engine("vLLM"), menu, choices, 200) == Plan{1, 1, 1, 1});  // 8, and 12 of format 0
  CHECK(solve_for(engine("vLLM"), menu, choices, 250) == Plan{0, 2, 0, 0});  // 3; 1 and 0 mixed would be no plan of it
  CHECK(solve_for(engine("vLLM"), menu, choices, 400) == Plan{2, 2, 2, 2});
  CHECK_FALSE(solve_for(engine("vLLM"), menu, choices, 199));
  // Where each layer may have what it likes, the best at 200 has format 1 in layer 1 alone.
  CHECK(solve(choices, 200) == Plan{0, 1, 0, 0});
}

TEST_CASE("kvpress has one press, and llama.cpp one format") {
  const std::vector<MenuEntry> presses = {entry("knorm", "25%mem"), entry("knorm", "50%mem"),
                                          entry("keydiff", "25%mem"), entry("keydiff", "50%mem")};
  // knorm hurts layer 0 at 25 %, keydiff layer 1.
  const Choices choices{2, 4, {8, 2, 1, 1, 1, 1, 9, 3}, {25, 50, 25, 50, 25, 50, 25, 50}};
  CHECK(solve_for(engine("kvpress"), presses, choices, 75) == Plan{1, 0});  // 3; keydiff 4, both mixed 2
  CHECK(solve(choices, 75) == Plan{2, 0});
  const std::vector<MenuEntry> formats = {entry("q8_0"), entry("q4_0")};
  const Choices two{2, 2, {1, 5, 1, 2}, {53, 28, 53, 28}};
  CHECK(solve_for(engine("llama.cpp"), formats, two, 90) == Plan{1, 1});
  CHECK(solve_for(engine("llama.cpp"), formats, two, 106) == Plan{0, 0});
  CHECK_FALSE(solve_for(engine("llama.cpp"), formats, two, 50));
}

TEST_CASE("menus are what engines compute as kvbench does") {
  const auto names = [](std::string_view of, Index channels) {
    std::vector<std::string> out;
    for (const replay::MethodChoice& m : menu_of(engine(of), channels))
      out.push_back(m.info->name + '[' + m.params.text() + ']');
    return out;
  };
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::ranges::find(list, name) != list.end();
  };
  CHECK(has(names("llama.cpp", 64), "q4_0[hadamard=true]"));
  CHECK(has(names("llama.cpp", 80), "q4_0[]"));  // no blocks of 64 channels: llama.cpp does not rotate
  CHECK(has(names("ik_llama.cpp", 64), "q8_0[hadamard=true]"));
  CHECK(has(names("ik_llama.cpp", 128), "q8_0[]"));
  CHECK_FALSE(has(names("ik_llama.cpp", 64), "q4_0[hadamard=true]"));  // which has a scale of its own there
  CHECK(has(names("vLLM", 128), "fp8[]"));
  CHECK(has(names("vLLM", 128), "exact[]"));
  CHECK(has(names("mlx-lm", 128), "int4[group=64;form=mlx]"));
  CHECK(has(names("mlx-lm", 96), "int4[form=mlx]"));  // groups of 32, the default of int4
  CHECK(has(names("kvpress", 128), "snapkv@kvpress[]"));
  CHECK_FALSE(has(names("kvpress", 128), "keydiff[block=128]"));  // a wrapper scores no tokens
  CHECK_FALSE(has(names("kvpress", 128), "adakv@kvpress(snapkv@kvpress)[]"));
  const auto mlx = [](const char* group) {
    return std::vector{entry("int4", "100%mem", {{"group", group}, {"form", "mlx"}}).method};
  };
  CHECK_NOTHROW(check_menu(engine("mlx-lm"), mlx("32"), 64));
  CHECK_THROWS(check_menu(engine("mlx-lm"), mlx("128"), 64));
  CHECK_THROWS(menu_of(engine("mlx-lm"), 80));
  // Menus have a part of the pairs, and engines all of them; not what an engine computes in another way.
  const auto allows = [](std::string_view of, Index channels, std::vector<methods::Assignment> settings) {
    try {
      check_menu(engine(of), std::vector{entry("q5_0", "100%mem", settings).method}, channels);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  CHECK(allows("llama.cpp", 64, {{"hadamard", "true"}, {"values", "q8_0"}}));
  CHECK_FALSE(allows("llama.cpp", 80, {{"hadamard", "true"}}));
  CHECK_FALSE(allows("ik_llama.cpp", 64, {}));
  CHECK_FALSE(allows("ik_llama.cpp", 128, {{"hadamard", "true"}}));
  const replay::MethodChoice h2o = entry("h2o").method;
  CHECK_NOTHROW(check_menu(engine("vLLM"), std::vector{entry("fp8").method}, 64));
  CHECK(testing::message_of<Error>([&] {
          check_menu(engine("vLLM"), std::vector{h2o}, 64);
        }).starts_with("--menu: vLLM has no h2o, or computes it in another way; for this model it has fp8, fp8["));
}

TEST_CASE("what one types") {
  const std::vector<MenuEntry> formats = {entry("q8_0", "100%mem", {{"hadamard", "true"}}),
                                          entry("q8_0", "100%mem", {{"hadamard", "true"}, {"values", "q5_1"}}),
                                          entry("exact")};
  Damages damages = damages_of(formats, 5, {53, 45, 100});
  using Lines = std::vector<std::string>;
  const std::string server = "llama-server -m MODEL.gguf -fa on -ctk q8_0 -ctv ";
  const methods::EngineInfo &ik = engine("ik_llama.cpp"), &vllm = engine("vLLM"), &press = engine("kvpress");
  CHECK(settings_of(ik, damages, {0, 0, 0, 0, 0}) == Lines{server + "q8_0 -khad -vhad"});
  CHECK(settings_of(ik, damages, {2, 2, 1, 1, 2}) ==
        Lines{server + "q5_1 -khad -vhad -ctk-first f16,2 -ctv-first f16,2 -ctk-last f16,1 -ctv-last f16,1"});
  CHECK(settings_of(ik, damages, {1, 1, 1, 0, 0}) == Lines{server + "q5_1 -khad -vhad -ctv-last q8_0,2"});
  CHECK(settings_of(ik, damages, {2, 2, 2, 2, 0}) ==
        Lines{server + "q8_0 -khad -vhad -ctk-first f16,4 -ctv-first f16,4"});
  // Layers 1 and 3 of 5 have a cache without a window: the first place is layer 1.
  damages.places = {{1}, {3}};
  CHECK(settings_of(ik, damages, {2, 0}) == Lines{server + "q8_0 -khad -vhad -ctk-first f16,2 -ctv-first f16,2"});
  CHECK(settings_of(ik, damages, {0, 2}) == Lines{server + "q8_0 -khad -vhad -ctk-last f16,2 -ctv-last f16,2"});
  Damages rounded = damages_of({entry("fp8"), entry("exact")}, 4, {50, 100});
  CHECK(settings_of(vllm, rounded, {0, 0, 0, 0}) == Lines{"vllm serve MODEL --kv-cache-dtype fp8"});
  CHECK(settings_of(vllm, rounded, {1, 0, 0, 1}) ==
        Lines{"vllm serve MODEL --kv-cache-dtype fp8 --kv-cache-dtype-skip-layers 0 3"});
  CHECK(settings_of(vllm, rounded, {1, 1, 1, 1}) == Lines{"vllm serve MODEL"});
  rounded.places = {{1}, {3}};
  CHECK(settings_of(vllm, rounded, {0, 1}) ==
        Lines{"vllm serve MODEL --kv-cache-dtype fp8 --kv-cache-dtype-skip-layers sliding_window 3"});
  Damages kept = damages_of({entry("snapkv@kvpress", "25%mem"), entry("snapkv@kvpress", "100%mem")}, 2, {25, 100});
  kept.kept = {0.2, 1, 0.25, 1};
  CHECK(settings_of(press, kept, {0, 1}) ==
        Lines{"from kvpress import PerLayerCompressionPress, SnapKVPress",
              "press = PerLayerCompressionPress(SnapKVPress(), compression_ratios=[0.799995, 0])"});
  // of 1000 tokens kvpress keeps int(1000 (1 - ratio))
  CHECK(static_cast<int>(1000 * (1 - 0.799995)) == 200);
}

TEST_CASE("the rule keeps the first two and the last two layers of the model") {
  const std::vector<MenuEntry> menu = {entry("fp8"), entry("exact")};
  Damages damages = damages_of(menu, 6, {50, 100});
  CHECK(whole_ends(damages, {0, 0, 1, 0, 0, 0}) == Plan{1, 1, 0, 0, 1, 1});
  CHECK_FALSE(whole_ends(damages, Plan(6, 1)));
  CHECK_FALSE(whole_ends(damages_of(menu, 4, {50, 100}), Plan(4, 0)));
  CHECK_FALSE(whole_ends(damages_of({entry("fp8")}, 6, {50}), Plan(6, 0)));
  damages.cost[2 * 2] = -1;  // the format cannot be in layer 2
  CHECK_FALSE(whole_ends(damages, {0, 0, 1, 0, 0, 0}));
}
