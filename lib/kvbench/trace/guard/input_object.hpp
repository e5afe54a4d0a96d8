// SPDX-License-Identifier: Apache-2.0
// Reads groups, datasets and attributes of an HDF5 file from elsewhere, whose description may be damaged or hostile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <hdf5.h>

#include <kvbench/trace/hdf5/object.hpp>

namespace kvbench::trace::h5 {

/// Storage of the bytes of a dataset in the file.
struct Storage {
  H5D_layout_t layout = H5D_LAYOUT_ERROR;
  std::uint64_t offset = 0;         ///< contiguous only; HADDR_UNDEF if nothing was written
  std::uint64_t bytes = 0;          ///< stored bytes, after compression
  std::vector<hsize_t> chunk_dims;  ///< chunked only
  std::vector<H5Z_filter_t> filters;
  bool external = false;  ///< stored in other files
};

/// The bytes that the datasets of an input file claim, which bound what reading them may allocate. The sums are those
/// of one operation, such as opening the file.
struct Claims {
  std::uint64_t length = 0;      ///< of the file
  std::uint64_t stored = 0;      ///< sum of the stored bytes of the datasets opened so far
  std::uint64_t whole = 0;       ///< sum of the bytes in memory of those that are read whole
  std::set<std::string> opened;  ///< their names: a dataset that is opened twice counts once
};

/// How much of a dataset an operation reads: all of it, or at most one slab of its first dimension (a head).
enum class Extent { whole, part };

/// A file (as its root group), group or dataset that is read. The message of every Failure names it.
class InputObject : private Object {
 public:
  /// The root of an input file. All datasets below it are checked against `claims` when they are opened. Throws Error
  /// where another program has locked the file.
  static InputObject open_file(const std::string& path, std::shared_ptr<Claims> claims);

  using Object::file, Object::has, Object::id, Object::name, Object::where;

  std::vector<std::string> members() const;
  InputObject group(const std::string& member) const { return {Object::group(member), claims_}; }
  /// Throws Error where the bytes of the dataset are not all in this file, or where it claims more of them than the
  /// file can hold or than `extent` allows (docs/traces.md, "What a reader refuses").
  InputObject dataset(const std::string& member, Extent extent = Extent::whole) const;

  std::optional<std::int64_t> integer(const char* attribute) const;
  std::optional<double> number(const char* attribute) const;
  std::optional<std::string> text(const char* attribute) const;

  /// The most bytes that one operation may read from datasets of Extent::whole.
  std::uint64_t readable_bytes() const;

  std::vector<hsize_t> dims() const;  ///< empty for a scalar
  Handle type() const;
  Storage storage() const;
  /// The elements converted to `memory_type`, row-major.
  void read(hid_t memory_type, void* out) const;
  /// All elements of a dataset of integers, row-major. Throws Error where it has other elements or one does not fit T.
  template <class T>
  std::vector<T> integers() const;
  /// All elements of a dataset of f64, row-major. Throws Error where it has other elements.
  std::vector<double> numbers() const;
  void read_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                 void* out) const;
  std::string read_string() const;

 private:
  InputObject(Object object, std::shared_ptr<Claims> claims) : Object(std::move(object)), claims_(std::move(claims)) {}
  std::size_t length() const;  ///< of all elements
  void check_storage(Extent extent) const;
  void check_filters(const Storage& stored) const;
  void check_chunks(const Storage& stored, const std::vector<hsize_t>& dims, std::uint64_t element,
                    std::uint64_t slab) const;
  void count_claims(const Storage& stored, std::uint64_t bytes, Extent extent) const;
  void read_chunks(const Storage& stored, hid_t memory_type, const std::vector<hsize_t>& start,
                   const std::vector<hsize_t>& count, void* out) const;
  std::optional<Handle> attribute(const char* name) const;

  std::shared_ptr<Claims> claims_;
};

}  // namespace kvbench::trace::h5
