// SPDX-License-Identifier: MIT
// Whom to trust. What we load runs with our rights, so it must come from root or from the user we act for, and nobody else
// may have been able to change it. Whether this holds is asked of open files, which cannot be exchanged between the
// question and the use. Every error names the path, the owner or mode, and the way out.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace tilewise {

// Whether we have rights that the user who started us lacks: a set-user-ID or set-group-ID program, or one with file
// capabilities. Then the environment, which is that user's, must not choose what is run: all of it is read with
// secure_getenv.
bool has_raised_rights();

// Where programs are looked for then: only root can change these folders.
constexpr std::string_view kTrustedPath = "/usr/bin:/bin";

// Whether to run what belongs to `owner`: root, or the user we act for. With raised rights that is only another user than
// the one who started us (set-user-ID): to who merely lent us a group or capabilities, our own files are no secret.
bool trusts_owner(uid_t owner);

// Whether what is in a folder can be trusted: it is ours, and nobody else may put things there or take them away. A
// missing folder is fine. `outermost`: it may be a link of ours, and others may add to it where they cannot touch what is
// ours (sticky); what is inside may neither.
Status check_owner(const std::string& path, bool outermost);

// A plain file, open, that belongs to a trusted owner and that nobody else may write.
class TrustedFile {
public:
    // `flags` and `mode` as for open(2). No FIFO is waited for. With O_NOFOLLOW a link is refused, without it the file that
    // it leads to must be trusted.
    static Result<TrustedFile> open(const std::string& path, int flags, mode_t mode = 0);
    // To read and to append to, made for the owner alone where it is missing, with its folders. A link is refused, and so is
    // a file with a second name, which might be a file that is not meant.
    static Result<TrustedFile> open_to_append(const std::string& path);

    TrustedFile(TrustedFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), info_(other.info_) {}
    TrustedFile& operator=(TrustedFile&&) = delete;
    TrustedFile(const TrustedFile&) = delete;
    ~TrustedFile();

    int fd() const { return fd_; }
    const struct stat& info() const { return info_; }  // when it was opened

    // One write, so that what others append at the same time comes before or after it; `path` is for messages.
    Status append(std::string_view text, const std::string& path) const;

private:
    TrustedFile(int fd, const struct stat& info) : fd_(fd), info_(info) {}

    int fd_;
    struct stat info_;
};

// All of such a file; a link is refused.
Result<std::string> read_trusted_file(const std::string& path);

}  // namespace tilewise
