// SPDX-License-Identifier: Apache-2.0
#include <python/extension/bindings.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <kvbench/loop/conversation.hpp>
#include <kvbench/loop/decoder.hpp>
#include <kvbench/loop/layer_loop.hpp>
#include <kvbench/replay/plan/fields.hpp>
#include <kvbench/replay/records/span_shares.hpp>

#include <python/extension/choice.hpp>

namespace kvbench::python {
namespace {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<nb::numpy, const T, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span_of(const Array<T>& array) {
  return {array.data(), array.size()};
}

template <class T>
T field(const nb::handle& object, const char* name) {
  return nb::cast<T>(object.attr(name));
}

/// kvbench.models.compressed.Document
trace::TraceInfo document_of(const nb::handle& given) {
  trace::TraceInfo document;
  document.model = field<std::string>(given, "model");
  document.num_layers = field<Index>(given, "num_layers");
  document.num_query_heads = field<Index>(given, "num_query_heads");
  document.num_kv_heads = field<Index>(given, "num_kv_heads");
  document.head_dim = field<Index>(given, "head_dim");
  document.value_dim = field<Index>(given, "value_dim");
  document.rope_type = field<std::string>(given, "rope_type");
  document.rope_layout = field<std::string>(given, "rope_layout");
  document.cache_layers = field<std::vector<std::int32_t>>(given, "cache_layers");
  trace::PromptInfo& prompt = document.prompts.emplace_back();
  prompt.id = "0";
  prompt.prompt_tokens = field<Index>(given, "context");
  prompt.num_tokens = prompt.prompt_tokens + field<Index>(given, "known");
  for (const nb::handle one : given.attr("layers")) {
    trace::LayerInfo& layer = prompt.layers.emplace_back();
    layer.layer = field<int>(one, "number");
    layer.scale = field<double>(one, "scale");
    layer.rope_theta = field<double>(one, "rope_theta");
    layer.window = field<Index>(one, "window");
    layer.column_sums_end = prompt.prompt_tokens;
    for (Index p = prompt.prompt_tokens - field<Index>(given, "observed"); p < prompt.num_tokens; ++p)
      layer.query_positions.push_back(p);
  }
  return document;
}

/// This method. Throws Error if it needs what traces and kveval have, and a model in PyTorch does not give.
const replay::MethodChoice& in_model(const Choice& choice) {
  const std::vector<methods::Part>& needs = choice.method.info->needs;
  if (std::ranges::find(needs, methods::Part::output_sketch) != needs.end())
    throw Error(
        "{} needs sketches of W_O, which a model in PyTorch does not give; `kvbench eval` runs it in a GGUF file, and "
        "`kvbench replay` in a trace",
        choice.method.info->name);
  return choice.method;
}

/// [query_heads, count, dv]
nb::object outputs_of(std::vector<float> values, Index heads, Index dv) {
  auto* const owner = new std::vector<float>(std::move(values));
  const nb::capsule keeper(owner, [](void* memory) noexcept { delete static_cast<std::vector<float>*>(memory); });
  const auto rows = owner->size() / static_cast<std::size_t>(heads * dv);
  return nb::cast(nb::ndarray<nb::numpy, float>(
      owner->data(), {static_cast<std::size_t>(heads), rows, static_cast<std::size_t>(dv)}, keeper));
}

nb::dict dict_of(const replay::Bytes& bytes) {
  nb::dict out;
  out["kv"] = bytes.kv;
  out["meta"] = bytes.meta;
  out["fast"] = bytes.fast;
  out["slow"] = bytes.slow;
  out["read"] = bytes.read;
  out["full"] = bytes.full;
  return out;
}

class Decoder {
 public:
  Decoder(const nb::object& document, const Choice& choice, const std::string& budget, std::uint32_t seed, int threads,
          const std::string& protocol)
      : info_(document_of(document)),
        choice_(choice),
        decoder_(info_, {.protocol = replay::value_names<replay::Protocol>().at(protocol)}, {.threads = threads},
                 {in_model(choice), Budget::parse(budget), seed}) {}

  /// "ok", or the status of rows for which the method has no cache, and why.
  std::pair<std::string, std::string> compress(std::size_t layer, const Array<float>& keys, const Array<float>& values,
                                               const Array<float>& queries, const Array<double>& column_sums,
                                               const Array<float>& sinks) {
    const loop::LayerArrays arrays{span_of(keys), span_of(values), span_of(queries), {}, span_of(column_sums), {},
                                   span_of(sinks)};
    const nb::gil_scoped_release release;
    try {
      decoder_.compress(layer, arrays);
      return {"ok", ""};
    } catch (const loop::NoCache& why) {
      return {std::string(name_of(why.status)), why.what()};
    }
  }
  nb::object answer(std::size_t layer, Index count, const Array<float>& keys, const Array<float>& values,
                    const Array<float>& queries) {
    const loop::LayerArrays arrays{span_of(keys), span_of(values), span_of(queries), {}, {}};
    return outputs([&] { return decoder_.answer(layer, count, arrays); });
  }
  /// The budget and the entries that answered a query, in tokens: means over the kv heads.
  std::pair<double, double> tokens() const {
    const loop::Decoder::Tokens tokens = decoder_.tokens();
    return {tokens.budget, tokens.kept};
  }
  nb::dict bytes() const {
    return dict_of([&] {
      const nb::gil_scoped_release release;
      return decoder_.bytes();
    }());
  }

 private:
  template <class F>
  nb::object outputs(F compute) {
    std::vector<float> values;
    {
      const nb::gil_scoped_release release;
      values = compute();
    }
    return outputs_of(std::move(values), info_.num_query_heads, info_.value_dim);
  }

  trace::TraceInfo info_;
  Choice choice_;
  loop::Decoder decoder_;
};

/// What answers the tokens of one layer of a conversation between two compressions.
class Turn {
 public:
  /// `document`: its context are the tokens that the cache holds, of `seen`. `again`: it is compressed again.
  Turn(const nb::object& document, const Choice& choice, const std::string& budget, std::uint32_t seed, int threads,
       Index seen, bool again)
      : info_(document_of(document)), seen_(seen), choice_(choice) {
    const loop::LoopConfiguration given{choice.method, Budget::parse(budget), seed};
    if (!loop::limits_conversations(given)) return;
    replay::ReplayRequest request;
    if (again && loop::drops_decoded(*choice.method.info)) {
      request.decoded = replay::Decoded::keep;
      note = loop::drops_at_compressions;
    }
    keeps_ = request.decoded == replay::Decoded::keep;
    loop_.emplace(info_, request, replay::RunOptions{.threads = threads});
    loop_->start(loop::compression_of(given, seen, info_.prompts.front().prompt_tokens));
  }

  /// Status and reason; the outputs [query_heads, known, dv]; by kv head the tokens that are held, numbered as in the
  /// arrays, and why these cannot be compressed again; the bytes of all kv heads; their mean budget in tokens, and mean
  /// number of entries that answer.
  nb::tuple answer(std::size_t layer, const Array<float>& keys, const Array<float>& values, const Array<float>& queries,
                   const Array<double>& column_sums) {
    loop::LayerAnswer answer = [&]() -> loop::LayerAnswer {
      if (!loop_) return {.status = replay::Status::infeasible, .reason = std::string(loop::no_limit)};
      const nb::gil_scoped_release release;
      return loop_->answer(layer, {span_of(keys), span_of(values), span_of(queries), {}, span_of(column_sums)});
    }();
    const trace::PromptInfo& prompt = info_.prompts.front();
    answer = loop::in_conversation(std::move(answer), seen_, prompt.prompt_tokens,
                                   keeps_ ? 0 : prompt.num_tokens - prompt.prompt_tokens);
    replay::Bytes bytes;
    double budget = 0, kept = 0, heads = static_cast<double>(info_.num_kv_heads);
    for (const replay::ConfigurationResult& head : answer.heads) {
      bytes += head.bytes, budget += static_cast<double>(head.budget_tokens), kept += head.kept_tokens;
    }
    return nb::make_tuple(std::string(name_of(answer.status)), answer.reason,
                          outputs_of(std::move(answer.outputs), info_.num_query_heads, info_.value_dim), answer.held,
                          answer.no_tokens, dict_of(bytes), budget / heads, kept / heads);
  }

  std::string note;  ///< of the row
  bool holds_tokens() const { return replay::holds_tokens(*choice_.method.info); }

 private:
  trace::TraceInfo info_;
  Index seen_;
  bool keeps_ = false;  ///< the harness keeps the tokens behind the context, which are in no byte
  Choice choice_;
  std::optional<loop::LayerLoop> loop_;  ///< nothing: the budget says nothing of a conversation
};

}  // namespace

void add_decoder(nb::module_& module) {
  nb::class_<Turn>(module, "Turn")
      .def(nb::init<const nb::object&, const Choice&, const std::string&, std::uint32_t, int, Index, bool>(),
           nb::arg("document"), nb::arg("choice"), nb::arg("budget"), nb::arg("seed"), nb::arg("threads"),
           nb::arg("seen"), nb::arg("again"))
      .def("answer", &Turn::answer, nb::arg("layer"), nb::arg("keys"), nb::arg("values"), nb::arg("queries"),
           nb::arg("column_sums"))
      .def_ro("note", &Turn::note)
      .def_prop_ro("holds_tokens", &Turn::holds_tokens);
  nb::class_<Decoder>(module, "Decoder")
      .def(nb::init<const nb::object&, const Choice&, const std::string&, std::uint32_t, int, const std::string&>(),
           nb::arg("document"), nb::arg("choice"), nb::arg("budget"), nb::arg("seed"), nb::arg("threads"),
           nb::arg("protocol"))
      .def("compress", &Decoder::compress, nb::arg("layer"), nb::arg("keys"), nb::arg("values"), nb::arg("queries"),
           nb::arg("column_sums"), nb::arg("sinks"))
      .def("answer", &Decoder::answer, nb::arg("layer"), nb::arg("count"), nb::arg("keys"), nb::arg("values"),
           nb::arg("queries"))
      .def("tokens", &Decoder::tokens)
      .def("bytes", &Decoder::bytes);
}

}  // namespace kvbench::python
