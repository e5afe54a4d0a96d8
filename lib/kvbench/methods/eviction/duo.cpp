// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/duo.hpp>

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

constexpr const char* duo_name = "duo";
constexpr const char* kvpress_name = "duo@kvpress";

/// The tokens of a streaming head. Throws Infeasible where `kept` of n tokens are fewer.
Index streamed(const char* method, const StreamingHeads& heads, Index kept, Index n) {
  const Index held = std::min(heads.sinks + heads.recent, n);
  if (kept >= held) return held;
  throw Infeasible(
      fmt::format("{0}: every head keeps {1} tokens, the first {2} and the last {3}, and the budget is {4} per head; "
                  "choose a budget of at least {1}, or lower {0}.sinks and {0}.recent",
                  method, held, heads.sinks, heads.recent, kept));
}

/// How many of `heads` can be whole where they hold `kept` tokens on average, and the others `held`.
Index whole_heads(Index heads, Index kept, Index held, Index n) {
  return kept == n ? heads : heads * (kept - held) / (n - held);
}

std::vector<Index> plan(const char* method, const ModelContext& context, Index budget, const StreamingHeads& streaming,
                        const std::map<std::int64_t, std::vector<float>>& scores) {
  const Index n = context.tokens, kept = std::min(budget, n), held = streamed(method, streaming, kept, n);
  std::vector<Index> budgets(context.layers.size(), kept);
  std::vector<std::vector<float>> ranked;
  for (const std::int64_t layer : context.layers) {
    if (scores.contains(layer)) ranked.push_back(scores.at(layer));
  }
  if (kept == n || ranked.empty()) return budgets;
  const Index heads = std::ssize(ranked.front());
  const std::vector<Index> whole = Competition(ranked).won(whole_heads(heads * std::ssize(ranked), kept, held, n));
  auto of_layer = whole.begin();
  for (std::size_t l = 0; l < budgets.size(); ++l) {
    if (scores.contains(context.layers[l])) budgets[l] = held + (*of_layer++ * (n - held) + heads - 1) / heads;
  }
  return budgets;
}

/// Makes the cache of a streaming head that holds `held` tokens; `ragged`: others of its layer are whole.
using MakeStreaming = std::function<std::unique_ptr<CompressedCache>(const HeadPrompt&, Index held, bool ragged)>;

std::unique_ptr<CompressedCache> kept_of(const HeadPrompt& head, std::vector<TokenId> ids, Index sinks, bool ragged,
                                         Backend& backend) {
  KeptTokens tokens{.ids = std::move(ids), .fixed = {.sinks = std::min(sinks, head.tokens())}, .ragged = ragged};
  return std::make_unique<KeptCache>(backend, head, std::move(tokens));
}

/// The caches of the kv heads of a layer with these scores.
MakeCaches of_layer(const char* method, std::span<const HeadPrompt> given, const StreamingHeads& streaming,
                    const std::vector<float>& scores, MakeStreaming make, Backend& backend) {
  if (std::ssize(given) < given.front().num_kv_heads)
    throw Unavailable(fmt::format("{} ranks all {} kv heads of a layer, and has {} of them; omit --kv-heads", method,
                                  given.front().num_kv_heads, given.size()));
  std::vector<std::vector<float>> single;
  for (const float score : scores) single.push_back({score});
  const std::vector<HeadPrompt> heads(given.begin(), given.end());
  return [=, ranking = Competition(single), &backend](Index budget, std::uint32_t /*seed*/) {
    const Index n = heads.front().tokens(), kept = std::min(budget, n), held = streamed(method, streaming, kept, n);
    const Index count = whole_heads(std::ssize(heads), kept, held, n);
    const bool ragged = count > 0 && count < std::ssize(heads);
    const std::vector<Index> whole = ranking.won(count);
    Caches caches;
    for (std::size_t h = 0; h < heads.size(); ++h)
      caches.push_back(whole[h] > 0 ? kept_of(heads[h], token_range(0, n), streaming.sinks, ragged, backend)
                                    : make(heads[h], held, ragged));
    return caches;
  };
}

/// The gates of the model's layers. Throws Unavailable where no table is named.
const std::vector<std::vector<float>>& gates_of(const DuoParams& params) {
  if (!params.gates.empty()) return params.gates;
  throw Unavailable(
      "duo reads from a table which heads need the whole context; name it with duo.table=FILE.tsv, such as "
      "full_attention_heads.tsv of mit-han-lab/duo-attention");
}

void check_shape(const DuoParams& params, const HeadPrompt& head) {
  const auto& gates = gates_of(params);
  if (std::ssize(gates) == head.num_layers && std::ssize(gates.front()) == head.num_kv_heads) return;
  throw Error(
      "{}: the table has {} lines of {} numbers, and the model {} layers of {} kv heads; name that of this model",
      params.table, gates.size(), gates.front().size(), head.num_layers, head.num_kv_heads);
}

MakeCaches prepare_duo(std::span<const HeadPrompt> heads, const Params& given, Backend& backend) {
  const auto& params = given.as<DuoParams>();
  check_shape(params, heads.front());
  const auto window = [sinks = params.sinks, &backend](const HeadPrompt& head, Index held, bool /*ragged*/) {
    return sliding_window(head, held, sinks, backend);
  };
  return of_layer(duo_name, heads, params, params.gates[static_cast<std::size_t>(heads.front().layer.value)], window,
                  backend);
}

std::vector<Index> plan_duo(const ModelContext& context, Index budget, const Params& given) {
  const auto& params = given.as<DuoParams>();
  std::map<std::int64_t, std::vector<float>> scores;
  for (const auto& layer : gates_of(params)) scores.emplace(std::ssize(scores), layer);
  return plan(duo_name, context, budget, params, scores);
}

constexpr const char* no_text = "duo@kvpress ranks the heads of all layers on another text; name one with --calibrate";

float score_of_head(const HeadPrompt& text, const Params& params, Backend& backend) {
  return early_attention(text, kvpress_name, params.as<DuoKvpressParams>().positions, backend);
}

MakeCaches prepare_kvpress(std::span<const HeadPrompt> heads, const Params& given, Backend& backend) {
  const auto& params = given.as<DuoKvpressParams>();
  std::vector<float> scores;
  for (const HeadPrompt& head : heads) {
    if (!head.calibration) throw Unavailable(no_text);
    scores.push_back(score_of_head(*head.calibration, given, backend));
  }
  const auto ends = [sinks = params.sinks, &backend](const HeadPrompt& head, Index held, bool ragged) {
    const Index first = std::min(sinks, held), recent = held - first;
    std::vector<TokenId> ids = token_range(0, first), last = token_range(head.tokens() - recent, recent);
    ids.insert(ids.end(), last.begin(), last.end());
    return kept_of(head, std::move(ids), first, ragged, backend);
  };
  return of_layer(kvpress_name, heads, params, scores, ends, backend);
}

/// The numbers of a line.
std::vector<float> gates_in(const std::string& line, const std::string& path, std::size_t number) {
  std::vector<float> gates;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    double gate = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), gate);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(gate))
      throw Error("{}:{}: '{}' is no finite number; a line has a number for each kv head of a layer", path, number,
                  word);
    gates.push_back(static_cast<float>(std::clamp(gate, 0.0, 1.0)));
  }
  return gates;
}

std::string table_text(const std::string& path) {
  try {
    return read_input_file(path, 1 << 20, "a table of heads");
  } catch (const Error& error) {
    throw Error("duo.table: {} Give a file with a line for each layer, a number for each kv head.", error.what());
  }
}

MethodInfo row(MethodInfo info) {
  info.granularity = Granularity::layer;
  info.whole_context = true;
  info.complexity.query = "O(B (d + dv))";
  info.complexity.memory = "B (d + dv)";
  info.complexity.growth.compress = 1;
  return info;
}

void streaming_fields(ParamVisitor& visitor, StreamingHeads& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that streaming heads keep");
  visitor.integer("recent", params.recent, {.min = 1}, "last tokens that streaming heads keep");
}

}  // namespace

std::vector<std::vector<float>> read_gates(const std::string& path) {
  std::istringstream file(table_text(path));
  std::vector<std::vector<float>> gates;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    std::vector<float> own = gates_in(line, path, ++number);
    if (own.empty()) continue;
    if (!gates.empty() && own.size() != gates.front().size())
      throw Error("{}:{}: it has {} numbers, and the lines before have {}; all layers have as many kv heads", path,
                  number, own.size(), gates.front().size());
    gates.push_back(std::move(own));
  }
  if (gates.empty()) throw Error("{} has no number; a table has a line for each layer of the model", path);
  return gates;
}

void fields(ParamVisitor& visitor, DuoParams& params) {
  visitor.text("table", params.table, "file of a line for each layer",
               "numbers of the kv heads, larger for whole ones");
  streaming_fields(visitor, params);
}

void fields(ParamVisitor& visitor, DuoKvpressParams& params) {
  streaming_fields(visitor, params);
  visitor.integer("positions", params.positions, {.min = 1}, "positions along which mean query and key are compared");
}

MethodInfo duo_method() {
  MethodInfo info = with_schema<DuoParams>(
      row({.name = duo_name,
           .paper = "DuoAttention, arXiv 2410.10819, section 2",
           .summary = "all tokens in the heads that a trained table names, first and last ones in the others",
           .notes = "Reads tables as mit-han-lab/duo-attention releases them. Whole are as many heads of all layers of "
                    "the model as the budget allows; the released code takes their share.",
           .complexity = {.compress = "O(n)"},
           .properties = {.head_permutation = Property::no("the table numbers heads")}}));
  info.bind = [bind = info.bind](std::span<const Assignment> settings) {
    const Params bound = bind(settings);
    auto own = std::make_shared<DuoParams>(bound.as<DuoParams>());
    if (!own->table.empty()) own->gates = read_gates(own->table);
    return Params(own, bound.text());
  };
  info.prepare = prepare_duo;
  info.plan = plan_duo;
  return info;
}

MethodInfo duo_kvpress_method() {
  MethodInfo info = with_schema<DuoKvpressParams>(row(
      {.name = kvpress_name,
       .paper = "DuoAttention, arXiv 2410.10819; kvpress 0.5.4, DuoAttentionPress",
       .summary = "all tokens in the heads whose mean query attends far, first and last ones in the others",
       .notes = "on_the_fly_scoring of kvpress, on the text of --calibrate, without which rows are skipped. kvpress "
                "masks keys; here the bytes of a ragged cache count.",
       .complexity = {.compress = "O((G m + n) d)"},
       .calibrates = true}));
  info.prepare = prepare_kvpress;
  info.score_of_head = score_of_head;
  info.plan = [](const ModelContext& context, Index budget, const Params& params) {
    if (context.head_scores.empty()) throw Unavailable(no_text);
    return plan(kvpress_name, context, budget, params.as<DuoKvpressParams>(), context.head_scores);
  };
  return info;
}

}  // namespace kvbench::methods
