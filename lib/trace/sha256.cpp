// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/sha256.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <openssl/evp.h>
#include <kvbench/core/error.hpp>

namespace kvbench::trace {

std::string sha256_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw IoError("{}: cannot be read: {}.", path, std::strerror(errno));
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  std::vector<unsigned char> block(std::size_t{1} << 20);
  while (good) {
    const std::size_t got = std::fread(block.data(), 1, block.size(), file.get());
    if (got == 0) break;
    good = EVP_DigestUpdate(context.get(), block.data(), got) == 1;
  }
  if (std::ferror(file.get())) throw IoError("{}: reading failed: {}.", path, std::strerror(errno));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  good = good && EVP_DigestFinal_ex(context.get(), digest, &size) == 1;
  if (!good) throw IoError("{}: OpenSSL refused to compute SHA-256.", path);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace kvbench::trace
