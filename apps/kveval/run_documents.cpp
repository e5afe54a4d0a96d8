// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/run_documents.hpp>

#include <algorithm>
#include <iterator>

#include <kvbench/eval/key.hpp>
#include <kvbench/replay/plan/fields.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>

#include <apps/common/rows/progress.hpp>
#include <apps/kveval/documents.hpp>

namespace kvbench::kveval {
namespace {

std::vector<kvbench::eval::Injection> injections_of(const Options& options, const std::vector<int>& layers) {
  const eval::Inject mode = options.inject;
  if (mode == eval::Inject::all || mode == eval::Inject::none) return {{mode, -1, options.inject_scale}};
  std::vector<kvbench::eval::Injection> all;
  for (const int layer : layers) all.push_back({mode, layer, options.inject_scale});
  return all;
}

eval::DocumentInputs inputs_of(const Machine& machine, const std::vector<int>& layers, const eval::EvalResults& results,
                               const eval::TaskDocument& document) {
  const Options& options = machine.options;
  std::vector<Index> message_ends;
  for (const trace::Span& message : document.messages) message_ends.push_back(message.end);
  return {.model = results.model_sha256,
          .f32 = options.f32,
          .one_at_a_time = options.one_at_a_time,
          .device = results.device,
          .isa = results.isa,
          .layers = layers,
          .request = replay::stored_text(options.request),
          .protocol = results.settings.protocol.text(),
          .generate = results.settings.generate,
          .context = document.context,
          .scored = options.generation.tokens > 0 ? std::vector<int>() : document.scored,
          .compressed_at = document.compressed_at,
          .message_ends = std::move(message_ends)};
}

/// The inputs of the methods of all configurations. They hold digests of the files that methods read, which
/// are computed once for all documents.
std::vector<store::MethodInputs> inputs_of(const std::vector<loop::LoopConfiguration>& configurations) {
  std::vector<store::MethodInputs> out;
  for (const auto& [method, budget, seed] : configurations)
    out.push_back(store::inputs_of(*method.info, method.params.text()));
  return out;
}

/// The layers in which every method runs: without sliding windows, unless all have one.
std::vector<int> common_layers(const eval::EvaluatedDocument& known) {
  if (known.windowed.size() == known.layers.size()) return known.layers;
  std::vector<int> out;
  std::ranges::set_difference(known.layers, known.windowed, std::back_inserter(out));
  return out;
}

/// Those of these layers that are not kept whole.
std::vector<std::int64_t> compressible(const std::vector<int>& layers, const replay::ReplayRequest& request) {
  std::vector<std::int64_t> out;
  std::ranges::copy_if(layers, std::back_inserter(out),
                       [&](int layer) { return !replay::keeps_whole(request, layer); });
  return out;
}

eval::PassResult skipped(const kvbench::eval::Injection& injection, std::string_view reason) {
  eval::PassResult pass;
  pass.injection = injection, pass.status = replay::Status::skipped, pass.reason = reason;
  return pass;
}

/// The last line of the context, and what the answer adds to it, as JSON.
eval::Json judged(const llama::Model& model, const std::vector<int>& context, std::vector<int> answer) {
  const bool ended = model.is_end(answer.back());
  if (ended) answer.pop_back();
  const std::string before = model.text_of(context);
  return eval::read_json_line(before.substr(before.rfind('\n') + 1) + model.text_of(answer), ended);
}

/// One document: prefilled when its first missing pass is computed.
class LazyDocument {
 public:
  LazyDocument(const Machine& machine, const std::vector<int>& layers, eval::PassFile& passes,
               const eval::EvalResults& results, eval::EvalDocument& document)
      : machine_(machine),
        passes_(passes),
        document_(document),
        key_(store::key_of(inputs_of(machine, layers, results, document.document))) {
    document.generate = machine.options.generation.tokens;
    if (!passes.has(key_)) {
      eval::EvaluatedDocument known;
      if (document.generate > 0) continue_by(known.answer = own_answer(machine, document.document.context));
      if (predicted() > 0 && has_short()) known.without_distant = score_short_context(machine, document.document);
      known.layers = started().layers(), known.windowed = started().windowed();
      passes.add(key_, std::move(known));
    }
    eval::EvaluatedDocument known = passes.document(key_, {predicted(), layers, document.generate, has_short()});
    if (document.generate > 0) continue_by(std::move(known.answer));
    judges_ = results.tasks[document.task]->json;
    if (judges_) document.json = judged(machine.model, document.document.context, document.document.scored);
    document.without_distant = std::move(known.without_distant);
    layers_ = known.layers, common_ = common_layers(known);
  }

  /// Those in which every method runs.
  const std::vector<int>& layers() const { return common_; }

  /// `method`: the inputs of the configuration's method.
  eval::PassResult pass(const loop::LoopConfiguration& configuration, const store::MethodInputs& method,
                        const kvbench::eval::Injection& injection) {
    const std::string key = store::key_of(eval::PassInputs{.document = key_,
                                                           .method = method,
                                                           .budget = configuration.budget.text(),
                                                           .seed = configuration.seed,
                                                           .injection = injection});
    if (!passes_.has(key))
      passes_.add(key,
                  predicted() > 0 ? started().run(configuration, injection) : skipped(injection, eval::ends_at_once));
    eval::PassResult pass = passes_.pass(
        key, injection, {predicted(), layers_, document_.generate, has_short(), document_.document.messages.size()});
    if (judges_ && !pass.answer.empty()) pass.json = judged(machine_.model, document_.document.context, pass.answer);
    return pass;
  }

 private:
  /// The scored tokens are those of an answer.
  void continue_by(std::vector<int> answer) {
    document_.document.spans = {{1, std::ssize(answer), NAN}};
    document_.document.scored = std::move(answer);
  }
  bool has_short() const { return document_.document.first_turn == 0; }  // conversations are not shortened
  std::size_t predicted() const { return document_.document.scored.size() - 1; }
  DocumentRun& started() {
    if (!run_) run_.emplace(machine_, document_.document);
    return *run_;
  }

  const Machine& machine_;
  eval::PassFile& passes_;
  eval::EvalDocument& document_;
  std::string key_;
  bool judges_ = false;  ///< whether answers are judged as JSON
  std::vector<int> layers_, common_;
  std::optional<DocumentRun> run_;
};

/// Adds the passes of a document that is not run.
void skip(std::size_t document, const std::vector<kvbench::eval::Injection>& injections, std::size_t configurations,
          const std::string& reason, eval::EvalResults& results) {
  for (std::size_t c = 0; c < configurations; ++c) {
    for (const kvbench::eval::Injection& injection : injections) {
      eval::PassResult& pass = results.passes.emplace_back(skipped(injection, reason));
      pass.configuration = c, pass.document = document;
    }
  }
}

}  // namespace

void run_documents(const Machine& machine, const std::vector<int>& layers, eval::PassFile& passes,
                   eval::EvalResults& results) {
  const std::vector<loop::LoopConfiguration>& configurations = machine.options.configurations;
  const auto total = static_cast<Index>(results.documents.size() * configurations.size());
  app::Progress progress("configurations", machine.options.quiet);
  const std::vector<store::MethodInputs> methods = inputs_of(configurations);
  double done = 0;
  for (std::size_t d = 0; d < results.documents.size(); ++d) {
    const std::string too_long = beyond_training(machine.options, machine.model, results.documents[d].document);
    if (!too_long.empty()) {
      skip(d, injections_of(machine.options, layers), configurations.size(), too_long, results);
      progress.show(done += static_cast<double>(configurations.size()), total);
      continue;
    }
    LazyDocument document(machine, layers, passes, results, results.documents[d]);
    results.settings.layers = eval::layer_ranges(compressible(document.layers(), machine.options.request));
    const auto injections = injections_of(machine.options, document.layers());
    for (std::size_t c = 0; c < configurations.size(); ++c) {
      for (const kvbench::eval::Injection& injection : injections) {
        eval::PassResult pass = document.pass(configurations[c], methods[c], injection);
        pass.configuration = c;
        pass.document = d;
        results.passes.push_back(std::move(pass));
        done += 1.0 / static_cast<double>(injections.size());
        progress.show(done, total);
      }
    }
  }
}

}  // namespace kvbench::kveval
