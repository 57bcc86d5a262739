/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp get: one file, from the slices that the library lends to its destination. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/beginning.h"
#include "afscp/copy.h"
#include "afscp/partname.h"
#include "afscp/sink.h"

#define PART_LEAST (16u << 20) /* bytes of files that later runs can continue */
#define RESTARTS 3 /* of a file that has another version at another server */

/* A file that is being copied. */
struct file {
	struct copy *copy;
	struct afs_object *object;
	struct sink *sink;
	const char *label;
	uint64_t at;	/* bytes of it that are written */
	uint64_t begun; /* of them by an earlier run */
	unsigned restarts;
	struct outage outage;
	struct afs_fetch fetch;
	int error; /* errno of the write that failed, or 0 */
};

/* "FOLDER/NAME" of a name in an open directory, as far as its path is known. */
static const char *whole_name(int dir, const char *name, char *text, size_t size)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = dir == AT_FDCWD || *name == '/' ? -1 : readlink(link, text, size);
	if (n <= 0 || (size_t)n + strlen(name) + 2 > size)
		return name;
	snprintf(text + n, size - (size_t)n, "/%s", name);
	return text;
}

enum copy_result write_failed(struct copy *copy, const char *label, int dir, const char *base)
{
	int number = errno;
	char text[PATH_MAX];
	const char *name = whole_name(dir, base, text, sizeof(text));

	errno = number;
	switch (errno) {
	case ENOSPC:
	case EDQUOT:
		tools_error(
			"%s: no space left for \"%s\"; free space or choose another destination",
			label, name);
		break;
	case EPIPE:
		/* The reader has exited: not an error. */
		atomic_store(&copy->run->broken_pipe, true);
		return COPY_STOP;
	default:
		tools_error("%s: cannot write \"%s\": %s", label, name, strerror(errno));
		if (number != EIO && number != EROFS)
			return COPY_FAILED;
	}
	/* The other objects would fail as well. */
	return copy->set->keep_going ? COPY_FAILED : COPY_STOP;
}

static int write_fetched(void *arg, struct iovec *iov, unsigned count, uint64_t offset)
{
	struct file *f = arg;
	struct copy *copy = f->copy;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	if (sink_write(f->sink, iov, count, offset) < 0) {
		f->error = errno;
		return -1;
	}
	atomic_fetch_add(&copy->run->bytes, bytes);
	copy_progress(copy, f->label);
	return 0;
}

/* Continue at another server if it has the same version. Otherwise start again. */
static enum copy_result check_same_version(struct file *f)
{
	AFSFetchStatus status;
	struct afs_error error;

	while (afs_client_status(f->copy->client, &f->object->fid, f->label, &status, &error) < 0)
		if (!copy_retry_or_complain(f->copy, &f->outage, &error))
			return copy_judge(f->copy, &error);
	if (afs_status_version(&status) == afs_status_version(&f->object->status) &&
	    afs_status_length(&status) == afs_status_length(&f->object->status))
		return COPY_GOOD;
	if (++f->restarts > RESTARTS || (f->at > 0 && sink_restart(f->sink) < 0)) {
		tools_error("%s: the file changed during the copy; try again", f->label);
		return COPY_FAILED;
	}
	f->object->status = status;
	atomic_fetch_sub(&f->copy->run->bytes, f->at - f->begun);
	atomic_fetch_sub(&f->copy->run->left_out, f->begun);
	f->at = f->begun = 0;
	return COPY_GOOD;
}

/* Decide what follows a failed fetch. COPY_GOOD: the next one. */
static enum copy_result handle_failed_fetch(struct file *f, struct afs_error *error)
{
	bool moved = false;

	if (f->fetch.received > 0)
		f->outage = (struct outage){0};
	if (copy_retry(f->copy, &f->outage, error, &moved))
		return moved ? check_same_version(f) : COPY_GOOD;
	copy_complain(f->copy, error);
	return copy_judge(f->copy, error);
}

/* Check version and length of a successful fetch. */
static enum copy_result check_answer(struct file *f)
{
	const AFSFetchStatus *status = &f->object->status;

	if (afs_status_version(&f->fetch.status) != afs_status_version(status) ||
	    afs_status_length(&f->fetch.status) != afs_status_length(status)) {
		tools_error("%s: the file changed during the copy; try again", f->label);
		return COPY_FAILED;
	}
	if (f->fetch.length != f->fetch.wanted) {
		tools_error("%s: the server sent %llu bytes at offset %llu instead of %llu; the "
			    "file has %llu",
			    f->label, (unsigned long long)f->fetch.length,
			    (unsigned long long)f->fetch.offset,
			    (unsigned long long)f->fetch.wanted,
			    (unsigned long long)afs_status_length(status));
		return COPY_FAILED;
	}
	return COPY_GOOD;
}

/* Fetch the next part of the file. */
static enum copy_result fetch_part(struct file *f)
{
	uint64_t left = afs_status_length(&f->object->status) - f->at;
	struct afs_error error;
	int rc;

	copy_fresh(f->copy);
	afs_fetch_init(&f->fetch, &f->object->fid, f->at,
		       left < AFS_FETCH_MAX ? left : AFS_FETCH_MAX);
	rc = afs_client_read(f->copy->client, &f->fetch, f->label, write_fetched, f, &error);
	if (rc > 0) {
		errno = f->error;
		return write_failed(f->copy, f->label, f->sink->dir, f->sink->name);
	}
	f->at += f->fetch.received;
	if (rc < 0)
		return handle_failed_fetch(f, &error);
	f->outage = (struct outage){0};
	return check_answer(f);
}

enum copy_result get_file(struct copy *copy, struct afs_object *object, struct sink *sink,
			  const char *label)
{
	struct file file = {.copy = copy,
			    .object = object,
			    .sink = sink,
			    .label = label,
			    .at = sink->begun,
			    .begun = sink->begun};

	atomic_fetch_add(&copy->run->left_out, file.begun);
	while (file.at < afs_status_length(&object->status)) {
		enum copy_result rc = fetch_part(&file);

		if (rc != COPY_GOOD)
			return rc;
	}
	copy_done(copy, label, afs_status_length(&object->status));
	return COPY_GOOD;
}

/* A file of which a part may exist. */
struct parted {
	struct copy *copy;
	const struct afs_object *object;
	int dir;
	const char *label;
};

/* A file of the user may have the name of the part. */
static bool is_part_of_object(void *arg, int fd, uint64_t length, const char *name)
{
	struct parted *p = arg;
	char text[PATH_MAX];

	if (length <= afs_status_length(&p->object->status) &&
	    beginning_matches(p->copy, p->object, length, fd, p->label))
		return true;
	if (!copy_interrupted(p->copy))
		tools_error("%s: \"%s\" is not its beginning: not used, and left as it is",
			    p->label, whole_name(p->dir, name, text, sizeof(text)));
	return false;
}

int get_open(struct copy *copy, const struct afs_object *object, struct sink *sink, int dir,
	     const char *name, bool inside, const char *label)
{
	struct parted parted = {.copy = copy, .object = object, .dir = dir, .label = label};
	struct sink_part part = {.resume = copy->set->resume, .is_ours = is_part_of_object, .arg = &parted};
	const AFSFetchStatus *status = &object->status;
	const AFSFid *fid = &object->fid;
	uint64_t length = afs_status_length(status), version = 0;

	if (length < PART_LEAST)
		return sink_open(sink, dir, name, inside);
	version = part_version(version, (uint64_t)fid->Volume << 32 | fid->Vnode);
	version = part_version(version, (uint64_t)fid->Unique << 32 | status->ClientModTime);
	version = part_version(version, afs_status_version(status));
	part.version = part_version(version, length);
	return sink_open_part(sink, dir, name, inside, &part);
}

enum copy_result get_close(struct copy *copy, const struct afs_object *object, struct sink *sink,
			   enum copy_result rc, const char *label)
{
	if (rc == COPY_GOOD &&
	    sink_commit(sink, get_mode(copy, &object->status), object->status.ClientModTime) < 0)
		rc = write_failed(copy, label, sink->dir, sink->name);
	/* The cause that stops the command may be over at the next run. */
	sink->keep = copy->set->resume && (rc == COPY_STOP || copy_interrupted(copy));
	sink_abandon(sink);
	return rc;
}

bool get_is_there(const struct copy *copy, int dir, const char *name, const AFSFetchStatus *status)
{
	struct stat st;

	return copy->set->resume && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == afs_status_length(status) &&
	       st.st_mtime == (time_t)status->ClientModTime;
}

mode_t get_mode(const struct copy *copy, const AFSFetchStatus *status)
{
	mode_t mode = status->UnixModeBits & 0777;

	return copy->set->preserve ? mode : mode & ~copy->run->umask;
}

mode_t get_directory_mode(const struct copy *copy, const AFSFetchStatus *status)
{
	return get_mode(copy, status) | (copy->set->preserve ? 0 : 0700);
}
