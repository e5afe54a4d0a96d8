// SPDX-License-Identifier: Apache-2.0
// The contract of a method. A method says *which entries with which weights* answer a query; the harness computes every output,
// error and byte count from them and believes no figure that a method reports about itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/core/ids.hpp>
#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/block_memo.hpp>
#include <kvbench/methods/contract/params.hpp>
#include <kvbench/methods/contract/shares_work.hpp>

namespace kvbench {

/// Why a configuration cannot run on this trace; becomes a row with status `skipped`.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Why a configuration would run but must not (its own limit, a budget that cannot be met); becomes status `infeasible`.
class Infeasible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Rotary embedding of the trace, where it is the plain one.
struct Rope {
  double theta = 10000;
  bool interleaved = false;
};

/// All that a method may see of one kv head's context. Buffers live as long as the cache made from them.
struct HeadPrompt {
  PromptId prompt;
  std::string prompt_group;  ///< its name in the trace
  LayerId layer;
  KvHeadId head;
  Index num_layers = 1;                          ///< of the model
  Index num_kv_heads = 1;                        ///< of the layer
  Index group = 1;                               ///< G, query heads that share this kv head
  Index window = 0;                              ///< sliding window of the layer, 0 = none
  float scale = 1;                               ///< logits are scale * <q, k>
  Buffer<const float> keys;                      ///< [n, d] post-RoPE; tokens 0 .. n-1 of the prompt
  Buffer<const float> values;                    ///< [n, dv]
  Buffer<const float> observed;                  ///< [G*n_obs, d] queries inside the context, row g*n_obs + i; absent: none
  std::vector<std::int32_t> observed_positions;  ///< [n_obs] increasing; positions >= n belong to
                                                 ///< tokens that the harness keeps outside this context and see all of it
  std::optional<Rope> rope;                      ///< absent where the model's RoPE is scaled or missing
  Buffer<const float> column_sums;    ///< [G, n] attention mass from all queries of the context; absent: not in the trace
  Buffer<const float> keys_pre_rope;  ///< [n, d]; absent: not in the trace
  /// [n', d] where the context is empty and tokens arrive from the first one on (protocol `stream`): the keys of the first n'
  /// tokens to come, for scalars alone that a user would have tuned beforehand (SubGen's radius). Absent elsewhere.
  Buffer<const float> calibration_keys;

  Index tokens() const { return keys.rows(); }
};

/// Queries to be answered: m positions of each of the G query heads, row g*m + i.
struct QueryBlock {
  Buffer<const float> queries;          ///< [G*m, d]
  std::vector<std::int32_t> positions;  ///< [m] increasing
  Buffer<const std::int32_t> first;     ///< [m, 1] query i sees tokens first[i] <= j < last[i]
  Buffer<const std::int32_t> last;      ///< [m, 1]
  Buffer<const float> scores;           ///< [G*m, tokens so far] exact logits, for methods that select per query
  Buffer<const float> speculated;       ///< [G*m, d] speculated queries (InfiniGen); absent: not in the trace
  std::shared_ptr<BlockMemo> memo;      ///< what other budgets left for this one; absent: nobody shares this block

  Index size() const { return static_cast<Index>(positions.size()); }
};

/// Consecutive tokens that were decoded after the context.
struct TokenBlock {
  Index first = 0;             ///< position of the first of them
  Buffer<const float> keys;    ///< [count, d]
  Buffer<const float> values;  ///< [count, dv]

  Index size() const { return keys.rows(); }
};

/// A table of entries with L rows of equal width, L = (per_head ? G : 1) * (per_query ? m : 1); query head g at query i is
/// answered by row (per_head ? g : 0) * (per_query ? m : 1) + (per_query ? i : 0). The entries of a query are the union of its
/// rows over all tables that entries() returned; slots whose id the query may not see yet are skipped.
struct EntryTable {
  bool per_head = false;
  bool per_query = false;
  Buffer<const std::int32_t> ids;  ///< [L, width] token that the entry is or stands for; -1 = unused slot
  Buffer<const float> weight_num;  ///< [L, width] wN >= 0; absent: 1
  Buffer<const float> weight_den;  ///< [L, width] wD; absent: 1
  Buffer<const float> own_keys;    ///< [L*width, d] in place of the token's; absent: the token's own
  Buffer<const float> own_values;  ///< [L*width, dv] in place of the token's; absent: the token's own
  /// [L, width] cluster or page of each entry that was recalled with it, numbers >= 0 that keep their meaning while the cache
  /// lives: the cluster cache is simulated from them (cache_hit_*). -1 = in none (sinks, recent tokens). Absent: none.
  Buffer<const std::int32_t> groups;
  bool accumulate_f64 = false;  ///< sum in fp64
};
using EntryTables = std::vector<EntryTable>;

/// How an array is stored, for the byte columns: `kv` is the element type of the deployment's cache (--kv-dtype).
enum class Element { kv, f32, f16, i32, i16, u8 };
/// fast: the memory that a deployment keeps beside the processor; slow: where recallable methods leave the full cache.
enum class Tier { fast, slow };
/// How a query reads an array: all of it, only the rows of the entries that answer it, or never (bookkeeping).
enum class Read { every_query, with_entry, never };

struct FootprintArray {
  std::string name;
  Element element = Element::kv;
  Index rows = 0;  ///< one row per entry where read = with_entry
  Index cols = 0;
  Tier tier = Tier::fast;
  Read read = Read::every_query;
  bool meta = false;  ///< metadata (weights, counts, ids, centroids, bounds) as against kept keys and values
};
/// The layout that a deployment would hold for one kv head, every array that is needed to answer.
using Footprint = std::vector<FootprintArray>;

/// Tokens that the method keeps whatever happens; recall is not counted over them.
struct Protected {
  Index sinks = 0;       ///< first tokens of the context
  Index recent = 0;      ///< last tokens of the context
  bool decoded = false;  ///< every decoded token
};

/// Something that a row must say beside its figures: an event with its number, or a fact (count 0).
struct Note {
  std::string text;
  double count = 0;  ///< summed over heads and seeds
};

/// A compressed cache of one kv head, for one budget and seed.
class CompressedCache {
 public:
  virtual ~CompressedCache() = default;

  /// Takes decoded tokens, in order, from the front of `tokens`: the longest run (at least one) such that the state after it,
  /// with slots masked causally by id, answers the query of every token taken. Returns how many it took. A method whose state
  /// changes at every token takes one; a method that only adds takes all.
  virtual Index append(const TokenBlock& tokens) = 0;

  /// The entries that answer these queries, in the state after the tokens taken so far.
  virtual EntryTables entries(const QueryBlock& queries) const = 0;

  /// The attention that the model has computed over those entries anyway, after a single decode step: weights[t] is the softmax
  /// over all entries, restricted to table t, [G, width]. Called only where MethodInfo::observes; then append() takes one
  /// token.
  virtual void observe(const QueryBlock& /*queries*/, const EntryTables& /*entries*/,
                       std::span<const Buffer<const float>> /*weights*/) {}

  virtual Footprint footprint() const = 0;
  virtual Protected protected_tokens() const { return {}; }
  /// At the end of the run; they stand in the row's `reason`.
  virtual std::vector<Note> notes() const { return {}; }
};

/// What a method computed once for a context; budgets and seeds share it.
class Prepared : public SharesWork {
 public:
  virtual ~Prepared() = default;
  /// `budget` = tokens to keep, 1 <= budget. Whatever was made before, the cache is the same to the bit. The harness asks for
  /// all budgets of a seed before the next seed, the largest first: what only larger ones need may be dropped. The backend
  /// given to prepare() outlives the cache; this object may not.
  virtual std::unique_ptr<CompressedCache> make(Index budget, std::uint32_t seed) const = 0;
};

/// The same for methods that must see all kv heads of a layer at once. Vectors and spans run over the layer's kv heads.
class LayerCache {
 public:
  virtual ~LayerCache() = default;
  virtual Index append(std::span<const TokenBlock> tokens) = 0;
  virtual std::vector<EntryTables> entries(std::span<const QueryBlock> queries) const = 0;
  virtual void observe(std::span<const QueryBlock> /*queries*/, std::span<const EntryTables> /*entries*/,
                       std::span<const std::vector<Buffer<const float>>> /*weights*/) {}
  virtual std::vector<Footprint> footprint() const = 0;
  virtual std::vector<Protected> protected_tokens() const = 0;
  virtual std::vector<Note> notes() const { return {}; }  ///< of all heads together
};
class PreparedLayer : public SharesWork {
 public:
  virtual ~PreparedLayer() = default;
  virtual std::unique_ptr<LayerCache> make(Index budget, std::uint32_t seed) const = 0;
};

enum class Kind { exact, subset, sample, merge, select, quantise };
enum class Granularity {
  kv_head,     ///< one cache a kv head, one selection for its query heads
  query_head,  ///< one cache a kv head, a selection of each query head
  layer,       ///< one instance sees all kv heads of a layer (prepare_layer)
  model,       ///< as kv_head or query_head, with a plan that hands out a budget to each layer
};

/// Optional parts of a trace that a method cannot do without.
enum class Part { observed_queries, column_sums, keys_pre_rope, speculated_queries };

/// A property that the registry tests hold a method to, or the reason why it does not apply.
struct Property {
  bool holds = false;
  std::string reason;  ///< one line, where it does not hold
  static Property yes() { return {true, ""}; }
  static Property no(std::string why) { return {false, std::move(why)}; }
};
enum class WeightSum { ones, context, at_most_context, free };
struct Properties {
  Property full_budget_exact;              ///< budget >= context gives the exact output
  Property value_scaling;                  ///< scaling all values by a constant scales the output by it
  Property key_shift;                      ///< adding one vector to all keys changes nothing
  Property head_permutation;               ///< results do not depend on the number of the head
  Property nested_budgets;                 ///< what a budget keeps, every larger budget keeps too
  WeightSum weight_sum = WeightSum::ones;  ///< of wD over a query's entries: all 1; n; at most n; or no rule
};

/// What a method costs, in the symbols of its banner: n tokens of the context, B of the budget, d and dv dimensions.
struct Complexity {
  std::string compress;  ///< time to compress a context
  std::string query;     ///< time to answer one query of one query head
  std::string memory;    ///< what a deployment holds, in numbers
  struct {
    double compress = 0, query = 0, memory = 0;
  } growth;  ///< exponents of n of the three at a budget fixed in tokens, logarithms left out
};

struct MethodInfo {
  std::string name;
  std::vector<std::string> aliases;
  std::string paper;    ///< authors or system, arXiv id, section or algorithm
  std::string summary;  ///< one line
  std::string notes;    ///< how paper and released code differ, choices the text leaves open
  Complexity complexity;
  Kind kind = Kind::subset;
  Granularity granularity = Granularity::kv_head;
  std::vector<Part> needs;
  bool streaming = false;      ///< may start from an empty context
  bool seeded = false;         ///< results depend on the seed
  bool observes = false;       ///< wants observe() after each decode step
  bool windowed = false;       ///< replays layers with a sliding window
  bool whole_context = false;  ///< does not run where the harness keeps tokens of the context itself (--protect)
  Properties properties;
  /// Granularity::layer only: with these parameters no head of the layer looks at another, so that they are computed one by one
  /// and one head at a time is in memory. Absent: never.
  std::function<bool(const Params&)> heads_apart;

  std::vector<ParamSpec> params;
  std::function<Params(std::span<const Assignment>)> bind;  ///< parses settings; throws Error for unknown names and bad values

  std::function<std::shared_ptr<const Prepared>(const HeadPrompt&, const Params&, Backend&)> prepare;
  std::function<std::shared_ptr<const PreparedLayer>(std::span<const HeadPrompt>, const Params&, Backend&)> prepare_layer;
  /// Granularity::model only: budget of each layer 0 .. num_layers - 1 for a context of n tokens.
  std::function<std::vector<Index>(Index num_layers, Index n, Index budget, const Params&)> plan;
};

/// Completes `info` with the parameters of struct P (see params.hpp).
template <class P>
MethodInfo with_schema(MethodInfo info) {
  info.params = schema_of<P>();
  info.bind = [name = info.name](std::span<const Assignment> settings) { return bind_params<P>(name, settings); };
  return info;
}

/// The same, and a prepare function that takes them typed.
template <class P>
MethodInfo with_params(MethodInfo info, std::shared_ptr<const Prepared> (*prepare)(const HeadPrompt&, const P&, Backend&)) {
  info.prepare = [prepare](const HeadPrompt& head, const Params& params, Backend& backend) {
    return prepare(head, params.as<P>(), backend);
  };
  return with_schema<P>(std::move(info));
}
template <class P>
MethodInfo with_params(MethodInfo info,
                       std::shared_ptr<const PreparedLayer> (*prepare)(std::span<const HeadPrompt>, const P&, Backend&)) {
  info.prepare_layer = [prepare](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    return prepare(heads, params.as<P>(), backend);
  };
  return with_schema<P>(std::move(info));
}

}  // namespace kvbench
