/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the data of a copied file goes. */
#ifndef COPY_SINK_H
#define COPY_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * A destination. A regular file is written without a name, or where the file system cannot do that
 * under a temporary one in the same directory, and gets its own name when it is complete; anything
 * else (a pipe, /dev/null) is written as it is.
 */
struct sink {
	int dir; /* descriptor of the directory, not owned; AT_FDCWD */
	int fd;
	bool owned;	/* close fd */
	bool temporary; /* temp[] exists */
	bool nameless;	/* the file has no name yet */
	bool seekable;
	char temp[256];	  /* name relative to dir */
	const char *name; /* final name relative to dir, lent */
};

/*
 * Open `name` in `dir`. 0, or -1 with errno (EISDIR: it is a directory). `inside`: the name comes
 * from the server, so that what it is now, a link or a device, is replaced and never followed.
 */
int sink_open(struct sink *sink, int dir, const char *name, bool inside);
void sink_stdout(struct sink *sink);
/* Write all of it at `offset`. Changes iov. 0 or -1 with errno. */
int sink_write(struct sink *sink, struct iovec *iov, unsigned count, uint64_t offset);
/* Begin again from the first byte. 0 or -1 with errno. */
int sink_restart(struct sink *sink);
/*
 * All is there: give the file its mode, time of modification (seconds since 1970) and name. 0 or -1
 * with errno; sink_abandon() then leaves nothing.
 */
int sink_commit(struct sink *sink, mode_t mode, uint32_t mtime);
/* Leave nothing behind; errno is kept. Does nothing after sink_commit(). */
void sink_abandon(struct sink *sink);
/* ".NAME.0123abcd": a name that nobody else takes. */
void sink_temp_name(char *temp, size_t size, const char *name);

#endif
