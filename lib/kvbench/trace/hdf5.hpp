// SPDX-License-Identifier: Apache-2.0
// Wrappers of the HDF5 calls: owning handles, one exception, objects with their path for messages. Files from elsewhere
// are opened by InputFile (input_file.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hdf5.h>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::trace::h5 {

/// A failed call of the HDF5 library. The message has the file, the object and the innermost reason of the library.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The error of a program whose output failed so.
IoError write_error(const Failure& failure);

/// Serialises all use of HDF5, which is not thread-safe, and keeps the library from printing.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

class Handle {
 public:
  using Closer = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~Handle() { close(); }

  hid_t get() const { return id_; }
  /// Returns the result of the closer, which is negative where buffered data could not be written.
  herr_t close() { return id_ < 0 ? 0 : closer_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  Closer closer_ = nullptr;
};

/// The stored element type: IEEE single, IEEE half, or bfloat16, little-endian. HDF5 1.10 has no predefined 16-bit
/// float types.
Handle float_type(Dtype dtype);

/// A UTF-8 string of fixed length; at least one byte.
Handle fixed_string(std::size_t bytes);

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

/// A file (as its root group), group or dataset. The message of every Failure names it.
class Object {
 public:
  /// The root of an input file. All datasets below it are checked against `claims` when they are opened
  /// (check_storage()). Throws Error where another program has locked the file.
  static Object open_file(const std::string& path, std::shared_ptr<Claims> claims);
  /// Creates a file without times, with large datasets aligned to 4096 bytes. From format V110 on, metadata have
  /// checksums.
  static Object create_file(const std::string& path, const std::string& final_name, H5F_libver_t format);

  const std::string& name() const { return name_; }
  const std::string& file() const { return file_; }
  hid_t id() const { return handle_.get(); }
  /// "FILE: /object", for messages.
  std::string where() const { return file_ + ": " + name_; }

  std::vector<std::string> members() const;
  bool has(const std::string& member) const;
  /// Opens a member through a hard link only, because other links can lead out of the file.
  Object group(const std::string& member) const;
  Object dataset(const std::string& member, Extent extent = Extent::whole) const;
  Object create_group(const std::string& member) const;
  /// Contiguous where `chunk` is empty, else chunked with shuffle + deflate.
  Object create_dataset(const std::string& member, hid_t type, const std::vector<hsize_t>& dims,
                        const std::vector<hsize_t>& chunk) const;

  std::optional<std::int64_t> integer(const char* attribute) const;
  std::optional<double> number(const char* attribute) const;
  std::optional<std::string> text(const char* attribute) const;
  void set(const char* attribute, std::int64_t value) const;
  void set(const char* attribute, double value) const;
  void set(const char* attribute, const std::string& value) const;

  /// Input files: the most bytes that one operation may read from datasets of Extent::whole.
  std::uint64_t readable_bytes() const;

  std::vector<hsize_t> dims() const;  ///< empty for a scalar
  Handle type() const;
  Storage storage() const;
  /// The elements converted to `memory_type`, row-major.
  void read(hid_t memory_type, void* out) const;
  /// All elements of a dataset of integers, row-major. Throws Error where it has other elements or one does not fit T.
  template <class T>
  std::vector<T> integers() const;
  void read_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                 void* out) const;
  std::string read_string() const;
  void write(hid_t memory_type, const void* data) const;
  void write_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                  const void* data) const;

  void flush() const;
  /// Allocated bytes of the open file, written to disk or not.
  std::uint64_t size() const;
  void close();

 private:
  Object(Handle handle, std::string file, std::string name)
      : handle_(std::move(handle)), file_(std::move(file)), name_(std::move(name)) {}
  [[noreturn]] void fail(const std::string& doing) const;
  template <class T>
  T require(T result, const std::string& doing) const {
    if (result < 0) fail(doing);
    return result;
  }
  Handle own(hid_t id, Handle::Closer closer, const std::string& doing) const { return {require(id, doing), closer}; }
  Object open(const std::string& member, H5I_type_t kind, const char* kind_name) const;
  /// Throws Error where the bytes of the dataset are not all in this file, or where it claims more of them than the
  /// file can hold or than `extent` allows (docs/traces.md, "What a reader refuses").
  void check_storage(Extent extent) const;
  void check_chunks(const Storage& stored, const std::vector<hsize_t>& dims, std::uint64_t element,
                    std::uint64_t slab) const;
  void count_claims(const Storage& stored, std::uint64_t bytes, Extent extent) const;
  void read_chunks(const Storage& stored, hid_t memory_type, const std::vector<hsize_t>& start,
                   const std::vector<hsize_t>& count, void* out) const;
  std::string child(const std::string& member) const { return fmt::format("{}/{}", name_ == "/" ? "" : name_, member); }
  std::optional<Handle> attribute(const char* name) const;
  void set(const char* name, hid_t type, const void* value) const;
  Handle slab_space(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) const;

  Handle handle_;
  std::string file_, name_;
  std::shared_ptr<Claims> claims_;  ///< null for files that this program writes
};

/// Reads one string of `type` (class string, fixed or variable length). `read` fills a buffer of the given memory type.
std::string read_string_value(hid_t type, const std::string& file, const std::string& where,
                              herr_t (*read)(hid_t object, hid_t type, void* out), hid_t object);

}  // namespace kvbench::trace::h5
