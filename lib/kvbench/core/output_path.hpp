// SPDX-License-Identifier: Apache-2.0
// What an output path names, so that nothing but the file meant is replaced.
// The files that a program has read, so that its output replaces none of them, under whatever name or link.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace kvbench {

/// The file that `path` names, through symbolic links, whether it exists or not. Throws IoError where links form a
/// circle.
std::string target_of(const std::string& path);

/// Whether two paths name the same file, under whatever name or link. Throws IoError where links form a circle.
bool same_file(const std::string& a, const std::string& b);

/// Whether `path` names a pipe, a character device such as /dev/null, or an open file of a process such as /dev/stdout.
/// These are written in place and never replaced.
bool is_stream(const std::string& path);

/// Throws IoError where a regular file cannot be created under `path` or replaced there: it names a folder, a stream,
/// another special file, or a file that is write-protected.
void check_replaceable(const std::string& path);

/// A file of a command, with the words by which messages name it, such as "--raw" or "the trace".
struct NamedFile {
  std::string name, path;
};

/// Throws Error where an output is an input or another output, under whatever name or link. Empty paths are ignored,
/// and streams other than an open file of the process that is an input.
void check_distinct(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs);

/// The folder for temporary files. Throws Error where TMPDIR names none.
std::filesystem::path temporary_folder();

/// A program calls this at its start, and a program that runs many commands at the start of each: from then on outputs
/// replace no file that was read since. Without it, as in a program that uses the library, nothing is remembered.
void protect_read_files();
/// The command has ended: nothing is remembered until the next one.
void forget_read_files();

/// Remembers the regular file that `path` names, or the one that is open as `descriptor`. Every function that opens a
/// file named by a user calls it.
void remember_read(const std::string& path);
void remember_read(int descriptor);

/// Throws Error where `path` names a remembered file. Every function that creates or replaces an output calls it.
/// Commands that know their outputs before they read call check_distinct() too, which fails early and names the flags.
void check_not_read(const std::string& path);

}  // namespace kvbench
