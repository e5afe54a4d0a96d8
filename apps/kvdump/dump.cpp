// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/dump.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <apps/common/model_files.hpp>
#include <apps/common/program.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvdump/prompt.hpp>
#include <apps/kvdump/record.hpp>
#include <apps/kvdump/self_check.hpp>
#include <apps/llama/convert.hpp>
#include <apps/llama/passes.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/core/parallel_for.hpp>

namespace kvbench::kvdump {
namespace {

/// One line on stderr with rate and remaining time, updated at most five times per second. Not shown where stderr is
/// not a terminal, where NO_COLOR or CI is set, and where `quiet`.
class Progress {
 public:
  Progress(std::int64_t total_tokens, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void advance(std::int64_t tokens);
  void stage(const char* what);  ///< shows the name of work that is not counted in tokens

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t total_;
  bool visible_;
  std::int64_t done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = {};
};

constexpr const char* erase_line = "\r\033[K";

Progress::Progress(std::int64_t total_tokens, bool quiet)
    : total_(total_tokens),
      visible_(!quiet && isatty(STDERR_FILENO) == 1 && !std::getenv("NO_COLOR") && !std::getenv("CI")) {}

Progress::~Progress() {
  if (visible_) app::try_to_show(erase_line);
}

void Progress::advance(std::int64_t tokens) {
  done_ += tokens;
  const auto now = Clock::now();
  if (!visible_ || now - shown_ < std::chrono::milliseconds(200)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_) / seconds;
  const double left = static_cast<double>(total_ - done_) / rate;
  app::try_to_show(
      fmt::format("{}kvdump: {} of {} tokens, {:.0f} tokens/s, {:.0f} s left", erase_line, done_, total_, rate, left));
}

void Progress::stage(const char* what) {
  if (visible_) app::try_to_show(fmt::format("{}kvdump: {}", erase_line, what));
}

}  // namespace

using namespace llama;

namespace {

/// Checks the output path before the model runs, which takes minutes.
void check_output(const Options& options) {
  const std::filesystem::path path(options.output);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw Error("-o {}: is a folder; give the name of a file", options.output);
  check_replaceable(options.output);
  std::vector<NamedFile> inputs{{"the model", options.model}};
  for (const std::string& text : options.texts) inputs.push_back({"the text", text});
  for (const std::string& ids : options.ids) inputs.push_back({"the file of token ids", ids});
  for (const std::string& talks : options.transcripts) inputs.push_back({"the file of conversations", talks});
  check_distinct(std::vector<NamedFile>{{"-o", options.output}}, inputs);
  if (std::filesystem::exists(path, error) && !options.force) {
    throw Error("-o {}: this file exists; give --force to replace it, or another name", options.output);
  }
  if (!std::filesystem::is_directory(folder, error)) {
    throw IoError("-o {}: there is no folder {}; create it first", options.output, folder.string());
  }
  if (access(folder.c_str(), W_OK) != 0)
    throw IoError("-o {}: the folder {} is not writable", options.output, folder.string());
}

/// The longest prompt is first, because it exceeds the window of each layer and so determines the parameters for
/// shorter prompts.
std::vector<std::size_t> running_order(const std::vector<Prompt>& prompts) {
  std::vector<std::size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return prompts[a].tokens.size() > prompts[b].tokens.size(); });
  return order;
}

std::vector<LayerCapture> run_prompt(Prompt& prompt, Context& context, Capture& capture, Progress& progress) {
  context.clear();
  capture.start_prompt(std::ssize(prompt.tokens), prompt.query_positions, prompt.prompt_tokens);
  run_batches(context, capture, prompt.tokens, prompt.batches, [&](int count) { progress.advance(count); });
  return capture.take();
}

/// Returns the largest error over layers and heads.
double check_layers(const std::vector<LayerCapture>& layers, const Prompt& prompt, int threads) {
  double largest = 0;
  for (const LayerCapture& layer : layers) {
    app::stop_if_requested();
    std::vector<double> errors(static_cast<std::size_t>(layer.query_heads));
    parallel_for(errors.size(), static_cast<std::size_t>(threads), [&](std::size_t head, std::size_t) {
      errors[head] = output_error(layer, static_cast<std::int64_t>(head));
    });
    for (std::int64_t head = 0; head < layer.query_heads; ++head) {
      if (!(errors[head] <= check_tolerance)) {
        throw CheckFailed(
            "the self check failed: prompt '{}', layer {}, query head {}: attention over the captured queries, keys "
            "and values differs from the output of the model by {:.2g} (tolerance {:.0e}). kvdump does not support the "
            "attention of this model; no trace was written. Exclude the layer with --layers, or report the model.",
            prompt.name, layer.layer, head, errors[head], check_tolerance);
      }
      largest = std::max(largest, errors[head]);
    }
  }
  return largest;
}

void add_sketches(std::vector<LayerCapture>& layers, const ResidualPath& path, Sketches& sketches, Progress& progress) {
  progress.stage("sketching what attention adds to the residual stream");
  for (LayerCapture& layer : layers) {
    app::stop_if_requested();
    sketches.add(layer, path);
  }
}

/// The layers without a sketch, as a sentence; empty where all have one.
std::string without_sketch(const std::vector<LayerCapture>& layers, const Sketches& sketches) {
  std::vector<int> missing;
  for (const LayerCapture& layer : layers) {
    if (sketches.of(layer.layer).matrix.empty()) missing.push_back(layer.layer);
  }
  if (missing.empty()) return "";
  return fmt::format(
      "what attention adds to the residual stream was not found in layer {}, or is zero; residual_norm and "
      "output_sketch are left out there",
      fmt::join(missing, ", "));
}

/// A prompt that fits into the window does not show the length of the window.
void require_same_parameters(const std::vector<LayerCapture>& first, const std::vector<LayerCapture>& layers) {
  for (std::size_t slot = 0; slot < layers.size(); ++slot) {
    LayerParameters seen = layers[slot].parameters;
    const auto& expected = first[slot].parameters;
    if (seen.window == 0 && expected.window >= layers[slot].num_tokens) seen.window = expected.window;
    if (seen != expected) {
      throw Error("layer {}: the attention parameters of the model change between prompts; write one trace per prompt",
                  layers[slot].layer);
    }
  }
}

void release_arrays(std::vector<LayerCapture>& layers) {
  for (auto& layer : layers) {
    LayerCapture small;
    small.layer = layer.layer;
    small.parameters = layer.parameters;
    layer = std::move(small);
  }
}

}  // namespace

void dump(const Options& options) {
  check_output(options);
  quiet_llama();
  llama_backend_init();
  const int threads = thread_count(options.threads);

  const Model source(options.model);
  if (options.tokens_only) return write_tokens(options, source);
  source.refuse_unsupported();
  const std::vector<int> selected =
      options.layers == "all" ? source.cached_layers() : parse_layers(options.layers, source.num_layers());
  source.require_cached(selected, "--layers");
  CaptureOptions wanted = capture_options(source, selected, threads);
  wanted.pre_rope = options.pre_rope;
  wanted.column_sums = options.column_sums;
  wanted.speculated = options.speculated;
  wanted.residual_norm = options.sketch;
  std::vector<Prompt> prompts = read_prompts(options, source);
  const auto order = running_order(prompts);
  const std::int64_t total =
      std::accumulate(prompts.begin(), prompts.end(), std::int64_t{0},
                      [](std::int64_t sum, const Prompt& prompt) { return sum + std::ssize(prompt.tokens); });
  Progress progress(total, options.quiet);
  std::optional<Model> converted;
  if (options.f32 && !source.is_f32()) {
    progress.stage("converting the weights to fp32 (once)");
    converted.emplace(converted_to_f32(source, app::model_sha256(options.model), threads));
  }
  const Model& model = converted ? *converted : source;
  Capture capture(wanted);
  Context context(model, {.num_tokens = std::ssize(prompts[order.front()].tokens),
                          .threads = threads,
                          .shorter = "--ctx",
                          .on_node = Capture::on_node,
                          .stop = Capture::stop,
                          .user_data = &capture});

  std::unique_ptr<trace::Writer> writer;
  std::vector<LayerCapture> first;
  Sketches sketches(options.seed);
  double largest_error = 0;
  for (const std::size_t index : order) {
    auto layers = run_prompt(prompts[index], context, capture, progress);
    if (options.check) {
      progress.stage("checking against the attention output of the model");
      largest_error = std::max(largest_error, check_layers(layers, prompts[index], threads));
    }
    if (options.sketch) add_sketches(layers, capture.residual_path(), sketches, progress);
    if (!options.attention_output) {
      for (auto& layer : layers) layer.output = {};
    }
    if (writer) {
      require_same_parameters(first, layers);
    } else {
      const auto info = describe(options, model, source.quantisation(), prompts, layers, sketches);
      writer = std::make_unique<trace::Writer>(options.output, info, trace::WriteOptions{options.compress});
    }
    progress.stage("writing");
    write_prompt(*writer, index, layers, sketches);
    if (first.empty()) first = std::move(layers), release_arrays(first);
  }
  app::stop_if_requested();
  writer->commit();
  if (options.quiet) return;
  if (const std::string note = without_sketch(first, sketches); options.sketch && !note.empty())
    app::say("kvdump", note);
  app::say("kvdump",
           fmt::format("{}: {} tokens, {} layer{}; {}", options.output, total, wanted.layers.size(),
                       wanted.layers.size() == 1 ? "" : "s",
                       options.check
                           ? fmt::format("largest difference from the attention of the model {:.1e}", largest_error)
                           : std::string("not checked against the attention of the model")));
}

}  // namespace kvbench::kvdump
