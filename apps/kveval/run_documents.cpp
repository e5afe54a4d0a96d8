// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/run_documents.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/store/parameter_files.hpp>

#include <apps/common/rows/progress.hpp>

namespace kvbench::kveval {
namespace {

std::vector<kvbench::eval::Injection> injections_of(eval::Inject mode, const std::vector<int>& layers) {
  if (mode == eval::Inject::all || mode == eval::Inject::none) return {{mode, -1}};
  std::vector<kvbench::eval::Injection> all;
  for (const int layer : layers) all.push_back({mode, layer});
  return all;
}

/// The key of a document: what all its cells depend on. Threads and memory change no bit.
std::string document_key(const Machine& machine, const std::vector<int>& layers, const eval::EvalResults& results,
                         const eval::TaskDocument& document) {
  const Options& options = machine.options;
  const replay::ReplayRequest& request = options.request;
  return eval::eval_key(fmt::format(
      "eval {} f32 {} one {} {} {} layers {} protect {},{},{} dense {} decoded {} sinks {} element {} context {} "
      "scored {}",
      results.model_sha256, options.f32, options.one_at_a_time, results.device, results.isa, fmt::join(layers, ","),
      request.protect_first, request.protect_last, request.protect_outside, request.dense_layers,
      static_cast<int>(request.decoded), request.recall_sinks, static_cast<int>(request.kv_element),
      fmt::join(document.context, ","), fmt::join(document.scored, ",")));
}

/// One document: prefilled when its first missing cell is computed.
class LazyDocument {
 public:
  LazyDocument(const Machine& machine, const std::vector<int>& layers, eval::EvalCells& cells,
               const eval::EvalResults& results, eval::EvalDocument& document)
      : machine_(machine),
        cells_(cells),
        document_(document),
        key_(document_key(machine, layers, results, document.document)) {
    if (!cells.has(key_)) {
      eval::EvaluatedDocument known{.without_distant = score_short_context(machine, document.document),
                                    .layers = started().layers()};
      cells.add(key_, std::move(known));
    }
    eval::EvaluatedDocument known = cells.document(key_, predicted());
    document.without_distant = std::move(known.without_distant);
    layers_ = std::move(known.layers);
  }

  const std::vector<int>& layers() const { return layers_; }

  eval::EvalCell cell(const loop::LoopConfiguration& configuration, const kvbench::eval::Injection& injection) {
    const std::string params = configuration.method.params.text();
    const std::string key =
        eval::eval_key(fmt::format("{} method {} [{}]{} {} seed {} inject {} {}", key_, configuration.method.info->name,
                                   params, store::parameter_files(params), configuration.budget.text(),
                                   configuration.seed, name_of(injection.mode), injection.layer));
    if (!cells_.has(key)) cells_.add(key, started().run(configuration, injection));
    return cells_.cell(key, predicted());
  }

 private:
  std::size_t predicted() const { return document_.document.scored.size() - 1; }
  DocumentRun& started() {
    if (!run_) run_.emplace(machine_, document_.document);
    return *run_;
  }

  const Machine& machine_;
  eval::EvalCells& cells_;
  eval::EvalDocument& document_;
  std::string key_;
  std::vector<int> layers_;
  std::optional<DocumentRun> run_;
};

}  // namespace

void run_documents(const Machine& machine, const std::vector<int>& layers, eval::EvalCells& cells,
                   eval::EvalResults& results) {
  const std::vector<loop::LoopConfiguration>& configurations = machine.options.configurations;
  const auto total = static_cast<Index>(results.documents.size() * configurations.size());
  app::Progress progress("configurations", machine.options.quiet);
  double done = 0;
  for (std::size_t d = 0; d < results.documents.size(); ++d) {
    LazyDocument document(machine, layers, cells, results, results.documents[d]);
    const auto injections = injections_of(machine.options.inject, document.layers());
    for (std::size_t c = 0; c < configurations.size(); ++c) {
      for (const kvbench::eval::Injection& injection : injections) {
        eval::EvalCell cell = document.cell(configurations[c], injection);
        cell.configuration = c;
        cell.document = d;
        results.cells.push_back(std::move(cell));
        done += 1.0 / static_cast<double>(injections.size());
        progress.show(done, total);
      }
    }
  }
}

}  // namespace kvbench::kveval
