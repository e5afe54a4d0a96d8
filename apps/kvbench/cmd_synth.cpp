// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/synth.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/progress.hpp>
#include <apps/common/rows/shared_flags.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvbench/commands.hpp>

namespace kvbench::app {
namespace {

struct SynthFlags {
  trace::SynthOptions synth;
  std::string path;
  int threads = 0;
  bool quiet = false;
  std::optional<Isa> isa;
};

const std::map<std::string, trace::Pattern> patterns = {{"gaussian", trace::Pattern::gaussian},
                                                        {"clusters", trace::Pattern::clusters},
                                                        {"sinks", trace::Pattern::sinks},
                                                        {"heavy-hitters", trace::Pattern::heavy_hitters},
                                                        {"needle", trace::Pattern::needle}};
const std::map<std::string, trace::Dtype> dtypes = {
    {"f32", trace::Dtype::f32}, {"f16", trace::Dtype::f16}, {"bf16", trace::Dtype::bf16}};

void check_effects(const CLI::App& flags, const trace::SynthOptions& synth) {
  if (synth.pattern != trace::Pattern::clusters)
    refuse_without_effect(flags, {"--clusters", "--spread"}, "without --pattern clusters");
  if (!synth.column_sums)
    refuse_without_effect(flags, {"--column-queries", "--isa"}, "beside --column-sums false, which stores none");
}

/// The defaults are those of 4096 tokens; of fewer, as much is context and has queries as there is.
void fit_defaults(const CLI::App& flags, trace::SynthOptions& synth) {
  if (flags.count("--prompt-tokens") == 0)
    synth.prompt_tokens = std::min(synth.prompt_tokens, synth.num_tokens * 15 / 16);
  if (flags.count("--queries") == 0) synth.num_queries = std::min(synth.num_queries, synth.num_tokens);
}

}  // namespace

Command add_synth(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("synth", "Write a synthetic trace with a known structure");
  auto options = std::make_shared<SynthFlags>();
  trace::SynthOptions& synth = options->synth;
  flags->add_option("-o,--output", options->path, "Trace to write")->required();
  add_choice(flags, "--pattern", synth.pattern, patterns, "gaussian, clusters, sinks, heavy-hitters or needle");
  const auto count = [&](const char* name, std::int64_t& value, const char* text) {
    flags->add_option(name, value, text)->check(number_in<std::int64_t>())->capture_default_str();
  };
  count("--tokens", synth.num_tokens, "Tokens per prompt");
  count("--prompt-tokens", synth.prompt_tokens, "Tokens of the context per prompt");
  count("--queries", synth.num_queries, "Number of last positions whose queries are stored");
  count("--layers", synth.layers, "Layers");
  count("--query-heads", synth.query_heads, "Query heads");
  count("--kv-heads", synth.kv_heads, "Key/value heads");
  count("--head-dim", synth.head_dim, "Dimension of keys");
  count("--value-dim", synth.value_dim, "Dimension of values");
  flags->add_flag("--latent", synth.values_in_keys,
                  "MLA: the values are the first channels of the keys, as many as --value-dim, and stored once");
  count("--prompts", synth.prompts, "Prompts");
  count("--clusters", synth.clusters, "Number of clusters of keys (pattern clusters)");
  flags
      ->add_option("--spread", synth.spread,
                   "Standard deviation within a cluster, relative to the distance between centres")
      ->check(number_in<double>())
      ->capture_default_str();
  flags->add_option("--key-norm", synth.key_norm, "Typical norm of a key")
      ->check(number_in<double>())
      ->capture_default_str();
  flags
      ->add_option(
          "--key-bias", synth.key_bias,
          "Add this number to the last channel of all keys of layer 0, as models with key biases do: the attention "
          "is the same, but the keys are hard to round (default: 0)")
      ->check(number_in<double>());
  flags->add_option("--column-sums", synth.column_sums, "Store column sums of the context (true or false)")
      ->check(one_of({"true", "false"}))
      ->capture_default_str();
  count("--column-queries", synth.column_queries,
        "Estimate column sums from this number of evenly spaced queries (0: exact, in time quadratic in the tokens)");
  flags
      ->add_option(
          "--speculated", synth.speculation_error,
          "Store speculated queries: the queries with Gaussian errors, relative to the typical norm of a query")
      ->check(number_in<double>());
  count("--probes", synth.probes,
        "Store this number of Gaussian probes of the tokens after the context, sketches of W_O and residual norms");
  add_choice(flags, "--dtype", synth.dtype, dtypes, "f32, f16 or bf16");
  flags->add_flag("--compress", synth.compress, "Compress the datasets of the file");
  flags->add_option("--seed", synth.seed, "Seed of the generator")
      ->check(number_in<std::int64_t>(0, 0xffffffff))
      ->capture_default_str();
  flags
      ->add_option("-j,--threads", options->threads,
                   "Threads for random numbers and column sums (default: OMP_NUM_THREADS, else all processors)")
      ->check(number_in(0, 4096));
  add_isa_flag(flags, options->isa);
  flags->add_flag("-q,--quiet", options->quiet, "Do not show a progress bar");
  return {flags, [flags, options] {
            require_ending("-o", options->path, "a trace is HDF5", ".h5");
            check_effects(*flags, options->synth);
            fit_defaults(*flags, options->synth);
            if (options->isa) options->synth.isa = *options->isa;
            Progress progress("heads", options->quiet);
            trace::synthesize(options->path, options->synth,
                              {.threads = options->threads,
                               .progress = [&](double heads, std::int64_t of) { progress.show(heads, of); },
                               .stop = &stop_requested()});
            return done;
          }};
}

}  // namespace kvbench::app
