// SPDX-License-Identifier: Apache-2.0
#include <kvbench/testing/trial.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <kvbench/methods/contract/method_name.hpp>

namespace kvbench::testing {
namespace {

/// This shape with enough channels for whole blocks of the row.
Shape whole_blocks(const Row& row, Shape shape) {
  if (!row.info->block) return shape;
  const Index block = row.info->block(row.params).channels;
  for (Index* channels : {&shape.d, &shape.dv}) *channels = (*channels + block - 1) / block * block;
  return shape;
}

/// A head on another text.
std::shared_ptr<const methods::HeadPrompt> text_of(const HeadData& head, Backend& backend) {
  constexpr std::uint32_t other = 1000;
  const Shape shape{.n = 20, .decoded = 0, .d = head.d, .dv = head.dv, .group = head.group};
  const auto stream = other + static_cast<std::uint32_t>(head.head.value);
  return std::make_shared<const methods::HeadPrompt>(prompt_of(random_head(shape, stream, backend), backend));
}

std::vector<methods::HeadPrompt> prompts_of(const Heads& heads, const methods::MethodInfo& info, Backend& backend) {
  std::vector<methods::HeadPrompt> prompts;
  for (const HeadData& head : heads) {
    prompts.push_back(prompt_of(head, backend));
    if (heads.size() > 1) prompts.back().num_kv_heads = std::ssize(heads);  // those of a layer
    if (info.score_of_head) prompts.back().calibration = text_of(head, backend);
  }
  return prompts;
}

/// The part of the result of a block for query i of m.
Result of_query(const Result& block, std::size_t i, std::size_t m, std::size_t dv) {
  Result result;
  for (std::size_t r = i; r < block.entries.size(); r += m) {
    result.entries.push_back(block.entries[r]);
    const auto begin = block.answers.begin() + static_cast<std::ptrdiff_t>(r * dv);
    result.answers.insert(result.answers.end(), begin, begin + static_cast<std::ptrdiff_t>(dv));
  }
  return result;
}

const std::vector<methods::EntryTables>& checked_entries(const Instance& instance, const Heads& heads,
                                                         const std::vector<methods::QueryBlock>& blocks, Index tokens,
                                                         Backend& backend) {
  const auto& tables = instance.session->entries(blocks);
  for (std::size_t h = 0; h < heads.size(); ++h) instance.session->checked(h, tokens_of(heads[h], tokens, backend));
  return tables;
}

}  // namespace

PreparedRow::PreparedRow(const Row& row, const Heads& heads, Backend& backend) : row_(row), backend_(backend) {
  const auto prompts = prompts_of(heads, *row.info, backend);
  head_ = prompts.front();
  for (const methods::HeadPrompt& prompt : prompts) {
    if (prompt.calibration) scores_.push_back(row.info->score_of_head(*prompt.calibration, row.params, backend));
  }
  make_ = row.info->prepare(prompts, row.params, backend);
}

Instance PreparedRow::open(Index budget, std::uint32_t seed, bool reversed) const {
  if (row_.info->divides(row_.params)) {
    methods::ModelContext context{.prompt_group = head_.prompt_group, .tokens = head_.tokens()};
    for (Index l = 0; l < head_.num_caches; ++l) {
      context.layers.push_back(l);
      if (!scores_.empty()) context.head_scores[l] = scores_;
    }
    const std::vector<Index> budgets = row_.info->plan(context, budget, row_.params);
    budget = budgets.at(static_cast<std::size_t>(head_.layer.value));
  }
  methods::Caches caches = make_(budget, seed);
  if (reversed) std::ranges::reverse(caches);
  return {std::make_unique<Session>(std::move(caches), head_.tokens(), row_.info->observes, backend_), ""};
}

Heads Trial::heads(const Shape& shape, std::uint32_t stream) const {
  Heads heads;
  for (std::uint32_t h = 0; h < (info().granularity == methods::Granularity::layer ? 3u : 1u); ++h) {
    heads.push_back(random_head(whole_blocks(row_, shape), stream + h, backend_));
    heads.back().head = KvHeadId(h);
  }
  return heads;
}

bool Trial::limited() const { return methods::parse_method_name(info().name).origin == methods::Origin::python; }

Instance Trial::open(const Heads& heads, Index budget, std::uint32_t seed) {
  if (limited() && heads[0].n > 0) budget = std::min(budget, heads[0].n);
  cache_ = fmt::format("budget {}, seed {}", budget, seed);
  phase_ = "";
  return PreparedRow(row_, heads, backend_).open(budget, seed);
}

Instance Trial::try_open(const Heads& heads, Index budget, std::uint32_t seed) {
  std::string refusal;
  try {
    return open(heads, budget, seed);
  } catch (const methods::Infeasible& reason) {
    refusal = reason.what();
  } catch (const methods::Unavailable& reason) {
    refusal = reason.what();
  }
  require(!refusal.empty(), "it refuses without a reason");
  return {nullptr, refusal};
}

std::vector<Result> Trial::prefill(const Instance& instance, const Heads& heads) {
  phase_ = "prefill";
  const Index n = heads[0].n, total = heads[0].total;
  std::vector<methods::QueryBlock> blocks;
  for (const HeadData& head : heads) blocks.push_back(query_block(head, n, total, total, backend_));
  const auto& tables = checked_entries(instance, heads, blocks, total, backend_);
  std::vector<Result> results;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    methods::EntryTables with_tail = tables[h];
    with_tail.push_back(exact_entries(n, total, backend_));
    results.push_back(
        {visible_entries(heads[h], tables[h], blocks[h], backend_), answer(heads[h], blocks[h], with_tail, backend_)});
  }
  return results;
}

std::vector<std::vector<Result>> Trial::decode(const Instance& instance, const Heads& heads, Index block) {
  phase_ = "decode";
  std::vector<std::vector<Result>> results(heads.size());
  const Index total = heads[0].total;
  for (Index begin = heads[0].n; begin < total;) {
    std::vector<methods::TokenBlock> pending;
    for (const HeadData& head : heads)
      pending.push_back(token_block(head, begin, std::min(begin + block, total), backend_));
    const Index taken = instance.session->append(pending), end = begin + taken;
    std::vector<methods::QueryBlock> blocks;
    for (const HeadData& head : heads) blocks.push_back(query_block(head, begin, end, end, backend_));
    const auto& tables = checked_entries(instance, heads, blocks, end, backend_);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      methods::AttentionState empty = methods::empty_state(backend_, blocks[h].queries.rows(), heads[h].dv);
      const methods::HostState sums =
          instance.session->attend(h, tokens_of(heads[h], end, backend_), blocks[h], tables[h], std::move(empty));
      const Result whole{visible_entries(heads[h], tables[h], blocks[h], backend_), answers_of(sums)};
      for (Index i = 0; i < taken; ++i) {
        results[h].push_back(of_query(whole, static_cast<std::size_t>(i), static_cast<std::size_t>(taken),
                                      static_cast<std::size_t>(heads[h].dv)));
      }
    }
    instance.session->observe();
    begin = end;
  }
  return results;
}

std::string Trial::place() const {
  std::string all;
  for (const std::string_view part : {std::string_view(inputs_), std::string_view(cache_), std::string_view(phase_)}) {
    if (part.empty()) continue;
    all += (all.empty() ? "" : ", ") + std::string(part);
  }
  return all;
}

double max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || !all_finite(a) || !all_finite(b)) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

std::string reason_against(const methods::Property& property) {
  require(property.holds || !property.reason.empty(), "its row neither declares this nor gives a reason");
  return property.holds ? "" : property.reason;
}

void require_finite(const std::vector<Result>& results) {
  for (const Result& result : results) require(all_finite(result.answers), "an answer is no finite number");
}

}  // namespace kvbench::testing
