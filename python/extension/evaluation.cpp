// SPDX-License-Identifier: Apache-2.0
#include <python/extension/bindings.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <kvbench/config/method_flags.hpp>
#include <kvbench/eval/eval_record.hpp>
#include <kvbench/eval/transcripts.hpp>
#include <kvbench/replay/plan/fields.hpp>
#include <kvbench/replay/run/devices.hpp>
#include <kvbench/report/columns/tables.hpp>

#include <apps/common/rows/output.hpp>
#include <apps/common/rows/shared_flags.hpp>

namespace kvbench::python {
namespace {

namespace nb = nanobind;

using Logits = nb::ndarray<nb::numpy, const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::span<const float> row_of(const Logits& logits, std::size_t row) {
  return std::span(logits.data(), logits.size()).subspan(row * logits.shape(1), logits.shape(1));
}

/// KL(full || compressed) at each of m tokens, in nats.
std::vector<double> divergences(const Logits& full, const Logits& compressed) {
  if (full.shape(0) != compressed.shape(0))
    throw Error("logits of {} and {} tokens cannot be compared", full.shape(0), compressed.shape(0));
  std::vector<double> kl;
  for (std::size_t i = 0; i < full.shape(0); ++i)
    kl.push_back(eval::score_token(row_of(full, i), row_of(compressed, i), 0).kl);  // of whatever true token
  return kl;
}

/// As bytes: what the tokens of an answer stand for need not be UTF-8.
std::string judged(const nb::bytes& line, bool ended) {
  return std::string(name_of(eval::read_json_line({line.c_str(), line.size()}, ended)));
}

/// "" where a line is not judged.
std::optional<eval::Json> json_named(const std::string& name) {
  for (const eval::Json json : {eval::Json::valid, eval::Json::cut, eval::Json::broken})
    if (name_of(json) == name) return json;
  return std::nullopt;
}

/// Scores of documents of the task text or json, one after the other, as eval::EvalResults. Logits are [m, vocabulary]
/// at the m scored tokens.
class Evaluation {
 public:
  /// `output`: the file of the table. `layers`: those in which methods run. `protocol`: decode or stream.
  Evaluation(const std::string& output, const std::string& model, const std::string& sha256, const std::string& text,
             Index context, const std::string& weights, const std::vector<std::int64_t>& layers, Index model_layers,
             const std::string& protocol, const eval::Generation& generation, const std::string& task)
      : output_(output), generation_(generation) {
    const auto backend = replay::make_backend({});
    results_.model = model, results_.model_sha256 = sha256, results_.text = text, results_.context_tokens = context;
    results_.device = backend->name(), results_.isa = backend->isa();
    results_.settings = eval::settings_of({.protocol = replay::value_names<replay::Protocol>().at(protocol)});
    results_.settings.layers = eval::layer_ranges(layers), results_.settings.model_layers = model_layers;
    results_.settings.weights = weights, results_.settings.generate = generation.text();
    results_.tasks = {&eval::find_task(task)};
  }

  /// False where there is the same one.
  bool add_configuration(const std::string& method, const std::string& params, const std::string& budget, bool seeded,
                         std::uint32_t seed, const std::string& rope_layout) {
    eval::EvalConfiguration added{method, params, Budget::parse(budget), seeded, seed, rope_layout};
    const auto key = [](const eval::EvalConfiguration& c) { return std::tie(c.method, c.params, c.budget, c.seed); };
    for (const eval::EvalConfiguration& other : results_.configurations)
      if (key(other) == key(added)) return false;
    results_.configurations.push_back(std::move(added));
    return true;
  }

  /// The following passes are of this document, whose context was to have `tokens`. Returns the tokens of its short
  /// context, the first `beginning` of which are those of the context. `json`: what judged() says of the line of the
  /// full cache's answer, or "".
  std::vector<int> add_document(const std::string& name, std::vector<int> context, std::vector<int> scored,
                                Index beginning, Index tokens, const std::string& json) {
    eval::EvalDocument& added = results_.documents.emplace_back();
    added.document = {.name = name, .context = std::move(context), .beginning = beginning, .scored = std::move(scored)};
    added.document.spans = {{1, std::ssize(added.document.scored), NAN}};
    added.generate = generation_.tokens, added.context_tokens = tokens, added.json = json_named(json);
    return eval::short_context(added.document, std::max<Index>(2, std::ssize(added.document.context) / 10));
  }

  using Message = std::pair<std::string, Index>;  ///< its span, and how many tokens it has

  /// add_document() of a conversation, whose rule `compress` is Compressions::parse()'s. Its tokens behind `before`:
  /// what was said and what was answered, by turn, and the messages that these are. Returns the tokens of the context,
  /// those that are scored, and how many tokens are before each compression.
  std::tuple<std::vector<int>, std::vector<int>, std::vector<Index>> add_transcript(
      const std::string& name, const std::vector<int>& before, const std::vector<std::vector<int>>& asked,
      const std::vector<std::vector<int>>& answers, const std::vector<std::vector<Message>>& messages,
      const std::string& compress, bool question_inside) {
    std::vector<eval::TurnTokens> turns;
    for (std::size_t turn = 0; turn < asked.size(); ++turn) {
      turns.push_back({asked.at(turn), answers.at(turn)});
      Index begin = 0;
      for (const auto& [name_of_span, size] : messages.at(turn)) {
        turns.back().messages.push_back({name_of_span, begin, begin + size});
        begin += size;
      }
    }
    const auto rule = eval::Compressions::parse(compress);
    eval::EvalDocument& added = results_.documents.emplace_back();
    added.document = transcript_document(name, before, turns, rule, question_inside);
    results_.settings.protocol.compressions = rule, results_.question_inside = question_inside;
    const auto& [context, scored] = std::tie(added.document.context, added.document.scored);
    results_.context_tokens = std::max(results_.context_tokens, std::ssize(context) + std::ssize(scored));
    return {context, scored, added.document.compressed_at};
  }

  void add_short_scores(const Logits& logits) {
    eval::EvalDocument& document = results_.documents.back();
    check_rows(logits);
    for (std::size_t i = 0; i + 1 < logits.shape(0); ++i)
      document.without_distant.push_back(eval::score_short(row_of(logits, i), document.document.scored[i + 1]));
  }

  /// `layers`: that were compressed; `bytes`: kv, meta, fast, slow, read, full; `note`: of the row; `answer`: of the
  /// compressed cache by itself, empty where documents are not continued; `json`: as add_document(), of it; `held`: by
  /// kv head of these layers the tokens of a conversation that it holds, empty where this is not known.
  void add_pass(std::size_t configuration, const Logits& full, const Logits& compressed,
                const std::vector<std::int64_t>& layers, double budget_tokens, double kept_tokens,
                const std::vector<double>& bytes, const std::string& note, double seconds, std::vector<int> answer,
                const std::string& json, const std::vector<std::vector<Index>>& held) {
    const std::vector<int>& scored = results_.documents.back().document.scored;
    check_rows(full), check_rows(compressed);
    std::vector<eval::TokenScore> scores;
    for (std::size_t i = 0; i + 1 < full.shape(0); ++i)
      scores.push_back(eval::score_token(row_of(full, i), row_of(compressed, i), scored[i + 1]));
    eval::PassResult& pass = added(configuration, replay::Status::ok, note);
    pass.tokens = std::move(scores), pass.answer = std::move(answer), pass.json = json_named(json);
    for (const std::int64_t layer : layers) pass.layers.push_back({.layer = layer});
    pass.budget_tokens = budget_tokens, pass.kept_tokens = kept_tokens, pass.seconds = seconds;
    pass.bytes = {bytes.at(0), bytes.at(1), bytes.at(2), bytes.at(3), bytes.at(4), bytes.at(5)};
    eval::Holders holders;
    for (const std::vector<Index>& of_head : held) holders.add(of_head);
    pass.messages = messages_held(results_.documents.back().document, holders);
  }

  /// A pass that is `skipped`, `failed` or `infeasible`.
  void add_end(std::size_t configuration, const std::string& status, const std::string& reason) {
    for (const replay::Status other : {replay::Status::skipped, replay::Status::failed, replay::Status::infeasible})
      if (name_of(other) == status) added(configuration, other, reason);
  }

  /// Writes the table.
  void finish(bool per_document, bool times) {
    const std::vector<eval::EvalRecord> records = summarize(results_, eval::EvalRows{.documents = per_document});
    output_.finish(report::csv_of(report::eval_columns(), std::span<const eval::EvalRecord>(records), times));
  }

 private:
  void check_rows(const Logits& logits) const {
    const eval::TaskDocument& document = results_.documents.back().document;
    if (logits.shape(0) != document.scored.size())
      throw Error("document {}: has {} scored tokens, but {} rows of logits", document.name, document.scored.size(),
                  logits.shape(0));
  }

  eval::PassResult& added(std::size_t configuration, replay::Status status, const std::string& reason) {
    eval::PassResult& pass = results_.passes.emplace_back();
    pass.configuration = configuration, pass.document = results_.documents.size() - 1;
    pass.status = status, pass.reason = reason;
    return pass;
  }

  app::Output output_;
  eval::Generation generation_;
  eval::EvalResults results_;
};

using Contents = std::tuple<std::string, std::vector<int>, std::string>;  ///< a text, or ids; a span

/// By conversation and turn: the contents of what is said, and of the answer.
std::vector<std::vector<std::pair<std::vector<Contents>, Contents>>> transcripts(const std::string& text,
                                                                                 const std::string& path) {
  std::vector<std::vector<std::pair<std::vector<Contents>, Contents>>> out;
  for (const eval::Transcript& transcript : eval::read_transcripts(text, path)) {
    out.emplace_back();
    for (const eval::Turn& turn : transcript) {
      auto& [asked, answer] = out.back().emplace_back();
      for (const eval::Content& content : turn.asked) asked.emplace_back(content.text, content.ids, content.span);
      answer = {turn.answer.text, turn.answer.ids, turn.answer.span};
    }
  }
  return out;
}

}  // namespace

void add_evaluation(nb::module_& module) {
  module.def("split_items", &config::split_items, nb::arg("list"), nb::arg("field"));
  module.def("implied_format", [](const std::string& output) {
    std::string format;
    app::imply_format(format, output);
    return format;
  });
  module.def("divergences", &divergences, nb::arg("full"), nb::arg("compressed"));
  module.def("transcripts", &transcripts, nb::arg("text"), nb::arg("path"));
  module.def("judged", &judged, nb::arg("line"), nb::arg("ended"));
  module.attr("ends_at_once") = nb::cast(std::string(eval::ends_at_once));
  nb::class_<eval::Generation>(module, "Generation")
      .def(
          "__init__",
          [](eval::Generation* made, Index tokens, double temperature, std::uint32_t seed) {
            new (made) eval::Generation{tokens, temperature, seed};
            check(*made);
          },
          nb::arg("tokens"), nb::arg("temperature"), nb::arg("seed"));
  nb::class_<eval::NextToken>(module, "NextToken")
      .def(
          "__init__",
          [](eval::NextToken* made, const eval::Generation& generation, const std::vector<int>& context) {
            new (made) eval::NextToken(generation, context);
          },
          nb::arg("generation"), nb::arg("context"))
      .def(
          "__call__",
          [](const eval::NextToken& next, const Logits& logits, Index position) {
            return next(row_of(logits, 0), position);
          },
          nb::arg("logits"), nb::arg("position"))
      .def("uniform", &eval::NextToken::uniform, nb::arg("position"));
  nb::class_<Evaluation>(module, "Evaluation")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::string&, Index,
                    const std::string&, const std::vector<std::int64_t>&, Index, const std::string&,
                    const eval::Generation&, const std::string&>(),
           nb::arg("output"), nb::arg("model"), nb::arg("sha256"), nb::arg("text"), nb::arg("context"),
           nb::arg("weights"), nb::arg("layers"), nb::arg("model_layers"), nb::arg("protocol"), nb::arg("generation"),
           nb::arg("task"))
      .def("add_configuration", &Evaluation::add_configuration)
      .def("add_document", &Evaluation::add_document)
      .def("add_transcript", &Evaluation::add_transcript)
      .def("add_short_scores", &Evaluation::add_short_scores)
      .def("add_pass", &Evaluation::add_pass)
      .def("add_end", &Evaluation::add_end)
      .def("finish", &Evaluation::finish);
}

}  // namespace kvbench::python
