// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/eval_raw.hpp>

#include <kvbench/core/version.hpp>
#include <kvbench/trace/hdf5/output.hpp>

namespace kvbench::eval {
namespace {

using trace::h5::Object;
using trace::h5::write;

/// One member of all items, as numbers of type T.
template <class T, class Items, class Member>
std::vector<T> column(const Items& items, Member member) {
  std::vector<T> values;
  for (const auto& item : items) values.push_back(static_cast<T>(std::invoke(member, item)));
  return values;
}

void write_document(const Object& group, const EvalResults& results, const EvalDocument& document) {
  const TaskDocument& task = document.document;
  group.set("name", task.name);
  group.set("sha256", digest_of(task));
  group.set("task", results.tasks[document.task]->name);
  write(group, "context", task.context, {std::ssize(task.context)});
  write(group, "scored", task.scored, {std::ssize(task.scored)});
  std::vector<std::int64_t> spans;
  for (const ScoredSpan& span : task.spans) spans.insert(spans.end(), {span.begin, span.end});
  write(group, "spans", spans, {std::ssize(task.spans), 2});
  write(group, "depth", column<double>(task.spans, &ScoredSpan::depth), {std::ssize(task.spans)});
  const std::vector<Index> shape{std::ssize(document.without_distant)};
  write(group, "short_nll", column<double>(document.without_distant, &ShortScore::nll), shape);
  write(group, "short_right", column<std::uint8_t>(document.without_distant, &ShortScore::right), shape);
}

void write_layers(const Object& group, const std::vector<LayerErrors>& layers) {
  const Index count = std::ssize(layers);
  std::vector<double> metrics;
  for (const LayerErrors& errors : layers) metrics.insert(metrics.end(), errors.metrics.begin(), errors.metrics.end());
  write(group, "layers", column<std::int64_t>(layers, &LayerErrors::layer), {count});
  write(group, "metrics", metrics, {count, std::ssize(replay::all_metrics())});
  write(group, "drift", column<double>(layers, &LayerErrors::drift), {count});
  write(group, "residual", column<double>(layers, &LayerErrors::residual), {count});
}

void write_result(const Object& group, const PassResult& pass) {
  group.set("document", static_cast<std::int64_t>(pass.document));
  group.set("cell", static_cast<std::int64_t>(pass.configuration));
  group.set("inject", std::string(name_of(pass.injection.mode)));
  if (pass.injection.layer >= 0) group.set("inject_layer", pass.injection.layer);
  if (pass.injection.scale != 1) group.set("inject_scale", pass.injection.scale);
  group.set("status", std::string(name_of(pass.status)));
  if (!pass.reason.empty()) group.set("reason", pass.reason);
  if (pass.status != replay::Status::ok) return;
  group.set("budget_tokens", pass.budget_tokens);
  group.set("kept_tokens", pass.kept_tokens);
  group.set("total_bytes", pass.bytes.of(CostKind::memory));
  group.set("full_bytes", pass.bytes.full);
  group.set("bytes_read", pass.bytes.of(CostKind::read));
  const std::vector<Index> shape{std::ssize(pass.tokens)};
  write(group, "kl", column<double>(pass.tokens, &TokenScore::kl), shape);
  write(group, "tv", column<double>(pass.tokens, &TokenScore::tv), shape);
  write(group, "nll", column<double>(pass.tokens, &TokenScore::nll), shape);
  write(group, "nll_full", column<double>(pass.tokens, &TokenScore::nll_full), shape);
  write(group, "same_top", column<std::uint8_t>(pass.tokens, &TokenScore::same_top), shape);
  write(group, "sure", column<std::uint8_t>(pass.tokens, &TokenScore::sure), shape);
  write(group, "right", column<std::uint8_t>(pass.tokens, &TokenScore::right), shape);
  write(group, "right_full", column<std::uint8_t>(pass.tokens, &TokenScore::right_full), shape);
  if (!pass.answer.empty())
    write(group, "answer", std::vector<std::int32_t>(pass.answer.begin(), pass.answer.end()),
          {std::ssize(pass.answer)});
  write_layers(group, pass.layers);
}

void write_results(const Object& root, const EvalResults& results) {
  root.set("kvbench_eval", std::string("1.0"));
  root.set("model", results.model);
  root.set("model_sha256", results.model_sha256);
  root.set("text", results.text);
  root.set("question", results.question());
  const EvalSettings& settings = results.settings;
  root.set("method_layers", settings.layers);
  root.set("model_layers", settings.model_layers);
  root.set("weights", settings.weights);
  root.set("kv_dtype", settings.kv_dtype);
  root.set("protect", settings.protect);
  root.set("decoded", settings.decoded);
  root.set("protocol", settings.protocol.text());
  if (!settings.generate.empty()) root.set("generate", settings.generate);
  if (settings.document_seed) root.set("document_seed", std::int64_t{*settings.document_seed});
  root.set("device", results.device);
  root.set("isa", results.isa);
  root.set("version", std::string(version()));
  root.set("commit", std::string(commit()));
  root.set("metrics", replay::metric_names());
  const Object documents = root.create_group("documents");
  for (std::size_t d = 0; d < results.documents.size(); ++d) {
    write_document(documents.create_group(std::to_string(d)), results, results.documents[d]);
  }
  const Object configurations = root.create_group("cells");
  for (std::size_t c = 0; c < results.configurations.size(); ++c) {
    const EvalConfiguration& key = results.configurations[c];
    const Object configuration = configurations.create_group(std::to_string(c));
    configuration.set("method", key.method);
    configuration.set("params", key.params);
    configuration.set("budget", key.budget.text());
    configuration.set("seed", static_cast<std::int64_t>(key.seed));
    configuration.set("seeded", std::int64_t{key.seeded});
  }
  const Object all = root.create_group("results");
  for (std::size_t r = 0; r < results.passes.size(); ++r)
    write_result(all.create_group(std::to_string(r)), results.passes[r]);
}

}  // namespace

void write_eval_raw(AtomicFile& file, const EvalResults& results) {
  trace::h5::write_file(file, [&](const Object& root) { write_results(root, results); });
}

}  // namespace kvbench::eval
