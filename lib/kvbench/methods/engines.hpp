// SPDX-License-Identifier: Apache-2.0
// Where methods run outside of kvbench today: engines, what they can set, and what one types there. engines.cpp has the
// tables, with their sources and dates.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/methods/sets.hpp>

namespace kvbench::methods {

/// What may differ between the layers of a model.
enum class Shape {
  equal,   ///< nothing
  whole,   ///< any layers keep the type of the model, the others share one format
  ends,    ///< the first and the last layers share one format, the others another one
  shares,  ///< how many tokens one method keeps
};

struct EngineInfo {
  Engine engine;
  std::string_view version;  ///< of which the shape was read
  Shape shape;
  std::string_view limits;   ///< what it can set, as the end of a sentence that begins with its name
  std::string_view program;  ///< what its flags follow
  std::string_view name() const { return name_of(engine); }
};

/// All engines: sets of methods have their names, and `kvbench allocate --for` and kvbench-choose take them.
std::span<const EngineInfo> engines();
std::string engine_names();  ///< with commas between them
/// The engine of this name, however it is spelled; nullptr: there is none.
const EngineInfo* find_engine(std::string_view name);
/// The same for the value of a flag. Throws Error, which names the engines.
const EngineInfo& engine_of_flag(std::string_view flag, std::string_view name);

/// "llama.cpp --cache-type-k q8_0 --cache-type-v q4_0" of a method with its parameters, both as rows print them; what
/// must hold for the model stands in brackets. Several are separated by semicolons. Empty: no engine of the table.
/// `kept` of the `tokens` of the context are kept: presses of kvpress are told the shortest share by which they keep as
/// many ("compression_ratio=0.75" for 64 of 256). NaN: unknown, so that R stands there.
std::string runs_in(std::string_view method, std::string_view params, double kept = NAN, double tokens = NAN);

/// What an engine is told for a method: "--kv-cache-dtype fp8", "SnapKVPress()" of a press without its share; empty: it
/// does not have it, for heads of so many channels where they are given.
std::string setting_in(Engine engine, std::string_view method, std::string_view params,
                       std::optional<Index> channels = {});

/// What an engine has for heads of so many channels, without rows that differ from these in what few need. By default:
/// of models of common head dimensions.
std::vector<MethodSettings> rows_of_engine(Engine engine, Index channels = 128);

}  // namespace kvbench::methods
