// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/guard/global_heap.hpp>

#include <cstdint>
#include <cstring>
#include <fstream>

#include <kvbench/trace/hdf5/object.hpp>

namespace kvbench::trace::h5 {
namespace {

std::uint64_t little_endian(const unsigned char* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

/// A conversion from variable-length strings to 16 opaque bytes that keeps the stored bytes.
herr_t keep_bytes(hid_t source, hid_t target, H5T_cdata_t* data, size_t, size_t, size_t, void*, void*, hid_t) {
  if (data->command != H5T_CONV_INIT) return 0;
  data->need_bkg = H5T_BKG_NO;
  const bool fits = H5Tis_variable_str(source) > 0 && H5Tget_size(target) == std::tuple_size_v<HeapReference>;
  return fits ? 0 : -1;
}

/// Reads the bytes [at, at + count) of the file; false where the file is shorter.
bool fetch(std::ifstream& in, std::uint64_t at, void* out, std::uint64_t count) {
  in.clear();
  in.seekg(static_cast<std::streamoff>(at));
  in.read(static_cast<char*>(out), static_cast<std::streamsize>(count));
  return static_cast<std::uint64_t>(in.gcount()) == count;
}

std::uint64_t length_of(std::ifstream& in) {
  in.seekg(0, std::ios::end);
  return static_cast<std::uint64_t>(in.tellg());
}

}  // namespace

bool read_reference(herr_t (*read)(hid_t, hid_t, void*), hid_t object, HeapReference& reference) {
  const Handle strings(H5Tcopy(H5T_C_S1), &H5Tclose);
  H5Tset_size(strings.get(), H5T_VARIABLE);
  const Handle bytes(H5Tcreate(H5T_OPAQUE, reference.size()), &H5Tclose);
  static const char* const name = "kvbench stored strings";
  if (H5Tregister(H5T_PERS_SOFT, name, strings.get(), bytes.get(), &keep_bytes) < 0) return false;
  const herr_t result = read(object, bytes.get(), reference.data());
  H5Tunregister(H5T_PERS_SOFT, name, strings.get(), bytes.get(), &keep_bytes);
  return result >= 0;
}

std::string follow(const HeapReference& reference, const std::string& file, const std::string& where) {
  const std::uint64_t length = little_endian(&reference[0], 4), address = little_endian(&reference[4], 8);
  const std::uint64_t index = little_endian(&reference[12], 4);
  if (length == 0) return {};
  const Failure damaged(where + " refers to a damaged heap");
  std::ifstream in(file, std::ios::binary);
  const std::uint64_t file_length = length_of(in);
  unsigned char head[16];
  if (address >= file_length || !fetch(in, address, head, 16) || std::memcmp(head, "GCOL\1", 5) != 0) throw damaged;
  const std::uint64_t size = little_endian(head + 8, 8);
  if (size > file_length - address) throw damaged;
  for (std::uint64_t at = 16; at + 16 <= size;) {
    if (!fetch(in, address + at, head, 16)) throw damaged;
    const std::uint64_t here = little_endian(head, 2), bytes = little_endian(head + 8, 8);
    at += 16;
    if (here == 0 || bytes > size - at) break;  // index 0 is the free space at the end
    if (here == index) {
      if (length > bytes) break;
      std::string value(length, '\0');
      if (!fetch(in, address + at, value.data(), length)) throw damaged;
      return value.substr(0, value.find('\0'));
    }
    at += (bytes + 7) / 8 * 8;
  }
  throw damaged;
}

}  // namespace kvbench::trace::h5
