// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/rounded_cache.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/methods/stages/stored_rows.hpp>
#include <kvbench/methods/stages/wrapped_cache.hpp>

namespace kvbench::methods {
namespace {

/// The rows of a selection that a deployment holds: in a layer with a sliding window the last ones.
struct HeldRows {
  Index held, context;
  HeldRows(const Selection& selection, Index window)
      : held(window > 0 ? std::min(window, selection.held()) : selection.held()),
        context(std::max<Index>(0, selection.context() - (selection.held() - held))) {}
};

/// Adds what a codec holds beside the rows that it has encoded.
void add_extras_of(const Codec* codec, const std::vector<Selection>& selections, Index window, Content content,
                   Footprint& out) {
  if (codec == nullptr) return;
  std::vector<std::int32_t> tokens;
  for (const Selection& selection : selections) {
    const HeldRows rows(selection, window);
    const auto before = std::ssize(tokens);
    for (const StoredSlots& part : selection.parts) tokens.insert(tokens.end(), part.ids.begin(), part.ids.end());
    tokens.erase(tokens.begin() + before, tokens.begin() + before + selection.held() - rows.held);
    tokens.resize(static_cast<std::size_t>(before + codec->encoded(rows.context, rows.held)));
  }
  add_extras(*codec, tokens, content, Tier::fast, out);
}

/// The part of a rounded cache that belongs to one kv head.
class RoundedHead {
 public:
  RoundedHead(const HeadPrompt& head, Codecs codecs, Backend& backend)
      : backend_(&backend),
        codecs_(std::move(codecs)),
        tokens_(head.tokens()),
        group_(head.group),
        window_(head.window),
        shared_values_(head.values_in_keys ? head.values.cols() : 0),
        keys_(backend, head.keys),
        values_(backend, head.values),
        stored_keys_(backend),
        stored_values_(backend) {}

  Index run(const EntryTables& tables, Index most) const {
    for (const Selection& selection : selections_of(tables, scope_of(tables, group_), tokens_, *backend_)) {
      const Index context = selection.context(), held = selection.held();
      most =
          std::min(run_of(codecs_.keys.get(), context, held, most), run_of(codecs_.values.get(), context, held, most));
    }
    return most;
  }

  void append(const TokenBlock& tokens) {
    const Index known = keys_.rows().rows();
    copy_rows(tokens.keys, keys_.add(tokens.size()), *backend_);
    copy_rows(tokens.values, values_.add(tokens.size()), *backend_);
    if (codecs_.keys) codecs_.keys->append(known, tokens.keys);
    if (codecs_.values) codecs_.values->append(known, tokens.values);
  }

  EntryTables stored(EntryTables tables) {
    const SelectionScope scope = scope_of(tables, group_);
    const std::vector<Selection> selections = selections_of(tables, scope, tokens_, *backend_);
    std::vector<bool> merged;
    for (const EntryTable& table : tables) merged.push_back(table.own_keys.present() || table.own_values.present());
    const auto keys =
        rows_of(tables, &EntryTable::own_keys, codecs_.keys.get(), selections, keys_.rows(), stored_keys_);
    const auto values =
        rows_of(tables, &EntryTable::own_values, codecs_.values.get(), selections, values_.rows(), stored_values_);
    for (std::size_t t = 0; t < tables.size(); ++t) {
      if (codecs_.keys) tables[t].own_keys = keys[t];
      if (codecs_.values) tables[t].own_values = values[t];
      if (shared_values_ > 0 && codecs_.keys) tables[t].own_values = first_columns(keys[t], shared_values_, *backend_);
      tables[t].rounded = !merged[t];
      repeat_for(scope, tables[t]);
    }
    return tables;
  }

  Index misfits() const {
    const auto of = [&](const auto& stored, const Buffer<const float>& exact) {
      Index rows = 0;
      if (stored.selections.empty()) return rows;
      const TokenNumbers norms = norms2(exact, *backend_);
      for (const StoredRows& selection : stored.selections) rows += selection.misfits(norms);
      return rows;
    };
    return of(stored_keys_, keys_.rows()) + of(stored_values_, values_.rows());
  }

  Footprint footprint(const Footprint& arrays, const EntryTables& tables) const {
    Index exact_keys = 0, exact_values = 0;
    const std::vector<Selection> selections = selections_of(tables, scope_of(tables, group_), tokens_, *backend_);
    for (const Selection& selection : selections) {
      const HeldRows rows(selection, window_);
      if (codecs_.keys) exact_keys += rows.held - codecs_.keys->encoded(rows.context, rows.held);
      if (codecs_.values) exact_values += rows.held - codecs_.values->encoded(rows.context, rows.held);
    }
    Footprint out;
    for (const FootprintArray& array : arrays) {
      const Codec* codec = array.element != Element::kv       ? nullptr
                           : array.content == Content::keys   ? codecs_.keys.get()
                           : array.content == Content::values ? codecs_.values.get()
                                                              : nullptr;
      if (codec == nullptr)
        out.push_back(array);
      else
        add_encoded(array, *codec, array.content == Content::keys ? exact_keys : exact_values, out);
    }
    add_extras_of(codecs_.keys.get(), selections, window_, Content::keys, out);
    add_extras_of(codecs_.values.get(), selections, window_, Content::values, out);
    return out;
  }

 private:
  struct Stored {
    explicit Stored(Backend& backend) : by_token(backend) {}
    std::vector<StoredRows> selections;
    RowsByToken by_token;
  };

  /// The own rows of each table, [slots, cols]; absent where there is no codec.
  std::vector<Buffer<const float>> rows_of(const EntryTables& tables, Buffer<const float> EntryTable::*own_rows,
                                           const Codec* codec, const std::vector<Selection>& selections,
                                           const Buffer<const float>& tokens, Stored& stored) const {
    std::vector<Buffer<const float>> own(tables.size()), out(tables.size());
    if (codec == nullptr) return out;
    for (std::size_t t = 0; t < tables.size(); ++t) own[t] = tables[t].*own_rows;
    while (stored.selections.size() < selections.size()) stored.selections.emplace_back(*backend_);
    std::vector<Buffer<const float>> rows;
    for (std::size_t l = 0; l < selections.size(); ++l) {
      rows.push_back(stored.selections[l].update(*codec, selections[l], tokens, own, stored.by_token));
    }
    for (std::size_t t = 0; t < tables.size(); ++t) out[t] = slots_of(t, tables[t].ids.cols(), selections, rows);
    return out;
  }

  /// The rows of the slots of one table, from those of the selections. Slots that are not in use hold any row.
  Buffer<const float> slots_of(std::size_t table, Index width, const std::vector<Selection>& selections,
                               const std::vector<Buffer<const float>>& rows) const {
    const Index cols = rows.front().cols();
    if (selections.size() == 1 && std::ssize(selections[0].parts[table].slots) == width)
      return rows[0].slice(first_row(selections[0], table), width);
    const auto out = backend_->allocate<float>(width * std::ssize(selections), cols);
    for (std::size_t l = 0; l < selections.size(); ++l) {
      const StoredSlots& part = selections[l].parts[table];
      const auto to = out.slice(static_cast<Index>(l) * width, width);
      if (rows[l].rows() == 0) {
        auto zeros = to;
        if (width > 0) backend_->fill(zeros, 0.0f);
        continue;
      }
      std::vector<std::int32_t> places(static_cast<std::size_t>(width), 0);
      const Index first = first_row(selections[l], table);
      for (std::size_t k = 0; k < part.slots.size(); ++k) {
        places[static_cast<std::size_t>(part.slots[k] % width)] =
            static_cast<std::int32_t>(first + static_cast<Index>(k));
      }
      copy_at(rows[l], std::move(places), to);
    }
    return out;
  }

  void copy_at(const Buffer<const float>& source, std::vector<std::int32_t> places, const Buffer<float>& to) const {
    const Index count = std::ssize(places);
    if (count > 0)
      backend_->run(
          kernels::GatherRows<Buffer>{.source = source, .ids = backend_->adopt(std::move(places), count), .out = to});
  }

  static Index first_row(const Selection& selection, std::size_t table) {
    Index first = 0;
    for (std::size_t t = 0; t < table; ++t) first += std::ssize(selection.parts[t].slots);
    return first;
  }

  /// Gives a table a row for each selection: where others are per query head, its rows may be rounded differently.
  void repeat_for(const SelectionScope& scope, EntryTable& table) const {
    if (table.per_head == scope.per_head && table.per_query == scope.per_query) return;
    const EntryTable once = table;
    const Index width = table.ids.cols();
    const auto repeat = [&]<class T>(Buffer<const T>& buffer) {
      if (!buffer.present()) return;
      const std::vector<T> rows = backend_->read(buffer);
      std::vector<T> all;
      for (Index g = 0; g < (scope.per_head ? group_ : 1); ++g) {
        for (Index i = 0; i < (scope.per_query ? scope.queries : 1); ++i) {
          const auto row = rows.begin() + table_row(once, g, i, scope.queries) * width;
          all.insert(all.end(), row, row + width);
        }
      }
      const Index count = std::ssize(all) / std::max<Index>(1, width);
      buffer = backend_->adopt(std::move(all), width > 0 ? count : buffer.rows(), width);
    };
    repeat(table.ids), repeat(table.weight_num), repeat(table.weight_den), repeat(table.cluster_ids);
    table.per_head = scope.per_head, table.per_query = scope.per_query;
  }

  Backend* backend_;
  Codecs codecs_;
  Index tokens_, group_, window_;
  Index shared_values_;        ///< channels of the keys that are the values; 0: none
  GrowingRows keys_, values_;  ///< of all tokens so far, exact
  Stored stored_keys_, stored_values_;
};

class RoundedCache : public WrappedCache {
 public:
  RoundedCache(std::unique_ptr<CompressedCache> cache, const HeadPrompt& head, Codecs codecs, std::vector<Note> notes,
               Backend& backend)
      : WrappedCache(std::move(cache), std::move(notes)),
        head_(head, std::move(codecs), backend),
        tokens_(head.tokens()) {}

  Index takes(const TokenBlock& tokens) override {
    return cache().takes(tokens.front(head_.run(held(), tokens.size())));
  }
  void append(const TokenBlock& tokens) override {
    cache().append(tokens);
    head_.append(tokens);
    tokens_ += tokens.size();
    answered_.reset();
  }
  EntryTables entries(const QueryBlock& queries) const override {
    answered_ = cache().entries(queries);
    return head_.stored(*answered_);
  }
  /// Of the entries that answered the last queries, whose arrays the cache counts although it may have dropped some.
  Footprint footprint() const override { return head_.footprint(cache().footprint(), answered_ ? *answered_ : held()); }
  std::vector<Note> notes() const override { return with_misfits(WrappedCache::notes(), head_.misfits()); }

 private:
  /// The entries that would answer a query at the last token.
  EntryTables held() const {
    QueryBlock last;
    if (tokens_ > 0) last.positions.push_back(static_cast<std::int32_t>(tokens_ - 1));
    return cache().entries(last);
  }

  mutable RoundedHead head_;                     ///< entries() keeps what it has encoded
  mutable std::optional<EntryTables> answered_;  ///< what entries() rounded, since the last token was appended
  Index tokens_;                                 ///< so far
};

}  // namespace

std::unique_ptr<CompressedCache> rounded_cache(std::unique_ptr<CompressedCache> cache, const HeadPrompt& head,
                                               Codecs codecs, std::vector<Note> notes, Backend& backend) {
  return std::make_unique<RoundedCache>(std::move(cache), head, std::move(codecs), std::move(notes), backend);
}

}  // namespace kvbench::methods
