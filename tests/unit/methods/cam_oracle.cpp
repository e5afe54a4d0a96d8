// SPDX-License-Identifier: Apache-2.0
// The three forms of cam compared with slow transcriptions of the released code, including its list operations.
#include <doctest/doctest.h>

#include <numeric>

#include <support/steps.hpp>

#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Vector = std::vector<double>;

/// The cache of one query head as lists over its slots.
struct Lists {
  std::vector<Index> ids;
  std::vector<Vector> values;
  Vector accumulated;

  void append(const HeadData& head, Index t) {
    ids.push_back(t);
    values.emplace_back(head.values.begin() + t * head.dv, head.values.begin() + (t + 1) * head.dv);
    accumulated.push_back(0);
  }
  void erase(Index slot) {
    ids.erase(ids.begin() + slot);
    values.erase(values.begin() + slot);
    accumulated.erase(accumulated.begin() + slot);
  }
  /// values[first .. last) += values[slot] / m, with the range cut at the end of the list, as slices are.
  void merge(Index slot, Index first, Index last, Index m) {
    for (Index i = first; i < std::min<Index>(last, std::ssize(values)); ++i) {
      for (std::size_t c = 0; c < values[0].size(); ++c) {
        values[static_cast<std::size_t>(i)][c] += values[static_cast<std::size_t>(slot)][c] / static_cast<double>(m);
      }
    }
  }
};

Vector attention(const HeadData& head, Index g, Index t, const std::vector<Index>& ids) {
  Vector mass;
  for (const Index j : ids) {
    double dot = 0;
    for (Index c = 0; c < head.d; ++c) {
      dot += double{head.queries[static_cast<std::size_t>((g * head.total + t) * head.d + c)]} *
             head.keys[static_cast<std::size_t>(j * head.d + c)];
    }
    mass.push_back(std::exp(head.scale * dot));
  }
  const double sum = std::accumulate(mass.begin(), mass.end(), 0.0);
  for (double& x : mass) x /= sum;
  return mass;
}

double mean(const Vector& x, Index first, Index last) {
  last = std::min<Index>(last, std::ssize(x));
  return std::accumulate(x.begin() + first, x.begin() + last, 0.0) / static_cast<double>(last - first);
}

struct Setup {
  Index start, recent, m;
};

/// The entries that query t of head g reads, before the step changes the cache (streaming, decode) or after (eval).
struct Read {
  std::vector<Index> ids;
  std::vector<Vector> values;
};

Read streaming_step(Lists& cache, const HeadData& head, Index g, Index t, const Setup& s, const Draws& draws) {
  cache.append(head, t);
  const Read read{cache.ids, cache.values};
  const Vector paid = attention(head, g, t, cache.ids);
  for (std::size_t i = 0; i < paid.size(); ++i) cache.accumulated[i] += paid[i];
  const Index length = std::ssize(cache.ids);
  if (length <= s.start + s.recent) return read;
  const Index first = length - s.recent;
  const double chance =
      cache.accumulated[static_cast<std::size_t>(first - 1)] / mean(cache.accumulated, first, first + s.m);
  if (draws.uniform(cache.ids[static_cast<std::size_t>(first - 1)], static_cast<std::uint32_t>(g)) < chance) {
    cache.merge(first - 1, first, first + s.m, s.m);
  }
  cache.erase(first - 1);
  return read;
}

Read eval_step(Lists& cache, const HeadData& head, Index g, Index t, const Setup& s, const Draws& draws) {
  cache.append(head, t);
  Index leaving = -1;
  if (t >= s.start + s.recent) {
    leaving = s.start;  // the slot of token t - recent
    CHECK(cache.ids[static_cast<std::size_t>(leaving)] == t - s.recent);
    const double largest = *std::max_element(cache.accumulated.begin(), cache.accumulated.end() - 1);
    const double chance = cache.accumulated[static_cast<std::size_t>(leaving)] / largest;
    if (draws.uniform(t - s.recent, static_cast<std::uint32_t>(g)) < chance) {
      cache.merge(leaving, leaving + 1, leaving + 1 + s.recent, s.recent);
    }
  }
  const Read read{cache.ids, cache.values};
  const Vector paid = attention(head, g, t, cache.ids);
  for (std::size_t i = 0; i < paid.size(); ++i) cache.accumulated[i] += paid[i];
  if (leaving >= 0) cache.erase(leaving);
  return read;
}

/// The released code masks a full list and does not shorten it; slots are tokens.
Read decode_step_of(Lists& all, const HeadData& head, Index g, Index t, const Setup& s, const Draws& draws) {
  all.append(head, t);
  const Index length = t + 1;
  Read read;
  for (Index j = 0; j < length; ++j) {
    if (j >= s.start && j < length - s.recent) continue;
    read.ids.push_back(j);
    read.values.push_back(all.values[static_cast<std::size_t>(j)]);
  }
  Vector full(static_cast<std::size_t>(length), 0);
  const Vector paid = attention(head, g, t, read.ids);
  for (std::size_t i = 0; i < paid.size(); ++i) full[static_cast<std::size_t>(read.ids[i])] = paid[i];
  const Index i = length - s.recent + 1;
  if (i < s.start) return read;
  const double chance = full[static_cast<std::size_t>(i)] / mean(full, i + 1, length);
  if (draws.uniform(i, static_cast<std::uint32_t>(g)) < chance) all.merge(i, i + 1, i + 1 + s.m, s.m);
  return read;
}

using StepOf = Read (*)(Lists&, const HeadData&, Index, Index, const Setup&, const Draws&);

void check_step(const Step& step, const Read& expected, const HeadData& head, std::size_t g) {
  REQUIRE(step.entries[g].size() == expected.ids.size());
  for (std::size_t k = 0; k < expected.ids.size(); ++k) {
    const Entry& entry = step.entries[g][k];
    CHECK(entry.id == expected.ids[k]);
    for (Index c = 0; c < head.dv; ++c) {
      const float value = entry.value.empty() ? head.values[static_cast<std::size_t>(entry.id * head.dv + c)]
                                              : entry.value[static_cast<std::size_t>(c)];
      const double exact = expected.values[k][static_cast<std::size_t>(c)];
      if (std::abs(value - exact) > 1e-4 * std::max(1.0, std::abs(exact)))
        FAIL_CHECK("token ", entry.id, " column ", c);
    }
  }
}

/// Streams the head from token 0 on, and decodes it after a prompt of head.n tokens.
void check_form(const char* form, StepOf literal, const Setup& setup, const HeadData& head, bool prompted,
                Backend& backend) {
  const std::vector<Assignment> settings = {
      {"form", form}, {"start", std::to_string(setup.start)}, {"merge", std::to_string(setup.m)}};
  HeadData empty = head;
  empty.n = 0;
  const HeadPrompt prompt = prompt_of(head, backend);
  const auto streamed = open_cache("cam", settings, prompt_of(empty, backend), setup.start + setup.recent, 3, backend);
  const auto after = open_cache("cam", settings, prompt, setup.start + setup.recent, 3, backend);
  const Draws draws(3, "cam", prompt);
  std::vector<Lists> caches(static_cast<std::size_t>(head.group));
  for (Index t = 0; t < head.total; ++t) {
    CAPTURE(t);
    const Step all = decode_step(*streamed, empty, t, backend);
    const bool decoded = prompted && t >= head.n;
    const Step tail = decoded ? decode_step(*after, head, t, backend) : all;
    for (std::size_t g = 0; g < caches.size(); ++g) {
      const Read expected = literal(caches[g], head, static_cast<Index>(g), t, setup, draws);
      check_step(all, expected, head, g);
      if (decoded) check_step(tail, expected, head, g);
    }
  }
}

}  // namespace

// 160 tokens pass through windows of at most 9: storage is reallocated several times.
TEST_CASE("each form of cam equals the released code") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    HeadData head = random_head({.n = 90, .decoded = 70}, 6, *backend);
    for (float& x : head.queries) x *= 2;
    for (const Setup& setup : {Setup{4, 9, 3}, Setup{1, 5, 16}, Setup{0, 3, 2}}) {
      CAPTURE(setup.start);
      CAPTURE(setup.recent);
      check_form("streaming", streaming_step, setup, head, true, *backend);
      check_form("eval", eval_step, {setup.start, setup.recent, setup.recent}, head, true, *backend);
      check_form("decode", decode_step_of, setup, head, false, *backend);  // a prompt is not merged at all
    }
  }
}
