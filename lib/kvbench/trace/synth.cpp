// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/synth.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>
#include <kvbench/trace/column_sums.hpp>
#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/patterns.hpp>

namespace kvbench::trace {
namespace {

void check_options(const SynthOptions& o) {
  const auto size = [](std::int64_t value, std::int64_t most, const char* field) {
    if (value < 1) throw Error("{} is {}; it must be at least 1.", field, value);
    if (value > most) throw Error("{} is {}; it must be at most {}.", field, value, most);
  };
  size(o.num_tokens, most_tokens, "`num_tokens`");
  size(o.prompt_tokens, most_tokens, "`prompt_tokens`");
  size(o.num_queries, most_tokens, "`num_queries`");
  size(o.layers, most_layers, "`layers`");
  size(o.query_heads, most_heads, "`query_heads`");
  size(o.kv_heads, most_heads, "`kv_heads`");
  size(o.head_dim, most_dimensions, "`head_dim`");
  size(o.value_dim, most_dimensions, "`value_dim`");
  size(o.prompts, most_prompts, "`prompts`");
  if (o.values_in_keys && o.value_dim > o.head_dim) {
    throw Error("`value_dim` is {}, more than `head_dim`, which is {}: the values are a part of the keys; lower it.",
                o.value_dim, o.head_dim);
  }
  size(o.clusters, most_tokens, "`clusters`");
  constexpr double most_described = 1 << 28, most_written = 1 << 22;  // 2 GiB of positions in memory; hours of writing
  const auto layers = static_cast<double>(o.prompts) * static_cast<double>(o.layers);
  if (static_cast<double>(o.prompts * o.num_tokens) + layers * static_cast<double>(o.num_queries) > most_described ||
      layers * static_cast<double>(o.query_heads) > most_written) {
    throw Error(
        "{} `prompts` of {} `layers`, {} `query_heads`, {} `num_tokens` and {} `num_queries` are too many; lower some "
        "of them.",
        o.prompts, o.layers, o.query_heads, o.num_tokens, o.num_queries);
  }
  if (o.prompt_tokens > o.num_tokens) {
    throw Error("`prompt_tokens` is {}, more than `num_tokens`, which is {}; lower it.", o.prompt_tokens, o.num_tokens);
  }
  if (o.num_queries > o.num_tokens) {
    throw Error("`num_queries` is {}, more than `num_tokens`, which is {}; lower it.", o.num_queries, o.num_tokens);
  }
  if (o.query_heads % o.kv_heads != 0) {
    throw Error("`query_heads` is {}, which is not a multiple of `kv_heads`, {}.", o.query_heads, o.kv_heads);
  }
  if (o.probes < 0 || o.probes > most_probes)
    throw Error("`probes` is {}; it must be from 0 to {}.", o.probes, most_probes);
  const std::int64_t scored = o.num_tokens - o.prompt_tokens;
  if (o.probes > 0 && (scored < 1 || scored > o.num_queries)) {
    throw Error(
        "`probes` are of the {} tokens after the context, and there are {} queries; give at least one such "
        "token, and as many `num_queries`.",
        scored, o.num_queries);
  }
  if (o.column_queries < 0) throw Error("`column_queries` is {}; it must be at least 0.", o.column_queries);
  constexpr double least = 1e-6, most = 1e6;  // squares and products of queries and keys stay normal in fp32
  if (!(o.spread >= 0 && o.spread <= most)) throw Error("`spread` is {}; it must be from 0 to {:.0e}.", o.spread, most);
  if (!(o.key_norm >= least && o.key_norm <= most))
    throw Error("`key_norm` is {}; it must be from {:.0e} to {:.0e}.", o.key_norm, least, most);
  if (!(std::abs(o.key_bias) <= most))
    throw Error("`key_bias` is {}; it must be from {:.0e} to {:.0e}.", o.key_bias, -most, most);
  if (o.speculation_error && !(*o.speculation_error >= 0 && *o.speculation_error <= most))
    throw Error("`speculation_error` is {}; it must be from 0 to {:.0e}.", *o.speculation_error, most);
}

std::string_view name_of(Pattern pattern) {
  static constexpr std::string_view names[] = {"gaussian", "clusters", "sinks", "heavy_hitters", "needle"};
  return name_in(names, pattern);
}

constexpr std::int64_t sketch_columns = 64;

LayerInfo describe_layer(const SynthOptions& options, std::int64_t index) {
  LayerInfo layer;
  layer.layer = static_cast<int>(index);
  layer.scale = 1 / std::sqrt(static_cast<double>(options.head_dim));
  layer.query_positions.resize(static_cast<std::size_t>(options.num_queries));
  std::iota(layer.query_positions.begin(), layer.query_positions.end(), options.num_tokens - options.num_queries);
  layer.values_in_keys = options.values_in_keys;
  if (options.column_sums) layer.column_sums_end = options.prompt_tokens;
  layer.speculated_queries = options.speculation_error.has_value();
  layer.probes = layer.residual_norm = options.probes > 0;
  if (options.probes > 0) layer.output_sketch = {.columns = sketch_columns, .seed = options.seed};
  return layer;
}

TraceInfo describe(const SynthOptions& options) {
  TraceInfo info;
  info.model = fmt::format("synthetic-{}", name_of(options.pattern));
  info.arch = "synthetic";
  info.source_tool = "kvbench synth";
  info.source_version = fmt::format("pattern={} clusters={} spread={} key_norm={} seed={}", name_of(options.pattern),
                                    options.clusters, options.spread, options.key_norm, options.seed);
  if (options.key_bias != 0) info.source_version += fmt::format(" key_bias={}", options.key_bias);
  if (options.speculation_error) info.source_version += fmt::format(" speculated={}", *options.speculation_error);
  if (options.column_sums) info.source_version += fmt::format(" isa={}", kvbench::name_of(options.isa));
  if (options.column_sums && options.column_queries > 0) {
    info.source_version += fmt::format(" column_queries={}", options.column_queries);
  }
  info.num_layers = options.layers;
  info.num_query_heads = options.query_heads;
  info.num_kv_heads = options.kv_heads;
  info.head_dim = options.head_dim;
  info.value_dim = options.value_dim;
  info.rope_type = "none";
  info.rope_layout = "half";
  info.dtype = options.dtype;
  for (std::int64_t p = 0; p < options.prompts; ++p) {
    PromptInfo prompt;
    prompt.id = std::to_string(p);
    prompt.name = fmt::format("{}-{}", name_of(options.pattern), p);
    prompt.num_tokens = options.num_tokens;
    prompt.prompt_tokens = options.prompt_tokens;
    prompt.tokens.resize(static_cast<std::size_t>(options.num_tokens));
    std::iota(prompt.tokens.begin(), prompt.tokens.end(), 0);
    if (options.probes > 0)
      prompt.probes = {options.probes, options.num_tokens - options.prompt_tokens, options.seed, "synthetic"};
    for (std::int64_t l = 0; l < options.layers; ++l) prompt.layers.push_back(describe_layer(options, l));
    info.prompts.push_back(std::move(prompt));
  }
  return info;
}

/// Rounds the values to the type of the trace, so that derived arrays match what a reader gets.
std::vector<float> stored(std::vector<float> values, Dtype dtype) {
  if (dtype == Dtype::f32) return values;
  for (float& x : values) x = widen(narrow(x, dtype), dtype);
  return values;
}

/// Positions of the queries from which column sums are computed: the last of each of equal parts of the context.
std::vector<std::int64_t> summed_positions(const SynthOptions& options) {
  const std::int64_t end = options.prompt_tokens;
  const std::int64_t count = options.column_queries > 0 ? std::min(options.column_queries, end) : end;
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 1; i <= count; ++i) positions.push_back(i * end / count - 1);
  return positions;
}

/// Writes the arrays of one kv head and its query heads. Random numbers and column sums take one thread per back
/// end, HDF5 one. `step` is told the share of the column sums that is done, and may throw.
class HeadWriter {
 public:
  using Step = std::function<void(double share)>;
  HeadWriter(Writer& writer, const TraceInfo& info, const SynthOptions& options, Place place, const Backends& backends,
             Step step)
      : writer_(writer),
        info_(info),
        options_(options),
        place_(place),
        backends_(backends),
        step_(std::move(step)),
        head_(options, place),
        asked_{options.num_tokens - options.num_queries, options.num_tokens} {}

  void write() const {
    const Rows all{0, options_.num_tokens};
    write_blocks(Array::keys, place_.kv_head, all, [&](Rows rows) { return head_.keys(rows); });
    if (!options_.values_in_keys)
      write_blocks(Array::values, place_.kv_head, all, [&](Rows rows) { return head_.values(rows); });
    for (std::int64_t g = 0; g < info_.group(); ++g) write_query_head(first_head() + g);
    if (options_.column_sums) write_column_sums();
    if (options_.probes > 0 && place_.kv_head == 0) {
      const auto channels = static_cast<float>(options_.query_heads * options_.value_dim);
      write_rows(
          Array::residual_norm, 0, 0,
          std::vector<float>(static_cast<std::size_t>(options_.num_queries), synth_stream * std::sqrt(channels)));
    }
  }

 private:
  std::int64_t first_head() const { return place_.kv_head * info_.group(); }
  std::int64_t dim_of(Array array) const { return array == Array::values ? options_.value_dim : options_.head_dim; }

  void write_rows(Array array, std::int64_t head, std::int64_t first, std::span<const float> data) const {
    writer_.write_rows(place_.prompt, place_.layer, array, head, first, data);
  }

  /// draw(rows), which has `dim` columns, by all threads.
  template <class F>
  std::vector<float> drawn(Rows rows, std::int64_t dim, F draw) const {
    constexpr std::int64_t part = 1024;
    const std::int64_t count = rows.end - rows.begin;
    std::vector<float> all(static_cast<std::size_t>(count * dim));
    parallel_for(static_cast<std::size_t>((count + part - 1) / part), backends_.size(),
                 [&](std::size_t i, std::size_t) {
                   const std::int64_t begin = static_cast<std::int64_t>(i) * part;
                   std::ranges::copy(draw(Rows{rows.begin + begin, std::min(rows.end, rows.begin + begin + part)}),
                                     all.begin() + begin * dim);
                 });
    return all;
  }

  /// Writes draw(rows) for blocks of `range`; its first row is row 0 of the array.
  template <class F>
  void write_blocks(Array array, std::int64_t head, Rows range, F draw) const {
    constexpr std::int64_t elements = 1 << 21;  // 8 MiB: large writes, small buffers
    const std::int64_t dim = dim_of(array), block = std::max<std::int64_t>(1, elements / dim);
    for (std::int64_t begin = range.begin; begin < range.end; begin += block) {
      write_rows(array, head, begin - range.begin, drawn(Rows{begin, std::min(range.end, begin + block)}, dim, draw));
      step_(0);
    }
  }

  void write_query_head(std::int64_t head) const {
    write_blocks(Array::queries, head, asked_, [&](Rows rows) { return head_.queries(head, rows); });
    if (options_.probes > 0) write_probes(head);
    if (!options_.speculation_error) return;
    write_blocks(Array::speculated_queries, head, asked_, [&](Rows rows) {
      return head_.guesses(head, rows, head_.queries(head, rows), *options_.speculation_error);
    });
  }

  void write_probes(std::int64_t head) const {
    write_rows(Array::output_sketch, head, 0, head_.sketch(head, sketch_columns));
    const std::int64_t tokens = info_.prompts[place_.prompt].probes->tokens;
    for (std::int64_t row = 0; row < options_.probes * tokens; row += tokens)
      write_rows(Array::probes, head, row, head_.probes(head, {row, row + tokens}));
  }

  void write_column_sums() const {
    const std::int64_t d = options_.head_dim, context = options_.prompt_tokens, group = info_.group();
    CausalQueries queries{.heads = group,
                          .positions = summed_positions(options_),
                          .scale = info_.prompts[place_.prompt].layers[place_.layer].scale};
    queries.rows = [&](std::size_t begin, std::size_t end) {
      std::vector<float> rows;
      for (std::int64_t g = 0; g < group; ++g) {
        for (std::size_t i = begin; i < end; ++i) {
          const std::int64_t at = queries.positions[i];
          std::ranges::copy(stored(head_.queries(first_head() + g, {at, at + 1}), options_.dtype),
                            std::back_inserter(rows));
        }
      }
      return rows;
    };
    const std::vector<double> sums =
        column_sums(drawn({0, context}, d, [&](Rows rows) { return stored(head_.keys(rows), options_.dtype); }), d,
                    queries, backends_, step_);
    const double weight = static_cast<double>(context) / static_cast<double>(queries.positions.size());
    for (std::int64_t g = 0; g < group; ++g) {
      std::vector<float> row(static_cast<std::size_t>(options_.num_tokens));
      std::transform(sums.begin() + g * context, sums.begin() + (g + 1) * context, row.begin(),
                     [&](double sum) { return static_cast<float>(weight * sum); });
      write_rows(Array::column_sums, first_head() + g, 0, row);
    }
  }

  Writer& writer_;
  const TraceInfo& info_;
  const SynthOptions& options_;
  Place place_;
  const Backends& backends_;
  Step step_;
  SynthHead head_;
  Rows asked_;  ///< tokens whose queries are stored
};

}  // namespace

void synthesize(const std::string& path, const SynthOptions& options, const SynthRun& run) {
  check_options(options);
  const TraceInfo info = describe(options);
  Writer writer(path, info, {.compress = options.compress});
  Backends backends(allowed_threads(run.threads));
  for (auto& backend : backends) backend = make_cpu_backend(options.isa);
  const std::int64_t total = options.prompts * options.layers * options.query_heads;
  std::int64_t finished = 0;
  const auto show = [&](double heads) {
    if (run.progress) run.progress(heads, total);
    if (run.stop != nullptr && *run.stop) throw Interrupted();
  };
  for (std::uint32_t p = 0; p < info.prompts.size(); ++p) {
    for (std::uint32_t l = 0; l < info.prompts[p].layers.size(); ++l) {
      for (std::uint32_t h = 0; h < static_cast<std::uint32_t>(options.kv_heads); ++h) {
        const auto step = [&](double share) {
          show(static_cast<double>(finished) + share * static_cast<double>(info.group()));
        };
        HeadWriter(writer, info, options, {p, l, h}, backends, step).write();
        show(static_cast<double>(finished += info.group()));
      }
    }
  }
  writer.commit();
}

}  // namespace kvbench::trace
