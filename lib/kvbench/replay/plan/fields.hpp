// SPDX-License-Identifier: Apache-2.0
// The table of what users set of a ReplayRequest. Flags of all commands, their help, keys of sweep files, names in
// messages, descriptions of plans and keys of stored records follow from its rows (docs/add-a-flag.md).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::replay {

/// Protected tokens: protect_first and protect_last with protect_outside.
struct Protection {
  bool outside = false;
};

/// Where the value of a field is. Its type decides how flags and sweep files write it.
using FieldMember =
    std::variant<std::vector<MethodChoice> ReplayRequest::*, std::vector<Budget> ReplayRequest::*,
                 std::optional<Calibration> ReplayRequest::*, std::vector<std::uint32_t> ReplayRequest::*,
                 std::vector<std::int64_t> ReplayRequest::*, std::vector<std::string> ReplayRequest::*,
                 Protocol ReplayRequest::*, Decoded ReplayRequest::*, methods::Element ReplayRequest::*,
                 FigureNumber ReplayRequest::*, std::optional<Index> ReplayRequest::*, Index ReplayRequest::*,
                 bool ReplayRequest::*, Protection>;

/// The commands that have the flag of a field.
struct FieldCommands {
  bool replay = false;  ///< kvbench replay; sweeps have the key
  bool runs = false;    ///< kvbench replay and sweep
  bool eval = false;    ///< kveval
  bool validate = false;
  bool allocate = false;
};

/// What a command says of a flag in words of its own, or calls it.
struct FieldWords {
  bool FieldCommands::*of = nullptr;
  const char* help = nullptr;
  std::string_view names = "";  ///< "": those of the other commands
};

struct FieldFlag {
  std::string_view names;  ///< "-m,--method"
  FieldCommands of;
  const char* help;
  FieldWords own[2] = {};  ///< of commands whose words differ

  std::string name() const { return std::string(names.substr(names.find("--"))); }
  /// The flag as this command has it.
  FieldFlag of_command(bool FieldCommands::*command) const;
};

/// A key of sweep files; all of it empty: there is none.
struct FieldKey {
  std::string_view name = "";
  const char *accepts = "", *example = "", *doc = "";  ///< what its value may be, for messages; one; its meaning
};

struct FieldUse {
  std::int64_t least = 0;      ///< of a number
  std::string_view told = "";  ///< in descriptions of plans, with {} for a value that is not the default; "": untold
  bool stored = false;         ///< whether stored records depend on it as it is in the request
  bool of_evaluation = false;  ///< whether it holds for a whole evaluation: runs of a sweep must agree in it
};

struct RequestField {
  std::string_view name;  ///< as messages of the library name it in backquotes
  FieldMember member;
  FieldFlag flag;
  FieldKey key = {};
  FieldUse use = {};
};

std::span<const RequestField> request_fields();
/// The row with this name, or the one that sets the member of this name; null where there is none.
const RequestField* find_field(std::string_view name);

/// The values of an enumeration by the names that users write: Protocol, Decoded, methods::Element, FigureNumber.
template <class E>
const std::map<std::string, E>& value_names();
template <>
const std::map<std::string, Protocol>& value_names();
template <>
const std::map<std::string, Decoded>& value_names();
template <>
const std::map<std::string, methods::Element>& value_names();
/// These two say what the table of figures has (records/figures.hpp).
template <>
const std::map<std::string, FigureNumber>& value_names();
const char* ranking_help();

/// The value as text: "2", "true", "0,4". A list in any order is the same selection. "" where nothing is set.
std::string value_text(const RequestField& field, const ReplayRequest& request);
void copy_value(const RequestField& field, const ReplayRequest& from, ReplayRequest& to);

/// ", 2 dense layers": the fields that plans describe and that are not at their defaults.
std::string description(const ReplayRequest& request);
/// Everything in a request on which stored records depend, beside methods, budgets, seeds and what plans resolve.
std::string stored_text(const ReplayRequest& request);

}  // namespace kvbench::replay
