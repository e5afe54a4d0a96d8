// SPDX-License-Identifier: Apache-2.0
// A row of the registry: the description of a method that commands, documentation and property tests read.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/contract/engine.hpp>
#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench::methods {

/// exact: everything is kept. eviction: a subset of the tokens. sampling: a weighted subset. merging: tokens are
/// replaced by means. retrieval: a subset chosen per query from the full cache. quantisation: all tokens in fewer bits.
enum class Kind { exact, eviction, sampling, merging, retrieval, quantisation };

/// The scope of one selection of tokens and of one instance of the method.
enum class Granularity {
  kv_head,     ///< one cache per kv head, one selection for its query heads
  query_head,  ///< one cache per kv head, one selection per query head
  layer,       ///< one instance for all kv heads of a layer
  model,       ///< as kv_head or query_head, with a plan that assigns a budget to each layer
};

/// By what a score-only method ranks the tokens of a head. Its budget goes to the `recent` last tokens, then to the
/// `sinks` first ones, then to the best scores of the others, ties to the lower token.
struct TokenScores {
  /// [1, c] of the tokens 0 .. c - 1, no NaN; those from n - recent on are not read. [G, c] where each query head
  /// selects by scores of its own.
  Buffer<const float> scores;
  Index sinks = 0, recent = 0;  ///< tokens of the context: sinks + recent <= n, n - recent <= c
};

/// A context, for methods that divide a budget among the layers of a model.
struct ModelContext {
  std::string prompt_group;          ///< name of the prompt in the trace
  std::vector<std::int64_t> layers;  ///< numbers of the layers that have a cache of their own, increasing
  Index tokens = 0;                  ///< n
  /// By layer of the text to calibrate on: MethodInfo::score_of_head of its kv heads. Empty: no text was named.
  std::map<std::int64_t, std::vector<float>> head_scores = {};
};

/// Optional parts of a trace that a method requires.
enum class Part { observed_queries, column_sums, keys_pre_rope, speculated_queries, output_sketch };

/// A property of a method, which holds unless its row says no(reason); the property tests verify those that hold.
struct Property {
  bool holds = true;
  std::string reason = {};  ///< one line, where the property does not hold
  static Property no(std::string why) { return {false, std::move(why)}; }
};
/// The sum of wD over the entries of a query: each weight is 1; the sum is n; it is at most n; there is no rule.
enum class WeightSum { ones, context, at_most_context, free };
struct Properties {
  Property full_budget_exact = {};  ///< a budget of the whole context gives the exact output
  Property value_scaling = {};      ///< scaling all values by a constant scales the output by it
  Property key_shift = {};          ///< adding one vector to all keys does not change the output
  Property head_permutation = {};   ///< results do not depend on the index of the head
  Property nested_budgets = {};     ///< tokens kept at a budget are kept at every larger budget
  /// Caches of equal budgets on heads of equal shapes take equal bytes, and are read alike but in Kind::retrieval,
  /// whatever the numbers, the seed and the layer; of a layer, its heads together. Budgets of bytes are searched once.
  Property equal_bytes = {};
  WeightSum weight_sum = WeightSum::ones;
};

/// Asymptotic cost, in the symbols of the method's banner: n tokens of the context, budget B, d and dv dimensions, G
/// query heads.
struct Complexity {
  struct Cost {
    std::string text;
    double growth = 0;  ///< exponent of n at a fixed number of tokens B, without logarithms
  };
  Cost compress;                   ///< time to compress a context
  Cost query = {"O(B (d + dv))"};  ///< time to answer one query of one query head
  Cost memory = {"B (d + dv)"};    ///< numbers that a deployment holds
};

/// Consecutive channels that a codec stores together: a head has a whole number of them in its keys and in its values.
struct ChannelBlock {
  Index channels = 1;
  const char* what = "";  ///< such as "a block of ggml"
};

/// Kind::quantisation only: how a method stores keys and values. Its levels are numbers of bits, or other settings of
/// increasing cost, of which a budget chooses the last that fits.
struct Quantiser {
  /// The names of the levels with these parameters, such as "4 bits": at least one.
  std::function<std::vector<std::string>(const Params&)> levels;
  /// The codecs of these heads at a level, 0 .. levels - 1. The heads are those of prepare(). Throws Unavailable where
  /// the format does not allow the shapes of a head; MethodInfo::block has been checked.
  std::function<std::vector<Codecs>(std::span<const HeadPrompt>, const Params&, std::size_t level, std::uint32_t seed,
                                    Backend&)>
      layer_codecs;

  /// The same for a single head.
  Codecs codecs(const HeadPrompt& head, const Params& params, std::size_t level, std::uint32_t seed,
                Backend& backend) const {
    return layer_codecs({&head, 1}, params, level, seed, backend).front();
  }
};

/// prompt: the prompt that it compresses, which is no hindsight; text: another text, so that rows that are calibrated
/// on the evaluated context are too good. In the order in which the parts of a composition decide: the last one does.
enum class CalibratesOn { nothing, prompt, text };

struct MethodInfo {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string paper;    ///< authors or system, arXiv id, section or algorithm
  std::string summary;  ///< one line
  std::string notes;    ///< how paper and released code differ, choices that the text leaves open
  Complexity complexity;
  Kind kind = Kind::eviction;
  Granularity granularity = Granularity::kv_head;
  std::vector<Part> needs;
  /// Throws Unavailable where a context lacks data that these parameters need in addition. Absent: they need none.
  std::function<void(const ContextData&, const Params&)> check_data;
  bool streaming = false;  ///< may start from an empty context
  bool seeded = false;     ///< results depend on the seed; see depends_on_seed()
  bool observes = false;   ///< observe() is called after each decode step
  bool windowed = false;   ///< supports layers with a sliding window
  /// From what the published method computes what it knows beforehand, which is HeadPrompt::calibration here; the row
  /// reports on which text it was calibrated.
  CalibratesOn calibrates_on = CalibratesOn::nothing;
  bool speculates = false;  ///< uses speculated queries where there are any
  bool rounds = false;      ///< its entries are stored in fewer bits, and answer by decoded rows
  /// Its entries have values that are no part of their keys, whatever those of the tokens are: it does not run where
  /// the values are a part of the keys (HeadPrompt::values_in_keys).
  bool own_values = false;
  bool whole_context = false;  ///< not available where the harness keeps tokens of the context itself (--protect)
  /// Whose format it is, where the order of channels matters; replays say where a trace has another order.
  Engine engine = Engine::none;
  std::string trace_sha256;  ///< of the only trace on which it runs; "": of any
  Properties properties = {};
  /// Settings other than the defaults with which `all` replays the method too, such as {{{"per", "query_head"}}}.
  std::vector<std::vector<Assignment>> variants;
  /// Granularity::layer only: heads_alone() with these parameters. Absent: never.
  std::function<bool(const Params&)> independent_heads;

  /// Whether results depend on the seed with these parameters. Absent: with all, where `seeded`.
  std::function<bool(const Params&)> draws;

  /// The block of a quantiser with these parameters: heads of other shapes are `skipped`, and property tests take
  /// shapes that it allows. Absent: any number of channels.
  std::function<ChannelBlock(const Params&)> block;

  /// Where it `rounds`: how many consecutive channels of a row are rounded together, if keys and values are rounded by
  /// one rule with these parameters, so that it stores rows of which the values are a part; 0: they are not. Absent: 0.
  std::function<Index(const Params&)> one_rule;

  std::vector<ParamSpec> params;
  /// parses settings; throws Error for unknown names and bad values
  std::function<Params(std::span<const Assignment>)> bind;

  /// The heads are all kv heads of a layer for Granularity::layer, otherwise any number of heads that do not affect
  /// each other. A method of Kind::quantisation keeps every token, and the budget of a cache is the number of its
  /// level, from 1; larger budgets are the last level.
  std::function<MakeCaches(std::span<const HeadPrompt>, const Params&, Backend&)> prepare;
  /// Of methods that divide a budget among layers, as those of Granularity::model do: the budgets of the layers of the
  /// context, in their order. Throws Unavailable where the context lacks what it needs.
  std::function<std::vector<Index>(const ModelContext&, Index budget, const Params&)> plan;
  /// Of methods that rank the heads of a model: the score of a head on the text to calibrate on. The harness computes
  /// those of all layers once, for plan().
  std::function<float(const HeadPrompt& text, const Params&, Backend&)> score_of_head;
  /// Whether these parameters divide the budget; see divides(). Absent: all, where there is a plan.
  std::function<bool(const Params&)> planned;

  /// Of score-only methods: the scores of these heads, from which prepare() follows. A wrapper selects by them in
  /// another way (wrapper.hpp).
  std::function<std::vector<TokenScores>(std::span<const HeadPrompt>, const Params&, Backend&)> scores;

  Quantiser quantiser;  ///< its functions are absent in methods of other kinds

  /// Whether it also runs in the layers with a sliding window of a model in use, of which it drops no token.
  bool rounds_windows() const { return rounds && windowed; }
  bool calibrates() const { return calibrates_on != CalibratesOn::nothing; }
  bool depends_on_seed(const Params& settings) const { return seeded && (!draws || draws(settings)); }
  /// Whether each layer has a budget of its own, which plan() assigns.
  bool divides(const Params& settings) const { return plan && (!planned || planned(settings)); }

  /// Whether the kv heads of a layer do not affect each other, so that each can be computed alone.
  bool heads_alone(const Params& settings) const {
    return granularity != Granularity::layer || (independent_heads && independent_heads(settings));
  }

  /// prepare() for a single head.
  MakeCache prepare_head(const HeadPrompt& head, const Params& settings, Backend& backend) const {
    return only_head(prepare({&head, 1}, settings, backend));
  }
};

/// Why the method cannot run with these parameters where the values are a part of the keys; "" where it can.
std::string against_values_in_keys(const MethodInfo& info, const Params& params);

/// Completes `info` with the parameters of struct P (see params.hpp).
template <class P>
MethodInfo with_schema(MethodInfo info) {
  info.params = schema_of<P>();
  info.bind = [name = info.name](std::span<const Assignment> settings) { return bind_params<P>(name, settings); };
  return info;
}

/// The same with a prepare function for single heads.
template <class P>
MethodInfo with_params(MethodInfo info, MakeCache (*prepare)(const HeadPrompt&, const P&, Backend&)) {
  info.prepare = [prepare](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    std::vector<MakeCache> caches;
    for (const HeadPrompt& head : heads) caches.push_back(prepare(head, params.as<P>(), backend));
    return each_head(std::move(caches));
  };
  return with_schema<P>(std::move(info));
}
/// The same with a prepare function for the kv heads of a layer.
template <class P>
MethodInfo with_params(MethodInfo info, MakeCaches (*prepare)(std::span<const HeadPrompt>, const P&, Backend&)) {
  info.prepare = [prepare](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    return prepare(heads, params.as<P>(), backend);
  };
  return with_schema<P>(std::move(info));
}

}  // namespace kvbench::methods
