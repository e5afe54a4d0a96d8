// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/synth.hpp>

#include <map>

#include "../command_line.hpp"
#include "commands.hpp"

namespace kvbench::app {
namespace {

struct SynthFlags {
  trace::SynthOptions synth;
  std::string path;
};

const std::map<std::string, trace::Pattern> patterns = {{"gaussian", trace::Pattern::gaussian},
                                                        {"clusters", trace::Pattern::clusters},
                                                        {"sinks", trace::Pattern::sinks},
                                                        {"heavy-hitters", trace::Pattern::heavy_hitters},
                                                        {"needle", trace::Pattern::needle}};
const std::map<std::string, trace::Dtype> dtypes = {
    {"f32", trace::Dtype::f32}, {"f16", trace::Dtype::f16}, {"bf16", trace::Dtype::bf16}};

}  // namespace

Command add_synth(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("synth", "Write a synthetic trace with a known structure");
  auto options = std::make_shared<SynthFlags>();
  trace::SynthOptions& synth = options->synth;
  flags->add_option("-o,--output", options->path, "Trace to write")->required();
  add_choice(flags, "--pattern", synth.pattern, patterns, "gaussian, clusters, sinks, heavy-hitters or needle");
  flags->add_option("--tokens", synth.num_tokens, "Tokens per prompt")->capture_default_str();
  flags->add_option("--prompt-tokens", synth.prompt_tokens, "Tokens of the context per prompt")->capture_default_str();
  flags->add_option("--queries", synth.num_queries, "Number of last positions whose queries are stored")->capture_default_str();
  flags->add_option("--layers", synth.layers, "Layers")->capture_default_str();
  flags->add_option("--query-heads", synth.query_heads, "Query heads")->capture_default_str();
  flags->add_option("--kv-heads", synth.kv_heads, "Key/value heads")->capture_default_str();
  flags->add_option("--head-dim", synth.head_dim, "Dimension of keys")->capture_default_str();
  flags->add_option("--value-dim", synth.value_dim, "Dimension of values")->capture_default_str();
  flags->add_option("--prompts", synth.prompts, "Prompts")->capture_default_str();
  flags->add_option("--clusters", synth.clusters, "Number of clusters of keys (pattern clusters)")->capture_default_str();
  flags->add_option("--spread", synth.spread, "Standard deviation within a cluster, relative to the distance between centres")
      ->capture_default_str();
  flags->add_option("--key-norm", synth.key_norm, "Typical norm of a key")->capture_default_str();
  flags->add_option("--column-sums", synth.column_sums, "Store column sums of the context (true or false)")
      ->capture_default_str();
  flags
      ->add_option("--column-queries", synth.column_queries,
                   "Estimate column sums from this number of evenly spaced queries (0: exact, in time quadratic in the tokens)")
      ->capture_default_str();
  flags->add_option("--speculated", synth.speculation_error,
                    "Store speculated queries: the queries with Gaussian errors, relative to the typical norm of a query");
  add_choice(flags, "--dtype", synth.dtype, dtypes, "f32, f16 or bf16");
  flags->add_flag("--compress", synth.compress, "Compress the datasets of the file");
  flags->add_option("--seed", synth.seed, "Seed of the generator")->capture_default_str();
  return {flags, [options] {
            trace::synthesize(options->path, options->synth);
            return done;
          }};
}

}  // namespace kvbench::app
