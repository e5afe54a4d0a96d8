// SPDX-License-Identifier: Apache-2.0
// Wrappers of the HDF5 calls: owning handles, one exception, objects with their path for messages, and all that writes
// files. Files from elsewhere are opened by InputFile (guard/input_file.hpp).
#pragma once

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hdf5.h>

#include <kvbench/core/error.hpp>

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

/// A UTF-8 string of fixed length; at least one byte.
Handle fixed_string(std::size_t bytes);

/// A file (as its root group), group or dataset. The message of every Failure names it.
class Object {
 public:
  /// Creates a file without times. `aligned`: datasets of 4096 bytes and more begin at a multiple of 4096, for mmap;
  /// in a file of chunks this wastes half a page per chunk. From format V110 on, metadata have checksums.
  static Object create_file(const std::string& path, const std::string& final_name, H5F_libver_t format,
                            bool aligned = true);

  const std::string& name() const { return name_; }
  const std::string& file() const { return file_; }
  hid_t id() const { return handle_.get(); }
  /// "FILE: /object", for messages.
  std::string where() const { return file_ + ": " + name_; }

  /// Opens a member through a hard link only, because other links can lead out of the file.
  Object group(const std::string& member) const { return open(member, H5I_GROUP, "group"); }
  Object dataset(const std::string& member) const { return open(member, H5I_DATASET, "dataset"); }
  Object create_group(const std::string& member) const;
  /// Contiguous where `chunk` is empty, else chunked with shuffle + deflate.
  Object create_dataset(const std::string& member, hid_t type, const std::vector<hsize_t>& dims,
                        const std::vector<hsize_t>& chunk) const;

  void set(const char* attribute, std::int64_t value) const;
  void set(const char* attribute, double value) const;
  void set(const char* attribute, const std::string& value) const;

  void write(hid_t memory_type, const void* data) const;
  void write_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                  const void* data) const;
  /// The elements of a dataset without chunks, converted to `memory_type`.
  void read_slab(hid_t memory_type, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
                 void* out) const;

  void flush() const;
  /// Allocated bytes of the open file, written to disk or not.
  std::uint64_t size() const;
  void close();

 protected:
  /// The root of an existing file, to be read. Throws Error where another program has locked it.
  static Object open_file(const std::string& path);
  Object(Handle handle, std::string file, std::string name)
      : handle_(std::move(handle)), file_(std::move(file)), name_(std::move(name)) {}
  [[noreturn]] void fail(const std::string& doing) const;
  template <class T>
  T require(T result, const std::string& doing) const {
    if (result < 0) fail(doing);
    return result;
  }
  Handle own(hid_t id, Handle::Closer closer, const std::string& doing) const { return {require(id, doing), closer}; }
  bool has(const std::string& member) const;

 private:
  Handle slab_space(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) const;
  Object open(const std::string& member, H5I_type_t kind, const char* kind_name) const;
  std::string child(const std::string& member) const { return fmt::format("{}/{}", name_ == "/" ? "" : name_, member); }
  void set(const char* name, hid_t type, const void* value) const;

  Handle handle_;
  std::string file_, name_;
};

}  // namespace kvbench::trace::h5
