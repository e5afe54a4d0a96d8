// SPDX-License-Identifier: Apache-2.0
#include <python/extension/answers.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <nanobind/ndarray.h>

namespace kvbench::python {
namespace {

template <class T>
std::vector<T> vector_of(const nb::handle& array) {
  if (array.is_none()) return {};
  const auto numbers = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(array);
  return {numbers.data(), numbers.data() + numbers.size()};
}

/// kvbench.methods.entries.Entries
AnswerTable table_of(const nb::handle& entries) {
  const nb::object shape = entries.attr("ids").attr("shape");
  return {.rows = nb::cast<Index>(shape[0]),
          .width = nb::cast<Index>(shape[1]),
          .ids = vector_of<std::int32_t>(entries.attr("ids")),
          .weight_num = vector_of<float>(entries.attr("weight_num")),
          .weight_den = vector_of<float>(entries.attr("weight_den")),
          .own_keys = vector_of<float>(entries.attr("own_keys")),
          .own_values = vector_of<float>(entries.attr("own_values"))};
}

/// The usual answer, an array [width] of 64-bit integers, without a call of Python.
bool read_ids(const nb::handle& given, AnswerTable& table) {
  nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> ids;
  if (nb::hasattr(given, "mask") || !nb::try_cast(given, ids, false)) return false;  // a masked array is refused
  table.width = static_cast<Index>(ids.size());
  const auto no_token = [](std::int64_t id) { return id < -1 || id >= std::numeric_limits<std::int32_t>::max(); };
  const std::int64_t* const wrong = std::find_if(ids.data(), ids.data() + ids.size(), no_token);
  if (wrong != ids.data() + ids.size()) throw std::logic_error(fmt::format("entries(): there is no token {}", *wrong));
  table.ids.resize(ids.size());
  std::transform(ids.data(), ids.data() + ids.size(), table.ids.begin(),
                 [](std::int64_t id) { return static_cast<std::int32_t>(id); });
  return true;
}

/// Table k of several positions.
class JoinedTable {
 public:
  JoinedTable(std::span<const std::shared_ptr<const Answer>> positions, std::size_t k, Index group)
      : positions_(positions), k_(k), m_(std::ssize(positions)) {
    for (Index i = 0; i < m_; ++i) {
      rows_ = std::max(rows_, table(i).rows);
      width_ = std::max(width_, table(i).width);
    }
    if (rows_ > 1) rows_ = group;
  }

  methods::EntryTable on(Backend& backend) const {
    const Index slots = rows_ * m_ * width_;
    const auto numbers = [&](std::vector<float> AnswerTable::*part, bool own) -> Buffer<const float> {
      std::vector<float> values = joined(part, own ? 0.0F : 1.0F, own);
      if (values.empty()) return {};
      return own ? backend.adopt(std::move(values), slots, cols_of(part))
                 : backend.adopt(std::move(values), rows_ * m_, width_);
    };
    return {.per_head = rows_ > 1,
            .per_query = true,
            .ids = backend.adopt(joined(&AnswerTable::ids, std::int32_t{-1}, false), rows_ * m_, width_),
            .weight_num = numbers(&AnswerTable::weight_num, false),
            .weight_den = numbers(&AnswerTable::weight_den, false),
            .own_keys = numbers(&AnswerTable::own_keys, true),
            .own_values = numbers(&AnswerTable::own_values, true)};
  }

 private:
  const AnswerTable& table(Index i) const { return (*positions_[static_cast<std::size_t>(i)])[k_]; }

  /// Numbers per slot of a part.
  template <class T>
  Index cols_of(std::vector<T> AnswerTable::*part) const {
    for (Index i = 0; i < m_; ++i) {
      const AnswerTable& one = table(i);
      if (!(one.*part).empty()) return std::ssize(one.*part) / (one.rows * one.width);
    }
    return 0;
  }

  /// A part of all positions, row g*m + i, with `fill` in unused slots; empty where no position has it.
  template <class T>
  std::vector<T> joined(std::vector<T> AnswerTable::*part, T fill, bool needed_by_all) const {
    const Index cols = cols_of(part);
    if (cols == 0) return {};
    std::vector<T> out(static_cast<std::size_t>(rows_ * m_ * width_ * cols), fill);
    for (Index i = 0; i < m_; ++i) {
      const AnswerTable& one = table(i);
      const std::vector<T>& from = one.*part;
      if (from.empty() && needed_by_all && one.width > 0)
        throw std::logic_error("entries() returned own keys or values for some queries only");
      if (from.empty()) continue;
      for (Index g = 0; g < rows_; ++g) {
        const Index row = one.rows > 1 ? g : 0, length = one.width * cols;
        std::copy_n(from.begin() + row * length, length, out.begin() + (g * m_ + i) * width_ * cols);
      }
    }
    return out;
  }

  std::span<const std::shared_ptr<const Answer>> positions_;
  std::size_t k_;
  Index m_, rows_ = 1, width_ = 0;
};

/// Throws std::logic_error for an id beyond these tokens.
void check_ids(const Answer& answer, Index tokens, const char* function) {
  for (const AnswerTable& table : answer) {
    const auto last = std::ranges::max_element(table.ids);
    if (last == table.ids.end() || *last < tokens) continue;
    throw std::logic_error(fmt::format("{} returned the id {}; there are {} tokens so far", function, *last, tokens));
  }
}

methods::EntryTable on(const AnswerTable& table, Backend& backend) {
  const Index slots = table.rows * table.width;
  const auto numbers = [&](const std::vector<float>& values, Index rows) -> Buffer<const float> {
    if (values.empty()) return {};
    return backend.adopt(std::vector(values), rows, std::ssize(values) / rows);
  };
  return {.per_head = table.rows > 1,
          .ids = backend.adopt(std::vector(table.ids), table.rows, table.width),
          .weight_num = numbers(table.weight_num, table.rows),
          .weight_den = numbers(table.weight_den, table.rows),
          .own_keys = numbers(table.own_keys, slots),
          .own_values = numbers(table.own_values, slots)};
}

}  // namespace

Index AnswerTable::most_used() const {
  Index most = 0;
  for (Index r = 0; r < rows; ++r) {
    const auto begin = ids.begin() + r * width;
    most = std::max<Index>(most, std::count_if(begin, begin + width, [](std::int32_t id) { return id >= 0; }));
  }
  return most;
}

Answer answer_of(nb::handle entries, Index tokens, const char* function) {
  Answer answer;
  for (const nb::handle table : entries) answer.push_back(table_of(table));
  check_ids(answer, tokens, function);
  return answer;
}

Answer answer_of(nb::handle given, Index group, Index d, Index dv, Index tokens) {
  constexpr const char* function = "entries()";
  Answer plain(1);
  if (read_ids(given, plain.front())) {
    check_ids(plain, tokens, function);
    return plain;
  }
  const nb::object read = nb::module_::import_("kvbench.methods.entries").attr("entries_of")(given, group, d, dv);
  return answer_of(read, tokens, function);
}

void check_protected(const Answer& answer, const methods::Protected& fixed, Index n, const char* function) {
  if (fixed.sinks == 0 && fixed.recent == 0) return;
  Index rows = 1;
  for (const AnswerTable& table : answer) rows = std::max(rows, table.rows);
  for (Index r = 0; r < rows; ++r) {
    std::vector<bool> held(static_cast<std::size_t>(n));
    for (const AnswerTable& table : answer) {
      for (const std::int32_t id : std::span(table.ids).subspan(table.rows == 1 ? 0 : r * table.width, table.width)) {
        if (id >= 0 && id < n) held[id] = true;
      }
    }
    for (Index j = 0; j < n; ++j) {
      if ((j < fixed.sinks || j >= n - fixed.recent) && !held[j])
        throw std::logic_error(
            fmt::format("{} says that it always holds {} first and {} last tokens of the context; "
                        "token {} answers no query",
                        function, fixed.sinks, fixed.recent, j));
    }
  }
}

methods::EntryTables joined(std::span<const std::shared_ptr<const Answer>> positions, Index group, Backend& backend) {
  const std::shared_ptr<const Answer>& first = positions.front();
  for (const auto& one : positions) {
    if (one->size() != first->size())
      throw std::logic_error("entries() returned different numbers of tables for queries of one state");
  }
  const bool same = std::ranges::all_of(positions, [&](const auto& one) { return one == first; });
  methods::EntryTables tables;
  for (std::size_t k = 0; k < first->size(); ++k)
    tables.push_back(same ? on((*first)[k], backend) : JoinedTable(positions, k, group).on(backend));
  return tables;
}

}  // namespace kvbench::python
