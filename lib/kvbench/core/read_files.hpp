// SPDX-License-Identifier: Apache-2.0
// The files that a program has read, so that its output replaces none of them, under whatever name or link.
#pragma once

#include <string>

namespace kvbench {

/// A program calls this at its start: from then on its outputs replace no file that it has read. Without it, as in a
/// program that uses the library, nothing is remembered.
void protect_read_files();

/// Remembers the regular file that `path` names, or the one that is open as `descriptor`. Every function that opens a
/// file named by a user calls it.
void remember_read(const std::string& path);
void remember_read(int descriptor);

/// Throws Error where `path` names a remembered file. Every function that creates or replaces an output calls it.
/// Commands that know their outputs before they read call check_distinct() too, which fails early and names the flags.
void check_not_read(const std::string& path);

}  // namespace kvbench
