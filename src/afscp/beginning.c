/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Before --continue adds to a file, or a part is replaced: neither the time of modification nor the
 * name tells that an earlier run has begun it. All files of an archive or of a reproducible build
 * have the same time, and the user may have given another file that name.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "afscp/beginning.h"

#define COMPARED 65536u /* bytes at the beginning, and at the end */

struct comparison {
	int fd;
	bool differs;
};

/* Whether the local file has the same bytes at `offset`. */
static bool has_same(int fd, const uint8_t *bytes, size_t length, uint64_t offset)
{
	uint8_t local[4096];

	while (length) {
		ssize_t n = pread(fd, local, length < sizeof(local) ? length : sizeof(local),
				  (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || memcmp(local, bytes, (size_t)n) != 0)
			return false;
		bytes += n;
		length -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

static int compare_slices(void *arg, struct iovec *iov, unsigned count, uint64_t offset)
{
	struct comparison *c = arg;

	for (unsigned i = 0; i < count && !c->differs; i++) {
		c->differs = !has_same(c->fd, iov[i].iov_base, iov[i].iov_len, offset);
		offset += iov[i].iov_len;
	}
	return c->differs;
}

static bool matches_at(struct copy *copy, const struct afs_object *object, int fd, const char *label,
		    uint64_t offset, uint64_t length)
{
	struct comparison c = {.fd = fd};
	struct outage outage = {0};
	struct afs_fetch fetch;
	struct afs_error error;
	int rc;

	do {
		copy_fresh(copy);
		afs_fetch_init(&fetch, &object->fid, offset, length);
		rc = afs_client_read(copy->client, &fetch, label, compare_slices, &c, &error);
	} while (rc < 0 && change_retry(copy, &outage, &error, NULL));
	return rc == 0 && fetch.received == length;
}

bool beginning_matches(struct copy *copy, const struct afs_object *object, uint64_t length, int fd,
		   const char *label)
{
	uint64_t some = length < COMPARED ? length : COMPARED;

	return !length ||
	       (matches_at(copy, object, fd, label, 0, some) &&
		(length == some || matches_at(copy, object, fd, label, length - some, some)));
}
