/* SPDX-License-Identifier: MIT */
#include "base/file_claims.h"

#include "base/hash.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Identity of a file: its device and inode. For a file that does not exist yet:
 * device and inode of its folder, and a hash of its name. */
struct identity {
    dev_t dev;
    ino_t ino;
    uint64_t name_hash; /* hash of the name of a file that does not exist yet; 0
                           if the file exists */
};

struct claim {
    const char *path; /* path of the file as given by the user */
    struct identity identity;
    unsigned uses; /* a mask of enum file_use */
};

/* The claims of this process. They are global, like file descriptors, because
 * files are opened in many places deep inside other functions. */
static struct {
    bool is_on;
    struct claim *list; /* [n]; owned */
    size_t n, cap;
    struct arena arena; /* owned; holds the paths */
} claims;

void file_claims_begin(void)
{
    claims.is_on = true;
}

void file_claims_end(void)
{
    mem_free(claims.list);
    arena_release(&claims.arena);
    memset(&claims, 0, sizeof claims);
}

/* Finds the identity of the file at a path. Returns true if the path leads to a
 * regular file or to a place where a file can be created. Only such a path can
 * lead to the same file as another path. */
static bool identify(struct identity *identity, const char *path)
{
    bool is_stdin = !strcmp(path, "-"), can_be;
    struct arena arena = {0};
    const char *target;
    struct stat st;

    memset(identity, 0, sizeof *identity);
    if (!(is_stdin ? fstat(STDIN_FILENO, &st) : stat(path, &st))) {
        can_be = S_ISREG(st.st_mode);
    } else if (is_stdin || errno != ENOENT) {
        return false;
    } else { /* identity of a new file: its folder and its name */
        target = path_target(path, &arena);
        identity->name_hash =
            hash_bytes(path_name(target), strlen(path_name(target)), 0);
        can_be = !stat(path_folder(target, &arena), &st);
        arena_release(&arena);
    }
    if (can_be) {
        identity->dev = st.st_dev;
        identity->ino = st.st_ino;
    }
    return can_be;
}

/* Finds a claim by its path or, if no claim has this path, by the identity of
 * its file. A claim that is found by its path gets the new identity, because
 * the path may lead to another file by now. */
static struct claim *find(const char *path, const struct identity *identity)
{
    for (size_t i = 0; i < claims.n; i++)
        if (!strcmp(claims.list[i].path, path)) {
            claims.list[i].identity = *identity;
            return &claims.list[i];
        }
    for (size_t i = 0; i < claims.n; i++)
        if (!memcmp(&claims.list[i].identity, identity, sizeof *identity))
            return &claims.list[i];
    return NULL;
}

/* Returns whether path is an SQLite file or its write-ahead log. */
static bool is_database(const char *path)
{
    static const char magic[16] = "SQLite format 3";
    static const unsigned char log_magic[3] = {0x37, 0x7f, 0x06};
    char begin[sizeof magic] = "";
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, begin, sizeof begin);

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof begin &&
           (!memcmp(begin, magic, sizeof magic) ||
            !memcmp(begin, log_magic, sizeof log_magic));
}

/* Checks that path can be written. It is called early, so that an error is
 * reported before the work is done and not after it. */
static int check_target(const char *path, struct err *err)
{
    struct arena arena = {0};
    struct stat st;
    int reason = 0;

    if (!strcmp(path, "-"))
        return 0;
    if (stat(path, &st) && errno == ELOOP)
        return err_set(err, ERR_OVERWRITE, "cannot write '%s': %s", path,
                       strerror(ELOOP));
    if (is_database(path))
        return err_set(err, ERR_OVERWRITE,
                       "'%s' is a database and would be overwritten", path);
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        reason = S_ISDIR(st.st_mode) ? EISDIR : 0;
    else if (access(path_folder(path_target(path, &arena), &arena), W_OK))
        reason = errno;
    arena_release(&arena);
    if (!reason)
        return 0;
    return err_set(err, ERR_IO, "cannot write '%s': %s", path,
                   strerror(reason));
}

/* Adds a file and its uses to the list of claims. Fails with ERR_OVERWRITE if
 * the list has the file already and `uses` contains none of the uses listed for
 * it. A claim (is_claim) fails whenever the list has the file already. A file
 * that is written without a claim is not added. */
static int note(const char *path, unsigned uses, bool is_claim, struct err *err)
{
    struct identity identity;
    struct claim *claim;

    if (!claims.is_on || (uses == FILE_WRITE && !strcmp(path, "-")))
        return 0; /* standard output is not a file to claim */
    if ((uses & FILE_WRITE) && check_target(path, err))
        return -1;
    if (!identify(&identity, path))
        return 0;
    claim = find(path, &identity);
    if (claim && (is_claim || !(claim->uses & uses)))
        return err_set(err, ERR_OVERWRITE,
                       "'%s' is given twice, and one use would overwrite "
                       "what the other reads",
                       path);
    if (claim || (!is_claim && uses == FILE_WRITE))
        return 0;
    claims.list =
        mem_room(claims.list, claims.n, &claims.cap, sizeof *claims.list);
    claims.list[claims.n++] =
        (struct claim){arena_strdup(&claims.arena, path), identity, uses};
    return 0;
}

int file_claim(const char *path, unsigned uses, struct err *err)
{
    return note(path, uses, true, err);
}

int file_use(const char *path, enum file_use use, struct err *err)
{
    return note(path, use, false, err);
}
