// SPDX-License-Identifier: Apache-2.0
// What entries() of a cache in Python returned, on the host. With the GIL where objects of Python are given.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <nanobind/nanobind.h>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/entries.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench::python {

namespace nb = nanobind;

/// A table of entries for the queries of one position. Empty vectors: absent.
struct AnswerTable {
  Index rows = 1, width = 0;                  ///< one row, or one per query head
  std::vector<std::int32_t> ids;              ///< [rows, width]
  std::vector<float> weight_num, weight_den;  ///< [rows, width]
  std::vector<float> own_keys, own_values;    ///< [rows*width, d], [rows*width, dv]
  friend bool operator==(const AnswerTable&, const AnswerTable&) = default;

  bool own() const { return !own_keys.empty() || !own_values.empty(); }
  bool weighted() const { return !weight_num.empty() || !weight_den.empty(); }
  /// The largest number of slots in use of a row.
  Index most_used() const;
};
using Answer = std::vector<AnswerTable>;

/// Of a list of kvbench.methods.entries.Entries, which this function returned. Throws std::logic_error for an id that
/// is none of the tokens 0 .. tokens - 1.
Answer answer_of(nb::handle entries, Index tokens, const char* function);
/// Of what entries() returned: an array of ids is read here, everything else is given to kvbench.methods.entries.
Answer answer_of(nb::handle given, Index group, Index d, Index dv, Index tokens);

/// Throws std::logic_error where a query head has no entry of one of these tokens of a context of n, which recall does
/// not count. `function`: what returned them.
void check_protected(const Answer& answer, const methods::Protected& fixed, Index n, const char* function);

/// The tables that answer several positions, each with its answer: rows per query where answers differ. Throws
/// std::logic_error where tables of different positions have different forms.
methods::EntryTables joined(std::span<const std::shared_ptr<const Answer>> positions, Index group, Backend& backend);

}  // namespace kvbench::python
