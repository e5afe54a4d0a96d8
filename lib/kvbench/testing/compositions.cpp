// SPDX-License-Identifier: Apache-2.0
// Methods that choose, merge or retrieve tokens, stored by a quantiser: the entries are those of the method alone, the
// bytes are those of the composition, and the error is within the bound of the codec.
#include <algorithm>
#include <cmath>

#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

using methods::Assignment, methods::Content, methods::Footprint, methods::FootprintArray, methods::Kind;

const std::vector<Assignment> int8_groups = {{"int8.group", "4"}};
const std::vector<Assignment> kivi4_groups = {{"kivi4.group", "2"}, {"kivi4.residual", "4"}};

/// A row, and the same stored by a quantiser.
struct Composition {
  Composition(const Row& row, const methods::MethodInfo& quantiser, const std::vector<Assignment>& extra)
      : both(compose(*row.info, quantiser)) {
    std::vector<Assignment> settings = methods::parse_settings(row.params.text());
    settings.insert(settings.end(), extra.begin(), extra.end());
    stored = {&both, both.bind(settings)};
  }
  methods::MethodInfo both;
  Row stored;
};

/// What both give at one budget; without caches where both refuse it.
struct Pair {
  Instance alone, stored;
  std::vector<Result> expected, got;  ///< of prefill
};
Pair prefilled(Trial& alone, Trial& stored, const Heads& heads, Index budget) {
  Pair pair{alone.try_open(heads, budget), stored.try_open(heads, budget), {}, {}};
  require((pair.alone.session == nullptr) == (pair.stored.session == nullptr), "one refuses, the other does not: {}{}",
          pair.alone.refusal, pair.stored.refusal);
  if (!pair.alone.session) return pair;
  pair.expected = alone.prefill(pair.alone, heads);
  pair.got = stored.prefill(pair.stored, heads);
  return pair;
}

std::string not_stored(const methods::MethodInfo& info) {
  const bool composed = methods::parse_method_name(info.name).quantiser.has_value();
  return composed || info.kind == Kind::exact || info.kind == Kind::quantisation
             ? "it keeps or stores all tokens itself"
             : "";
}

struct Weighted {
  TokenId id;
  float num, den;
  friend auto operator<=>(const Weighted&, const Weighted&) = default;
};
std::vector<Weighted> weights_of(const std::vector<Entry>& entries) {
  std::vector<Weighted> out;
  for (const Entry& entry : entries) out.push_back({entry.id, entry.num, entry.den});
  std::ranges::sort(out);
  return out;
}

void require_same_entries(const Result& alone, const Result& stored) {
  require(alone.entries.size() == stored.entries.size(), "stored it answers {} rows of queries, alone {}",
          stored.entries.size(), alone.entries.size());
  for (std::size_t r = 0; r < alone.entries.size(); ++r)
    require(weights_of(alone.entries[r]) == weights_of(stored.entries[r]), "stored it has other entries than alone");
}

double bytes_of(const Footprint& arrays, Content content) {
  double bytes = 0;
  for (const FootprintArray& array : arrays) {
    if (array.content != content) continue;
    bytes += static_cast<double>(array.rows * array.cols) * element_bytes(array.element, methods::Element::f16);
  }
  return bytes;
}

void require_bytes(const Footprint& arrays, Content content, double expected) {
  constexpr const char* names[] = {"keys", "values", "meta"};
  const double bytes = bytes_of(arrays, content);
  require(bytes == expected, "its {} take {} bytes, not {}", names[static_cast<int>(content)], bytes, expected);
}

/// Whether a composition leaves an array in 16 bits: what a method that retrieves keeps beside the full cache.
bool beside(const FootprintArray& array, Kind kind) {
  return kind == Kind::retrieval && array.read != methods::Read::with_entry;
}

/// Bytes of the method's keys or values where each row of the others takes `row` bytes.
double bytes_stored(const Footprint& arrays, Content content, Kind kind, double row) {
  double bytes = 0;
  for (const FootprintArray& array : arrays) {
    if (array.content != content || array.element != methods::Element::kv) continue;
    bytes += static_cast<double>(array.rows) * (beside(array, kind) ? 2 * static_cast<double>(array.cols) : row);
  }
  return bytes;
}

/// Rows of the arrays of 16-bit numbers that hold keys or values.
double stored_rows(const Footprint& arrays, Content content) {
  Index rows = 0;
  for (const FootprintArray& array : arrays) {
    if (array.content == content && array.element == methods::Element::kv) rows += array.rows;
  }
  return static_cast<double>(rows);
}

double largest(const std::vector<float>& numbers) {
  double most = 0;
  for (const float x : numbers) most = std::max(most, std::abs(double{x}));
  return most;
}

/// Whether the answers are averages of values, which takes the same weights in both sums.
bool averages(const Result& result) {
  return std::ranges::all_of(result.entries, [](const std::vector<Entry>& row) {
    return std::ranges::all_of(row, [](const Entry& entry) { return entry.num == entry.den && entry.num >= 0; });
  });
}

}  // namespace

std::string int8_stores_its_tokens(Trial& trial) {
  if (std::string reason = not_stored(trial.info()); !reason.empty()) return reason;
  const Composition composed(trial.row(), methods::find_method("int8"), int8_groups);
  Trial both(composed.stored, trial.backend());
  const Heads heads = trial.heads();
  const auto [alone, stored, expected, got] = prefilled(trial, both, heads, 13);
  if (!alone.session) return alone.refusal;
  const auto plain = alone.session->footprint(), packed = stored.session->footprint();
  for (std::size_t h = 0; h < heads.size(); ++h) {
    require_same_entries(expected[h], got[h]);
    // 8 bits a number; 4 bytes of scale and minimum for each group of 4 channels, the last of which may be shorter.
    const auto row = [](Index cols) { return static_cast<double>(cols + 4 * ((cols + 3) / 4)); };
    const Kind kind = trial.info().kind;
    require_bytes(packed[h], Content::keys, bytes_stored(plain[h], Content::keys, kind, row(heads[h].d)));
    require_bytes(packed[h], Content::values, bytes_stored(plain[h], Content::values, kind, row(heads[h].dv)));
    require_bytes(packed[h], Content::meta, bytes_of(plain[h], Content::meta));
    // Numbers are in (-2, 2) (means of them too), so that half a step is below 4 / 255 / 2, and f16 rounds scale and
    // minimum by less than 2^-10 of them: 255 * (4 / 255) 2^-11 + 2 * 2^-11 < 0.004. A logit changes by at most the
    // sum of |q| times that, and a softmax average of numbers up to 2 by what exp() of twice that allows.
    const double step = 4.0 / 255 / 2 + 0.004;
    const double logit = heads[h].scale * largest(heads[h].queries) * step * static_cast<double>(heads[h].d);
    const double difference = max_difference(expected[h].answers, got[h].answers);
    require(!averages(expected[h]) || difference <= step + std::expm1(2 * logit) * 2,
            "stored its answers differ by {:.3g}, more than half a step explains", difference);
  }
  return {};
}

std::string kivi4_stores_its_tokens(Trial& trial) {
  if (std::string reason = not_stored(trial.info()); !reason.empty()) return reason;
  const Composition composed(trial.row(), methods::find_method("kivi4"), kivi4_groups);
  Trial both(composed.stored, trial.backend());
  const Heads heads = trial.heads();
  const auto [alone, stored, expected, got] = prefilled(trial, both, heads, 13);
  if (!alone.session) return alone.refusal;
  require_finite(got);
  const auto plain = alone.session->footprint(), packed = stored.session->footprint();
  for (std::size_t h = 0; h < heads.size(); ++h) {
    require_same_entries(expected[h], got[h]);
    // Encoded keys: 4 bits, and 4 bytes for each pair of tokens in each channel. Encoded values: the same for each
    // pair of channels of each token.
    const double waiting_keys = stored_rows(packed[h], Content::keys),
                 waiting_values = stored_rows(packed[h], Content::values);
    const double keys = stored_rows(plain[h], Content::keys) - waiting_keys;
    const double values = stored_rows(plain[h], Content::values) - waiting_values;
    const auto d = static_cast<double>(heads[h].d), dv = static_cast<double>(heads[h].dv);
    require(keys >= 0 && values >= 0, "more rows wait than it keeps");
    require_bytes(packed[h], Content::keys, keys * d / 2 + std::ceil(keys / 2) * d * 4 + waiting_keys * d * 2);
    require_bytes(packed[h], Content::values, values * (dv / 2 + dv / 2 * 4) + waiting_values * dv * 2);
  }
  return {};
}

std::string stored_tokens_decode(Trial& trial) {
  if (std::string reason = not_stored(trial.info()); !reason.empty()) return reason;
  if (trial.info().observes) return "what it keeps depends on attention to what it holds";
  const Composition composed(trial.row(), methods::find_method("kivi4"), kivi4_groups);
  Trial both(composed.stored, trial.backend());
  const Heads heads = trial.heads();
  const auto pair = prefilled(trial, both, heads, 20);
  if (!pair.alone.session) return pair.alone.refusal;
  const auto expected = trial.decode(pair.alone, heads), got = both.decode(pair.stored, heads);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    require(expected[h].size() == got[h].size(), "stored it answers {} tokens, alone {}", got[h].size(),
            expected[h].size());
    for (std::size_t t = 0; t < got[h].size(); ++t) require_same_entries(expected[h][t], got[h][t]);
  }
  return {};
}

std::string it_stores_tokens_of_others(Trial& trial) {
  const methods::MethodInfo& quantiser = trial.info();
  if (quantiser.kind != Kind::quantisation) return "it is no quantiser";
  const std::size_t levels = quantiser.quantiser.levels(trial.row().params).size();
  if (levels > 1) return fmt::format("it has {} levels, of which a composition names one", levels);
  std::vector<Assignment> settings = methods::parse_settings(trial.row().params.text());
  for (Assignment& setting : settings) setting.name = quantiser.name + "." + setting.name;
  int stored = 0;
  for (const char* name : {"sink", "h2o", "kmeans", "oracle-topk"}) {
    const methods::MethodInfo& info = methods::find_method(name);
    const Row row{&info, info.bind({})};
    const Composition composed(row, quantiser, settings);
    trial.describe(composed.both.name);
    Trial alone(row, trial.backend()), both(composed.stored, trial.backend());
    const Heads heads = both.heads();
    if (!both.try_open(heads, 13).session) continue;
    try {
      const auto pair = prefilled(alone, both, heads, 13);
      require_finite(pair.got);
      for (std::size_t h = 0; h < heads.size(); ++h) require_same_entries(pair.expected[h], pair.got[h]);
      for (const auto& head : both.decode(pair.stored, heads)) require_finite(head);
      ++stored;
    } catch (const methods::Unavailable&) {  // it stores rows of tokens only
    }
  }
  require(stored > 0, "it stores the tokens of no method");
  return {};
}

}  // namespace kvbench::testing
