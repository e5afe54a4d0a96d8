// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/merged_context.hpp>

#include <utility>

#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

MergedContext::MergedContext(const HeadPrompt& head, EntryTable entries, std::string weights, Backend& backend)
    : backend_(backend),
      context_(head.tokens()),
      d_(head.keys.cols()),
      dv_(head.values.cols()),
      table_(std::move(entries)),
      weights_(std::move(weights)) {}

EntryTables MergedContext::entries(const QueryBlock&) const {
  EntryTables tables = {table_};
  if (appended_ > 0) tables.push_back({.ids = backend_.adopt(token_range(context_, appended_), 1, appended_)});
  return tables;
}

Footprint MergedContext::footprint() const {
  Footprint arrays = kept_footprint(table_.ids.cols() + appended_, d_, dv_);
  arrays.push_back(
      {.name = weights_, .element = Element::f32, .rows = table_.ids.cols(), .cols = 1, .content = Content::meta});
  return arrays;
}

}  // namespace kvbench::methods
