// SPDX-License-Identifier: Apache-2.0
// Attributes and strings. h5py writes str as a variable-length UTF-8 scalar and bytes as a fixed-length scalar; both
// are read.
#include <kvbench/trace/guard/input_object.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/core/name.hpp>
#include <kvbench/trace/guard/global_heap.hpp>

namespace kvbench::trace::h5 {
namespace {

std::string trimmed(std::string value, H5T_str_t padding) {
  if (padding == H5T_STR_SPACEPAD) {
    value.erase(value.find_last_not_of(' ') + 1);
  } else {
    value.erase(std::min(value.find('\0'), value.size()));
  }
  return value;
}

/// Reads one string of `type`, of fixed or variable length. `read` fills a buffer of the given memory type.
std::string read_string_value(hid_t type, const std::string& file, const std::string& where,
                              herr_t (*read)(hid_t, hid_t, void*), hid_t object) {
  if (H5Tget_class(type) != H5T_STRING) throw Failure(where + " is not a string");
  const htri_t variable = H5Tis_variable_str(type);
  if (variable < 0) throw Failure(where + " has a damaged type");
  if (variable == 0) {
    std::string value(H5Tget_size(type), '\0');
    if (value.empty() || read(object, type, value.data()) < 0) throw Failure(where + " cannot be read");
    return trimmed(std::move(value), H5Tget_strpad(type));
  }
  HeapReference reference{};
  if (!read_reference(read, object, reference)) throw Failure(where + " cannot be read");
  return follow(reference, file, where);
}

}  // namespace

std::optional<Handle> InputObject::attribute(const char* name) const {
  const std::string doing = fmt::format("attribute '{}' cannot be read", name);
  if (require(H5Aexists(id(), name), doing) == 0) return std::nullopt;
  Handle found = own(H5Aopen(id(), name, H5P_DEFAULT), &H5Aclose, doing);
  const Handle space = own(H5Aget_space(found.get()), &H5Sclose, doing);
  if (H5Sget_simple_extent_npoints(space.get()) != 1) fail(fmt::format("attribute '{}' must be one value", name));
  return found;
}

std::optional<std::int64_t> InputObject::integer(const char* name) const {
  const std::optional<Handle> found = attribute(name);
  if (!found) return std::nullopt;
  const Handle type = own(H5Aget_type(found->get()), &H5Tclose, "cannot read an attribute's type");
  if (H5Tget_class(type.get()) != H5T_INTEGER) fail(fmt::format("attribute '{}' must be an integer", name));
  std::int64_t value = 0;
  require(H5Aread(found->get(), H5T_NATIVE_INT64, &value), fmt::format("attribute '{}' cannot be read", name));
  return value;
}

std::optional<double> InputObject::number(const char* name) const {
  const std::optional<Handle> found = attribute(name);
  if (!found) return std::nullopt;
  const Handle type = own(H5Aget_type(found->get()), &H5Tclose, "cannot read an attribute's type");
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind != H5T_FLOAT && kind != H5T_INTEGER) fail(fmt::format("attribute '{}' must be a number", name));
  double value = 0;
  require(H5Aread(found->get(), H5T_NATIVE_DOUBLE, &value), fmt::format("attribute '{}' cannot be read", name));
  return value;
}

std::optional<std::string> InputObject::text(const char* name) const {
  const std::optional<Handle> found = attribute(name);
  if (!found) return std::nullopt;
  const Handle type = own(H5Aget_type(found->get()), &H5Tclose, "cannot read an attribute's type");
  const std::string at = fmt::format("{}: attribute '{}'", where(), name);
  std::string value = read_string_value(type.get(), file(), at, &H5Aread, found->get());
  check_name(value, at);
  return value;
}

std::string InputObject::read_string() const {
  if (!dims().empty()) fail("must be one string, not an array");
  const auto read = [](hid_t object, hid_t type, void* out) {
    return H5Dread(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
  };
  return read_string_value(type().get(), file(), where(), read, id());
}

}  // namespace kvbench::trace::h5
