// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/hdf5/output.hpp>

namespace kvbench::trace::h5 {

void write_file(AtomicFile& file, const std::function<void(const Object& root)>& fill) {
  {
    const Session session;
    try {
      Object root = Object::create_file(file.temporary(), file.path(), H5F_LIBVER_V110);
      fill(root);
      root.flush();
      root.close();
    } catch (const Failure& failure) {
      file.empty();
      throw write_error(failure);
    }
  }
  file.publish();
}

}  // namespace kvbench::trace::h5
