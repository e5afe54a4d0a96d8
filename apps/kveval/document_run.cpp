// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/document_pass.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <set>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/loop/decoder.hpp>
#include <kvbench/replay/records/span_shares.hpp>
#include <kvbench/replay/run/devices.hpp>

#include <apps/common/stop_signals.hpp>
#include <apps/kveval/documents.hpp>
#include <apps/llama/passes.hpp>

namespace kvbench::kveval {

std::vector<int> batches_of(Index tokens) {
  std::vector<int> sizes;
  for (Index left = tokens; left > 0; left -= llama::Context::batch) {
    sizes.push_back(static_cast<int>(std::min<Index>(left, llama::Context::batch)));
  }
  return sizes;
}

std::span<const float> projection_of(const Machine& machine, int layer) {
  const auto found = machine.projections.find(layer);
  return found == machine.projections.end() ? std::span<const float>() : found->second;
}

trace::TraceInfo describe(const Machine& machine, const llama::Capture& capture, const std::vector<int>& layers,
                          const std::vector<std::int32_t>& tokens, Index context,
                          const std::vector<std::int64_t>& positions) {
  const llama::LayerCapture& first = *capture.layer(layers.front());
  trace::TraceInfo info;
  info.model = std::filesystem::path(machine.options.model).stem().string();
  info.arch = machine.model.arch();
  info.num_layers = machine.model.num_layers();
  if (machine.model.is_hybrid()) info.cache_layers = machine.model.cached_layers();
  info.num_query_heads = first.query_heads;
  info.num_kv_heads = first.kv_heads;
  info.head_dim = first.head_dim;
  info.value_dim = first.value_dim;
  info.rope_type = first.parameters.rope_type;
  info.rope_layout = first.parameters.rope_layout;
  trace::PromptInfo& prompt = info.prompts.emplace_back();
  prompt.id = document_prompt;
  prompt.num_tokens = std::ssize(tokens);
  prompt.prompt_tokens = context;
  prompt.tokens = tokens;
  for (const int number : layers) {
    const llama::LayerCapture& captured = *capture.layer(number);
    trace::LayerInfo& layer = prompt.layers.emplace_back();
    layer.layer = number;
    layer.rope_theta = captured.parameters.rope_theta;
    layer.scale = captured.parameters.scale;
    layer.window = captured.parameters.window;
    layer.query_positions = positions;
    layer.column_sums_end = context;
    layer.speculated_queries = !captured.speculated.empty() && positions == captured.query_positions;
    if (const Index numbers = std::ssize(projection_of(machine, number)); numbers > 0)
      layer.output_sketch = {.columns = numbers / (captured.query_heads * captured.value_dim)};
    if (captured.parameters.rope_type != "default") info.rope_type = captured.parameters.rope_type;
  }
  return info;
}

std::vector<std::int64_t> positions_from(Index begin, Index count) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), begin);
  return positions;
}

namespace {

/// `first`: the first token that is answered.
std::vector<std::int64_t> stored_positions(Index first, Index tokens) {
  std::vector<std::int64_t> positions;
  for (Index p = std::max<Index>(0, first - observation_window); p < tokens; ++p) positions.push_back(p);
  return positions;
}

/// Keeps W_O of the layers, where a method needs it.
void keep_projections(const Machine& machine, const std::vector<int>& layers) {
  const llama::ResidualPath& path = machine.injector.capture().residual_path();
  if (!machine.options.any([](const methods::MethodInfo& method) {
        return std::ranges::count(method.needs, methods::Part::output_sketch) > 0;
      }))
    return;
  for (const int layer : layers) {
    if (path.knows(layer) && !machine.projections.contains(layer))
      machine.projections.emplace(layer, path.weights(layer).projection);
  }
}

/// The rows of each head at the positions `wanted`, all of which are among those `at` which it has a row.
std::vector<float> rows_at(const std::vector<float>& array, Index heads, const std::vector<std::int64_t>& at,
                           const std::vector<std::int64_t>& wanted) {
  const Index rows = std::ssize(at), width = std::ssize(array) / (heads * rows);
  std::vector<float> out;
  for (Index h = 0; h < heads; ++h) {
    for (const std::int64_t position : wanted) {
      const auto first = array.begin() + (h * rows + (std::ranges::lower_bound(at, position) - at.begin())) * width;
      out.insert(out.end(), first, first + width);
    }
  }
  return out;
}

}  // namespace

std::vector<eval::ShortScore> score_short_context(const Machine& machine, const eval::TaskDocument& document) {
  std::vector<std::int32_t> tokens = short_context(document, std::max<Index>(2, std::ssize(document.context) / 10));
  const Index begin = std::ssize(tokens), count = std::ssize(document.scored);
  tokens.insert(tokens.end(), document.scored.begin(), document.scored.end());
  machine.injector.set_active(false);
  machine.context.clear();
  Index offset = 0;
  for (const int size : batches_of(begin)) {
    machine.context.decode(tokens, offset, size);
    offset += size;
  }
  machine.context.decode_scored(tokens, begin, static_cast<int>(count));
  app::stop_if_requested();
  machine.injector.set_active(true);
  const std::span<const float> logits = machine.context.logits();
  const std::size_t vocabulary = logits.size() / static_cast<std::size_t>(count);
  std::vector<eval::ShortScore> scores;
  for (std::size_t i = 0; i + 1 < document.scored.size(); ++i) {
    scores.push_back(eval::score_short(logits.subspan(i * vocabulary, vocabulary), document.scored[i + 1]));
  }
  return scores;
}

std::vector<int> own_answer(const Machine& machine, const std::vector<int>& context) {
  const eval::NextToken next(machine.options.generation, context);
  std::vector<std::int32_t> tokens(context.begin(), context.end());
  std::vector<int> answer;
  machine.injector.set_active(false);
  machine.context.clear();
  const auto pass = [&](Index begin, int count) {
    machine.context.decode_scored(tokens, begin, count, llama::Sequence::prompt, false);
    app::stop_if_requested();
  };
  Index read = 0;
  for (const int size : batches_of(std::ssize(context))) {
    pass(read, size);
    read += size;
  }
  while (true) {
    answer.push_back(next(machine.context.logits(), std::ssize(answer)));
    if (std::ssize(answer) == machine.options.generation.tokens || machine.model.is_end(answer.back())) break;
    tokens.push_back(answer.back());
    pass(read++, 1);
  }
  machine.injector.set_active(true);
  return answer;
}

DocumentRun::DocumentRun(const Machine& machine, const eval::TaskDocument& document)
    : machine_(machine),
      document_(document),
      begin_(std::ssize(document.context)),
      count_(std::ssize(document.scored)),
      first_(machine.options.request.protocol == replay::Protocol::stream ? 0 : begin_) {
  tokens_.assign(document.context.begin(), document.context.end());
  tokens_.insert(tokens_.end(), document.scored.begin(), document.scored.end());
  llama::Capture& capture = machine_.injector.capture();
  machine_.context.clear();
  capture.start_prompt(std::ssize(tokens_), stored_positions(first_, std::ssize(tokens_)), begin_);
  llama::run_batches(machine_.context, capture, tokens_, batches_of(begin_), [](int) {});
  machine_.context.keep_state(begin_);

  full_hidden_.resize(static_cast<std::size_t>(machine_.model.num_layers()));
  Index next = begin_;
  for (const int size : batches_of(count_)) {
    machine_.injector.begin(next, size, nullptr);
    decode(tokens_, next, size, llama::Sequence::prompt);
    next += size;
    const std::vector<llama::LayerPass> passes = machine_.injector.end();
    for (std::size_t l = 0; l < passes.size(); ++l)
      std::ranges::copy(passes[l].hidden, std::back_inserter(full_hidden_[l]));
    std::ranges::copy(machine_.context.logits(), std::back_inserter(full_logits_));
  }
  capture.require_same_shapes();
  for (int layer = 0; layer < machine_.model.num_layers(); ++layer) {
    const llama::LayerCapture* captured = capture.layer(layer);
    if (captured == nullptr || captured->parameters.softcap != 0) continue;
    layers_.push_back(layer);
    if (captured->parameters.window > 0) windowed_.push_back(layer);
  }
  if (layers_.empty()) {
    throw Error("{}: every layer caps its logits, and methods do not run there", machine_.model.path());
  }
  for (int layer = 0; keeps_full() && layer < machine_.model.num_layers(); ++layer) {
    if (const llama::LayerCapture* captured = capture.layer(layer)) full_layers_.push_back(*captured);
  }
  keep_projections(machine_, layers_);
  if (!streams() && !is_conversation()) add_part(begin_, count_, stored_positions(first_, std::ssize(tokens_)));
}

DocumentRun::~DocumentRun() = default;

void DocumentRun::add_part(Index begin, Index count, const std::vector<std::int64_t>& positions) {
  parts_.push_back(std::unique_ptr<Part>(
      new Part{begin, count,
               loop::LayerLoop(describe(machine_, machine_.injector.capture(), layers_, tokens_, begin_, positions),
                               machine_.options.request, machine_.options.how, &app::stop_requested())}));
}

// A part answers its own tokens, and the last one, behind which caches have the bytes that limits of a cost are about.
void DocumentRun::stream_parts(bool every_query) {
  const Index tokens = begin_ + count_;
  parts_.clear();
  const auto add = [&](Index begin, Index count) {
    std::vector<std::int64_t> positions = every_query ? positions_from(0, tokens) : positions_from(begin, count);
    if (positions.back() < tokens - 1) positions.push_back(tokens - 1);
    add_part(begin, count, positions);
  };
  Index next = 0;
  for (const int size : batches_of(begin_)) {
    add(next, size);
    next += size;
  }
  add(begin_, count_);
}

void DocumentRun::decode(const std::vector<std::int32_t>& tokens, Index begin, Index count, llama::Sequence sequence) {
  const bool finished =
      machine_.context.decode_scored(tokens, begin, static_cast<int>(count), sequence, begin >= begin_);
  app::stop_if_requested();
  if (!finished && !machine_.injector.failed()) throw Error("llama.cpp stopped at token {} without a reason", begin);
}

bool DocumentRun::answers(int layer, const Pass& pass) const {
  const eval::Injection& injection = pass.result.injection;
  if (!std::ranges::binary_search(layers_, layer)) return false;
  if (!pass.windows && std::ranges::binary_search(windowed_, layer)) return false;
  if (injection.mode == eval::Inject::one) return layer == injection.layer;
  return injection.mode != eval::Inject::upto || layer <= injection.layer;
}

llama::Replacement DocumentRun::replace(const llama::LayerCapture& captured, Pass& pass, Part& part, Index begin,
                                        Index count) {
  if (!answers(captured.layer, pass)) return {};
  const auto index = static_cast<std::size_t>(std::ranges::lower_bound(layers_, captured.layer) - layers_.begin());
  const bool speculated = part.loop.document().prompts.front().layers[index].speculated_queries;
  const bool all = part.held != nullptr || part.positions() == captured.query_positions;
  const auto queries =
      all ? std::vector<float>()
          : rows_at(captured.queries, captured.query_heads, captured.query_positions, part.positions());
  loop::LayerAnswer answer =
      part.held != nullptr
          ? answer_held(index, captured, part)
          : part.loop.answer(index, {captured.keys, captured.values, all ? captured.queries : queries,
                                     speculated ? std::span(captured.speculated) : std::span<const float>(),
                                     captured.column_sums, projection_of(machine_, captured.layer)});
  if (answer.status == replay::Status::skipped) {  // the layer stays exact
    if (pass.sequence == llama::Sequence::scored && !streams()) throw NeedsPrompt();
    pass.summary.skip(captured.layer, answer.reason);
    pass.exact.push_back(captured.layer);
    return {};
  }
  if (answer.status != replay::Status::ok)
    throw Ended{answer.status, fmt::format("layer {}: {}", captured.layer, answer.reason)};
  std::vector<std::int64_t> answered(std::ranges::lower_bound(part.positions(), first_), part.positions().end());
  if (part.held != nullptr) answered = positions_from(part.begin, part.count);
  pass.summary.add(captured.layer, answer, std::ssize(answered), std::min(part.count, std::ssize(answered)));
  const std::vector<std::int64_t> wanted = positions_from(begin, count);
  return {rows_at(answer.outputs, captured.query_heads, answered, wanted),
          rows_at(answer.exact, captured.query_heads, answered, wanted),
          pass.result.injection.mode == eval::Inject::none ? 0 : pass.result.injection.scale};
}

void DocumentRun::pass_tokens(Pass& pass, Part& part, Index begin, Index count) {
  pass.summary = {}, pass.exact.clear();  // the answers cover all tokens; later ones do not affect earlier ones
  machine_.injector.begin(
      begin, static_cast<int>(count),
      [&, begin, count](const llama::LayerCapture& captured) { return replace(captured, pass, part, begin, count); },
      pass.sequence == llama::Sequence::prompt);
  decode(tokens_, begin, count, pass.sequence);
  std::vector<llama::LayerPass> layers = machine_.injector.end();
  if (begin < begin_) return;
  const auto logits = machine_.context.logits();
  pass.logits.insert(pass.logits.end(), logits.begin(), logits.end());
  pass.layers.resize(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::ranges::copy(layers[l].hidden, std::back_inserter(pass.layers[l].hidden));
    std::ranges::copy(layers[l].residual, std::back_inserter(pass.layers[l].residual));
  }
}

void DocumentRun::run_pass(Pass& pass) {
  machine_.context.remove_from(first_);
  pass.logits.clear();
  pass.layers.clear();
  for (const auto& part : parts_) {
    const Index step = machine_.options.one_at_a_time && part->begin >= begin_ ? 1 : part->count;
    for (Index next = 0; next < part->count; next += step) pass_tokens(pass, *part, part->begin + next, step);
  }
}

eval::PassResult DocumentRun::run(const loop::LoopConfiguration& configuration, kvbench::eval::Injection injection) {
  const auto start = std::chrono::steady_clock::now();
  Pass pass;
  pass.result.injection = injection;
  pass.windows = configuration.method.info->rounds_windows();
  const bool every_layer = injection.mode == eval::Inject::all && (pass.windows || windowed_.empty()) &&
                           std::ssize(layers_) == machine_.model.num_layers();
  if (!pass.windows && windowed_.size() == layers_.size()) {
    pass.result.status = replay::Status::skipped;
    pass.result.reason = "every layer has a sliding window, where only methods that round run";
    return std::move(pass.result);
  }
  if (streams()) stream_parts(configuration.method.info->observes);
  for (const auto& part : parts_) part->loop.start(configuration);
  const auto run_all = [&] { is_conversation() ? run_conversation(pass, configuration) : run_pass(pass); };
  try {
    try {
      if (streams()) machine_.injector.capture().restore(full_layers_);
      pass.sequence = every_layer || streams() ? llama::Sequence::scored : llama::Sequence::prompt;
      run_all();
    } catch (const NeedsPrompt&) {
      pass.sequence = llama::Sequence::prompt;
      run_all();
    }
    pass.summary.finish(std::ssize(machine_.model.cached_layers()), pass.result);
    if (pass.result.status == replay::Status::ok) {
      pass.result.reason += (pass.result.reason.empty() || pass.note.empty() ? "" : "; ") + pass.note;
      if (replay::holds_tokens(*configuration.method.info)) {
        pass.result.needles = needles_held(document_, pass.summary.holders());
        pass.result.messages = messages_held(document_, pass.summary.holders());
      }
      score(pass.logits, pass.result);
      add_errors(pass.layers, pass.result);
      if (machine_.options.generation.tokens > 0) add_answer(configuration, pass);
    }
  } catch (const Ended& ended) {
    pass.result = {};
    pass.result.injection = injection;
    pass.result.status = ended.status;
    pass.result.reason = ended.reason;
  }
  pass.result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(pass.result);
}

/// The caches of a configuration that continues a document by itself.
class DocumentRun::FreeRun {
 public:
  /// `pass`: that of the scored tokens, which the method answers in the same layers.
  FreeRun(DocumentRun& run, const loop::LoopConfiguration& configuration, const Pass& pass)
      : run_(run),
        pass_(pass),
        decoder_(document_of(run), run.machine_.options.request, run.machine_.options.how, configuration,
                 &app::stop_requested()) {}

  /// What replaces the outputs of a layer for `count` tokens, the first of which is captured in row `row`.
  llama::Replacement replace(const llama::LayerCapture& captured, Index row, Index count) {
    const bool skipped = std::ranges::find(pass_.exact, captured.layer) != pass_.exact.end();
    if (skipped || !run_.answers(captured.layer, pass_)) return {};
    try {
      return {.outputs = answer(captured, row, count), .exact = {}};
    } catch (const loop::NoCache&) {
      throw;
    } catch (const Error& failure) {  // of the method, which ends its pass alone
      throw loop::NoCache(replay::Status::failed, failure.what());
    }
  }

 private:
  static trace::TraceInfo document_of(const DocumentRun& run) {
    trace::TraceInfo document = describe(run.machine_, run.machine_.injector.capture(), run.layers_, run.tokens_,
                                         run.begin_, stored_positions(run.first_, std::ssize(run.tokens_)));
    for (trace::LayerInfo& layer : document.prompts.front().layers) layer.speculated_queries = false;
    return document;
  }

  std::vector<float> answer(const llama::LayerCapture& captured, Index row, Index count) {
    const auto layer =
        static_cast<std::size_t>(std::ranges::lower_bound(run_.layers_, captured.layer) - run_.layers_.begin());
    if (compressed_.insert(layer).second)
      decoder_.compress(layer, {captured.keys,
                                captured.values,
                                captured.queries,
                                {},
                                captured.column_sums,
                                projection_of(run_.machine_, captured.layer)});
    const std::vector<std::int64_t> all = positions_from(0, std::ssize(run_.tokens_)),
                                    rows = positions_from(row, count);
    const std::vector<float> keys = rows_at(captured.keys, captured.kv_heads, all, rows),
                             values = rows_at(captured.values, captured.kv_heads, all, rows),
                             queries = rows_at(captured.queries, captured.query_heads, captured.query_positions, rows);
    return decoder_.answer(layer, count, {keys, values, queries, {}, {}, {}});
  }

  DocumentRun& run_;
  const Pass& pass_;
  loop::Decoder decoder_;
  std::set<std::size_t> compressed_;  ///< indices of layers
};

// The arrays that are captured have rows for the tokens of the full cache's answer, and this one may be longer: each of
// its tokens is captured in the row of the first one. Caches keep the rows of their tokens themselves.
std::vector<int> DocumentRun::answer(const loop::LoopConfiguration& configuration, const Pass& scored) {
  FreeRun run(*this, configuration, scored);
  std::vector<std::int32_t> tokens(document_.context.begin(), document_.context.end());
  std::vector<int> answer{document_.scored.front()};
  const eval::NextToken next(machine_.options.generation, document_.context);
  const auto pass = [&](Index begin, Index row, Index count) {
    const auto replace = [&](const llama::LayerCapture& captured) { return run.replace(captured, row, count); };
    machine_.injector.begin(row, static_cast<int>(count), replace, false);
    decode(tokens, begin, count, scored.sequence);
    machine_.injector.end();
  };
  machine_.context.remove_from(first_);
  if (streams()) {
    machine_.injector.capture().restore(full_layers_);
    Index read = 0;
    for (const int size : batches_of(begin_)) {
      pass(read, read, size);
      read += size;
    }
  }
  while (std::ssize(answer) < machine_.options.generation.tokens && !machine_.model.is_end(answer.back())) {
    tokens.push_back(answer.back());
    pass(std::ssize(tokens) - 1, begin_, 1);
    answer.push_back(next(machine_.context.logits(), std::ssize(answer)));
  }
  return answer;
}

void DocumentRun::add_answer(const loop::LoopConfiguration& configuration, Pass& pass) {
  try {
    pass.result.answer = answer(configuration, pass);
  } catch (const loop::NoCache& why) {
    throw Ended{why.status, why.what()};
  }
  const Index longest = std::max(std::ssize(pass.result.answer), count_), trained = machine_.model.training_context();
  if (begin_ + longest <= trained) return;
  pass.result.reason += fmt::format("{}answers reach beyond the {} tokens that the model was trained on",
                                    pass.result.reason.empty() ? "" : "; ", trained);
}

void DocumentRun::score(std::span<const float> logits, eval::PassResult& result) const {
  const std::size_t vocabulary = logits.size() / static_cast<std::size_t>(count_);
  const std::span full(full_logits_);
  result.tokens.resize(static_cast<std::size_t>(count_) - 1);
  parallel_for(result.tokens.size(), thread_count(machine_.options.how), [&](std::size_t i, std::size_t) {
    result.tokens[i] = eval::score_token(full.subspan(i * vocabulary, vocabulary),
                                         logits.subspan(i * vocabulary, vocabulary), document_.scored[i + 1]);
  });
}

void DocumentRun::add_errors(const std::vector<llama::LayerPass>& passes, eval::PassResult& result) const {
  for (eval::LayerErrors& errors : result.layers) {
    const auto layer = static_cast<std::size_t>(errors.layer);
    errors.drift = mean_drift(passes[layer].hidden, full_hidden_[layer], count_);
    errors.residual = mean(passes[layer].residual);
  }
}

}  // namespace kvbench::kveval
