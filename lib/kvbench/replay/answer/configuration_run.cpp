// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/configuration_run.hpp>

#include <algorithm>
#include <iterator>
#include <map>

#include <kvbench/core/stopwatch.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/replay/answer/segments.hpp>

namespace kvbench::replay {
namespace {

/// With fewer query rows, splitting the entries into segments costs more than it saves.
constexpr Index min_shared_rows = 8;

/// Results are stored with a row for each slot whose entry stands for several tokens.
methods::HostTable with_own_rows(methods::HostTable host, const methods::EntryTable& table, Backend& backend) {
  if (!host.rows_by_token || host.rounded) return host;
  std::vector<std::int32_t> ids;
  for (const std::int32_t id : host.ids) ids.push_back(std::max(id, 0));  // unused slots: any row
  const auto rows = backend.adopt(std::move(ids), host.rows * host.width);
  host.own_keys = backend.on_host(Buffer<const float>(methods::gathered(table.token_keys, rows, backend)));
  host.own_values = backend.on_host(Buffer<const float>(methods::gathered(table.token_values, rows, backend)));
  host.rows_by_token = false;
  return host;
}

}  // namespace

ConfigurationRun::ConfigurationRun(methods::Caches caches, Options options, std::span<const Head> heads,
                                   std::vector<ConfigurationResult*> results, Backend& backend)
    : session_(std::move(caches), heads.front().map.middle, options.observes, backend),
      options_(options),
      heads_(heads),
      results_(std::move(results)) {
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const Measurements::Options measured{.keep_outputs = options.keep_raw,
                                         .keep_exact = options.keep_exact,
                                         .floor = options.noise_floors.empty() ? nullptr : &options.noise_floors[h],
                                         .mass = options.context_mass.empty() ? nullptr : &options.context_mass[h]};
    measurements_.emplace_back(heads[h], measured, *results_[h]);
  }
}

void ConfigurationRun::start(std::span<HeadBlock> blocks) {
  answered_ = 0;
  if (!options_.standalone || !options_.selects) return;
  for (std::size_t h = 0; h < heads_.size(); ++h) results_[h]->attend_s += blocks[h].exact.seconds;
}

QueryRun ConfigurationRun::advance(std::span<const std::int32_t> positions, Backend& backend) {
  const Index begin = answered_;
  if (!options_.decode) answered_ = static_cast<Index>(positions.size());
  while (answered_ == begin && begin < static_cast<Index>(positions.size())) {
    append(positions.back() + 1, backend);
    answered_ = static_cast<Index>(std::ranges::lower_bound(positions, next()) - positions.begin());
  }
  return {begin, answered_};
}

/// Appends as many tokens as the method takes at once, up to token `end`.
void ConfigurationRun::append(Index end, Backend& backend) {
  std::vector<methods::TokenBlock> tokens;
  for (const Head& head : heads_) {
    tokens.push_back({.first = session_.tokens(),
                      .keys = head.tokens.keys.slice(next(), end - next()),
                      .values = head.tokens.values.slice(next(), end - next())});
  }
  const Stopwatch watch(backend);
  const double flops = backend.cost().flops;
  session_.append(tokens);
  const double share = 1.0 / static_cast<double>(heads_.size());
  const double seconds = watch.seconds() * share;
  for (ConfigurationResult* result : results_) {
    result->attend_s += seconds;
    result->attend_flops += (backend.cost().flops - flops) * share;
  }
}

void ConfigurationRun::collect(std::span<HeadBlock> blocks, QueryRun run, Backend& backend) {
  collected_ = {};
  std::vector<methods::QueryBlock> queries;
  for (HeadBlock& block : blocks) {
    collected_.heads.push_back({.part = block.part(run, backend)});
    if (options_.standalone) collected_.heads.back().part.global.scores = {};
    queries.push_back(collected_.heads.back().part.local);
  }
  const Stopwatch watch(backend);
  double flops = -backend.cost().flops;
  const std::vector<methods::EntryTables>& entries = session_.entries(std::move(queries));
  const double share = 1.0 / static_cast<double>(heads_.size());
  const double seconds = watch.seconds() * share;
  flops += backend.cost().flops;
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    Collected::OfHead& of_head = collected_.heads[h];
    read_entries(h, entries[h], run.size(), backend);
    of_head.complete = shares() && options_.noise_floors.empty() && of_head.host->complete(session_.tokens());
    results_[h]->attend_s += seconds;
    results_[h]->attend_flops += flops * share + attend_flops(heads_[h].tokens, of_head.part.global, of_head.tables);
    if (!options_.keep_raw) continue;
    RawResult& raw = *results_[h]->raw;
    raw.entries_query = blocks[h].exact.begin + run.begin;
    raw.entries.clear();
    for (std::size_t t = 0; t < of_head.tables.size(); ++t)
      raw.entries.push_back(with_own_rows(of_head.host->tables()[t], of_head.tables[t], backend));
  }
}

void ConfigurationRun::read_entries(std::size_t h, const methods::EntryTables& entries, Index queries,
                                    Backend& backend) {
  const Head& head = heads_[h];
  Collected::OfHead& of_head = collected_.heads[h];
  std::vector<methods::HostTable> host = session_.checked(h, head.tokens);
  for (const methods::EntryTable& table : entries) of_head.tables.push_back(to_global(table, head.map, backend));
  for (std::size_t t = 0; t < host.size() && !head.map.identity(); ++t)
    host[t].ids = backend.on_host(of_head.tables[t].ids);
  of_head.host.emplace(std::move(host), queries);
}

void ConfigurationRun::answer(HeadBlock& block, QueryRun run, std::size_t h, const Shared* shared, Backend& backend) {
  const auto measure = [&](const Answer& answer) {
    measurements_[h].add(block.exact, run, entries(h), recall_range(h), answer, backend);
  };
  if (complete(h)) {
    const HostState exact = block.whole(run);
    measure({exact, exact});
  } else if (shared != nullptr) {
    results_[h]->attend_s += shared->seconds;
    measure(shared->answer);
  } else {
    measure(attend(block.fixed(run), h, backend));
  }
}

Answer ConfigurationRun::attend(const HostState& fixed, std::size_t h, Backend& backend) {
  const Head& head = heads_[h];
  Collected::OfHead& of_head = collected_.heads[h];
  const auto rows = static_cast<Index>(fixed.max.size()), dv = head.tokens.values.cols();
  const auto begin = [&] {
    return methods::AttentionState{backend.adopt(std::vector(fixed.max), rows),
                                   backend.adopt(std::vector(fixed.den), rows),
                                   backend.adopt(std::vector(fixed.num), rows, dv)};
  };
  const Stopwatch watch(backend);
  Answer answer{session_.attend(h, head.tokens, of_head.part.global, of_head.tables, begin()), fixed};
  results_[h]->attend_s += watch.seconds();
  if (of_head.host->all_plain()) {
    answer.plain = answer.all;
  } else if (of_head.host->any_plain()) {
    methods::AttentionState plain = begin();
    kvbench::methods::attend(backend, head.tokens, of_head.part.global, of_head.host->plain_part(backend), plain);
    answer.plain = methods::on_host(plain, backend);
  }
  return answer;
}

RecallRange ConfigurationRun::recall_range(std::size_t h) const {
  const TokenMap& map = heads_[h].map;
  const methods::Protected kept = session_.protected_tokens()[h];
  const bool may_drop_decoded = options_.decode && !kept.decoded;
  if (may_drop_decoded && map.last > 0)
    return {};  // the tokens that may be dropped are on both sides of protected tokens
  return {.first = map.first + (options_.recall_sinks ? 0 : kept.sinks),
          .last = may_drop_decoded ? heads_[h].num_tokens() : map.first + map.middle - kept.recent,
          .sinks = options_.recall_sinks ? kept.sinks : 0};
}

void ConfigurationRun::finish() {
  const std::vector<methods::Footprint> footprints = session_.footprint();
  results_.front()->notes = options_.notes;
  std::ranges::move(session_.notes(), std::back_inserter(results_.front()->notes));
  for (std::size_t h = 0; h < heads_.size(); ++h)
    measurements_[h].finish(footprints[h], options_.kv_element, session_.tokens());
  for (std::size_t h = 0; h < collected_.heads.size() && options_.held_of > 0; ++h) set_held(h);
}

void ConfigurationRun::set_held(std::size_t h) {
  const TokenMap& map = heads_[h].map;
  std::vector<std::vector<bool>> of_heads;
  for (Index g = 0; g < heads_[h].group; ++g) of_heads.push_back(entries(h).held(g, options_.held_of));
  std::vector<std::uint64_t>& held = results_[h]->held;
  held.assign(static_cast<std::size_t>(options_.held_of + 63) / 64, 0);
  for (Index t = 0; t < options_.held_of; ++t) {
    const auto has = [t](const std::vector<bool>& of_head) { return of_head[static_cast<std::size_t>(t)]; };
    const bool by_harness = t < map.first || (t >= map.first + map.middle && t < map.first + map.middle + map.last);
    if (by_harness || std::ranges::any_of(of_heads, has))
      held[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64);
  }
}

void Together::answer(std::span<HeadBlock> blocks, Backend& backend) {
  for (Member& member : members_) member.run->start(blocks);
  for (bool more = true; more;) {
    std::map<QueryRun, std::vector<Member*>> by_run;
    for (Member& member : members_) {
      attempt(member, [&] {
        const QueryRun run = member.run->advance(blocks.front().exact.block.positions, backend);
        if (run.size() > 0) by_run[run].push_back(&member);
      });
    }
    for (auto& [run, members] : by_run) answer_run(blocks, run, members, backend);
    more = !by_run.empty();
  }
  std::erase_if(members_, [](const Member& member) { return member.ended; });
}

void Together::answer_run(std::span<HeadBlock> blocks, QueryRun run, std::span<Member*> members, Backend& backend) {
  for (Member* member : members) {
    attempt(*member, [&] { member->run->collect(blocks, run, backend); });
  }
  for (std::size_t h = 0; h < blocks.size(); ++h) {
    std::vector<const HostEntries*> sets;
    for (const Member* member : members) {
      if (!member->ended && member->run->shares() && !member->run->complete(h))
        sets.push_back(&member->run->entries(h));
    }
    const methods::HeadTokens& tokens = blocks[h].head().tokens;
    std::vector<ConfigurationRun::Shared> shared;
    if (sets.size() > 1 && run.size() * tokens.group >= min_shared_rows) {
      shared = attend_together(sets, blocks[h].part(run, backend), blocks[h].fixed(run), tokens, backend);
    }
    std::size_t next = 0;
    for (Member* member : members) {
      if (member->ended) continue;
      const bool own = shared.empty() || member->run->complete(h);
      const ConfigurationRun::Shared* const answer = own ? nullptr : &shared[next++];
      attempt(*member, [&] { member->run->answer(blocks[h], run, h, answer, backend); });
    }
  }
  for (Member* member : members) attempt(*member, [&] { member->run->observe(); });
}

void Together::finish() {
  for (Member& member : members_) attempt(member, [&] { member.run->finish(); });
}

}  // namespace kvbench::replay
