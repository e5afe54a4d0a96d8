// SPDX-License-Identifier: Apache-2.0
// What a method is given, as objects of Python, which share memory with nothing else. With the GIL.
#pragma once

#include <vector>

#include <nanobind/nanobind.h>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/inputs.hpp>

namespace kvbench::python {

namespace nb = nanobind;

/// A read-only array of NumPy with the shape and a copy of the numbers of the buffer. None where the buffer is absent.
nb::object array_of(const Buffer<const float>& buffer, Backend& backend);

/// The numbers first, ..., first + count - 1.
nb::object positions_of(Index first, Index count);

/// kvbench.HeadPrompt
nb::object head_prompt(const methods::HeadPrompt& head, Backend& backend);
/// kvbench.QueryBlock of query i of the block. Its arrays are copies: no other query is in reach.
nb::object query_block(const methods::QueryBlock& block, Index group, Index i, Backend& backend);

}  // namespace kvbench::python
