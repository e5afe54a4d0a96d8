// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/replay/plan/needs.hpp>
#include <kvbench/replay/records/anchors.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/trace/layer_spread.hpp>
#include <kvbench/trace/reader.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/flag_names.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/rows/shared_flags.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/rounding_rows.hpp>

namespace kvbench::app {
namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

std::string positions_text(const std::vector<std::int64_t>& positions, std::int64_t context) {
  if (positions.empty()) return "none";
  const auto inside = std::ranges::lower_bound(positions, context) - positions.begin();
  return fmt::format("{} in {}..{} ({} inside the context)", positions.size(), positions.front(), positions.back(),
                     inside);
}

/// What a layer holds, without its number.
std::string layer_text(const trace::LayerInfo& layer, std::int64_t context) {
  std::string out =
      fmt::format("queries {}, scale {:.6g}", positions_text(layer.query_positions, context), layer.scale);
  if (layer.window > 0) out += fmt::format(", sliding window {}", layer.window);
  if (layer.softcap > 0) out += fmt::format(", softcap {}", layer.softcap);
  if (layer.column_sums_end) out += fmt::format(", column sums to {}", *layer.column_sums_end);
  if (layer.keys_pre_rope) out += ", pre-RoPE keys";
  if (layer.speculated_queries) out += ", speculated queries";
  if (layer.attention_output) out += ", attention output";
  if (layer.residual_norm) out += ", residual norms";
  if (layer.output_sketch) {
    out += fmt::format(", sketch of W_O ({} columns", layer.output_sketch->columns);
    if (layer.output_sketch->misfit > 0)
      out += fmt::format("; linear to within {:.0f} %", 100 * layer.output_sketch->misfit);
    out += ")";
  }
  if (layer.probes) out += ", probes";
  return out;
}

/// One line per group of layers that hold the same.
std::string contents_text(const trace::PromptInfo& prompt) {
  OrderedMap<std::string, std::vector<std::int64_t>> groups;
  for (const trace::LayerInfo& layer : prompt.layers)
    groups[layer_text(layer, prompt.prompt_tokens)].push_back(layer.layer);
  std::string out;
  for (const auto& [text, layers] : groups.items()) {
    const bool every = layers.size() > 1 && layers.size() == prompt.layers.size();
    out += every
               ? fmt::format("    each layer {}\n", text)
               : fmt::format("    {} {}: {}\n", layers.size() == 1 ? "layer" : "layers", fmt::join(layers, ", "), text);
  }
  return out;
}

/// What the probes of a prompt can tell apart.
std::string probes_text(const trace::PromptInfo& prompt) {
  if (!prompt.probes) return "";
  const trace::Probes& probes = *prompt.probes;
  return fmt::format(
      "    probes     {} of {} scored tokens, evaluated in {}, seed {}; a KL predicted from them alone has a relative "
      "standard deviation of about {:.0f} %\n",
      probes.count, probes.tokens, or_unknown(probes.evaluated_in), probes.seed,
      100 * std::sqrt(2.0 / static_cast<double>(probes.count)));
}

/// What the probes of all prompts can tell apart together; that of a single prompt says it itself.
std::string all_probes_text(const trace::TraceInfo& info) {
  std::int64_t documents = 0, count = 0;
  for (const trace::PromptInfo& prompt : info.prompts) {
    if (!prompt.probes) continue;
    documents += 1, count += prompt.probes->count;
  }
  if (documents == 0) return "none; kvbench-dump-hf --probes R records them";
  if (documents == 1) return fmt::format("in {} of {} prompts", documents, info.prompts.size());
  return fmt::format(
      "{} of {} prompts; together they tell predicted KLs apart to about {:.0f} %, beside what differs "
      "between documents",
      documents, info.prompts.size(), 100 * std::sqrt(2.0 / static_cast<double>(count)));
}

/// "; measured / predicted KL: rounded 1.1 (6), dropped 1.4 (6)".
std::string ratios_text(std::span<const replay::ReplayFrame::Prompt> prompts) {
  std::vector<std::string> parts;
  for (const auto& [kind, word] :
       {std::pair(replay::ChangeKind::rounded, "rounded"), std::pair(replay::ChangeKind::dropped, "dropped or merged"),
        std::pair(replay::ChangeKind::both, "both")}) {
    const replay::AnchorRatio ratio = replay::anchor_ratio(prompts, kind);
    if (ratio.anchors > 1) parts.push_back(fmt::format("{} {:.2g} (of {})", word, ratio.factor, ratio.anchors));
  }
  return parts.empty() ? "" : fmt::format("; measured / predicted KL: {}", fmt::join(parts, ", "));
}

/// How many configurations were measured in the model, by which versions, and by what predictions are off; "" where
/// none was.
std::string anchors_text(const trace::TraceInfo& info) {
  std::size_t count = 0;
  std::set<std::string> versions;
  for (const trace::PromptInfo& prompt : info.prompts) {
    if (!prompt.anchors) continue;
    count += prompt.anchors->list.size();
    versions.insert(or_unknown(prompt.anchors->version));
  }
  const std::vector<replay::ReplayFrame::Prompt> prompts = replay::anchored_prompts(info);
  if (count == 0) return "";
  return fmt::format("  anchors      {} in {} of {} prompts, measured by kvbench {}{}\n", count, prompts.size(),
                     info.prompts.size(), fmt::join(versions, ", "), ratios_text(prompts));
}

std::string methods_text(const replay::RunnableMethods& methods) {
  if (!methods.error.empty())
    return fmt::format("    no replay with default flags: {}\n", with_flags(methods.error, "replay"));
  std::string out = fmt::format("    feeds      {}\n", fmt::join(methods.can, ", "));
  if (!methods.cannot.empty()) out += fmt::format("    lacks data for {}\n", fmt::join(methods.cannot, ", "));
  return out;
}

std::vector<std::int64_t> numbers_of(const trace::PromptInfo& prompt, bool with_methods = false) {
  std::vector<std::int64_t> numbers;
  for (const trace::LayerInfo& layer : prompt.layers) {
    if (!with_methods || layer.has_methods()) numbers.push_back(layer.layer);
  }
  return numbers;
}

/// Which layers the trace has, in which of them methods run, and for what comparisons hold.
std::string layers_text(const trace::PromptInfo& prompt, const trace::TraceInfo& trace) {
  const std::vector<std::int64_t> all = numbers_of(prompt), runs = numbers_of(prompt, true);
  std::string out = trace::describe_spread(all, trace.layers_behind(all.size()));
  if (!trace.cache_layers.empty())
    out += fmt::format("; {} of the model's {} layers have a cache", trace.num_caches(), trace.num_layers);
  if (runs.size() < all.size())
    out +=
        fmt::format("; methods run in {} ({}), without sliding window and softcap", runs.size(), fmt::join(runs, ", "));
  return out;
}

/// Whether all prompts have the same layers.
bool same_layers(const trace::TraceInfo& info) {
  return std::ranges::all_of(
      info.prompts, [&](const auto& prompt) { return numbers_of(prompt) == numbers_of(info.prompts.front()); });
}

std::string tokens_text(const trace::PromptInfo& prompt) {
  return fmt::format("    tokens     {}, context {}, decoded {}\n", prompt.num_tokens, prompt.prompt_tokens,
                     prompt.num_tokens - prompt.prompt_tokens);
}

std::string spans_text(const trace::PromptInfo& prompt) {
  std::vector<std::string> spans;
  for (const trace::Span& span : prompt.spans)
    spans.push_back(fmt::format("{} [{}, {})", span.name, span.begin, span.end));
  return spans.empty() ? "" : fmt::format("    spans      {}\n", listed(spans));
}

/// The prompts with what differs between them; what all of them have in common comes last, once.
std::string prompts_text(const trace::TraceInfo& info, bool alike) {
  const std::vector<replay::RunnableMethods> methods = replay::runnable_methods(info);
  std::vector<std::vector<std::string>> aspects(6);  // texts of all prompts about one thing
  std::vector<std::string> names;
  for (std::size_t p = 0; p < info.prompts.size(); ++p) {
    const trace::PromptInfo& prompt = info.prompts[p];
    names.push_back(fmt::format("{}{}", prompt.id, prompt.name.empty() ? "" : " (" + prompt.name + ")"));
    aspects[0].push_back(tokens_text(prompt));
    aspects[1].push_back(probes_text(prompt));
    aspects[2].push_back(alike ? "" : fmt::format("    layers     {}\n", layers_text(prompt, info)));
    aspects[3].push_back(contents_text(prompt));
    aspects[4].push_back(methods_text(methods[p]));
    aspects[5].push_back(spans_text(prompt));
  }
  std::vector<std::string> own(names.size());
  std::string common;
  for (const std::vector<std::string>& texts : aspects) {
    if (std::ranges::count(texts, texts.front()) == std::ssize(texts)) {
      common += texts.front();
    } else {
      for (std::size_t p = 0; p < own.size(); ++p) own[p] += texts[p];
    }
  }
  if (names.size() == 1) return fmt::format("  prompt {}\n{}", names[0], common);
  std::string out;
  if (std::ranges::count(own, "") == std::ssize(own)) {
    out = fmt::format("  prompts      {}\n", fmt::join(names, ", "));
  } else {
    for (std::size_t p = 0; p < own.size(); ++p) out += fmt::format("  prompt {}\n{}", names[p], own[p]);
  }
  return out + (common.empty() ? "" : "  every prompt\n" + common);
}

std::string describe(const trace::Reader& reader) {
  const trace::TraceInfo& info = reader.info();
  std::string out = fmt::format("{}\n", reader.path());
  out += fmt::format("  model        {} ({}, {})\n", info.model, or_unknown(info.arch), or_unknown(info.quantisation));
  out += fmt::format("  made by      {} {} at {}\n", or_unknown(info.source_tool), info.source_version,
                     or_unknown(info.created));
  out += fmt::format("  heads        {} query, {} kv; head size {} (values {})\n", info.num_query_heads,
                     info.num_kv_heads, info.head_dim, info.value_dim);
  if (info.values_in_keys()) {
    out += fmt::format(
        "  latent       the values are the first {} channels of the keys (MLA): a token takes {} numbers per kv head\n",
        info.value_dim, info.token_numbers());
  }
  const bool alike = same_layers(info);
  out += fmt::format("  layers       {}\n",
                     alike ? layers_text(info.prompts.at(0), info) : fmt::format("{} in the model", info.num_layers));
  out += fmt::format("  probes       {}\n", all_probes_text(info)) + anchors_text(info);
  out += fmt::format("  RoPE         {}, {} pairs\n  stored as    {}\n  sha256       {}\n", info.rope_type,
                     info.rope_layout, name_of(info.dtype), reader.sha256());
  return out + prompts_text(info, alike);
}

/// A row of the table for programs.
struct LayerRow {
  const trace::TraceInfo& trace;
  const trace::PromptInfo& prompt;
  const trace::LayerInfo& layer;
  std::string sha256;
};

std::string layer_table(const trace::Reader& reader, const std::string& format) {
  const auto column = [](const char* key, auto of) {
    return report::Column<LayerRow>{key, "", report::value_where<LayerRow>(report::always, of)};
  };
  const std::vector<report::Column<LayerRow>> columns = {
      column("sha256", [](const LayerRow& r) { return r.sha256; }),
      column("model", [](const LayerRow& r) { return r.trace.model; }),
      column("model_layers", [](const LayerRow& r) { return r.trace.num_layers; }),
      column("query_heads", [](const LayerRow& r) { return r.trace.num_query_heads; }),
      column("kv_heads", [](const LayerRow& r) { return r.trace.num_kv_heads; }),
      column("head_dim", [](const LayerRow& r) { return r.trace.head_dim; }),
      column("value_dim", [](const LayerRow& r) { return r.trace.value_dim; }),
      column("prompt", [](const LayerRow& r) { return r.prompt.id; }),
      column("name", [](const LayerRow& r) { return r.prompt.name; }),
      column("tokens", [](const LayerRow& r) { return r.prompt.num_tokens; }),
      column("prompt_tokens", [](const LayerRow& r) { return r.prompt.prompt_tokens; }),
      column("layer", [](const LayerRow& r) { return r.layer.layer; }),
      column("queries", [](const LayerRow& r) { return std::ssize(r.layer.query_positions); }),
      column("window", [](const LayerRow& r) { return r.layer.window; }),
      column("probes", [](const LayerRow& r) { return r.layer.probes ? r.prompt.probes->count : 0; }),
      column("scored_tokens", [](const LayerRow& r) { return r.layer.probes ? r.prompt.probes->tokens : 0; })};
  std::vector<LayerRow> rows;
  for (const trace::PromptInfo& prompt : reader.info().prompts) {
    for (const trace::LayerInfo& layer : prompt.layers) rows.push_back({reader.info(), prompt, layer, reader.sha256()});
  }
  return report::table_of(format, std::span<const report::Column<LayerRow>>(columns), std::span<const LayerRow>(rows));
}

}  // namespace

namespace {

struct InfoFlags {
  std::string path, format, output;
  bool rounding = false, every_head = false, quiet = false;
  int threads = 0;
};

int run(const CLI::App& flags, const InfoFlags& o) {
  if (!o.rounding)
    refuse_without_effect(flags, {"--rows", "-j"}, "without --rounding, which measures what rounding the keys does");
  const bool text = o.format.empty() || o.format == "text";
  if (o.format == "md") throw Error("-o {}: info writes text, csv or json; end the name with .csv or .json", o.output);
  if (!text) refuse_without_effect(flags, {"--rows"}, "on csv and json, which have a row for each format of each head");
  check_distinct(std::vector<NamedFile>{{"-o", o.output}}, std::vector<NamedFile>{{"the trace", o.path}});
  const trace::Reader reader(o.path);
  Output output(o.output);
  if (!o.rounding) {
    output.finish(text ? describe(reader) : layer_table(reader, o.format));
    return done;
  }
  const std::vector<rounding::HeadRounding> heads = measure_rounding(reader, o.threads, o.quiet);
  output.finish(text ? rounding_text(heads, o.every_head) : rounding_table(reader, heads, o.format));
  return done;
}

}  // namespace

Command add_info(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("info", "Describe a trace, and list the methods that can run on it");
  auto options = std::make_shared<InfoFlags>();
  InfoFlags& o = *options;
  flags->parse_complete_callback([options] { imply_format(options->format, options->output); });
  flags->add_option("trace", o.path, "Trace file (.h5)")->required();
  flags->add_flag("--rounding", o.rounding,
                  "Measure instead what rounding its keys does to the attention, by format: which layers need more "
                  "bits, and why (docs/key-biases.md)");
  add_choice(flags, "--rows", o.every_head, {{"layer", false}, {"head", true}},
             "With --rounding: the worst kv head of each layer, or every head (default: layer)");
  flags
      ->add_option("--format", o.format,
                   "text, or csv or json (one row per layer of a prompt, with --rounding per kv head and format; "
                   "default: what the name of the output ends with, else text)")
      ->check(one_of({"text", "csv", "json"}));
  flags->add_option("-o,--output", o.output, "Output file, written atomically (default: standard output)");
  flags
      ->add_option("-j,--threads", o.threads,
                   "With --rounding: number of threads (default: OMP_NUM_THREADS, else all processors)")
      ->check(number_in(0, 4096));
  flags->add_flag("-q,--quiet", o.quiet, "Do not show a progress bar");
  return {flags, [flags, options] { return run(*flags, *options); }};
}

}  // namespace kvbench::app
