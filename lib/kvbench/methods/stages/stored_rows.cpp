// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/stored_rows.hpp>

#include <algorithm>
#include <span>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

Index run_of(const Codec* codec, Index context, Index held, Index most) {
  if (codec == nullptr || most == 0) return most;
  const auto encoded = [&](Index added) { return codec->encoded(context, held + added); };
  if (encoded(1) == held + 1 && encoded(most) == held + most) return most;  // each row is encoded when it comes
  Index run = 1;
  while (run < most && encoded(run + 1) == encoded(1)) ++run;
  return run;
}

void add_encoded(const FootprintArray& array, const Codec& codec, Index& exact, Footprint& out) {
  const Index plain = std::min(exact, array.rows), encoded = array.rows - plain;
  exact -= plain;
  const auto share = [&](Index rows) {
    return array.rows > 0 ? static_cast<double>(rows) / static_cast<double>(array.rows) : 1;
  };
  for (FootprintArray part : codec.footprint(encoded, array.cols)) {
    part.name = array.name + " " + part.name;
    part.tier = array.tier, part.read = array.read, part.content = array.content;
    part.extra = array.extra * share(encoded) * part.share;
    part.share *= array.share * share(encoded);
    out.push_back(std::move(part));
  }
  if (plain == 0) return;
  FootprintArray rest = array;
  rest.name += " not yet encoded";
  rest.rows = plain;
  rest.share = array.share * share(plain), rest.extra = array.extra * share(plain);
  out.push_back(std::move(rest));
}

void add_extras(const Codec& codec, std::span<const std::int32_t> tokens, Content content, Tier tier, Footprint& out) {
  for (FootprintArray& array : codec.extras(tokens)) {
    array.name = (content == Content::keys ? "key " : "value ") + array.name;
    array.content = content;
    array.tier = tier;
    out.push_back(std::move(array));
  }
}

Index count_misfits(const Buffer<const float>& stored, std::span<const std::int32_t> ids, const TokenNumbers& exact,
                    Backend& backend) {
  if (!stored.present() || stored.rows() == 0) return 0;
  const TokenNumbers held = norms2(stored, backend);
  Index count = 0;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (ids[row] < 0) continue;
    const double norm2 = exact[static_cast<std::size_t>(ids[row])];
    count += held[row] < norm2 / 4 || held[row] > 4 * norm2 ? 1 : 0;
  }
  return count;
}

std::vector<Note> with_misfits(std::vector<Note> notes, Index rows) {
  if (rows > 0)
    notes.push_back({"keys and values that the format stores with less than half or more than twice their norm",
                     static_cast<double>(rows)});
  return notes;
}

namespace {

StoredSlots slots_of(const HostView<std::int32_t>& ids, std::size_t table, Index first, Index width, Index tokens) {
  StoredSlots part{.table = table};
  for (Index slot = first; slot < first + width; ++slot) {
    const std::int32_t id = ids[static_cast<std::size_t>(slot)];
    if (id < 0) continue;
    part.ids.push_back(id);
    part.slots.push_back(static_cast<std::int32_t>(slot));
    part.context += id < tokens ? 1 : 0;
  }
  return part;
}

}  // namespace

Index Selection::held() const {
  Index held = 0;
  for (const StoredSlots& part : parts) held += std::ssize(part.ids);
  return held;
}

Index Selection::context() const {
  Index context = 0;
  for (const StoredSlots& part : parts) context += part.context;
  return context;
}

SelectionScope scope_of(const EntryTables& tables, Index group) {
  SelectionScope scope{.group = group};
  for (const EntryTable& table : tables) {
    scope.per_head |= table.per_head;
    scope.per_query |= table.per_query;
    if (table.per_query) scope.queries = table.ids.rows() / (table.per_head ? group : 1);
  }
  return scope;
}

std::vector<Selection> selections_of(const EntryTables& tables, const SelectionScope& scope, Index tokens,
                                     Backend& backend) {
  std::vector<HostView<std::int32_t>> ids;
  for (const EntryTable& table : tables) ids.push_back(backend.on_host(table.ids));
  std::vector<Selection> selections;
  for (Index g = 0; g < (scope.per_head ? scope.group : 1); ++g) {
    for (Index i = 0; i < (scope.per_query ? scope.queries : 1); ++i) {
      Selection& selection = selections.emplace_back();
      for (std::size_t t = 0; t < tables.size(); ++t) {
        const Index width = tables[t].ids.cols(), row = table_row(tables[t], g, i, scope.queries);
        selection.parts.push_back(slots_of(ids[t], t, row * width, width, tokens));
      }
    }
  }
  return selections;
}

Buffer<float> StoredRows::exact(const Selection& selection, Index begin, Index end, const Buffer<const float>& tokens,
                                const std::vector<Buffer<const float>>& own) const {
  const auto out = backend_->allocate<float>(end - begin, tokens.cols());
  Index at = 0;  // of the part's first row
  for (const StoredSlots& part : selection.parts) {
    const Buffer<const float>& rows = own[part.table];
    const std::vector<std::int32_t>& places = rows.present() ? part.slots : part.ids;
    const Index first = std::clamp<Index>(begin - at, 0, std::ssize(places)),
                last = std::clamp<Index>(end - at, first, std::ssize(places));
    if (last > first) {
      std::vector<std::int32_t> wanted(places.begin() + first, places.begin() + last);
      backend_->run(kernels::GatherRows<Buffer>{.source = rows.present() ? rows : tokens,
                                                .ids = backend_->adopt(std::move(wanted), last - first),
                                                .out = out.slice(at + first - begin, last - first)});
    }
    at += std::ssize(places);
  }
  return out;
}

Buffer<const float> RowsByToken::decoded(const Codec& codec, std::span<const std::int32_t> ids,
                                         const Buffer<const float>& tokens) {
  if (!rows_.rows().present()) rows_ = GrowingRows(*backend_, backend_->allocate<float>(0, tokens.cols()));
  place_.resize(static_cast<std::size_t>(tokens.rows()), -1);
  const Index before = rows_.rows().rows();
  std::vector<std::int32_t> fresh, places;
  for (const std::int32_t id : ids) {
    std::int32_t& place = place_[static_cast<std::size_t>(id)];
    if (place < 0) {
      place = static_cast<std::int32_t>(before + std::ssize(fresh));
      fresh.push_back(id);
    }
    places.push_back(place);
  }
  if (const Index count = std::ssize(fresh); count > 0)
    copy_rows(codec.decoded_at(gathered(tokens, fresh, *backend_), fresh, *backend_), rows_.add(count), *backend_);
  return gathered(rows_.rows(), std::move(places), *backend_);
}

Buffer<const float> StoredRows::update(const Codec& codec, const Selection& selection,
                                       const Buffer<const float>& tokens, const std::vector<Buffer<const float>>& own,
                                       RowsByToken& known_rows) {
  std::vector<std::int32_t> ids;
  for (const StoredSlots& part : selection.parts) {
    if (own[part.table].present())
      ids.insert(ids.end(), part.ids.size(), -1);
    else
      ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  }
  const Index held = std::ssize(ids), encoded = codec.encoded(selection.context(), held);
  ids.resize(static_cast<std::size_t>(encoded));
  Index known = std::ssize(ids_);
  const bool kept = known <= encoded && std::equal(ids_.begin(), ids_.end(), ids.begin()) &&
                    std::ranges::find(ids_, -1) == ids_.end();
  const bool first = !encoded_.rows().present();
  if (first || !kept) {
    const bool found = !first && encoded > 0 && codec.by_row() && std::ranges::find(ids, -1) == ids.end();
    known = found ? encoded : 0;
    encoded_ = GrowingRows(
        *backend_, found ? known_rows.decoded(codec, ids, tokens) : backend_->allocate<float>(0, tokens.cols()));
  }
  if (encoded > known) {
    const Buffer<const float> fresh = codec.decoded_at(exact(selection, known, encoded, tokens, own),
                                                       std::span<const std::int32_t>(ids).subspan(known), *backend_);
    if (known == 0)
      encoded_ = GrowingRows(*backend_, fresh);
    else
      copy_rows(fresh, encoded_.add(encoded - known), *backend_);
  }
  ids_ = std::move(ids);
  if (encoded == held) return encoded_.rows();
  const auto all = backend_->allocate<float>(held, tokens.cols());
  copy_rows(encoded_.rows(), all.slice(0, encoded), *backend_);
  copy_rows(exact(selection, encoded, held, tokens, own), all.slice(encoded, held - encoded), *backend_);
  return all;
}

}  // namespace kvbench::methods
