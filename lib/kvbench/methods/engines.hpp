// SPDX-License-Identifier: Apache-2.0
// Where methods run outside of kvbench today. engines.cpp has one table of them, with its sources and its date.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/methods/sets.hpp>

namespace kvbench::methods {

/// "llama.cpp --cache-type-k q8_0 --cache-type-v q4_0" of a method with its parameters, both as rows print them; what
/// must hold for the model stands in brackets. Several are separated by semicolons. Empty: no engine of the table.
/// `kept` of the `tokens` of the context are kept: presses of kvpress are told the shortest share by which they keep as
/// many ("compression_ratio=0.75" for 64 of 256). NaN: unknown, so that R stands there.
std::string runs_in(std::string_view method, std::string_view params, double kept = NAN, double tokens = NAN);

/// What one of these engines is told for a method: "--kv-cache-dtype fp8", "SnapKVPress()" of a press without its
/// share; empty: it does not have it.
std::string setting_in(std::string_view engine, std::string_view method, std::string_view params);

/// The rows of the table that the name of this engine stands for, which it runs with models of common head dimensions;
/// none where the table does not know it.
std::vector<MethodSettings> rows_of_engine(std::string_view engine);

}  // namespace kvbench::methods
