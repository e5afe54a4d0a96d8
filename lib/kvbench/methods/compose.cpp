// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/compose.hpp>

#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>
#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

/// The parameters of a method, and of the quantiser or the wrapper around it.
struct Parts {
  Params method, other;
};

void check_order(const MethodInfo& method, const MethodInfo& quantiser) {
  const std::string name = method.name + "+" + quantiser.name;
  if (quantiser.kind != Kind::quantisation) {
    throw Error(
        "there is no method '{}': what follows + stores tokens in fewer bits, and '{}' does not{}", name,
        quantiser.name,
        method.kind == Kind::quantisation
            ? fmt::format("; write {}+{}, which chooses tokens and then stores them", quantiser.name, method.name)
            : "");
  }
  if (method.kind == Kind::quantisation)
    throw Error("there is no method '{}': both store tokens in fewer bits, and one can", name);
  if (method.kind == Kind::exact)
    throw Error("there is no method '{}': '{}' alone stores all tokens", name, quantiser.name);
  if (method.name == "oracle-error")  // its weights are fitted to exact keys and values of each block of queries
    throw Error(
        "there is no method '{}': oracle-error is a ceiling for weighted tokens and has no cache to store in "
        "fewer bits; give {} to a method that has one, such as oracle-topk+{}",
        name, quantiser.name, quantiser.name);
}

bool has_param(const MethodInfo& info, std::string_view name) {
  return std::ranges::any_of(info.params, [&](const ParamSpec& spec) { return same_name(spec.name, name); });
}

/// The parameters of both parts. Those of the other one have its name before them, `always` or where the method has one
/// of the same name.
class JoinedParams {
 public:
  JoinedParams(const MethodInfo& method, const MethodInfo& other, bool always)
      : method_(method), other_(other), always_(always) {}

  std::vector<ParamSpec> specs() const {
    std::vector<ParamSpec> params = method_.params;
    for (ParamSpec spec : other_.params) {
      spec.name = name_of(spec.name);
      params.push_back(std::move(spec));
    }
    return params;
  }

  std::shared_ptr<const Parts> bind(std::span<const Assignment> settings) const {
    const std::string prefix = other_.name + ".";
    std::vector<Assignment> of_method, of_other;
    for (const Assignment& setting : settings) {
      if (setting.name.starts_with(prefix))
        of_other.push_back({setting.name.substr(prefix.size()), setting.value});
      else if (has_param(method_, setting.name) || !has_param(other_, setting.name))
        of_method.push_back(setting);
      else if (always_)
        throw Error("'{0}' is a parameter of '{1}'; write {1}.{0}", setting.name, other_.name);
      else
        of_other.push_back(setting);
    }
    return std::make_shared<Parts>(Parts{method_.bind(of_method), other_.bind(of_other)});
  }

  std::string text(const Parts& parts) const {
    std::string text = parts.method.text();
    for (const Assignment& setting : parse_settings(parts.other.text()))
      text += fmt::format("{}{}={}", text.empty() ? "" : ";", name_of(setting.name), setting.value);
    return text;
  }

 private:
  std::string name_of(const std::string& param) const {
    return always_ || has_param(method_, param) ? other_.name + "." + param : param;
  }

  MethodInfo method_, other_;
  bool always_;
};

bool sees_layer(const MethodInfo& part) { return part.granularity == Granularity::layer; }

/// What holds for a composition where it holds for its method, and no part of it changes.
void take_from_method(const MethodInfo& method, MethodInfo& both) {
  both.aliases.clear();
  both.variants.clear();
  if (method.check_data) {
    both.check_data = [check = method.check_data](const ContextData& data, const Params& params) {
      check(data, params.as<Parts>().method);
    };
  }
  if (method.plan) {
    both.plan = [plan = method.plan](const ModelContext& context, Index budget, const Params& params) {
      return plan(context, budget, params.as<Parts>().method);
    };
    both.planned = [method](const Params& params) { return method.divides(params.as<Parts>().method); };
  }
  if (method.score_of_head) {
    both.score_of_head = [score = method.score_of_head](const HeadPrompt& text, const Params& params,
                                                        Backend& backend) {
      return score(text, params.as<Parts>().method, backend);
    };
  }
  both.draws = nullptr;
  if (method.draws)
    both.draws = [draws = method.draws](const Params& params) { return draws(params.as<Parts>().method); };
}

/// "snapkv, pyramidkv"
std::string methods_with_scores() {
  std::vector<std::string> names;
  for (const MethodInfo& method : all_methods()) {
    if (method.scores) names.push_back(method.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_scores(const MethodInfo& wrapper, const MethodInfo& method) {
  const std::string name = wrapper.name + "(" + method.name + ")";
  if (method.scores) return;
  throw Error("there is no method '{}': {} does not rank tokens by scores that another method could use; {} wraps {}",
              name, method.name, wrapper.name, methods_with_scores());
}

constexpr const char* per_kv_head =
    "{} needs one selection per kv head, by one score for each of its tokens; set "
    "per=kv_head";

/// Throws Error where the parameters of a wrapped method say that each query head selects.
void check_selection_of(const std::string& name, const Params& method) {
  for (const Assignment& setting : parse_settings(method.text())) {
    if (setting.name == "per" && setting.value == "query_head") throw Error(per_kv_head, name);
  }
}

/// Throws Unavailable where query heads have scores of their own.
std::vector<TokenScores> one_row(const std::string& name, std::vector<TokenScores> scores) {
  for (const TokenScores& head : scores) {
    if (head.scores.rows() > 1) throw Unavailable(fmt::format(per_kv_head, name));
  }
  return scores;
}

/// What holds where it holds for both parts.
Property both_hold(const Property& a, const Property& b) { return a.holds ? b : a; }

}  // namespace

MethodInfo compose(const MethodInfo& method, const MethodInfo& quantiser) {
  check_order(method, quantiser);
  MethodInfo both = method;
  both.name = method.name + "+" + quantiser.name;
  both.rounds = true;
  both.windowed = quantiser.windowed;
  both.engine = quantiser.engine;
  both.paper = method.paper + "; " + quantiser.paper;
  both.summary = method.summary + "; " + quantiser.summary;
  const bool retrieves = method.kind == Kind::retrieval;
  both.notes = fmt::format("{} chooses the tokens{}, {} stores {}.", method.name, retrieves ? " by exact keys" : "",
                           quantiser.name, retrieves ? "the full cache" : "them");
  const Property rounded = Property::no(quantiser.name + " rounds keys and values");
  both.properties.full_budget_exact = both.properties.value_scaling = both.properties.key_shift = rounded;
  if (sees_layer(method))
    both.properties.equal_bytes = Property::no("heads of a layer hold different numbers of tokens, stored in groups");
  both.properties.equal_bytes = both_hold(both.properties.equal_bytes, quantiser.properties.equal_bytes);
  both.seeded = method.seeded || quantiser.seeded;
  both.calibrates_on = std::max(method.calibrates_on, quantiser.calibrates_on);
  both.whole_context = method.whole_context || quantiser.whole_context;
  take_from_method(method, both);
  if (quantiser.seeded) both.draws = nullptr;
  const JoinedParams joined(method, quantiser, true);
  both.params = joined.specs();
  both.bind = [=](std::span<const Assignment> settings) {
    auto parts = joined.bind(settings);
    only_level(quantiser, parts->other);
    return Params(parts, joined.text(*parts));
  };
  // A method of Granularity::model sees single heads, and so does a quantiser that stores its tokens.
  if (sees_layer(quantiser) && method.granularity != Granularity::model) both.granularity = Granularity::layer;
  if (sees_layer(both)) {
    both.independent_heads = [=](const Params& params) {
      const Parts& parts = params.as<Parts>();
      return method.heads_alone(parts.method) && quantiser.heads_alone(parts.other);
    };
  }
  if (quantiser.block)
    both.block = [block = quantiser.block](const Params& params) { return block(params.as<Parts>().other); };
  both.one_rule = nullptr;
  if (quantiser.one_rule)
    both.one_rule = [rule = quantiser.one_rule](const Params& params) { return rule(params.as<Parts>().other); };
  both.prepare = [=](std::span<const HeadPrompt> given, const Params& params, Backend& backend) -> MakeCaches {
    const Parts& parts = params.as<Parts>();
    const Params& stored = parts.other;
    const std::size_t level = only_level(quantiser, stored);
    const std::vector<HeadPrompt> heads(given.begin(), given.end());
    if (heads.front().window > 0 && !method.windowed) {  // the method leaves such a layer as it is
      return [level, make = quantiser.prepare(heads, stored, backend)](Index /*budget*/, std::uint32_t seed) {
        return make(static_cast<Index>(level) + 1, seed);
      };
    }
    const MakeCaches make = method.prepare(heads, parts.method, backend);
    if (retrieves) return tier_stored_by(quantiser, stored, level, make, heads, backend);
    return [=, &backend](Index budget, std::uint32_t seed) {
      return stored_by(quantiser, stored, level, seed, make(budget, seed), heads, backend);
    };
  };
  both.scores = nullptr;
  return both;
}

MethodInfo wrap(const Wrapper& wrapper, const MethodInfo& method) {
  check_scores(wrapper.info, method);
  MethodInfo both = wrapper.info;
  both.name = fmt::format("{}({})", wrapper.info.name, method.name);
  both.paper += "; " + method.paper;
  both.summary += "; " + method.summary;
  both.kind = method.kind;
  if (both.granularity != Granularity::layer) both.granularity = method.granularity;
  for (const Part part : method.needs) {
    if (std::ranges::find(both.needs, part) == both.needs.end()) both.needs.push_back(part);
  }
  both.seeded = method.seeded, both.calibrates_on = method.calibrates_on, both.speculates = method.speculates;
  both.whole_context = method.whole_context, both.trace_sha256 = method.trace_sha256;
  for (Property Properties::*one :
       {&Properties::full_budget_exact, &Properties::value_scaling, &Properties::key_shift,
        &Properties::head_permutation, &Properties::nested_budgets, &Properties::equal_bytes})
    both.properties.*one = both_hold(wrapper.info.properties.*one, method.properties.*one);
  take_from_method(method, both);
  const JoinedParams joined(method, wrapper.info, false);
  both.params = joined.specs();
  both.bind = [=, name = both.name](std::span<const Assignment> settings) {
    auto parts = joined.bind(settings);
    check_selection_of(name, parts->method);
    return Params(parts, joined.text(*parts));
  };
  both.prepare = [scores = method.scores, select = wrapper.select, name = both.name](
                     std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    const Parts& parts = params.as<Parts>();
    return select(heads, one_row(name, scores(heads, parts.method, backend)), parts.other, backend);
  };
  return both;
}

}  // namespace kvbench::methods
