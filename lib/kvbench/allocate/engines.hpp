// SPDX-License-Identifier: Apache-2.0
// What engines can set for single layers, the best plan of that shape, and what one types to have it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/allocate/damage.hpp>
#include <kvbench/allocate/solve.hpp>
#include <kvbench/methods/engines.hpp>

namespace kvbench::allocate {

using methods::EngineInfo;

/// What the engine can set in a layer whose keys and values have so many channels: its formats, of the same arithmetic
/// as those of kvbench, or its methods. `exact`, which stands for the type of the model, where layers may keep it.
std::vector<replay::MethodChoice> menu_of(const EngineInfo& engine, Index channels);

/// Throws Error, which names what the engine has, where it has not all methods of the menu.
void check_menu(const EngineInfo& engine, std::span<const replay::MethodChoice> menu, Index channels);

/// Of the plans that the engine can set and that cost at most `budget`, one of small damage (solve(), and for ends the
/// least); absent where every plan costs more. `menu`: by entry of the choices; places of the choices are layers.
std::optional<Plan> solve_for(const EngineInfo& engine, std::span<const MenuEntry> menu, const Choices& choices,
                              std::int64_t budget);

/// What one types to have a plan of solve_for(), line by line.
std::vector<std::string> settings_of(const EngineInfo& engine, const Damages& damages, const Plan& plan);

/// The rule "the first 2 and the last 2 layers in 16 bits": `exact` there, and in the other layers what the plan gives
/// most of them beside it. Absent where the menu lacks `exact`, and where all layers are first or last ones.
std::optional<Plan> whole_ends(const Damages& damages, const Plan& plan);

}  // namespace kvbench::allocate
