// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {
namespace {

std::vector<double> doubles(const Buffer<const float>& rows, Backend& backend) {
  const std::vector<float> read = backend.read(rows);
  return {read.begin(), read.end()};
}

std::vector<ChelseaEntry> prompt_entries(const methods::HeadPrompt& head, Backend& backend) {
  std::vector<ChelseaEntry> entries;
  for (Index i = 0; i < head.tokens(); ++i) {
    entries.push_back({.id = static_cast<TokenId>(i),
                       .key = doubles(head.keys.slice(i, 1), backend),
                       .value = doubles(head.values.slice(i, 1), backend)});
  }
  return entries;
}

/// A recomputation of Chelsea as a cache: every entry has its own key and value.
class RecomputedCache : public methods::CompressedCache {
 public:
  RecomputedCache(ChelseaOracle oracle, Backend& backend) : oracle_(std::move(oracle)), backend_(backend) {}

  void append(const methods::TokenBlock& tokens) override {
    oracle_.append({.key = doubles(tokens.keys, backend_), .value = doubles(tokens.values, backend_)});
  }
  methods::EntryTables entries(const methods::QueryBlock&) const override {
    std::vector<TokenId> ids;
    std::vector<float> weights, keys, values;
    for (const bounds::HeldEntry& entry : oracle_.snapshot().held) {
      ids.push_back(entry.id);
      weights.push_back(static_cast<float>(entry.den));
      for (const double x : entry.key) keys.push_back(static_cast<float>(x));
      for (const double x : entry.value) values.push_back(static_cast<float>(x));
    }
    const auto width = static_cast<Index>(ids.size());
    if (width == 0) return {};
    methods::EntryTable table;
    const Index d = std::ssize(keys) / width, dv = std::ssize(values) / width;
    table.own_keys = backend_.adopt(std::move(keys), width, d);
    table.own_values = backend_.adopt(std::move(values), width, dv);
    table.ids = backend_.adopt(std::move(ids), 1, width);
    table.weight_num = table.weight_den = backend_.adopt(std::move(weights), 1, width);
    return {table};
  }
  methods::Footprint footprint() const override { return {}; }

 private:
  ChelseaOracle oracle_;
  Backend& backend_;
};

}  // namespace

bounds::ChelseaUnderTest chelsea_with(const ChelseaRules& rules) {
  return [rules](const bounds::ChelseaSettings& settings) -> bounds::MethodUnderTest {
    return [rules, settings](const methods::HeadPrompt& head, Backend& backend) -> methods::MakeCache {
      return [rules, settings, head, &backend](Index budget, std::uint32_t) {
        return std::make_unique<RecomputedCache>(ChelseaOracle(settings, rules, budget, prompt_entries(head, backend)),
                                                 backend);
      };
    };
  };
}

}  // namespace kvbench::faithful
