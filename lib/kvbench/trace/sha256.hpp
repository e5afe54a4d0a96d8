// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvbench::trace {

/// SHA-256 of bytes that are added in pieces. Throws IoError where OpenSSL fails.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256& add(std::string_view bytes);
  std::string hex();  ///< 64 digits in lower case; finishes the digest

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// SHA-256 of token ids as little-endian int32, in lower-case hex. Throws IoError where OpenSSL fails.
std::string sha256_of_tokens(std::span<const std::int32_t> tokens);

/// SHA-256 of the bytes of the file `path`, in lower-case hex. Throws IoError where it cannot be read.
std::string sha256_of_file(const std::string& path);

/// The digest for `path` in PATH.sha256 (written with `sha256sum FILE > FILE.sha256`) if that file is not older than
/// `path`, else "".
std::string stated_sha256(const std::string& path);

}  // namespace kvbench::trace
