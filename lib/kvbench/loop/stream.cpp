// SPDX-License-Identifier: Apache-2.0
#include <kvbench/loop/stream.hpp>

#include <algorithm>

#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/replay/measure/bytes.hpp>

namespace kvbench::loop {
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

/// Slots in use that answer query `i` of m, which sees the first `seen` tokens, over the query heads.
double used_by(const methods::HostTable& table, Index group, Index i, Index m, Index seen) {
  double used = 0;
  for (Index g = 0; g < (table.per_head ? group : 1); ++g) {
    const auto row = table.row(table_row(table, g, i, m));
    used += static_cast<double>(std::ranges::count_if(row, [&](std::int32_t id) { return id >= 0 && id < seen; }));
  }
  return used;
}

}  // namespace

Stream::Stream(const replay::WorkItem& item, bool observes, Index context, replay::OpenCaches caches,
               std::unique_ptr<Backend> backend, Index budget)
    : backend_(std::move(backend)),
      kv_heads_(item.kv_heads),
      session_(std::move(caches.caches), context, observes, *backend_),
      read_(kv_heads_.size(), 0),
      budget_(budget) {
  for (const replay::Head& head : caches.heads) {
    group_ = head.group;
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
  std::vector<std::int32_t> last = methods::token_range(begins + 1, count);
  return {.queries = backend_->adopt(std::move(rows), group_ * count, d),
          .positions = std::move(positions),
          .first = backend_->adopt(std::vector<std::int32_t>(static_cast<std::size_t>(count), 0), count),
          .last = backend_->adopt(std::move(last), count)};
}

/// The outputs [G * m, dv] of a head.
std::vector<float> Stream::attend(std::size_t h, const methods::QueryBlock& queries,
                                  const methods::EntryTables& tables) {
  const Index end = session_.tokens();
  const methods::HeadTokens tokens{keys_[h].rows().slice(0, end), values_[h].rows().slice(0, end), scale_, group_};
  const Index m = queries.size(), dv = tokens.values.cols();
  read_[h] = 0;
  for (const methods::HostTable& table : session_.checked(h, tokens)) {
    read_[h] += used_by(table, group_, m - 1, m, end);
    for (Index i = 0; i < m; ++i)
      used_ += used_by(table, group_, i, m, end - m + 1 + i) / static_cast<double>(table.per_head ? group_ : 1);
  }
  queries_ += static_cast<double>(m);
  const methods::HostState answer =
      session_.attend(h, tokens, queries, tables, methods::empty_state(*backend_, group_ * m, dv));
  std::vector<float> out = answer.num;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] /= answer.den[i / static_cast<std::size_t>(dv)];
  return out;
}

void Stream::add_bytes(methods::Element kv, replay::Bytes& sum) const {
  const std::vector<methods::Footprint> footprints = session_.footprint();
  for (std::size_t h = 0; h < footprints.size(); ++h)
    sum += replay::account(footprints[h], kv, read_[h], session_.tokens(), keys_[h].rows().cols(),
                           values_[h].rows().cols());
}

double Stream::kept() const { return used_ / queries_ * static_cast<double>(kv_heads_.size()); }

}  // namespace kvbench::loop
