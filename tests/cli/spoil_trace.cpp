// SPDX-License-Identifier: Apache-2.0
// spoil_trace FILE HOW: makes a good trace, or good raw results, bad in one way that only the HDF5 library can.
#include <cstdio>
#include <functional>
#include <map>

#include <unit/trace/raw.hpp>

using kvbench::trace::test::RawFile;

namespace {

const char* const ids = "/heads/0/0/entries/0/ids";
const char* const metrics = "/heads/0/0/metrics";

std::vector<hsize_t> dims_of(const RawFile& file, const char* path) {
  const hid_t dataset = H5Dopen2(file.id(), path, H5P_DEFAULT), space = H5Dget_space(dataset);
  std::vector<hsize_t> dims(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  H5Sclose(space);
  H5Dclose(dataset);
  return dims;
}

void store_outside(RawFile& file, const char* path, hid_t type,
                   const std::function<void(hid_t creation, hid_t space)>& where) {
  const std::vector<hsize_t> dims = dims_of(file, path);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE),
              space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  where(creation, space);
  file.replace(path, type, dims, nullptr, creation);
  H5Sclose(space);
  H5Pclose(creation);
}

void in_external_file(hid_t creation, hid_t) { H5Pset_external(creation, "/etc/passwd", 0, H5F_UNLIMITED); }
void in_virtual_dataset(hid_t creation, hid_t space) { H5Pset_virtual(creation, space, "other.h5", "/data", space); }

/// A chunk of the size of a head that inflates to 256 MiB.
void plant_bomb(RawFile& file) {
  const auto chunked = [](std::vector<hsize_t> chunk) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    H5Pset_deflate(creation, 4);
    return creation;
  };
  const std::vector<char> zeros(std::size_t{256} << 20);
  file.replace("/zeros", H5T_NATIVE_CHAR, {zeros.size()}, zeros.data(), chunked({zeros.size()}));
  const hid_t source = H5Dopen2(file.id(), "/zeros", H5P_DEFAULT);
  const hsize_t first[3] = {};
  hsize_t stored = 0;
  std::uint32_t mask = 0;
  H5Dget_chunk_storage_size(source, first, &stored);
  std::vector<char> bomb(stored);
  H5Dread_chunk(source, H5P_DEFAULT, first, &mask, bomb.data());
  H5Dclose(source);
  file.remove("/zeros");
  const char* const keys = "/prompts/0/layers/0/keys";
  const std::vector<hsize_t> dims = dims_of(file, keys);
  const std::vector<float> values(dims[0] * dims[1] * dims[2]);
  file.replace(keys, H5T_IEEE_F32LE, dims, values.data(), chunked({1, dims[1], dims[2]}));
  const hid_t target = H5Dopen2(file.id(), keys, H5P_DEFAULT);
  H5Dwrite_chunk(target, H5P_DEFAULT, 0, first, bomb.size(), bomb.data());
  H5Dclose(target);
}

void fill(RawFile& file, const char* path, float value) {
  const std::vector<hsize_t> dims = dims_of(file, path);
  const std::vector<float> values(dims[0] * dims[1] * dims[2], value);
  file.replace(path, H5T_IEEE_F32LE, dims, values.data());
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(RawFile&)>> ways = {
      {"huge-logits",
       [](RawFile& f) {
         for (const char* array : {"/prompts/0/layers/0/keys", "/prompts/0/layers/0/queries"}) fill(f, array, 1e30F);
       }},
      {"bomb", &plant_bomb},
      {"ids-external", [](RawFile& f) { store_outside(f, ids, H5T_STD_I32LE, &in_external_file); }},
      {"ids-virtual", [](RawFile& f) { store_outside(f, ids, H5T_STD_I32LE, &in_virtual_dataset); }},
      {"metrics-external", [](RawFile& f) { store_outside(f, metrics, H5T_IEEE_F32LE, &in_external_file); }},
      {"metrics-virtual", [](RawFile& f) { store_outside(f, metrics, H5T_IEEE_F32LE, &in_virtual_dataset); }},
      {"method-newline", [](RawFile& f) { f.set("/cells/0", "method", std::string("si\nk")); }},
  };
  const auto way = argc == 3 ? ways.find(argv[2]) : ways.end();
  if (way == ways.end()) {
    std::fprintf(stderr, "usage: spoil_trace FILE HOW\n");
    return 2;
  }
  RawFile file(argv[1]);
  if (file.id() < 0) return 1;
  way->second(file);
  return 0;
}
