// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/sha256.hpp>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include <openssl/evp.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/output_path.hpp>

namespace kvbench::trace {
namespace {

void check(bool good) {
  if (!good) throw IoError("OpenSSL failed to compute SHA-256.");
}

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  check(context_->state && EVP_DigestInit_ex(context_->state.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

Sha256& Sha256::add(std::string_view bytes) {
  check(EVP_DigestUpdate(context_->state.get(), bytes.data(), bytes.size()) == 1);
  return *this;
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_->state.get(), digest, &size) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256_of_tokens(std::span<const std::int32_t> tokens) {
  static_assert(std::endian::native == std::endian::little);
  return Sha256().add({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()}).hex();
}

std::string sha256_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw IoError("{}: cannot be read: {}.", path, std::strerror(errno));
  Sha256 sum;
  std::vector<char> block(std::size_t{1} << 20);
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file.get())) sum.add({block.data(), got});
  if (std::ferror(file.get())) throw IoError("{}: reading failed: {}.", path, std::strerror(errno));
  return sum.hex();
}

std::string stated_sha256(const std::string& path) {
  std::error_code none;
  const auto stated = std::filesystem::last_write_time(path + ".sha256", none);
  if (none || stated < std::filesystem::last_write_time(path, none) || none) return "";
  constexpr std::size_t most = 4096 + 67;  // a digest and the longest path
  std::istringstream file(begin_of_file(path + ".sha256", most));
  remember_read(path + ".sha256");
  std::string digest, name;
  file >> digest >> std::ws;
  std::getline(file, name);
  if (name.starts_with('*')) name.erase(0, 1);  // sha256sum --binary
  const bool hex = digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex && std::filesystem::path(name).filename() == std::filesystem::path(path).filename() ? digest : "";
}

}  // namespace kvbench::trace
