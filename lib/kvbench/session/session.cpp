// SPDX-License-Identifier: Apache-2.0
#include <kvbench/session/session.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace kvbench {
namespace {

methods::Caches alone(std::unique_ptr<methods::CompressedCache> cache) {
  methods::Caches caches;
  caches.push_back(std::move(cache));
  return caches;
}

}  // namespace

Session::Session(methods::Caches caches, Index context, bool observes, Backend& backend)
    : caches_(std::move(caches)),
      tokens_(context),
      observes_(observes),
      backend_(&backend),
      checkers_(caches_.size()),
      seen_(caches_.size()) {}

Session::Session(std::unique_ptr<methods::CompressedCache> cache, Index context, Backend& backend, bool observes)
    : Session(alone(std::move(cache)), context, observes, backend) {}

Index Session::append(std::span<const methods::TokenBlock> tokens) {
  const Index offered = observes_ ? 1 : tokens.front().size();
  Index count = offered;
  for (std::size_t h = 0; h < caches_.size(); ++h) {
    const Index taken = caches_[h]->takes(tokens[h].front(offered));
    if (taken < 1 || taken > offered)
      throw std::logic_error(fmt::format("takes() of {} tokens returned {}", offered, taken));
    count = std::min(count, taken);
  }
  for (std::size_t h = 0; h < caches_.size(); ++h) caches_[h]->append(tokens[h].front(count));
  tokens_ += count;
  return count;
}

const std::vector<methods::EntryTables>& Session::entries(std::vector<methods::QueryBlock> queries) {
  entries_.clear();  // before memory is needed for new ones
  seen_.assign(caches_.size(), {});
  queries_ = std::move(queries);
  for (std::size_t h = 0; h < caches_.size(); ++h) caches_[h]->announce(queries_[h]);
  for (std::size_t h = 0; h < caches_.size(); ++h) entries_.push_back(caches_[h]->entries(queries_[h]));
  return entries_;
}

std::vector<methods::HostTable> Session::checked(std::size_t head, const methods::HeadTokens& tokens) {
  return checkers_[head].check(*backend_, tokens, queries_[head].size(), tokens_, entries_[head]);
}

methods::HostState Session::attend(std::size_t head, const methods::HeadTokens& tokens,
                                   const methods::QueryBlock& queries, const methods::EntryTables& tables,
                                   methods::AttentionState state) {
  std::vector<Buffer<float>> logits;
  methods::attend(*backend_, tokens, queries, tables, state, observes_ ? &logits : nullptr);
  methods::HostState sums = methods::on_host(state, *backend_);
  methods::clamp_outputs(tables, sums, *backend_);
  if (observes_) seen_[head] = {tables, std::move(logits), sums};
  return sums;
}

void Session::observe() {
  if (!observes_) return;
  for (std::size_t h = 0; h < caches_.size(); ++h) {
    const Seen& seen = seen_[h];
    caches_[h]->observe(queries_[h], entries_[h],
                        methods::observed_weights(seen.tables, seen.logits, seen.state, *backend_));
  }
}

std::vector<methods::Footprint> Session::footprint() const {
  std::vector<methods::Footprint> all;
  for (const auto& cache : caches_) all.push_back(cache->footprint());
  return all;
}

std::vector<methods::Protected> Session::protected_tokens() const {
  std::vector<methods::Protected> all;
  for (const auto& cache : caches_) all.push_back(cache->protected_tokens());
  return all;
}

std::vector<methods::Note> Session::notes() const {
  std::vector<methods::Note> all;
  for (const auto& cache : caches_) methods::merge_notes(all, cache->notes());
  return all;
}

}  // namespace kvbench
