// SPDX-License-Identifier: Apache-2.0
// Messages of the library name the fields of its structs in backquotes, such as `window` and `kv_heads`. A user may
// have set the field under another name: as a key of a sweep file or as a flag.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kvbench::config {

/// The name under which users set a field; "" where there is none.
using FieldNames = std::function<std::string(std::string_view field)>;

/// The message with every field in backquotes replaced by its name. A field without a name is left unchanged. Where
/// both fields of "`a` and `b`" have the same name, it is written once.
std::string rename_fields(std::string_view message, const FieldNames& name_of);

}  // namespace kvbench::config
