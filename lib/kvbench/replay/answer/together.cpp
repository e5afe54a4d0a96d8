// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/together.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <kvbench/core/stopwatch.hpp>
#include <kvbench/replay/answer/segments.hpp>

namespace kvbench::replay {
namespace {

/// With fewer query rows, splitting the entries into segments costs more than it saves.
constexpr Index min_shared_rows = 8;

float shrink(float max, float larger) { return max == larger ? 1 : std::exp(max - larger); }

/// state += weight * part.
void add(const HostState& part, SetWeight weight, HostState& state) {
  const std::size_t rows = state.max.size(), dv = state.num.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    if (part.max[r] == -std::numeric_limits<float>::infinity()) continue;
    const float max = std::max(state.max[r], part.max[r]);
    const float old = shrink(state.max[r], max), scale = shrink(part.max[r], max);
    const float factor_num = weight.num * scale, factor_den = weight.den * scale;
    state.max[r] = max;
    state.den[r] = state.den[r] * old + part.den[r] * factor_den;
    float* to = state.num.data() + r * dv;
    const float* from = part.num.data() + r * dv;
    for (std::size_t c = 0; c < dv; ++c) to[c] = to[c] * old + from[c] * factor_num;
  }
}

std::vector<Answer> answers_of(std::span<const HostEntries* const> sets, std::span<const Segment> segments,
                               const methods::QueryBlock& queries, const HostState& fixed,
                               const methods::HeadTokens& tokens, Backend& backend) {
  std::vector<Answer> answers(sets.size(), {fixed, fixed});
  for (const Segment& segment : segments) {
    methods::AttentionState state = methods::empty_state(backend, queries.queries.rows(), tokens.values.cols());
    attend(backend, tokens, queries, {&segment.table, 1}, state);
    const HostState part = methods::on_host(state, backend);
    for (std::size_t s = 0; s < sets.size(); ++s) {
      const SetWeight weight = segment.weights[s];
      if (weight == SetWeight{}) continue;
      add(part, weight, answers[s].all);
      if (!sets[s]->all_plain() && weight == SetWeight{1, 1}) add(part, {1, 1}, answers[s].plain);
    }
  }
  for (std::size_t s = 0; s < sets.size(); ++s) {
    if (sets[s]->all_plain()) answers[s].plain = answers[s].all;
  }
  return answers;
}

double slots_of(const HostEntries& set) {
  double slots = 0;
  for (const ReadTable& table : set.tables()) slots += static_cast<double>(table.used);
  return slots;
}

}  // namespace

std::vector<ConfigurationRun::Shared> attend_together(std::span<const HostEntries* const> sets, const BlockPart& part,
                                                      const HostState& fixed, const methods::HeadTokens& tokens,
                                                      Backend& backend) {
  const Stopwatch watch(backend);
  const auto segments = find_segments(sets, tokens.keys.rows(), backend);
  if (!segments) return {};
  std::vector<ConfigurationRun::Shared> shared;
  for (Answer& answer : answers_of(sets, *segments, part.global, fixed, tokens, backend))
    shared.push_back({std::move(answer)});
  double slots = 0;
  for (const HostEntries* set : sets) slots += slots_of(*set);
  const double seconds = watch.seconds();
  for (std::size_t s = 0; s < sets.size(); ++s) shared[s].seconds = seconds * slots_of(*sets[s]) / slots;
  return shared;
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
