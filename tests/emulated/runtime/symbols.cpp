// SPDX-License-Identifier: Apache-2.0
#include "symbols.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

namespace emulated {

namespace {

/// Where the program was loaded, relative to the addresses in its file.
std::uintptr_t load_offset() {
  std::uintptr_t offset = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
        return 1;  // the program comes first
      },
      &offset);
  return offset;
}

std::string demangled(const char* name) {
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, nullptr),
                                                         &std::free);
  return text == nullptr ? name : text.get();
}

}  // namespace

std::string name_of_function(const void* address) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
  if (image.size() < sizeof(ElfW(Ehdr))) return "a kernel";
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(image.data());
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(image.data() + header->e_shoff);
  const std::uintptr_t wanted = reinterpret_cast<std::uintptr_t>(address) - load_offset();
  for (unsigned s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(image.data() + sections[s].sh_offset);
    const char* names = image.data() + sections[sections[s].sh_link].sh_offset;
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof(ElfW(Sym)); ++i) {
      if (symbols[i].st_value == wanted && (symbols[i].st_info & 0xf) == STT_FUNC)
        return demangled(names + symbols[i].st_name);
    }
  }
  return "a kernel";
}

}  // namespace emulated
