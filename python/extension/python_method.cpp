// SPDX-License-Identifier: Apache-2.0
#include <python/extension/python_method.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/stages/score_only.hpp>

#include <python/extension/arrays.hpp>
#include <python/extension/python_cache.hpp>

namespace kvbench::python {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The parameters of a method: the configured object of Python, and the selection of a score-only method.
struct PythonParams {
  Held method;
  methods::SelectionParams selection;
};

nb::object methods_module() { return nb::module_::import_("kvbench.methods.lookup"); }
nb::object caches_module() { return nb::module_::import_("kvbench.methods.caches"); }

/// As with_python(), outside of a replay: what fails concerns the user, who gets the line and the traceback.
template <class F>
auto with_definitions(F call) {
  try {
    return with_python(call);
  } catch (const methods::Failed& failure) {
    const std::string& details = failure.details();
    throw Error("{}{}", failure.what(), details.find("kvbench._error.Error") == details.npos ? "\n" + details : "");
  }
}

nb::list heads_of(std::span<const methods::HeadPrompt> heads, Backend& backend) {
  nb::list all;
  for (const methods::HeadPrompt& head : heads) all.append(head_prompt(head, backend));
  return all;
}

/// prepare() on one head, or on all heads of a layer.
Held prepared(const Held& method, const nb::object& part) {
  return Held(caches_module().attr("prepared")(method.get(), part));
}

methods::MakeCaches prepare_layer(const Held& method, methods::Kind kind, std::span<const methods::HeadPrompt> heads,
                                  Backend& backend) {
  const Held maker = with_python([&] { return prepared(method, heads_of(heads, backend)); });
  return cache_maker(maker, kind, true, {heads.begin(), heads.end()}, backend);
}

methods::MakeCaches prepare_heads(const Held& method, methods::Kind kind, std::span<const methods::HeadPrompt> heads,
                                  Backend& backend) {
  std::vector<methods::MakeCache> makers;
  for (const methods::HeadPrompt& head : heads) {
    const Held maker = with_python([&] { return prepared(method, head_prompt(head, backend)); });
    makers.push_back(methods::only_head(cache_maker(maker, kind, false, {head}, backend)));
  }
  return methods::each_head(std::move(makers));
}

std::vector<methods::TokenScores> scores_of(std::span<const methods::HeadPrompt> heads, const methods::Params& params,
                                            Backend& backend) {
  const auto& own = params.as<PythonParams>();
  std::vector<methods::TokenScores> scores;
  with_python([&] {
    for (const nb::handle given : caches_module().attr("scores")(own.method.get(), heads_of(heads, backend))) {
      const auto rows = nb::cast<nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(given);
      std::vector<float> numbers(rows.data(), rows.data() + rows.size());
      const auto ranked =
          backend.adopt(std::move(numbers), static_cast<Index>(rows.shape(0)), static_cast<Index>(rows.shape(1)));
      scores.push_back(methods::token_scores(heads[scores.size()], ranked, own.selection, backend));
    }
  });
  return scores;
}

std::vector<methods::Assignment> assignments_of(const Settings& settings) {
  std::vector<methods::Assignment> all;
  for (const auto& [name, value] : settings) all.push_back({name, value});
  return all;
}

/// Applies settings of the selection to `params`, and returns those that differ from its values before.
std::string select(const std::string& name, methods::SelectionParams& params,
                   std::span<const methods::Assignment> settings) {
  methods::SelectionParams defaults = params;
  std::string text = methods::detail::assign(name, methods::detail::visit_fields<methods::SelectionParams>, &params,
                                             &defaults, settings);
  methods::check_selection(name, params);
  return text;
}

/// How the method of a name is bound: the object of Python, and for score-only methods the defaults of the selection.
struct Binding {
  std::string name;
  Held method;
  bool scorer = false;
  methods::SelectionParams selection;

  methods::Params operator()(std::span<const methods::Assignment> settings) const {
    const std::vector<methods::ParamSpec> of_selection =
        scorer ? methods::schema_of<methods::SelectionParams>() : std::vector<methods::ParamSpec>{};
    Settings own;
    std::vector<methods::Assignment> selected;
    for (const methods::Assignment& setting : settings) {
      if (std::ranges::find(of_selection, setting.name, &methods::ParamSpec::name) != of_selection.end())
        selected.push_back(setting);
      else
        own.emplace_back(setting.name, setting.value);
    }
    auto params = std::make_shared<PythonParams>();
    params->selection = selection;
    std::string text;
    with_definitions([&] {
      const nb::object made = methods_module().attr("configure")(method.get(), name, own);
      params->method = Held(nb::object(made[0]));
      const auto of_method = nb::cast<std::string>(made[1]);
      for (auto& [setting, value] : nb::cast<Settings>(made[2])) selected.push_back({setting, value});
      const std::string of_scorer = select(name, params->selection, selected);
      text = of_method + (of_method.empty() || of_scorer.empty() ? "" : ";") + of_scorer;
    });
    return {std::move(params), std::move(text)};
  }
};

template <class E>
E value_of(const nb::handle& facts, const char* fact, std::initializer_list<std::pair<const char*, E>> values) {
  const auto text = nb::cast<std::string>(facts[fact]);
  for (const auto& [name, value] : values) {
    if (text == name) return value;
  }
  throw Error("{} is '{}'", fact, text);
}

std::vector<methods::Part> parts_of(const nb::handle& facts) {
  using methods::Part;
  static const std::map<std::string, Part> parts = {{"observed_queries", Part::observed_queries},
                                                    {"column_sums", Part::column_sums},
                                                    {"keys_pre_rope", Part::keys_pre_rope},
                                                    {"speculated_queries", Part::speculated_queries}};
  std::vector<Part> needs;
  for (const auto& name : nb::cast<std::vector<std::string>>(facts["needs"])) needs.push_back(parts.at(name));
  return needs;
}

/// The parameters of the method, and those of its selection.
std::vector<methods::ParamSpec> specs_of(const nb::handle& facts, methods::SelectionParams selection, bool scorer) {
  std::vector<methods::ParamSpec> specs;
  using Parameter = std::tuple<std::string, std::string, std::string, std::string>;
  for (const auto& [name, type, value, doc] : nb::cast<std::vector<Parameter>>(facts["parameters"]))
    specs.push_back({name, type, value, "", doc});
  if (!scorer) return specs;
  const auto more = methods::detail::schema_of(methods::detail::visit_fields<methods::SelectionParams>, &selection);
  specs.insert(specs.end(), more.begin(), more.end());
  return specs;
}

/// The row declares what every method can hold; the others concern the methods of the registry.
methods::Properties properties_of(const nb::handle& facts) {
  const methods::Property unknown = methods::Property::no("methods in Python do not declare it");
  const methods::Property exact = nb::cast<bool>(facts["full_budget_exact"])
                                      ? methods::Property{}
                                      : methods::Property::no("full_budget_exact is False");
  return {.full_budget_exact = exact,
          .value_scaling = unknown,
          .key_shift = unknown,
          .head_permutation = unknown,
          .nested_budgets = unknown,
          .equal_bytes = unknown,
          .weight_sum = methods::WeightSum::free};
}

/// `facts` are those of kvbench.methods.lookup.describe().
methods::MethodInfo describe(const std::string& name, const nb::object& method, const nb::object& facts) {
  using methods::Granularity, methods::Kind;
  Binding binding{.name = name, .method = Held(method), .scorer = nb::cast<bool>(facts["scorer"])};
  if (binding.scorer) select(name, binding.selection, assignments_of(nb::cast<Settings>(facts["selection"])));
  methods::MethodInfo info{
      .name = name,
      .aliases = {nb::cast<std::string>(facts["name"])},
      .paper = nb::cast<std::string>(facts["paper"]),
      .summary = nb::cast<std::string>(facts["summary"]),
      .notes = "written in Python",
      .kind = value_of<Kind>(facts, "kind",
                             {{"eviction", Kind::eviction},
                              {"sampling", Kind::sampling},
                              {"merging", Kind::merging},
                              {"retrieval", Kind::retrieval}}),
      .granularity = value_of<Granularity>(
          facts, "granularity",
          {{"kv_head", Granularity::kv_head}, {"query_head", Granularity::query_head}, {"layer", Granularity::layer}}),
      .needs = parts_of(facts),
      .streaming = nb::cast<bool>(facts["streaming"]),
      .seeded = nb::cast<bool>(facts["seeded"]),
      .observes = nb::cast<bool>(facts["observes"]),
      .windowed = nb::cast<bool>(facts["windowed"]),
      .calibrates_on =
          nb::cast<bool>(facts["calibrates"]) ? methods::CalibratesOn::text : methods::CalibratesOn::nothing,
      .whole_context = nb::cast<bool>(facts["whole_context"]),
      .trace_sha256 = nb::cast<std::string>(facts["trace_sha256"]),
      .properties = properties_of(facts),
      .params = specs_of(facts, binding.selection, binding.scorer),
  };
  if (binding.scorer) {
    info = methods::with_scores(std::move(info), &scores_of);
  } else {
    info.prepare = [kind = info.kind, layer = info.granularity == Granularity::layer](
                       std::span<const methods::HeadPrompt> heads, const methods::Params& params, Backend& backend) {
      const Held& own = params.as<PythonParams>().method;
      return layer ? prepare_layer(own, kind, heads, backend) : prepare_heads(own, kind, heads, backend);
    };
  }
  info.bind = std::move(binding);
  return info;
}

}  // namespace

const methods::MethodInfo& find_python_method(const methods::MethodName& name) {
  struct Found {
    nb::object method, facts;  ///< a notebook defines and changes it again, and a file changes
    methods::MethodInfo info;
  };
  // Nothing is destroyed: callers hold references, and Python ends before this program does.
  static auto* known = new std::multimap<std::string, Found>;
  return *with_definitions([&]() -> const methods::MethodInfo* {
    const nb::object method = methods_module().attr("find")(name.file, name.object);
    const nb::object facts = methods_module().attr("describe")(method);
    const auto own = name.file.empty() ? "py:" + nb::cast<std::string>(facts["name"]) : name.base;
    for (auto [at, end] = known->equal_range(own); at != end; ++at) {
      const Found& one = at->second;
      if (one.method.is(method) && one.facts.equal(facts)) return &one.info;
    }
    methods::MethodInfo info = describe(own, method, facts);
    return &known->emplace(own, Found{method, facts, std::move(info)})->second.info;
  });
}

std::string source_sha256(const std::string& file) {
  return with_definitions(
      [&] { return nb::cast<std::string>(nb::module_::import_("kvbench.methods.source").attr("digest_of")(file)); });
}

}  // namespace kvbench::python
