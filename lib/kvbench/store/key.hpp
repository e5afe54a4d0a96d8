// SPDX-License-Identifier: Apache-2.0
// Keys of stored records, made from everything that a record depends on. A struct of such inputs names its members
// once, in visit(), as a structured binding: one that lacks a member does not compile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/output_path.hpp>
#include <kvbench/methods/contract/info.hpp>
#include <kvbench/store/archive.hpp>

namespace kvbench::store {

/// The files that a method with these parameters ("a=1;b=FILE") reads, with the words by which messages name them: the
/// source of "FILE.py:NAME", and those that parameters name which are files, such as chelsea's outlier heads.
std::vector<NamedFile> files_of_method(const methods::MethodInfo& method, const std::string& params);

/// SHA-256 of the version and the commit of kvbench, and of these bytes.
std::string key_of_bytes(std::string_view bytes);

template <class Inputs>
std::string key_of(Inputs inputs) {
  return key_of_bytes(encode(inputs));
}

/// A method with its parameters ("a=1;b=FILE"), and digests of the files that it reads (files_of_method()), because
/// results depend on their content: of a method in Python that of the source which runs.
struct MethodInputs {
  std::string name, params, files;
};
/// Throws IoError where one of these files cannot be read.
MethodInputs inputs_of(const methods::MethodInfo& method, const std::string& params);

template <class A>
void visit(A& archive, MethodInputs& v) {
  auto& [name, params, files] = v;
  archive(name, params, files);
}

}  // namespace kvbench::store
