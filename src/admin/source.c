/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree that import reads. Where this process has too few rights for it, such as a server whose users' homes are
 * closed to it, another process opens each object and lends the descriptor: it never follows a symbolic link, nor
 * leaves the directory that it was told.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/private.h"

#define PATIENCE_MS 200 /* between questions whether the requester has gone */

/* Two processes of one machine. `kind` is a byte before the path. */
struct reply {
	int32_t error; /* errno */
	uint64_t bytes;
};

static const int open_flags[] = {
	[ADMIN_SOURCE_LOOK] = O_PATH,
	[ADMIN_SOURCE_FILE] = O_RDONLY | O_NONBLOCK,
	[ADMIN_SOURCE_DIRECTORY] = O_RDONLY | O_DIRECTORY,
};

/* -- the process that lends -- */

static uint64_t tree_bytes(int directory, const struct admin_run *run)
{
	char path[64];
	char *const paths[] = {path, NULL};
	uint64_t bytes = 0;
	FTSENT *entry;
	FTS *fts;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", directory);
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!fts)
		return 0;
	while ((entry = fts_read(fts)) && !(run && admin_stopped(run)))
		if (entry->fts_info == FTS_F && S_ISREG(entry->fts_statp->st_mode) &&
		    entry->fts_statp->st_size > 0)
			bytes += (uint64_t)entry->fts_statp->st_size;
	fts_close(fts);
	return bytes;
}

/* The kind is checked, so that no device goes to a process that may not open it. */
static int lend_one(int directory, const char *path, enum admin_source_kind kind)
{
	int fd = admin_open_beneath(directory, path, open_flags[kind], 0);
	struct stat st;

	if (fd < 0 || kind != ADMIN_SOURCE_FILE || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	return -EINVAL;
}

/* False: nobody waits for it. */
static bool send_reply(int fd, const struct reply *reply, int lent)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(void *)reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (lent >= 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &lent, sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*reply);
}

void admin_lend(int fd, int directory)
{
	char request[ADMIN_PATH_MAX + 1];
	ssize_t n;

	while ((n = recv(fd, request, sizeof(request) - 1, 0)) > 0) {
		unsigned kind = (unsigned char)request[0];
		struct reply reply = {0};
		int lent = -EINVAL;
		bool sent;

		request[n] = 0;
		if (kind == ADMIN_SOURCE_TOTAL)
			reply.bytes = tree_bytes(directory, NULL);
		else if (kind < ADMIN_SOURCE_TOTAL)
			lent = lend_one(directory, request + 1, kind);
		if (kind != ADMIN_SOURCE_TOTAL && lent < 0)
			reply.error = -lent;
		sent = send_reply(fd, &reply, lent);
		if (lent >= 0)
			close(lent);
		if (!sent)
			return;
	}
}

/* -- the process that borrows -- */

static int lent_descriptor(struct msghdr *message)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int fd;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(int));
	return fd;
}

/* The reply to a request. Its descriptor, -1: it has none; or -errno in reply->error without any. */
static int receive_reply(const struct admin_run *run, struct reply *reply)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct pollfd wait = {.fd = run->output->directory, .events = POLLIN};
	ssize_t n = -1;

	while (poll(&wait, 1, PATIENCE_MS) <= 0)
		if (admin_stopped(run)) {
			reply->error = EINTR;
			return -1;
		}
	n = recvmsg(wait.fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n != (ssize_t)sizeof(*reply)) {
		reply->error = EPIPE;
		return -1;
	}
	return lent_descriptor(&message);
}

/* Ask the lending process. A descriptor; 0 for a total; -errno. */
static int ask_lender(const struct admin_run *run, enum admin_source_kind kind, const char *path,
		      struct reply *reply)
{
	char request[ADMIN_PATH_MAX + 1];
	size_t length = strlen(path);
	int fd;

	memset(reply, 0, sizeof(*reply));
	if (length >= ADMIN_PATH_MAX)
		return -ENAMETOOLONG;
	request[0] = (char)kind;
	memcpy(request + 1, path, length);
	if (send(run->output->directory, request, length + 1, MSG_NOSIGNAL) < 0)
		return -errno;
	fd = receive_reply(run, reply);
	if (reply->error) {
		if (fd >= 0)
			close(fd);
		return -reply->error;
	}
	return kind == ADMIN_SOURCE_TOTAL ? 0 : fd >= 0 ? fd : -EMFILE;
}

static bool is_lent(const struct admin_run *run)
{
	struct stat st;

	return fstat(run->output->directory, &st) == 0 && S_ISSOCK(st.st_mode);
}

int admin_source_open(const struct admin_run *run, const char *path, enum admin_source_kind kind)
{
	struct reply reply;

	assert(kind < ADMIN_SOURCE_TOTAL);
	if (is_lent(run))
		return ask_lender(run, kind, path, &reply);
	return admin_open_beneath(run->output->directory, path, open_flags[kind], 0);
}

uint64_t admin_source_bytes(const struct admin_run *run)
{
	struct reply reply;

	if (!is_lent(run))
		return tree_bytes(run->output->directory, run);
	return ask_lender(run, ADMIN_SOURCE_TOTAL, "", &reply) ? 0 : reply.bytes;
}
