// SPDX-License-Identifier: Apache-2.0
#include <python/extension/fixed_cache.hpp>

#include <algorithm>

#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

#include <python/extension/returned.hpp>

namespace kvbench::python {
namespace {

class FixedCache : public methods::CompressedCache {
 public:
  FixedCache(const FixedEntries& entries, const methods::HeadPrompt& head, Backend& backend)
      : backend_(backend),
        tables_(joined(std::vector{std::make_shared<const Answer>(entries.answer)}, head.group, backend)),
        fixed_(entries.fixed),
        context_(head.tokens()),
        d_(head.keys.cols()),
        dv_(head.values.cols()) {
    fixed_.decoded = true;
    for (const AnswerTable& table : entries.answer) {
      held_ += std::ranges::count_if(table.ids, [](std::int32_t id) { return id >= 0; });
      weights_ +=
          std::ssize(table.weight_num) + (table.weight_num == table.weight_den ? 0 : std::ssize(table.weight_den));
      copies_ = std::max(copies_, table.rows);
    }
  }

  Index takes(const methods::TokenBlock& tokens) override { return tokens.size(); }
  void append(const methods::TokenBlock& tokens) override { decoded_ += tokens.size(); }

  methods::EntryTables entries(const methods::QueryBlock&) const override {
    methods::EntryTables tables = tables_;
    if (decoded_ > 0) tables.push_back({.ids = backend_.adopt(methods::token_range(context_, decoded_), 1, decoded_)});
    return tables;
  }

  methods::Footprint footprint() const override {
    // With entries per query head, every query head stores the decoded tokens.
    methods::Footprint arrays = methods::kept_footprint(held_ + copies_ * decoded_, d_, dv_);
    if (weights_ > 0) {
      arrays.push_back({.name = "weights",
                        .element = methods::Element::f32,
                        .rows = weights_,
                        .cols = 1,
                        .content = methods::Content::meta});
    }
    return arrays;
  }
  methods::Protected protected_tokens() const override { return fixed_; }

 private:
  Backend& backend_;
  methods::EntryTables tables_;
  methods::Protected fixed_;
  Index context_, d_, dv_;
  Index held_ = 0, weights_ = 0, copies_ = 1;
  Index decoded_ = 0;
};

}  // namespace

FixedEntries fixed_entries_of(nb::handle made, const methods::HeadPrompt& head) {
  const nb::object module = nb::module_::import_("kvbench.methods.entries");
  const nb::object fixed = module.attr("fixed_of")(made, head.group, head.keys.cols(), head.values.cols());
  FixedEntries entries{.answer = answer_of(fixed[0], head.tokens(), "make()"),
                       .fixed = protected_in(fixed[1], fixed[2], head.tokens(), "make()")};
  check_protected(entries.answer, entries.fixed, head.tokens(), "make()");
  return entries;
}

std::unique_ptr<methods::CompressedCache> fixed_cache(FixedEntries entries, const methods::HeadPrompt& head,
                                                      Backend& backend) {
  return std::make_unique<FixedCache>(entries, head, backend);
}

}  // namespace kvbench::python
