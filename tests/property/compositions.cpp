// SPDX-License-Identifier: Apache-2.0
// Every method that chooses, merges or retrieves tokens, stored by a quantiser: the entries are those of the method
// alone, the bytes are those of the composition, and the error is within the bound of the codec.
#include <algorithm>
#include <cmath>

#include <support/rows.hpp>

#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/contract/method_text.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

bool composes(const Row& row) {
  const Kind kind = row.info->kind;
  const bool composed = row.info->name.find('+') != std::string::npos;
  return !composed && kind != Kind::exact && kind != Kind::quantisation;
}

/// Calls test(row, row + quantiser, backend) for each row that composes.
template <class Test>
void for_each_composition(const char* quantiser, std::vector<Assignment> extra, Test test) {
  for_each_row([&](const Row& row, Backend& backend) {
    if (!composes(row)) return;
    const MethodInfo both = compose(*row.info, find_method(quantiser));
    std::vector<Assignment> settings = parse_settings(row.params.text());
    settings.insert(settings.end(), extra.begin(), extra.end());
    test(row, Row{&both, both.bind(settings)}, backend);
  });
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

void check_same_entries(const Result& alone, const Result& stored) {
  REQUIRE(alone.entries.size() == stored.entries.size());
  for (std::size_t r = 0; r < alone.entries.size(); ++r) {
    CHECK(weights_of(alone.entries[r]) == weights_of(stored.entries[r]));
  }
}

double bytes_of(const Footprint& arrays, Content content) {
  double bytes = 0;
  for (const FootprintArray& array : arrays) {
    if (array.content != content) continue;
    bytes += static_cast<double>(array.rows * array.cols) * element_bytes(array.element, Element::f16);
  }
  return bytes;
}

/// Whether a composition leaves an array in 16 bits: what a method that retrieves keeps beside the full cache.
bool beside(const FootprintArray& array, Kind kind) {
  return kind == Kind::retrieval && array.read != Read::with_entry;
}

/// Bytes of the method's keys or values where each row of the others takes `row` bytes.
double bytes_stored(const Footprint& arrays, Content content, Kind kind, double row) {
  double bytes = 0;
  for (const FootprintArray& array : arrays) {
    if (array.content != content || array.element != Element::kv) continue;
    bytes += static_cast<double>(array.rows) * (beside(array, kind) ? 2 * static_cast<double>(array.cols) : row);
  }
  return bytes;
}

/// Rows of the arrays of 16-bit numbers that hold keys or values.
Index rows_of(const Footprint& arrays, Content content) {
  Index rows = 0;
  for (const FootprintArray& array : arrays) {
    if (array.content == content && array.element == Element::kv) rows += array.rows;
  }
  return rows;
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

TEST_CASE("a composition with int8 has the entries of the method, 9/16 of its bytes, and an error within half a step") {
  for_each_composition("int8", {{"int8.group", "4"}}, [](const Row& row, const Row& both, Backend& backend) {
    const Heads heads = heads_for(row, {}, backend);
    const Instance alone = try_open(row, heads, 13, 1, backend), stored = try_open(both, heads, 13, 1, backend);
    REQUIRE((alone.cache == nullptr) == (stored.cache == nullptr));
    if (!alone.cache) return;
    const auto expected = prefill(alone, heads, backend), got = prefill(stored, heads, backend);
    const auto plain = alone.cache->footprint(), packed = stored.cache->footprint();
    for (std::size_t h = 0; h < heads.size(); ++h) {
      check_same_entries(expected[h], got[h]);
      // 8 bits a number; 4 bytes of scale and minimum for each group of 4 channels, the last of which may be shorter.
      const double keys = static_cast<double>(heads[h].d) + 4 * std::ceil(static_cast<double>(heads[h].d) / 4);
      const double values = static_cast<double>(heads[h].dv) + 4 * std::ceil(static_cast<double>(heads[h].dv) / 4);
      CHECK(bytes_of(packed[h], Content::keys) == bytes_stored(plain[h], Content::keys, row.info->kind, keys));
      CHECK(bytes_of(packed[h], Content::values) == bytes_stored(plain[h], Content::values, row.info->kind, values));
      CHECK(bytes_of(packed[h], Content::meta) == bytes_of(plain[h], Content::meta));
      // Numbers are in (-2, 2) (means of them too), so that half a step is below 4 / 255 / 2, and f16 rounds scale and
      // minimum by less than 2^-10 of them: 255 * (4 / 255) 2^-11 + 2 * 2^-11 < 0.004. A logit changes by at most the
      // sum of |q| times that, and a softmax average of numbers up to 2 by what exp() of twice that allows.
      const double step = 4.0 / 255 / 2 + 0.004;
      const double logit = heads[h].scale * largest(heads[h].queries) * step * static_cast<double>(heads[h].d);
      if (averages(expected[h]))
        CHECK(max_difference(expected[h].answers, got[h].answers) <= step + std::expm1(2 * logit) * 2);
    }
  });
}

TEST_CASE("a composition with kivi4 has the entries of the method, and the bytes of its groups and waiting rows") {
  const std::vector<Assignment> small = {{"kivi4.group", "2"}, {"kivi4.residual", "4"}};
  for_each_composition("kivi4", small, [](const Row& row, const Row& both, Backend& backend) {
    const Heads heads = heads_for(row, {}, backend);
    const Instance alone = try_open(row, heads, 13, 1, backend), stored = try_open(both, heads, 13, 1, backend);
    REQUIRE((alone.cache == nullptr) == (stored.cache == nullptr));
    if (!alone.cache) return;
    const auto expected = prefill(alone, heads, backend), got = prefill(stored, heads, backend);
    const auto plain = alone.cache->footprint(), packed = stored.cache->footprint();
    for (std::size_t h = 0; h < heads.size(); ++h) {
      check_same_entries(expected[h], got[h]);
      CHECK(all_finite(got[h].answers));
      // Encoded keys: 4 bits, and 4 bytes for each pair of tokens in each channel. Encoded values: the same for each
      // pair of channels of each token.
      const Index waiting_keys = rows_of(packed[h], Content::keys),
                  waiting_values = rows_of(packed[h], Content::values);
      const Index keys = rows_of(plain[h], Content::keys) - waiting_keys;
      const Index values = rows_of(plain[h], Content::values) - waiting_values;
      const auto d = static_cast<double>(heads[h].d), dv = static_cast<double>(heads[h].dv);
      CHECK(keys >= 0);
      CHECK(values >= 0);
      CHECK(bytes_of(packed[h], Content::keys) == static_cast<double>(keys) * d / 2 +
                                                      std::ceil(static_cast<double>(keys) / 2) * d * 4 +
                                                      static_cast<double>(waiting_keys) * d * 2);
      CHECK(bytes_of(packed[h], Content::values) ==
            static_cast<double>(values) * (dv / 2 + dv / 2 * 4) + static_cast<double>(waiting_values) * dv * 2);
    }
  });
}

TEST_CASE("a composition decodes as its method does") {
  for_each_composition(
      "kivi4", {{"kivi4.group", "2"}, {"kivi4.residual", "4"}}, [](const Row& row, const Row& both, Backend& backend) {
        if (row.info->observes) return;  // what it keeps depends on attention to what it holds
        const Heads heads = heads_for(row, {}, backend);
        const Instance alone = try_open(row, heads, 20, 1, backend), stored = try_open(both, heads, 20, 1, backend);
        REQUIRE((alone.cache == nullptr) == (stored.cache == nullptr));
        if (!alone.cache) return;
        const auto expected = decode(alone, heads, 5, false, backend), got = decode(stored, heads, 5, false, backend);
        for (std::size_t h = 0; h < heads.size(); ++h) {
          REQUIRE(expected[h].size() == got[h].size());
          for (std::size_t t = 0; t < got[h].size(); ++t) check_same_entries(expected[h][t], got[h][t]);
        }
      });
}
