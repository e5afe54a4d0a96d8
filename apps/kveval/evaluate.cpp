// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/evaluate.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/eval/eval_raw.hpp>
#include <kvbench/replay/run/devices.hpp>
#include <kvbench/replay/run/head_memory.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/length.hpp>
#include <kvbench/report/eval/turns.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/store/key.hpp>

#include <apps/common/model_files.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kveval/documents.hpp>
#include <apps/kveval/run_documents.hpp>
#include <apps/llama/convert.hpp>
#include <apps/llama/passes.hpp>

namespace kvbench::kveval {
namespace {

/// The layers that are captured. Throws Error where the model lacks one of them.
std::vector<int> captured_layers(const Options& options, const llama::Model& model) {
  std::vector<int> layers(options.layers.begin(), options.layers.end());
  if (layers.empty()) layers = model.cached_layers();
  std::ranges::sort(layers);
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  const std::string flag = options.sweep.empty() ? "--layers" : options.sweep;
  for (const int layer : layers) {
    if (layer >= 0 && layer < model.num_layers()) continue;
    throw Error("{}: there is no layer {}; this model has layers 0 to {}", flag, layer, model.num_layers() - 1);
  }
  model.require_cached(layers, flag);
  return layers;
}

/// Bytes of weights, caches, captured arrays and logits. Throws Error where they exceed the memory that the run may
/// take.
void check_memory(const Options& options, const llama::Model& model, Index tokens) {
  const bool conversations = !options.transcripts.empty();
  const double allowed = options.how.memory > 0 ? options.how.memory : replay::default_memory();
  const double weights = static_cast<double>(std::filesystem::file_size(model.path()));
  const double head = std::stod(model.metadata("{arch}.attention.key_length").value_or("128"));
  double rows = 3.0 * model.num_kv_heads() * 2;  // of a token: llama.cpp's caches, and what is captured
  if (options.request.protocol == replay::Protocol::stream ||
      conversations)  // all queries and outputs, and a second capture
    rows += 2.0 * model.num_kv_heads() + 2 * 2.0 * model.num_query_heads();
  const double arrays =
      static_cast<double>(model.cached_layers().size()) * rows * head * static_cast<double>(tokens) * sizeof(float);
  const double logits =
      3.0 * static_cast<double>(std::max(conversations ? tokens : options.score, eval::most_scored_tokens)) *
      model.vocabulary_size() * sizeof(float);
  const double need = weights + arrays + logits;
  if (need <= allowed) return;
  throw Error(
      "{}: its weights ({:.1f} GiB{}), caches and logits need about {:.1f} GiB, and --memory allows {:.1f} GiB; give a "
      "smaller model, a shorter --context, or more --memory",
      options.model, weights / (1 << 30), options.f32 ? " in fp32" : "", need / (1 << 30), allowed / (1 << 30));
}

/// The rows for readers.
std::vector<eval::EvalRecord> labelled(const Options& options, std::vector<eval::EvalRecord> records) {
  report::Labels(options.labels).apply(records);
  return records;
}

/// The rows for readers of all documents, whether or not the table has them.
struct RowsOfDocuments {
  std::vector<eval::EvalRecord> records;
  report::RowsOfText all, longest;  ///< longest: behind the longest context

  RowsOfDocuments(const Options& options, const eval::EvalResults& results)
      : records(labelled(options, summarize(results, eval::EvalRows{.documents = true}))) {
    for (const eval::EvalRecord& record : records) {
      all.push_back(&record);
      if (record.turn > 0) continue;
      if (record.context_tokens == results.length_of(results.documents.back())) longest.push_back(&record);
    }
  }
};

/// Which methods change the output least.
std::vector<std::string> answers_of(const RowsOfDocuments& rows) {
  return report::damage_answers(std::span(&rows.longest, 1));
}

std::vector<report::Block> tables_of(const Options& options, const std::vector<eval::EvalRecord>& records,
                                     const RowsOfDocuments& rows) {
  const bool lengths = options.contexts.size() > 1;
  std::vector<report::Block> blocks;
  append_filled(blocks, report::AnswerBlock{"", report::growth_answers(report::growths_of(rows.all))});
  const auto turns = report::turns_of(rows.all);
  append_filled(blocks, report::AnswerBlock{"", report::turn_answers(turns)});
  append_filled(blocks, report::turn_table(turns));
  blocks.emplace_back(
      report::AnswerBlock{lengths ? fmt::format("{} tokens of context", options.context()) : "", answers_of(rows)});
  blocks.emplace_back(report::overall_table(labelled(options, records)));
  return blocks;
}

/// What a terminal shows unasked: whether KL grows with the context, if there are several.
std::vector<report::Block> brief(const Options& options, const std::vector<eval::EvalRecord>& records,
                                 const RowsOfDocuments& rows) {
  const std::string rest = "--format table";
  const auto growths = report::growths_of(rows.all);
  if (const auto turns = report::turns_of(rows.all); !turns.empty()) return report::brief_turns(turns, rest);
  if (!growths.empty()) return report::brief_growth(growths, rest);
  return report::brief_evaluation(answers_of(rows), labelled(options, records), rest);
}

std::string formatted(const Options& options, const eval::EvalResults& results, const app::Output& output) {
  const std::vector<eval::EvalRecord> records = summarize(results, options.rows);
  const auto rows = [&] { return RowsOfDocuments(options, results); };
  if (options.format == "md") return report::markdown(tables_of(options, records, rows()));
  if (options.format == "table") return report::terminal_text(tables_of(options, records, rows()));
  if (app::shows_table(options.format, output)) return report::terminal_text(brief(options, records, rows()));
  return report::table_of(options.format, report::eval_columns(), std::span(records), options.times);
}

/// The outputs, opened before anything is computed.
struct Outputs {
  app::Output table;
  std::optional<AtomicFile> raw;
  std::string cells_path;

  explicit Outputs(const Options& options)
      : table(options.output), cells_path(app::cells_path(options.cells, options.output)) {
    if (!options.raw.empty()) raw.emplace(options.raw);
  }
};

void check_paths(const Options& options) {
  std::vector<NamedFile> inputs{{"the model", options.model}, {"the sweep file", options.sweep}};
  for (const std::string& text : options.texts) inputs.push_back({"the text", text});
  for (const std::string& ids : options.ids) inputs.push_back({"the file of token ids", ids});
  inputs.push_back({"the file of conversations", options.transcripts});
  for (const auto& [method, budget, seed] : options.configurations)
    std::ranges::move(store::files_of_method(*method.info, method.params.text()), std::back_inserter(inputs));
  check_distinct(std::vector<NamedFile>{{"-o", options.output},
                                        {"--raw", options.raw},
                                        {"the cells file", app::cells_path(options.cells, options.output)}},
                 inputs);
}

void check_labels(const Options& options) {
  std::vector<replay::MethodChoice> methods;
  for (const auto& [method, budget, seed] : options.configurations) methods.push_back(method);
  report::Labels(options.labels).check(methods);
}

Index longest(const Options& options, const llama::Model& model, const eval::EvalResults& results) {
  Index tokens = 0;  // of documents that are continued, the scored tokens are as many as the longest answer
  for (const eval::EvalDocument& document : results.documents) {
    if (!beyond_training(options, model, document.document).empty()) continue;
    tokens = std::max(tokens, std::ssize(document.document.context) + std::ssize(document.document.scored));
  }
  return tokens;
}

eval::EvalSettings settings_of(const Options& options, const llama::Model& model) {
  eval::EvalSettings out = eval::settings_of(options.request);
  out.model_layers = std::ssize(model.cached_layers());
  out.weights = model.is_f32() ? "f32" : "file";
  out.generate = options.generation.text();
  if (!options.texts.empty()) out.document_seed = options.document_seed;
  if (!options.transcripts.empty()) out.protocol.compressions = options.compressions;
  return out;  // run_documents() sets the layers
}

/// What rows call the texts: their names, or of files of ids the first one.
std::string text_of(const Options& options) {
  if (!options.transcripts.empty()) return std::filesystem::path(options.transcripts).filename().string();
  if (options.ids.empty()) return fmt::format("{}", fmt::join(distinct_names(options.texts), ","));
  const std::string first = std::filesystem::path(options.ids.front()).filename().string();
  return options.ids.size() == 1 ? first : fmt::format("{} and {} more", first, options.ids.size() - 1);
}

void describe(const Options& options, const llama::Model& model, eval::EvalResults& results) {
  const auto backend = make_backend(options.how);
  results.model = std::filesystem::path(options.model).filename().string();
  results.text = text_of(options);
  if (options.transcripts.empty()) results.context_tokens = options.context();
  results.question_inside = options.question_inside;
  results.chat = options.chat;
  results.settings = settings_of(options, model);
  results.device = backend->name();
  results.isa = backend->isa();
  for (const auto& [method, budget, seed] : options.configurations) {
    results.configurations.push_back(
        {method.info->name, method.params.text(), budget, method.depends_on_seed(), seed, model.channel_order()});
  }
}

/// The model of the options, loaded unless it is there, and its documents, which are made before a copy with fp32
/// weights: that takes minutes.
const llama::Model& load(const Options& options, int threads, LoadedModel& loaded, eval::EvalResults& results) {
  const bool there =
      loaded.path == options.model && loaded.f32 == options.f32 && loaded.sha256 == app::model_sha256(options.model);
  if (there) {
    for (const std::string& part : app::model_files(options.model)) remember_read(part);
  } else {
    loaded = {};
    loaded.model.emplace(options.model);
    loaded.model->refuse_unsupported();
  }
  make_documents(options, *loaded.model, results);
  results.model_sha256 = there ? loaded.sha256 : app::model_sha256(options.model);
  if (options.f32 && !loaded.model->is_f32())
    loaded.model.emplace(llama::converted_to_f32(*loaded.model, results.model_sha256, threads));
  loaded.path = options.model, loaded.sha256 = results.model_sha256, loaded.f32 = options.f32;
  return *loaded.model;
}

/// Evaluates all documents in the model.
void run_model(const Options& options, LoadedModel& loaded, eval::PassFile& passes, eval::EvalResults& results) {
  llama::quiet_llama();
  llama_backend_init();
  const int threads = static_cast<int>(thread_count(options.how));
  const llama::Model& model = load(options, threads, loaded, results);
  const Index tokens = longest(options, model, results);
  check_memory(options, model, tokens);
  const std::vector<int> layers = captured_layers(options, model);
  llama::CaptureOptions wanted = llama::capture_options(model, layers, threads);
  wanted.column_sums = true;
  wanted.speculated = options.any([](const methods::MethodInfo& method) { return method.speculates; });
  llama::Injector injector(wanted, model.num_layers());
  llama::Context context(model, {.num_tokens = tokens,
                                 .threads = threads,
                                 .two_sequences = true,
                                 .shorter = "--context",
                                 .on_node = llama::Injector::on_node,
                                 .stop = llama::Injector::stop,
                                 .user_data = &injector});
  describe(options, model, results);
  Projections projections;
  run_documents({options, model, context, injector, projections}, layers, passes, results);
}

}  // namespace

int evaluate(const Options& options, LoadedModel& loaded) {
  check_paths(options);
  check_labels(options);
  Outputs outputs(options);
  eval::PassFile passes(outputs.cells_path, app::cells_mode(options.cells, outputs.cells_path));
  app::report_torn("kveval", outputs.cells_path, passes.file().torn_bytes());
  eval::EvalResults results;
  {
    const app::AtForcedExit at_forced_exit([&] { app::explain_interruption("kveval", outputs.cells_path); });
    try {
      run_model(options, loaded, passes, results);
    } catch (const Interrupted&) {
      app::explain_interruption("kveval", outputs.cells_path);
      return 130;
    }
  }
  if (outputs.raw) write_eval_raw(*outputs.raw, results);
  outputs.table.finish(formatted(options, results, outputs.table));
  if (options.cells.file.empty()) passes.file().remove();
  return std::ranges::any_of(results.passes,
                             [](const eval::PassResult& pass) { return pass.status == replay::Status::failed; })
             ? 1
             : 0;
}

}  // namespace kvbench::kveval
