// SPDX-License-Identifier: Apache-2.0
#include <python/extension/python_cache.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <kvbench/methods/contract/of_heads.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

#include <python/extension/answers.hpp>
#include <python/extension/arrays.hpp>
#include <python/extension/fixed_cache.hpp>
#include <python/extension/footprints.hpp>
#include <python/extension/held_entries.hpp>
#include <python/extension/returned.hpp>

namespace kvbench::python {
namespace {

constexpr std::size_t most_notes = 100;

/// A cache in Python, of one kv head, or of all heads of a layer, whose methods then take and return lists.
class PythonCache {
 public:
  /// With the GIL.
  PythonCache(nb::object cache, const Allowance& allowance, bool whole_layer,
              std::span<const methods::HeadPrompt> heads, Backend& backend)
      : backend_(backend),
        appends_(nb::hasattr(cache, "append")),
        cache_(std::move(cache)),
        whole_layer_(whole_layer),
        group_(heads.front().group),
        first_decoded_(heads.front().tokens()),
        allowance_(allowance),
        held_(heads.size()),
        latest_(heads.size()) {}

  std::size_t heads() const { return held_.size(); }

  Index takes(Index offered) const {
    if (!appends_) return offered;
    return with_python(
        [&] { return nb::hasattr(cache_.get(), "takes") ? count_in(call("takes", nb::int_(offered)), "takes()") : 1; });
  }

  void append(std::span<const methods::TokenBlock> tokens) {
    if (appends_) with_python([&] { append_in_python(tokens); });
    allowance_.decoded += tokens.front().size();
    at_query_.reset();
    for (HeldEntries& held : held_) held.forget();
    std::ranges::fill(latest_, nullptr);
  }

  std::vector<methods::EntryTables> entries(std::span<const methods::QueryBlock> given) const {
    if (given.front().size() == 0) return std::vector<methods::EntryTables>(held_.size());
    std::vector<methods::QueryBlock> queries;
    for (const methods::QueryBlock& block : given) queries.push_back(with_numbers(block));
    std::vector<std::vector<std::shared_ptr<const Answer>>> answers(held_.size());
    with_python([&] {
      for (Index i = 0; i < queries.front().size(); ++i) ask(queries, i, answers);
    });
    allowance_.check(held_);
    std::vector<methods::EntryTables> tables;
    for (const auto& of_head : answers) {
      tables.push_back(joined(of_head, group_, backend_));
      if (!appends_ && allowance_.decoded > 0) tables.back().push_back({.ids = decoded_ids()});
    }
    return tables;
  }

  void observe(std::span<const std::vector<Buffer<const float>>> weights) {
    with_python([&] {
      at_query_.emplace(call("footprint"));
      std::vector<nb::object> heads;
      for (std::size_t h = 0; h < weights.size(); ++h) {
        nb::list tables;
        for (std::size_t t = 0; t < latest_[h]->size(); ++t) tables.append(array_of(weights[h][t], backend_));
        heads.push_back(nb::len(tables) == 1 ? nb::object(tables[0]) : tables);
      }
      call("observe", heads);
    });
  }

  std::vector<methods::Footprint> footprint() const {
    std::vector<methods::Footprint> arrays = with_python([&] {
      const nb::object given = at_query_ ? nb::borrow(at_query_->get()) : call("footprint");
      std::vector<methods::Footprint> all;
      for_each_head(given, "footprint",
                    [&](nb::handle head) { all.push_back(footprint_of(head, allowance_.d, allowance_.dv)); });
      return all;
    });
    if (!appends_ && allowance_.decoded > 0) {
      const methods::Footprint decoded = methods::kept_footprint(allowance_.decoded, allowance_.d, allowance_.dv);
      for (std::size_t h = 0; h < arrays.size(); ++h) {
        held_[h].check(arrays[h], allowance_.d, allowance_.dv);
        arrays[h].insert(arrays[h].end(), decoded.begin(), decoded.end());
      }
    }
    allowance_.check(held_, arrays);
    return arrays;
  }

  std::vector<methods::Protected> protected_tokens() const {
    std::vector<methods::Protected> all(held_.size(), {.decoded = !appends_});
    with_python([&] {
      if (!nb::hasattr(cache_.get(), "protected_tokens")) return;
      std::size_t h = 0;
      for_each_head(call("protected_tokens"), "protected_tokens", [&](nb::handle head) {
        const bool says = items_in(head, 2, 3, "protected_tokens()") == 3;
        const bool decoded = says ? truth_in(head[2], "protected_tokens(): decoded") : all[h].decoded;
        all[h] = protected_in(head[0], head[1], first_decoded_, "protected_tokens()");
        if (latest_[h]) {
          methods::Protected held = all[h];
          if (!decoded && allowance_.decoded > 0) held.recent = 0;  // of the last ones
          check_protected(*latest_[h], held, first_decoded_, "protected_tokens()");
        }
        all[h++].decoded = decoded;
      });
    });
    return all;
  }

  methods::TokenRange retrievable() const {
    return with_python([&] {
      const nb::object range = call("retrievable");
      const Index tokens = first_decoded_ + allowance_.decoded;
      items_in(range, 2, 2, "retrievable()");
      const Index first = count_in(range[0], "retrievable(): first", tokens);
      return methods::TokenRange{first, count_in(range[1], "retrievable(): count", tokens - first)};
    });
  }

  std::vector<methods::Note> notes() const {
    return with_python([&] {
      std::vector<methods::Note> all;
      if (!nb::hasattr(cache_.get(), "notes")) return all;
      const nb::object given = call("notes");
      const std::size_t count = items_in(given, 0, most_notes, "notes()");
      for (std::size_t i = 0; i < count; ++i) {
        const nb::object note = given[i];
        const bool counts = !nb::isinstance<nb::str>(note);
        methods::Note& out = all.emplace_back();
        if (counts) items_in(note, 2, 2, "notes(): a note");
        out.text = text_in(counts ? nb::object(note[0]) : note, "notes(): a sentence");
        if (counts) out.count = amount_in(note[1], "notes(): a number");
      }
      return all;
    });
  }

 private:
  /// The method of the cache, with one argument per head in each list.
  template <class... Lists>
  nb::object call(const char* name, const Lists&... lists) const {
    if (!nb::hasattr(cache_.get(), name))
      throw std::logic_error(fmt::format("the cache has entries(), but no {}()", name));
    return cache_.get().attr(name)(argument(lists)...);
  }
  nb::object argument(const nb::object& other) const { return other; }
  nb::object argument(const std::vector<nb::object>& heads) const {
    if (!whole_layer_) return heads.front();
    nb::list all;
    for (const nb::object& head : heads) all.append(head);
    return all;
  }

  template <class F>
  void for_each_head(const nb::object& given, const char* name, F visit) const {
    if (!whole_layer_) return visit(given);
    const nb::object items = nb::steal(PySequence_List(given.ptr()));  // whatever the list says that its length is
    PyErr_Clear();
    if (!items.is_valid() || nb::len(items) != held_.size())
      throw std::logic_error(
          fmt::format("{}() must return a list with one item for each of the {} kv heads", name, held_.size()));
    for (const nb::handle head : items) visit(head);
  }

  void append_in_python(std::span<const methods::TokenBlock> tokens) {
    std::vector<nb::object> keys, values;
    for (const methods::TokenBlock& block : tokens) {
      keys.push_back(array_of(block.keys, backend_));
      values.push_back(array_of(block.values, backend_));
    }
    const Index count = tokens.front().size();
    const nb::object taken = call("append", keys, values, positions_of(tokens.front().first, count));
    if (taken.is_none()) return;
    if (const Index returned = count_in(taken, "append(): what it returned"); returned != count)
      throw std::logic_error(fmt::format(
          "append() of {} tokens returned {}; it takes all of them, and takes() says how many it may be given", count,
          returned));
  }

  /// A quantiser asks what is held, by a block without queries (stages/rounded_cache.cpp). What it stores does not
  /// depend on them, and Python gets zeros.
  methods::QueryBlock with_numbers(methods::QueryBlock block) const {
    if (block.queries.present()) return block;
    const Index m = block.size();
    std::vector<std::int32_t> last(block.positions);
    for (std::int32_t& bound : last) ++bound;
    block.queries = backend_.adopt(std::vector<float>(static_cast<std::size_t>(group_ * m * allowance_.d)), group_ * m,
                                   allowance_.d);
    block.first = backend_.adopt(std::vector<std::int32_t>(last.size()), m);
    block.last = backend_.adopt(std::move(last), m);
    return block;
  }

  /// Asks for the entries that answer query i of the block of each head.
  void ask(std::span<const methods::QueryBlock> queries, Index i,
           std::vector<std::vector<std::shared_ptr<const Answer>>>& answers) const {
    std::vector<nb::object> blocks;
    for (const methods::QueryBlock& block : queries) blocks.push_back(query_block(block, group_, i, backend_));
    std::size_t h = 0;
    for_each_head(call("entries", blocks), "entries", [&](nb::handle given) {
      Answer answer = answer_of(given, group_, allowance_.d, allowance_.dv, first_decoded_ + allowance_.decoded);
      if (!latest_[h] || *latest_[h] != answer) {
        held_[h].note(answer);
        latest_[h] = std::make_shared<const Answer>(std::move(answer));
      }
      answers[h].push_back(latest_[h]);
      ++h;
    });
  }

  Buffer<const std::int32_t> decoded_ids() const {
    return backend_.adopt(methods::token_range(first_decoded_, allowance_.decoded), 1, allowance_.decoded);
  }

  Backend& backend_;
  bool appends_;  ///< otherwise decoded tokens are added exactly
  Held cache_;
  bool whole_layer_;
  Index group_, first_decoded_;
  Allowance allowance_;
  mutable std::vector<HeldEntries> held_;                      ///< by head
  mutable std::vector<std::shared_ptr<const Answer>> latest_;  ///< by head
  std::optional<Held> at_query_;  ///< what footprint() returned before observe(), which may drop tokens
};

/// A cache in Python, and what its heads bring to the calls that are made for all of them together.
struct SharedCache {
  explicit SharedCache(PythonCache all) : cache(std::move(all)), tokens(heads()), queries(heads()), weights(heads()) {}
  std::size_t heads() const { return cache.heads(); }

  PythonCache cache;
  methods::OfHeads<methods::TokenBlock> tokens;
  methods::OfHeads<methods::QueryBlock> queries;
  methods::OfHeads<std::vector<Buffer<const float>>> weights;
  std::optional<std::vector<methods::EntryTables>> answers;  ///< to the queries
};

/// One kv head of a cache in Python. The head that comes last, or asks first, makes the call for all of them.
class PythonHead : public methods::CompressedCache {
 public:
  PythonHead(std::shared_ptr<SharedCache> shared, std::size_t head) : shared_(std::move(shared)), head_(head) {}

  Index takes(const methods::TokenBlock& tokens) override { return shared_->cache.takes(tokens.size()); }
  void append(const methods::TokenBlock& tokens) override {
    shared_->answers.reset();
    if (shared_->tokens.add(head_, tokens)) shared_->cache.append(shared_->tokens.all());
  }
  void announce(const methods::QueryBlock& queries) override {
    shared_->answers.reset();
    shared_->queries.add(head_, queries);
  }
  methods::EntryTables entries(const methods::QueryBlock& queries) const override {
    if (!queries.queries.present())  // what is held
      return shared_->cache.entries(std::vector(shared_->heads(), queries))[head_];
    if (!shared_->answers) shared_->answers = shared_->cache.entries(shared_->queries.all());
    return (*shared_->answers)[head_];
  }
  void observe(const methods::QueryBlock&, const methods::EntryTables&,
               std::span<const Buffer<const float>> weights) override {
    if (shared_->weights.add(head_, {weights.begin(), weights.end()})) shared_->cache.observe(shared_->weights.all());
  }
  methods::Footprint footprint() const override { return shared_->cache.footprint()[head_]; }
  methods::Protected protected_tokens() const override { return shared_->cache.protected_tokens()[head_]; }
  methods::TokenRange retrievable() const override { return shared_->cache.retrievable(); }
  std::vector<methods::Note> notes() const override {
    return head_ == 0 ? shared_->cache.notes() : std::vector<methods::Note>();
  }

 private:
  std::shared_ptr<SharedCache> shared_;
  std::size_t head_;
};

/// Fixed entries of the heads. With the GIL.
methods::Caches fixed_caches(const nb::object& made, const Allowance& allowance, bool whole_layer,
                             std::span<const methods::HeadPrompt> heads, Backend& backend) {
  if (whole_layer && (!nb::isinstance<nb::list>(made) || nb::len(made) != heads.size()))
    throw std::logic_error(
        fmt::format("make() must return a list with one item for each of the {} kv heads", heads.size()));
  std::vector<HeldEntries> held(heads.size());
  methods::Caches caches;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    FixedEntries entries = fixed_entries_of(whole_layer ? nb::object(made[h]) : made, heads[h]);
    held[h].note(entries.answer);
    caches.push_back(fixed_cache(std::move(entries), heads[h], backend));
  }
  allowance.check(held);
  return caches;
}

}  // namespace

methods::MakeCaches cache_maker(Held maker, methods::Kind kind, bool whole_layer,
                                std::vector<methods::HeadPrompt> heads, Backend& backend) {
  return [=, heads = std::move(heads), &backend](Index budget, std::uint32_t seed) {
    const Allowance allowance{
        .kind = kind, .budget = budget, .d = heads.front().keys.cols(), .dv = heads.front().values.cols()};
    return with_python([&]() -> methods::Caches {
      const nb::object made = maker.get().attr("make")(budget, seed);
      if (!nb::hasattr(made, "entries")) return fixed_caches(made, allowance, whole_layer, heads, backend);
      const auto shared = std::make_shared<SharedCache>(PythonCache(made, allowance, whole_layer, heads, backend));
      methods::Caches caches;
      for (std::size_t h = 0; h < heads.size(); ++h) caches.push_back(std::make_unique<PythonHead>(shared, h));
      return caches;
    });
  };
}

}  // namespace kvbench::python
