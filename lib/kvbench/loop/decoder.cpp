// SPDX-License-Identifier: Apache-2.0
#include <kvbench/loop/decoder.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>
#include <kvbench/loop/layer_arrays.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/replay/answer/work_item.hpp>
#include <kvbench/replay/measure/bytes.hpp>
#include <kvbench/replay/measure/host_entries.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/devices.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::loop {

/// The caches of the kv heads of a work item while a model decodes, and all of their tokens.
class Stream {
 public:
  /// `caches` hold the context of so many tokens, and were made on `backend` for a budget in tokens.
  /// `sinks`: as LayerArrays::sinks.
  Stream(const replay::WorkItem& item, bool observes, Index context, replay::OpenCaches caches,
         std::unique_ptr<Backend> backend, Index budget, std::span<const float> sinks);
  ~Stream();

  /// Appends the last `count` of the tokens of `arrays`, and answers the last `count` of its queries. `outputs`
  /// [query_heads, count, dv] of the layer, of which those of these heads are written. The heads of a layer may write
  /// at the same time.
  void answer(const LayerArrays& arrays, Index count, std::span<float> outputs);

  /// Adds what the caches hold.
  void add_bytes(methods::Element kv, replay::Bytes& sum) const;

  Index budget() const { return budget_; }
  Index kv_heads() const { return std::ssize(kv_heads_); }
  /// Entries that answered a query, mean over queries and query heads: the sum over the kv heads.
  double kept() const;

 private:
  Index append(Index count);
  methods::QueryBlock block(const LayerArrays& arrays, std::size_t h, Index begin, Index count, Index queries) const;
  methods::AttentionState begin(std::size_t h, Index queries) const;
  std::vector<float> attend(std::size_t h, const methods::QueryBlock& queries, const methods::EntryTables& tables);

  std::unique_ptr<Backend> backend_;  ///< first: everything else refers to it
  std::vector<Index> kv_heads_;
  Session session_;
  Index group_ = 1, window_ = 0;
  float scale_ = 1;
  std::vector<float> sinks_;                         ///< of all query heads of the layer; empty: none
  std::vector<methods::GrowingRows> keys_, values_;  ///< by head, of all tokens
  std::vector<replay::HostEntries::RowsRead> read_;  ///< by head, of the last query
  Index budget_;
  double used_ = 0, queries_ = 0;  ///< entries that answered, mean over query heads; queries of all kv heads
};

namespace {

/// The last `count` of the `all` rows of one of the heads of an array.
std::vector<float> last_rows(std::span<const float> array, Index head, Index all, Index count, Index cols) {
  const auto end = array.begin() + (head + 1) * all * cols;
  return {end - count * cols, end};
}

void add(methods::GrowingRows& rows, std::vector<float> more, Backend& backend) {
  const Index cols = rows.rows().cols(), count = std::ssize(more) / cols;
  methods::copy_rows(backend.adopt(std::move(more), count, cols), rows.add(count), backend);
}

}  // namespace

Stream::Stream(const replay::WorkItem& item, bool observes, Index context, replay::OpenCaches caches,
               std::unique_ptr<Backend> backend, Index budget, std::span<const float> sinks)
    : backend_(std::move(backend)),
      kv_heads_(item.kv_heads),
      session_(std::move(caches.caches), context, observes, *backend_),
      sinks_(sinks.begin(), sinks.end()),
      read_(kv_heads_.size()),
      budget_(budget) {
  for (const replay::Head& head : caches.heads) {
    group_ = head.group, window_ = head.window;
    scale_ = head.tokens.scale;
    keys_.emplace_back(*backend_, head.tokens.keys.slice(0, context));
    values_.emplace_back(*backend_, head.tokens.values.slice(0, context));
  }
}

Stream::~Stream() = default;

void Stream::answer(const LayerArrays& arrays, Index count, std::span<float> outputs) {
  const Index d = keys_.front().rows().cols(), dv = values_.front().rows().cols();
  const Index query_heads = std::ssize(outputs) / (count * dv),
              queries = std::ssize(arrays.queries) / (query_heads * d);
  const Index all = std::ssize(arrays.keys) / (query_heads / group_ * d);
  for (std::size_t h = 0; h < keys_.size(); ++h) {
    add(keys_[h], last_rows(arrays.keys, kv_heads_[h], all, count, d), *backend_);
    add(values_[h], last_rows(arrays.values, kv_heads_[h], all, count, dv), *backend_);
  }
  for (Index done = 0; done < count;) {
    const Index taken = append(count - done);
    std::vector<methods::QueryBlock> blocks;
    for (std::size_t h = 0; h < keys_.size(); ++h)
      blocks.push_back(block(arrays, h, queries - count + done, taken, queries));
    const std::vector<methods::EntryTables>& tables = session_.entries(blocks);
    for (std::size_t h = 0; h < blocks.size(); ++h) {
      const std::vector<float> rows = attend(h, blocks[h], tables[h]);
      for (Index g = 0; g < group_; ++g) {
        const Index row = (kv_heads_[h] * group_ + g) * count + done;
        std::copy_n(rows.begin() + g * taken * dv, taken * dv, outputs.begin() + row * dv);
      }
    }
    session_.observe();
    done += taken;
  }
}

/// Appends as many of the next `count` tokens as the caches take, and returns how many.
Index Stream::append(Index count) {
  const Index next = session_.tokens();
  std::vector<methods::TokenBlock> tokens;
  for (std::size_t h = 0; h < keys_.size(); ++h) {
    tokens.push_back(
        {.first = next, .keys = keys_[h].rows().slice(next, count), .values = values_[h].rows().slice(next, count)});
  }
  return session_.append(tokens);
}

/// The last `count` tokens' queries, which begin at row `begin` of the `queries` of each head.
methods::QueryBlock Stream::block(const LayerArrays& arrays, std::size_t h, Index begin, Index count,
                                  Index queries) const {
  const Index d = keys_.front().rows().cols();
  std::vector<float> rows;
  for (Index g = 0; g < group_; ++g) {
    const auto first = arrays.queries.begin() + ((kv_heads_[h] * group_ + g) * queries + begin) * d;
    rows.insert(rows.end(), first, first + count * d);
  }
  const Index begins = session_.tokens() - count;
  std::vector<std::int32_t> positions = methods::token_range(begins, count);
  std::vector<std::int32_t> first, last = methods::token_range(begins + 1, count);
  for (const std::int32_t position : positions)
    first.push_back(static_cast<std::int32_t>(replay::first_seen_by(position, window_)));
  return {.queries = backend_->adopt(std::move(rows), group_ * count, d),
          .positions = std::move(positions),
          .first = backend_->adopt(std::move(first), count),
          .last = backend_->adopt(std::move(last), count)};
}

/// The softmax sums of a head before any token: a learned sink is an entry with the value 0.
methods::AttentionState Stream::begin(std::size_t h, Index queries) const {
  const Index rows = group_ * queries, dv = values_[h].rows().cols();
  if (sinks_.empty()) return methods::empty_state(*backend_, rows, dv);
  std::vector<float> logits;
  for (Index g = 0; g < group_; ++g)
    logits.insert(logits.end(), static_cast<std::size_t>(queries),
                  sinks_[static_cast<std::size_t>(kv_heads_[h] * group_ + g)]);
  methods::AttentionState state = methods::empty_state(*backend_, rows, dv);
  backend_->fill(state.den, 1.0f);
  state.max = backend_->adopt(std::move(logits), rows);
  return state;
}

/// The outputs [G * m, dv] of a head.
std::vector<float> Stream::attend(std::size_t h, const methods::QueryBlock& queries,
                                  const methods::EntryTables& tables) {
  const Index end = session_.tokens();
  const methods::HeadTokens tokens{keys_[h].rows().slice(0, end), values_[h].rows().slice(0, end), scale_, group_};
  const Index m = queries.size(), dv = tokens.values.cols();
  const replay::HostEntries entries(session_.checked(h, tokens), m);
  const auto first_seen = [&](Index position) {
    return static_cast<std::int32_t>(replay::first_seen_by(position, window_));
  };
  read_[h] = entries.rows_read(group_, m - 1, first_seen(end - 1), static_cast<std::int32_t>(end));
  for (Index i = 0; i < m; ++i) {
    const auto seen = static_cast<std::int32_t>(end - m + 1 + i);
    for (Index g = 0; g < group_; ++g)
      used_ += static_cast<double>(entries.count(g, i, first_seen(seen - 1), seen).all) / static_cast<double>(group_);
  }
  queries_ += static_cast<double>(m);
  if (!sinks_.empty() && std::ranges::any_of(tables, [](const auto& table) { return table.range.present(); }))
    throw Error("it clamps its outputs to the range of the values, outside of which a learned sink may move them");
  const methods::HostState answer = session_.attend(h, tokens, queries, tables, begin(h, m));
  std::vector<float> out = answer.num;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] /= answer.den[i / static_cast<std::size_t>(dv)];
  return out;
}

void Stream::add_bytes(methods::Element kv, replay::Bytes& sum) const {
  const std::vector<methods::Footprint> footprints = session_.footprint();
  const Index tokens = window_ > 0 ? std::min(window_, session_.tokens()) : session_.tokens();
  for (std::size_t h = 0; h < footprints.size(); ++h)
    sum += replay::account(footprints[h], kv, read_[h].retrieved, tokens, keys_[h].rows().cols(),
                           values_[h].rows().cols(), read_[h].estimated);
}

double Stream::kept() const { return used_ / queries_ * static_cast<double>(kv_heads_.size()); }

Decoder::Decoder(trace::TraceInfo document, const replay::ReplayRequest& request, replay::RunOptions options,
                 const LoopConfiguration& configuration, const std::atomic<bool>* stop)
    : document_(std::move(document)),
      request_(configuration.in(request)),
      options_(std::move(options)),
      stop_(stop),
      plan_(make_plan(document_, request_)),
      layers_(document_.prompts.front().layers.size()) {}

Decoder::~Decoder() = default;

replay::OpenCaches Decoder::open(const replay::WorkItem& item, const LayerArrays& arrays, Backend& backend,
                                 Index& budget) const {
  const std::shared_ptr<Uploader> uploader = backend.make_uploader();
  std::vector<replay::HeadSlabs> slabs;
  std::vector<replay::HeadResult> results;
  for (std::size_t h = 0; h < item.kv_heads.size(); ++h) {
    slabs.push_back(slabs_of(document_, plan_.prompts.front(), item.layer, item.kv_heads[h], arrays, *uploader));
    results.push_back(empty_head(document_, plan_, item.first_result + h));
  }
  replay::OpenCaches caches = open_caches({.trace = document_,
                                           .plan = plan_,
                                           .request = request_,
                                           .options = options_,
                                           .item = item,
                                           .results = results,
                                           .stop = stop_},
                                          std::move(slabs), backend);
  budget = results.front().results.front().budget_tokens;
  if (!caches.caches.empty()) return caches;
  const replay::ConfigurationResult& result = results.front().results.front();
  const std::string& name = request_.methods.front().info->name;
  const int number = document_.prompts.front().layers[item.layer].layer;
  if (result.status == replay::Status::failed) throw Error("{}: layer {}: {}", name, number, result.reason);
  throw NoCache(result.status, fmt::format("{}: layer {}: {}", name, number, result.reason));
}

void Decoder::compress(std::size_t layer, const LayerArrays& arrays) {
  check_arrays(document_, layer, arrays);
  if (!arrays.sinks.empty() && std::ssize(arrays.sinks) != document_.num_query_heads)
    throw Error("`sinks` has {} numbers instead of one for each of {} query heads", arrays.sinks.size(),
                document_.num_query_heads);
  std::vector<const replay::WorkItem*> items;
  for (const replay::WorkItem& item : plan_.work_items) {
    if (item.layer == layer) items.push_back(&item);
  }
  Streams streams(items.size());
  parallel_for(items.size(), thread_count(options_), [&](std::size_t i, std::size_t) {
    std::unique_ptr<Backend> backend = make_backend(options_);
    Index budget = 0;
    replay::OpenCaches caches = open(*items[i], arrays, *backend, budget);
    const bool observes = caches.observes;
    streams[i] = std::make_unique<Stream>(*items[i], observes, plan_.prompts.front().context, std::move(caches),
                                          std::move(backend), budget, arrays.sinks);
  });
  layers_[layer] = std::move(streams);
}

std::vector<float> Decoder::begin(std::size_t layer, const LayerArrays& arrays) {
  compress(layer, arrays);
  const replay::PromptPlan& prompt = plan_.prompts.front();
  return run(layer, prompt.tokens - prompt.context, arrays);
}

std::vector<float> Decoder::answer(std::size_t layer, Index count, const LayerArrays& arrays) {
  const auto expect = [&](const char* name, std::size_t size, Index heads, Index cols) {
    if (static_cast<Index>(size) == heads * count * cols) return;
    throw Error("{} of {} tokens have {} numbers instead of {} heads of {} rows of {}", name, count, size, heads, count,
                cols);
  };
  expect("`keys`", arrays.keys.size(), document_.num_kv_heads, document_.head_dim);
  expect("`values`", arrays.values.size(), document_.num_kv_heads, document_.value_dim);
  expect("`queries`", arrays.queries.size(), document_.num_query_heads, document_.head_dim);
  if (layers_.at(layer).empty()) throw Error("layer {} has no context yet", layer);
  return run(layer, count, arrays);
}

std::vector<float> Decoder::run(std::size_t layer, Index count, const LayerArrays& arrays) {
  std::vector<float> outputs(static_cast<std::size_t>(document_.num_query_heads * count * document_.value_dim));
  Streams& streams = layers_[layer];
  parallel_for(streams.size(), thread_count(options_),
               [&](std::size_t i, std::size_t) { streams[i]->answer(arrays, count, outputs); });
  if (!std::ranges::all_of(outputs, [](float x) { return std::isfinite(x); })) {  // weights may sum up to 0
    throw Error("{}: layer {}: an output is not finite, and the model cannot continue with it",
                request_.methods.front().info->name, document_.prompts.front().layers[layer].layer);
  }
  return outputs;
}

replay::Bytes Decoder::bytes() const {
  replay::Bytes sum;
  for (const Streams& streams : layers_) {
    for (const auto& stream : streams) stream->add_bytes(request_.kv_element, sum);
  }
  return sum;
}

Decoder::Tokens Decoder::tokens() const {
  Tokens mean;
  double heads = 0;
  for (const Streams& streams : layers_) {
    for (const auto& stream : streams) {
      heads += static_cast<double>(stream->kv_heads());
      mean.budget += static_cast<double>(stream->kv_heads() * stream->budget());
      mean.kept += stream->kept();
    }
  }
  return {mean.budget / heads, mean.kept / heads};
}

}  // namespace kvbench::loop
