/* SPDX-License-Identifier: BSD-2-Clause */
/* Local files and folders. */
#ifndef COPY_LOCAL_H
#define COPY_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Fill iov[0..count) with the bytes at `offset` of an open file. 0, 1 if it is shorter, or a negative errno. */
int read_slices(int fd, uint64_t offset, const struct iovec *iov, unsigned count);

#define HOLE_LEAST (1u << 20) /* bytes of a hole that is worth another call */
/*
 * What of an open file of `size` bytes has to be sent next, from *at on: the number of bytes, at most `most`, before the next hole that is
 * worth another call. A hole at *at is skipped if its place is `clear`. 0: the length is to be set to *at, which is the size if the rest is a
 * hole. That comes before a hole where the copy has older data, which would show there.
 */
uint64_t find_data(int fd, uint64_t *at, uint64_t size, uint64_t most, bool clear);

#define PART_NAME 256 /* bytes, with the NUL */

/*
 * ".NAME.0123456789abcdef.afscp-part" of a version of the contents, which is not 0; a long name is
 * cut. The same name and version give the same text.
 */
void part_name(char part[PART_NAME], const char *name, uint64_t version);
/* The name of a random version, which nothing else has and no later run finds. */
void part_name_once(char part[PART_NAME], const char *name);
/* Mix a number into a version, which is 0 at first. The result is never 0. */
uint64_t part_version(uint64_t version, uint64_t number);

/*
 * A claim to the part of that version, which one process of this machine can have at a time. It
 * ends with close(), or with the process, however that ends. -1: another process has it, or claims
 * are not possible here.
 */
int part_claim(uint64_t version);

/*
 * A destination. A regular file is written without a name or, if the file system does not support
 * that, under a temporary name in the same directory. It gets its name when it is complete. Bytes
 * of a file that are zero become holes. Anything else (a pipe, /dev/null) is written directly.
 */
struct sink {
	int dir; /* descriptor of the directory, not owned; AT_FDCWD */
	int fd;
	bool owned;	/* close fd */
	bool temporary; /* temp[] exists */
	bool nameless;	/* the file has no name yet */
	bool seekable;
	bool part;	  /* temp[] is the name of a part, which a later run can continue */
	bool keep;	  /* the part, by sink_abandon() */
	uint64_t begun;	  /* bytes of the part that an earlier run has written */
	uint64_t end;	  /* of what was written, or skipped as zeros */
	char temp[256];	  /* name relative to dir */
	const char *name; /* final name relative to dir, lent */
};

/*
 * Open `name` in `dir`. 0, or -1 with errno (EISDIR: it is a directory). `inside`: the name comes
 * from the server, so an existing link or device is replaced and never followed. `mode`: the one that
 * sink_commit() will probably get, which then saves a step.
 */
int sink_open(struct sink *sink, int dir, const char *name, bool inside, mode_t mode);

/* A large file of which an earlier run may have left a part. */
struct sink_part {
	uint64_t version; /* part_version() */
	bool resume;	  /* continue the part; otherwise it begins again */
	/*
	 * Whether `length` bytes that `fd` has are the first ones of the file. `name`, relative to
	 * the directory of the sink, is that of the part.
	 */
	bool (*is_ours)(void *arg, int fd, uint64_t length, const char *name);
	void *arg;
};
/*
 * The same for a large file: it is written under a name that depends on its version, and after
 * SIGKILL it remains there. If a file has that name which is not ours, it stays as it is, and the
 * sink is as without a part.
 */
int sink_open_part(struct sink *sink, int dir, const char *name, bool inside,
		   const struct sink_part *part);
void sink_stdout(struct sink *sink);
/* Write all of it at `offset`. Changes iov. 0 or -1 with errno. */
int sink_write(struct sink *sink, struct iovec *iov, unsigned count, uint64_t offset);
/* From now on bytes come in any order: after SIGKILL nothing may be continued. 0 or -1 with errno. */
int sink_scatter(struct sink *sink);
/* Start again from the first byte, of another version. 0 or -1 with errno. */
int sink_restart(struct sink *sink);
/*
 * The file is complete: set its mode, time of modification (seconds since 1970) and name. 0; or -1
 * with errno, after which sink_abandon() removes everything.
 */
int sink_commit(struct sink *sink, mode_t mode, uint32_t mtime);
/*
 * Remove what was written, but not a part that is to be kept; keeps errno. Does nothing after a
 * successful sink_commit().
 */
void sink_abandon(struct sink *sink);
/* ".NAME.0123abcd", with a random number. */
void sink_temp_name(char *temp, size_t size, const char *name);

/*
 * Open an existing directory, and let its owner write there. The descriptor, or -1 with errno. If
 * its mode had to change, *mode is the old one.
 */
int open_usable_directory(int dir, const char *name, int flags, mode_t *mode);

#define CLIMB_OPEN  64	 /* levels that stay open */
#define CLIMB_DEPTH 1536 /* levels of a tree; each takes some of the stack */

/* Close *fd, which becomes -1, before a folder is entered from it, if the depth is large. */
bool climb_down(int *fd, unsigned depth, struct stat *left);
/*
 * Open that folder again, through the one that was entered, unless that was moved. 0, or -1 after a
 * message.
 */
int climb_up(int *fd, int below, const struct stat *left, const char *label);

#endif
