// SPDX-License-Identifier: Apache-2.0
// duo, duo@kvpress: of all kv heads of the model those with the best scores are whole, the others stream: they keep
// the first and the last tokens. DuoAttention, arXiv 2410.10819, section 2.
//   duo          trained gates: a table of mit-han-lab/duo-attention, clipped to [0, 1] (duo_attn/utils.py)
//   duo@kvpress  early_attention() (stages/coming_queries.hpp) of the text of --calibrate; duo_attention_press.py,
//                on_the_fly_scoring, of kvpress 0.5.4
// With a budget of B tokens per head, N kv heads, n tokens of context and s = sinks + recent <= B, as many heads
// are whole as N (B - s) / (n - s), rounded down, ties to the lower layer and head; the released codes take a share
// of heads. A layer of H heads with f whole ones has the budget s + f (n - s) / H, rounded up. N counts the heads
// of all layers of the model, for duo@kvpress of those in the text, whichever are replayed; a limit of memory is
// met over the latter.
// Parameters: table: a line for each layer of the model, a number for each kv head; sinks: duo 64 (paper; tables
// were trained with 128), duo@kvpress 128 (code); recent: 256; positions: 500 (code).
// Complexity: O(n); duo@kvpress O((G m + n) d) for each head of the text, at d = 128 about 2 / G exact passes of 256
// queries to turn all keys back. Memory: B (d + dv) numbers per head on average, and 4 bytes for a length of its own.
// Deviations: the context is exact until it ends, where duo's code streams too. Streaming heads of duo then hold
// the newest `recent` tokens, where the code attends to one more; those of duo@kvpress keep decoded tokens. Equal
// gates: the code adds noise. kvpress takes 50 texts and all queries, here one text and its recorded queries; its
// test for norms of queries and keys (Qwen3, Gemma3) never holds, here they count. It divides logits by sqrt(d), here
// they have the scale of the model's attention. It masks keys and saves no bytes.
#include <kvbench/methods/eviction/methods.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include <kvbench/core/input_file.hpp>
#include <kvbench/methods/eviction/sink.hpp>
#include <kvbench/methods/stages/coming_queries.hpp>
#include <kvbench/methods/stages/competition.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

using HeadScores = std::map<std::int64_t, std::vector<float>>;  ///< by layer and kv head

/// What streaming heads keep of the context, and the name of the method.
struct Streaming {
  std::string method;
  Index sinks = 0, recent = 256;

  /// Of `kept` tokens per head. Throws Infeasible where these are fewer.
  Index held(Index kept, Index n) const {
    const Index tokens = std::min(sinks + recent, n);
    if (kept >= tokens) return tokens;
    throw Infeasible(fmt::format(
        "{0}: every head keeps {1} tokens, and the budget is {2} per head; choose at least {1}, or lower {0}.sinks and "
        "{0}.recent",
        method, tokens, kept));
  }
};

struct DuoParams : Streaming {
  DuoParams() : Streaming{"duo", 64} {}
  std::string table;
  HeadScores gates;  ///< of the table; none without one
};

struct DuoKvpressParams : Streaming {
  DuoKvpressParams() : Streaming{"duo@kvpress", 128} {}
  Index positions = 500;
};

void fields(ParamVisitor& visitor, Streaming& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that streaming heads keep");
  visitor.integer("recent", params.recent, {.min = 1}, "last tokens that streaming heads keep");
}
void fields(ParamVisitor& visitor, DuoParams& params) {
  visitor.text("table", params.table, "FILE", "a line for each layer of the model, a number for each kv head");
  fields(visitor, static_cast<Streaming&>(params));
}
void fields(ParamVisitor& visitor, DuoKvpressParams& params) {
  fields(visitor, static_cast<Streaming&>(params));
  visitor.integer("positions", params.positions, {.min = 1}, "positions along which mean query and key are compared");
}

/// How many of `heads` are whole where they hold `kept` of n tokens on average, and the others `held`.
Index whole_heads(Index heads, Index kept, Index held, Index n) {
  return kept == n ? heads : heads * (kept - held) / (n - held);
}

std::vector<Index> plan(const ModelContext& context, Index budget, const Streaming& streaming,
                        const HeadScores& scores) {
  const Index n = context.tokens, kept = std::min(budget, n), held = streaming.held(kept, n);
  std::vector<Index> budgets(context.layers.size(), kept);
  std::vector<std::vector<float>> ranked;
  for (const std::int64_t layer : context.layers) {
    if (scores.contains(layer)) ranked.push_back(scores.at(layer));
  }
  if (kept == n || ranked.empty()) return budgets;
  const Index heads = std::ssize(ranked.front());
  const std::vector<Index> whole = Competition(ranked).won(whole_heads(heads * std::ssize(ranked), kept, held, n));
  auto own = whole.begin();
  for (std::size_t l = 0; l < budgets.size(); ++l) {
    if (scores.contains(context.layers[l])) budgets[l] = held + (*own++ * (n - held) + heads - 1) / heads;
  }
  return budgets;
}

/// The caches of the kv heads of a layer with these scores; `slides`: decoded tokens push others out of windows.
MakeCaches layer_caches(std::span<const HeadPrompt> given, const Streaming& streaming, const std::vector<float>& scores,
                        bool slides, Backend& backend) {
  require_all_heads(given, streaming.method + " ranks");
  std::vector<std::vector<float>> single;
  for (const float score : scores) single.push_back({score});
  return [heads = std::vector(given.begin(), given.end()), ranking = Competition(single), streaming, slides, &backend](
             Index budget, std::uint32_t /*seed*/) {
    const Index n = heads.front().tokens(), kept = std::min(budget, n), held = streaming.held(kept, n);
    const Index count = whole_heads(std::ssize(heads), kept, held, n), sinks = std::min(streaming.sinks, held);
    const std::vector<Index> whole = ranking.won(count);
    std::vector<TokenId> ends = token_range(0, sinks), last = token_range(n - held + sinks, held - sinks);
    ends.insert(ends.end(), last.begin(), last.end());
    Caches caches;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      if (whole[h] == 0 && slides) {
        caches.push_back(sliding_window(heads[h], held, sinks, backend));
        continue;
      }
      KeptTokens tokens{.ids = whole[h] > 0 ? token_range(0, n) : ends,
                        .fixed = {.sinks = sinks},
                        .ragged = count > 0 && count < std::ssize(heads)};
      caches.push_back(std::make_unique<KeptCache>(backend, heads[h], std::move(tokens)));
    }
    return caches;
  };
}

/// Throws Error, naming file and line, where a line is not one of as many finite numbers as the others.
HeadScores read_gates(const std::string& path) {
  std::istringstream file(read_input_file(path, 1 << 20, "a table of heads"));
  HeadScores gates;
  for (std::string line; std::getline(file, line);) {
    std::vector<float>& own = gates[std::ssize(gates)];
    std::istringstream words(line);
    bool numbers = true;
    for (std::string word; words >> word;) {
      const char* last = word.data() + word.size();
      float gate = 0;
      const auto [end, error] = std::from_chars(word.data(), last, gate);
      numbers &= error == std::errc() && end == last && std::isfinite(gate);
      own.push_back(std::clamp(gate, 0.0f, 1.0f));
    }
    if (!numbers || own.empty() || own.size() != gates[0].size())
      throw Error("{}:{}: a line has finite numbers between blanks, one for each kv head of a layer", path,
                  gates.size());
  }
  if (gates.empty()) throw Error("{} is empty; a table has a line for each layer of the model", path);
  return gates;
}

/// Throws Unavailable where no table is named.
const HeadScores& gates_of(const DuoParams& params) {
  if (params.gates.empty())
    throw Unavailable(
        "duo reads from a table which heads are whole; name it with duo.table=FILE, such as full_attention_heads.tsv "
        "of mit-han-lab/duo-attention");
  return params.gates;
}

MakeCaches prepare_duo(std::span<const HeadPrompt> heads, const DuoParams& params, Backend& backend) {
  const HeadScores& gates = gates_of(params);
  const HeadPrompt& any = heads.front();
  const Index lines = std::ssize(gates), numbers = std::ssize(gates.at(0));
  if (lines != any.num_layers || numbers != any.num_kv_heads)
    throw Error("{}: it has {} lines of {} numbers, and the model {} layers of {} kv heads; name its own table",
                params.table, lines, numbers, any.num_layers, any.num_kv_heads);
  return layer_caches(heads, params, gates.at(any.layer.value), true, backend);
}

constexpr const char* no_text =
    "duo@kvpress ranks the heads of all layers on another text; in kvbench replay, name one with --calibrate";

float score_of(const HeadPrompt& text, const DuoKvpressParams& params, Backend& backend) {
  return early_attention(text, params.method, params.positions, backend);
}

MakeCaches prepare_kvpress(std::span<const HeadPrompt> heads, const DuoKvpressParams& params, Backend& backend) {
  std::vector<float> scores;
  for (const HeadPrompt& head : heads) {
    if (!head.calibration) throw Unavailable(no_text);
    scores.push_back(score_of(*head.calibration, params, backend));
  }
  return layer_caches(heads, params, scores, false, backend);
}

}  // namespace

MethodInfo duo_method() {
  MethodInfo info = with_params<DuoParams>(
      {.name = "duo",
       .paper = "DuoAttention, arXiv 2410.10819, section 2",
       .summary = "all tokens in the heads that a trained table names, first and last ones in the others",
       .notes = "The budget says how many heads of the model are whole; the released code takes their share.",
       .complexity = {.compress = {"O(n)", 1}},
       .granularity = Granularity::layer,
       .whole_context = true,
       .properties = {.head_permutation = Property::no("the table numbers heads")}},
      prepare_duo);
  info.bind = [bind = info.bind](std::span<const Assignment> settings) {
    const Params bound = bind(settings);
    auto own = std::make_shared<DuoParams>(bound.as<DuoParams>());
    if (!own->table.empty()) own->gates = read_gates(own->table);
    return Params(own, bound.text());
  };
  info.plan = [](const ModelContext& context, Index budget, const Params& params) {
    return plan(context, budget, params.as<DuoParams>(), gates_of(params.as<DuoParams>()));
  };
  return info;
}

MethodInfo duo_kvpress_method() {
  MethodInfo info = with_params<DuoKvpressParams>(
      {.name = "duo@kvpress",
       .paper = "DuoAttention, arXiv 2410.10819; kvpress 0.5.4, DuoAttentionPress",
       .summary = "all tokens in the heads whose mean query attends far, first and last ones in the others",
       .notes = "on_the_fly_scoring of kvpress, on the text of --calibrate; the bytes of a ragged cache count. Logits "
                "have the scale of the model's own attention, where the press divides by sqrt(d): Granite and some "
                "Gemma 3 scale otherwise.",
       .complexity = {.compress = {"O((G m + n) d)", 1}},
       .granularity = Granularity::layer,
       .calibrates_on = CalibratesOn::text,
       .whole_context = true},
      prepare_kvpress);
  info.score_of_head = [](const HeadPrompt& text, const Params& params, Backend& backend) {
    return score_of(text, params.as<DuoKvpressParams>(), backend);
  };
  info.plan = [](const ModelContext& context, Index budget, const Params& params) {
    if (context.head_scores.empty()) throw Unavailable(no_text);
    return plan(context, budget, params.as<DuoKvpressParams>(), context.head_scores);
  };
  return info;
}

}  // namespace kvbench::methods
