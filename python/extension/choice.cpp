// SPDX-License-Identifier: Apache-2.0
#include <python/extension/choice.hpp>

#include <string>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <kvbench/config/method_flags.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/loop/configuration.hpp>
#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/eviction/given_scores.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>

namespace kvbench::python {
namespace {

namespace nb = nanobind;

std::vector<Choice> choices(const std::string& method) {
  std::vector<Choice> out;
  for (replay::MethodChoice& choice : config::parse_methods({method}, {})) out.push_back({std::move(choice), nullptr});
  return out;
}

/// A method that keeps tokens by scores of a document, which Python computed. `name`: NAME or NAME+QUANTISER;
/// `layers`: [kv_heads, tokens] by the number of the layer.
Choice scored_choice(const std::string& name, const std::string& settings, const nb::dict& layers) {
  const methods::MethodName parts = methods::parse_method_name(name);
  methods::GivenScores scores{parts.base, "", {}};
  for (const auto& [layer, given] : layers) {
    const auto rows = nb::cast<nb::ndarray<nb::numpy, const float, nb::ndim<2>, nb::c_contig>>(given);
    scores.prompts["0"].emplace(
        nb::cast<std::int64_t>(layer),
        methods::LayerScores{static_cast<Index>(rows.shape(0)), static_cast<Index>(rows.shape(1)),
                             std::vector<float>(rows.data(), rows.data() + rows.size())});
  }
  methods::MethodInfo info = methods::given_scores_method(parts.base, std::move(scores));
  if (parts.quantiser) info = methods::compose(info, methods::find_method(*parts.quantiser));
  const auto own = std::make_shared<const methods::MethodInfo>(std::move(info));
  return {{own.get(), own->bind(methods::parse_settings(settings))}, own};
}

/// methods::rope_layout_in() of the engine whose format the method has in a layer, of any of whose kv heads a plan
/// may give the format. Throws Error where these are of engines with different orders.
std::string engine_layout(const Choice& choice, const std::string& budget, const std::string& architecture,
                          std::int64_t layer, Index kv_heads) {
  const replay::ReplayRequest request = loop::LoopConfiguration{choice.method, Budget::parse(budget)}.in({});
  std::string_view found;
  for (Index head = 0; head < kv_heads; ++head) {
    try {
      const replay::LayerChoice one = replay::choice_at(request, {}, layer, head);
      const std::string_view of_head = methods::rope_layout_in(one.method.info->engine, architecture);
      if (!found.empty() && !of_head.empty() && found != of_head)
        throw Error(
            "{}: layer {}: its kv heads have formats of engines that order channels differently; give "
            "rope_layout=, half or interleaved",
            choice.method.info->name, layer);
      if (!of_head.empty()) found = of_head;
    } catch (const methods::Unavailable&) {
      return "";
    } catch (const methods::Infeasible&) {  // as compress() says
      return "";
    }
  }
  return std::string(found);
}

}  // namespace

void add_choice(nb::module_& module) {
  nb::class_<Choice>(module, "Choice")
      .def("engine_layout", &engine_layout, nb::arg("budget"), nb::arg("architecture"), nb::arg("layer"),
           nb::arg("kv_heads"))
      .def_prop_ro("name", [](const Choice& choice) { return choice.method.info->name; })
      .def_prop_ro("params", [](const Choice& choice) { return choice.method.params.text(); })
      .def_prop_ro("seeded", [](const Choice& choice) { return choice.method.depends_on_seed(); })
      .def_prop_ro("rounds_windows", [](const Choice& choice) { return choice.method.info->rounds_windows(); });
  nb::class_<methods::MethodName>(module, "MethodName")
      .def_prop_ro("name", &methods::MethodName::name)
      .def_ro("wrapper", &methods::MethodName::wrapper)
      .def_ro("base", &methods::MethodName::base)
      .def_ro("quantiser", &methods::MethodName::quantiser)
      .def_prop_ro("settings", [](const methods::MethodName& name) {
        std::vector<std::pair<std::string, std::string>> settings;
        for (const methods::Assignment& one : name.assignments()) settings.emplace_back(one.name, one.value);
        return settings;
      });
  module.def("parse_method", &methods::parse_method_text, nb::arg("text"));
  module.def("choices", &choices, nb::arg("method"));
  module.def("scored_choice", &scored_choice, nb::arg("name"), nb::arg("settings"), nb::arg("layers"));
}

}  // namespace kvbench::python
