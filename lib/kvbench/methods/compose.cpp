// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/compose.hpp>

#include <algorithm>

#include <kvbench/methods/contract/method_text.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

/// The parameters of both parts.
struct Parts {
  Params method, quantiser;
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
}

std::vector<ParamSpec> joined_params(const MethodInfo& method, const MethodInfo& quantiser) {
  std::vector<ParamSpec> params = method.params;
  for (ParamSpec spec : quantiser.params) {
    spec.name = quantiser.name + "." + spec.name;
    params.push_back(std::move(spec));
  }
  return params;
}

std::string joined_text(const Parts& parts, const std::string& quantiser) {
  std::string text = parts.method.text();
  for (const Assignment& setting : parse_settings(parts.quantiser.text()))
    text += fmt::format("{}{}.{}={}", text.empty() ? "" : ";", quantiser, setting.name, setting.value);
  return text;
}

bool sees_layer(const MethodInfo& part) { return part.granularity == Granularity::layer; }

/// Whether the heads of a layer do not affect each other in this part.
bool heads_alone(const MethodInfo& part, const Params& params) {
  return !sees_layer(part) || (part.independent_heads && part.independent_heads(params));
}

Params bind_parts(const MethodInfo& method, const MethodInfo& quantiser, std::span<const Assignment> settings) {
  const std::string prefix = quantiser.name + ".";
  std::vector<Assignment> of_method, of_quantiser;
  for (const Assignment& setting : settings) {
    const auto named = [&](const ParamSpec& spec) { return spec.name == setting.name; };
    if (std::ranges::none_of(method.params, named) && std::ranges::any_of(quantiser.params, named))
      throw Error("'{0}' is a parameter of '{1}'; write {1}.{0}", setting.name, quantiser.name);
    if (setting.name.starts_with(prefix))
      of_quantiser.push_back({setting.name.substr(prefix.size()), setting.value});
    else
      of_method.push_back(setting);
  }
  const auto parts = std::make_shared<Parts>(Parts{method.bind(of_method), quantiser.bind(of_quantiser)});
  only_level(quantiser, parts->quantiser);
  return {parts, joined_text(*parts, quantiser.name)};
}

}  // namespace

MethodInfo compose(const MethodInfo& method, const MethodInfo& quantiser) {
  check_order(method, quantiser);
  MethodInfo both = method;
  both.name = method.name + "+" + quantiser.name;
  both.rounds = true;
  both.aliases.clear();
  both.variants.clear();
  both.paper = method.paper + "; " + quantiser.paper;
  both.summary = method.summary + "; " + quantiser.summary;
  const bool retrieves = method.kind == Kind::retrieval;
  both.notes = fmt::format("{} chooses the tokens{}, {} stores {}.", method.name, retrieves ? " by exact keys" : "",
                           quantiser.name, retrieves ? "the full cache" : "them");
  const Property rounded = Property::no(quantiser.name + " rounds keys and values");
  both.properties.full_budget_exact = both.properties.value_scaling = both.properties.key_shift = rounded;
  both.seeded = method.seeded || quantiser.seeded;
  both.calibrates = method.calibrates || quantiser.calibrates;
  both.whole_context = method.whole_context || quantiser.whole_context;
  both.params = joined_params(method, quantiser);
  both.bind = [=](std::span<const Assignment> settings) { return bind_parts(method, quantiser, settings); };
  if (method.check_data) {
    both.check_data = [check = method.check_data](const ContextData& data, const Params& params) {
      check(data, params.as<Parts>().method);
    };
  }
  // A method of Granularity::model sees single heads, and so does a quantiser that stores its tokens.
  if (sees_layer(quantiser) && method.granularity != Granularity::model) both.granularity = Granularity::layer;
  if (sees_layer(both)) {
    both.independent_heads = [=](const Params& params) {
      const Parts& parts = params.as<Parts>();
      return heads_alone(method, parts.method) && heads_alone(quantiser, parts.quantiser);
    };
  }
  both.draws = nullptr;
  if (method.draws && !quantiser.seeded) {
    both.draws = [draws = method.draws](const Params& params) { return draws(params.as<Parts>().method); };
  }
  if (quantiser.block)
    both.block = [block = quantiser.block](const Params& params) { return block(params.as<Parts>().quantiser); };
  if (method.plan) {
    both.plan = [plan = method.plan](const ModelContext& context, Index budget, const Params& params) {
      return plan(context, budget, params.as<Parts>().method);
    };
    both.planned = [method](const Params& params) { return method.divides(params.as<Parts>().method); };
  }
  both.prepare = [=](std::span<const HeadPrompt> given, const Params& params, Backend& backend) -> MakeCaches {
    const Parts& parts = params.as<Parts>();
    const std::vector<HeadPrompt> heads(given.begin(), given.end());
    const MakeCaches make = method.prepare(heads, parts.method, backend);
    const Params& stored = parts.quantiser;
    const std::size_t level = only_level(quantiser, stored);
    if (retrieves) return tier_stored_by(quantiser, stored, level, make, heads, backend);
    return [=, &backend](Index budget, std::uint32_t seed) {
      return stored_by(quantiser, stored, level, seed, make(budget, seed), heads, backend);
    };
  };
  both.scores = nullptr;  // those of the method hold for exact keys and values
  return both;
}

}  // namespace kvbench::methods
