// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tar archives through libarchive. What varies between two runs (times, owners, the gzip header) is set to zero.

#include <algorithm>
#include <memory>
#include <set>

#include <archive.h>
#include <archive_entry.h>

#include "neuron/Neff/Container.h"
#include "neuron/Support/Text.h"

namespace neuroncore::neff {

namespace {

struct ArchiveDeleter {
  void operator()(archive *a) const { archive_free(a); }
};
using ArchivePointer = std::unique_ptr<archive, ArchiveDeleter>;

struct EntryDeleter {
  void operator()(archive_entry *entry) const { archive_entry_free(entry); }
};
using EntryPointer = std::unique_ptr<archive_entry, EntryDeleter>;

std::string message(archive *a) {
  const char *text = archive_error_string(a);
  return text ? text : "unknown reason";
}

la_ssize_t appendTo(archive *, void *client, const void *data, size_t size) {
  auto *out = static_cast<std::vector<uint8_t> *>(client);
  const auto *bytes = static_cast<const uint8_t *>(data);
  out->insert(out->end(), bytes, bytes + size);
  return la_ssize_t(size);
}

/// Relative, without empty, "." or ".." parts. A leading "./" is dropped, as tar writers add it.
bool normaliseName(std::string &name) {
  while (name.starts_with("./"))
    name.erase(0, 2);
  if (name.empty() || name.front() == '/' || name.find('\0') != name.npos || name.find('\\') != name.npos)
    return false;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('/', begin), name.size());
    std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..")
      return false;
    begin = end + 1;
  }
  return true;
}

/// A file of a few kilobytes must not unpack to gigabytes. Constants are numbers that hardly compress; streams and JSON
/// are small, and do by a factor of ten to a hundred.
uint64_t mostBytesIn(uint64_t archiveBytes) { return (uint64_t(256) << 20) + archiveBytes * 64; }

} // namespace

Expected<std::vector<uint8_t>> packMembers(std::span<const Member> members, bool compress) {
  std::vector<uint8_t> out;
  ArchivePointer writer(archive_write_new());
  archive *a = writer.get();
  auto failed = [&] { return Error(ErrorKind::Internal, cat("expected to write an archive: ", message(a))); };
  // The pax format is plain ustar unless a name or size needs more.
  if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK)
    return failed();
  if (compress && (archive_write_add_filter_gzip(a) != ARCHIVE_OK ||
                   archive_write_set_filter_option(a, "gzip", "timestamp", nullptr) != ARCHIVE_OK ||
                   archive_write_set_filter_option(a, "gzip", "compression-level", "1") != ARCHIVE_OK))
    return failed();
  archive_write_set_bytes_per_block(a, 0);
  if (archive_write_open(a, &out, nullptr, appendTo, nullptr) != ARCHIVE_OK)
    return failed();
  EntryPointer entry(archive_entry_new());
  for (const Member &member : members) {
    archive_entry_clear(entry.get());
    archive_entry_set_pathname(entry.get(), member.name.c_str());
    archive_entry_set_size(entry.get(), la_int64_t(member.data.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    archive_entry_set_uid(entry.get(), 0);
    archive_entry_set_gid(entry.get(), 0);
    if (archive_write_header(a, entry.get()) != ARCHIVE_OK)
      return failed();
    for (size_t done = 0; done < member.data.size();) {
      la_ssize_t written = archive_write_data(a, member.data.data() + done, member.data.size() - done);
      if (written <= 0)
        return failed();
      done += size_t(written);
    }
  }
  if (archive_write_close(a) != ARCHIVE_OK)
    return failed();
  uint64_t total = 0;
  for (const Member &member : members)
    total += member.data.size();
  // Constants of nothing but zeros: readers would take it for an attack.
  if (compress && total > mostBytesIn(out.size()))
    return packMembers(members, false);
  return out;
}

Expected<std::vector<Member>> unpackMembers(std::span<const uint8_t> payload, uint64_t maxBytes) {
  ArchivePointer reader(archive_read_new());
  archive *a = reader.get();
  auto invalid = [&](std::string text) { return Error(ErrorKind::InvalidInput, std::move(text)); };
  archive_read_support_filter_gzip(a);
  archive_read_support_format_tar(a);
  if (archive_read_open_memory(a, payload.data(), payload.size()) != ARCHIVE_OK)
    return invalid(cat("expected a tar archive, compressed with gzip or not: ", message(a)));
  std::vector<Member> members;
  std::set<std::string> names;
  uint64_t total = 0;
  maxBytes = std::min(maxBytes, mostBytesIn(payload.size()));
  for (;;) {
    archive_entry *entry = nullptr;
    int result = archive_read_next_header(a, &entry);
    if (result == ARCHIVE_EOF)
      break;
    if (result != ARCHIVE_OK)
      return invalid(cat("expected a tar archive, compressed with gzip or not: ", message(a)));
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
      continue;
    const char *path = archive_entry_pathname(entry);
    Member member;
    member.name = path ? path : "";
    if (!normaliseName(member.name))
      return invalid(cat("expected a relative member name but got '", member.name, "'"));
    if (!names.insert(member.name).second)
      return invalid(cat("expected each member once but '", member.name, "' occurs again"));
    // The declared size is not trusted for an allocation.
    uint64_t declared = uint64_t(std::max<la_int64_t>(archive_entry_size(entry), 0));
    if (declared > maxBytes - total)
      return Error(ErrorKind::OutOfMemory, cat("expected at most ", maxBytes, " bytes of members in ", payload.size(),
                                               " bytes of archive but '", member.name, "' exceeds them"));
    member.data.reserve(size_t(std::min<uint64_t>(declared, 1 << 20)));
    for (;;) {
      const void *block = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      result = archive_read_data_block(a, &block, &size, &offset);
      if (result == ARCHIVE_EOF)
        break;
      if (result != ARCHIVE_OK)
        return invalid(cat("member '", member.name, "': ", message(a)));
      // A sparse entry would leave holes.
      if (offset < 0 || uint64_t(offset) != member.data.size() || size > declared - member.data.size())
        return invalid(cat("member '", member.name, "': expected ", declared, " bytes without holes"));
      const auto *bytes = static_cast<const uint8_t *>(block);
      member.data.insert(member.data.end(), bytes, bytes + size);
    }
    if (member.data.size() != declared)
      return invalid(cat("member '", member.name, "': expected ", declared, " bytes but got ", member.data.size()));
    total += declared;
    members.push_back(std::move(member));
  }
  if (members.empty())
    return invalid("expected a tar archive with members but found none");
  return members;
}

} // namespace neuroncore::neff
