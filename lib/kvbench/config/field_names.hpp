// SPDX-License-Identifier: Apache-2.0
// Messages of the library name fields of its structs in backquotes, such as `window` and `kv_heads`. Who reads a message may have
// set the field by another name: as a key of a sweep file, or as a flag.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kvbench::config {

/// What readers of a message call a field; "" where they know it by no other name.
using FieldNames = std::function<std::string(std::string_view field)>;

/// The message with every field in backquotes replaced by its name; a field without one stays as it is. Of "`a` and `b`" one name
/// is left where both have the same.
std::string rename_fields(std::string_view message, const FieldNames& name_of);

}  // namespace kvbench::config
