// SPDX-License-Identifier: Apache-2.0
// What find_method() and family_of() are told by other rooms: who finds the methods that files define, and by which
// texts results show methods.
#pragma once

#include <string>
#include <utility>

#include <kvbench/methods/registry.hpp>

namespace kvbench::methods {

/// Who knows the methods of an origin.
struct Definer {
  /// Returns the method of the base of this name, which lives as long as the program. Throws Error if there is none.
  const MethodInfo& (*find)(const MethodName& name);
  /// source_sha256(); null if the files are not run.
  std::string (*source_sha256)(const std::string& file) = nullptr;
};
/// Makes find_method() find the methods of this origin, before any thread calls it; without a definer it refuses them.
void set_definer(Origin origin, const Definer& definer);

/// SHA-256 of the state of a file FILE.py that runs, which a file on the disk may have left behind; "" if none runs.
std::string source_sha256(const std::string& file);

/// Makes family_of() and runs_in() know a text by which results show a method, from here on. No method has it as its
/// name. `params`: those that the text stands for too.
void show_as(const std::string& text, std::string_view method, std::string_view params);
/// What a text of show_as() stands for; any other name for itself.
std::pair<std::string, std::string> shown_by(std::string_view text);

}  // namespace kvbench::methods
