// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/guard/input_file.hpp>

#include <kvbench/core/output_path.hpp>

namespace kvbench::trace {

InputFile::InputFile(std::string path, const char* content, const char* page,
                     const std::function<void(const h5::InputObject& root)>& examine)
    : path_(std::move(path)), opened_(check_superblock(path_)), claims_(std::make_shared<h5::Claims>()) {
  remember_read(path_);
  const h5::Session session;
  const auto open = [&] {
    begin();
    auto root = std::make_unique<h5::InputObject>(h5::InputObject::open_file(path_, claims_));
    examine(*root);
    return root;
  };
#if !defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
  try_in_child(path_, open);
#endif
  try {
    root_ = open();
  } catch (const h5::Failure& failure) {
    throw Error("{}. The file is damaged or not {}; see {}.", failure.what(), content, page);
  } catch (const std::bad_alloc&) {
    throw Error("{}: its description does not fit into memory; it is damaged.", path_);
  }
}

InputFile::~InputFile() {
  const h5::Session session;
  root_.reset();
}

void InputFile::check_unchanged() const {
  if (file_state(path_) == opened_) return;
  throw IoError("{}: the file was changed or replaced while it was read; start again when no other program writes it.",
                path_);
}

}  // namespace kvbench::trace
