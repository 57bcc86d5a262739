/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp put: one file. A new file is written in place, in calls of a bounded length and in the
 * order of its bytes. Every call sets the final time of modification, so that a file of that time
 * that is shorter shows an interrupted put. What replaces the contents of an existing file is
 * written the same way under another name, which is renamed when it is complete: a put that fails
 * must not destroy the old contents.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <rxafs/admin.h>
#include <rxafs/stream.h>

#include "program/message.h"
#include "afscp/contents.h"
#include "afscp/local.h"
#include "afscp/pathuse.h"
#include "afscp/put.h"
#include "afscp/putlevel.h"
#include "afscp/scatter.h"

#define PART	  (64u << 20) /* bytes of a call */
#define STREAM	  (8u << 20) /* bytes of a call that come from a pipe, and are kept until it ends */
#define READ_MOST (1u << 20) /* of a pipe at a time */

/* A file that is being stored. */
struct storing {
	struct run *run;
	struct put_file *file;
	const char *name;     /* in the directory: the name of the file, or of a part */
	rxafs_object *object; /* a reference, or NULL */
	struct rxafs_attributes now;
	uint64_t at, size; /* stored so far; of the local file */
	int64_t mtime;
	bool plain;	/* the source has as many bytes as its status says, and can be read again */
	bool created;	/* for this copy */
	bool set_mode;	/* with the last call */
	bool succeeded; /* the latest call */
	bool spoiled;	/* the source has changed: what is stored is worthless */
	bool unanswered;     /* the error of the latest call is that there is no answer */
	bool gone;	     /* it is that somebody else has removed the object */
	bool once;	     /* if that happens, the copy fails */
	bool hold;	     /* a full volume is not reported, but noted: */
	struct attempt full; /* then; its value is 0 before */
	mode_t mode;
	struct outage outage;
	const uint8_t *
		bytes; /* of the call in progress, from a pipe; NULL: they are read from the file */
	uint64_t counted; /* bytes of the call in progress that the run has counted */
	int error;	  /* of reading the source in it */
};

void put_file_drop(void *arg)
{
	struct put_file *f = arg;

	/* The job was not done, so the directory is not completed. */
	if (f->level)
		put_level_leave(NULL, f->level, true);
	if (f->existing)
		rxafs_release(f->existing);
	if (f->directory)
		rxafs_release(f->directory);
	close(f->fd);
	free(f->name);
	free(f->label);
	free(f);
}

struct put_file *put_file_new(int fd, rxafs_object *directory, const char *name, const char *label,
			      struct put_level *level)
{
	struct put_file *f = calloc(1, sizeof(*f));

	if (f) {
		f->fd = fd;
		f->directory = rxafs_hold(directory);
		f->name = strdup(name);
		f->label = strdup(label);
	}
	if (!f || !f->name || !f->label || fstat(fd, &f->st) < 0) {
		tools_error("%s: no memory", label);
		if (f)
			put_file_drop(f);
		else
			close(fd);
		return NULL;
	}
	f->level = level;
	return f;
}

static uint64_t stored_length(const struct storing *s)
{
	return (uint64_t)s->now.stat.st_size;
}

/* Whether the volume is full, and the error is kept instead of reported. */
static bool note_full(struct storing *s, const struct attempt *t)
{
	if (!s->hold || (t->value != -EDQUOT && t->value != -ENOSPC))
		return false;
	s->full = *t;
	return true;
}

/*
 * Whether the file is stored anew: another client has replaced or removed it while this put wrote
 * to it, and the later put wins. Contents that were there before are not written over twice.
 */
static bool may_begin_again(const struct storing *s)
{
	return s->gone && (s->created || s->at == 0) && s->plain && !s->once &&
	       s->name == s->file->name;
}

/* ---- the object ---- */

/* Another object, whose reference is taken. */
static void set_stored_object(struct storing *s, rxafs_object *object,
			      const struct rxafs_attributes *attributes)
{
	if (s->object)
		rxafs_release(s->object);
	s->object = object;
	if (attributes)
		s->now = *attributes;
}

/* Remove the name, with `t` for the outcome. */
static enum copy_result remove_stored_name(struct storing *s, struct attempt *t)
{
	while (attempt_again_unless(t, rxafs_unlink(s->file->directory, &t->request, s->name),
				    -ENOENT))
		;
	return t->value == -ENOENT ? COPY_GOOD : attempt_result(t);
}

/* Remove a symbolic link that has the name: within a tree no link is followed. */
static enum copy_result remove_link(struct storing *s)
{
	struct attempt t = attempt_begin(s->run, CHANGE_REMOVE, s->file->label);

	set_stored_object(s, NULL, NULL);
	return remove_stored_name(s, &t);
}

/* The attributes that the server has. Other results than COPY_GOOD without a message: see *t. */
static enum copy_result try_status(struct storing *s, struct attempt *t)
{
	struct rxafs_name name = {.text = s->name};
	struct rxafs_attributes now;
	int64_t value;
	int result = 0;

	*t = attempt_begin(s->run, CHANGE_NONE, s->file->label);
	t->later = true;
	t->outage = s->outage;
	rxafs_get_fid(s->object, &name.fid);
	do {
		value = rxafs_fetch_attributes(s->file->directory, &t->request, &name, 1, &now,
					       &result);
		value = value ? value : result;
	} while (attempt_again_unless(t, value, -ENOENT));
	s->outage = t->outage;
	s->gone = t->value == -ENOENT;
	if (t->value == 0)
		s->now = now;
	return s->gone ? COPY_FAILED : attempt_result(t);
}

/* The same, with a message, unless the file is stored anew. */
static enum copy_result fetch_status(struct storing *s)
{
	struct attempt t;
	enum copy_result rc = try_status(s, &t);

	if (rc != COPY_GOOD && may_begin_again(s))
		return rc;
	if (rc != COPY_GOOD && s->gone)
		tools_error("%s: another client has removed it meanwhile", s->file->label);
	else if (rc != COPY_GOOD)
		attempt_complain(&t);
	return rc;
}

/* Make the file; *taken: something else has the name. */
static enum copy_result create_object(struct storing *s, bool *taken)
{
	const struct rxafs_changes set = {.set = RXAFS_SET_MODE | RXAFS_SET_TIME,
					  /* It must be writable until it is complete. */
					  .mode = s->mode | 0200,
					  .time = s->mtime};
	struct attempt t = attempt_begin(s->run, CHANGE_CREATE, s->file->label);
	struct rxafs_attributes made;
	rxafs_object *object;

	t.later = true;
	while (attempt_again_unless(
		&t, rxafs_make_file(s->file->directory, &t.request, s->name, &set, &object, &made),
		-EEXIST))
		;
	*taken = t.value == -EEXIST;
	s->created = t.value == 0;
	s->set_mode = !(s->mode & 0200);
	if (s->created)
		set_stored_object(s, object, &made);
	else if (t.value == -EFBIG && s->file->level)
		put_level_full(s->file->level);
	else if (!*taken && !note_full(s, &t))
		attempt_complain(&t);
	return *taken ? COPY_FAILED : attempt_result(&t);
}

/* What has a name in the directory of the file; spot_free() it. */
static enum copy_result look_at_name(struct storing *s, const char *name, struct spot *spot)
{
	return spot_look(s->run, s->file->directory, name, s->file->label, spot);
}

/* What has the name of the file becomes the object. *exists: something has. */
static enum copy_result take_named_object(struct storing *s, bool *exists)
{
	struct spot spot;
	enum copy_result rc = look_at_name(s, s->name, &spot);

	*exists = rc == COPY_GOOD && spot.object;
	if (rc != COPY_GOOD)
		return rc;
	if (*exists)
		set_stored_object(s, rxafs_hold(spot.object), &spot.attributes);
	spot_free(&spot);
	return COPY_GOOD;
}

#define NAMED_MOST 10 /* times that the name comes and goes */

/* Make the file, or find what has got the name meanwhile. */
static enum copy_result make_or_find(struct storing *s, bool *exists)
{
	enum copy_result rc = COPY_GOOD;

	*exists = false;
	for (unsigned i = 0; i < NAMED_MOST; i++) {
		bool taken;

		rc = create_object(s, &taken);
		if (!taken)
			return rc;
		rc = take_named_object(s, exists);
		if (rc != COPY_GOOD || *exists)
			return rc;
	}
	tools_error("%s: its name comes and goes; try again", s->file->label);
	return COPY_FAILED;
}

static enum copy_result report_other_kind(const struct storing *s)
{
	if (s->now.mount_point)
		return report_mount_in_way(s->run, s->file->directory, s->name, s->file->label);
	tools_error("%s: a %s has this name; remove it first", s->file->label,
		    s->now.kind == RXAFS_DIRECTORY ? "directory" : "symbolic link");
	return COPY_FAILED;
}

/* Find the object that has the name, or make it. */
static enum copy_result open_stored_object(struct storing *s)
{
	struct put_file *f = s->file;
	bool exists = f->existing;
	enum copy_result rc = COPY_GOOD;

	if (exists)
		set_stored_object(s, rxafs_hold(f->existing), &f->attributes);
	if (exists && s->now.kind == RXAFS_SYMLINK) {
		rc = remove_link(s);
		exists = false;
	}
	if (rc == COPY_GOOD && !exists)
		rc = make_or_find(s, &exists);
	if (rc != COPY_GOOD || !exists)
		return rc;
	s->set_mode = s->run->set.preserve;
	return s->now.kind == RXAFS_FILE && !s->now.mount_point ? COPY_GOOD : report_other_kind(s);
}

/* ---- data ---- */

/* Find out after an outage which data the server has lost: they are sent again. */
static enum copy_result find_stored_length(struct storing *s)
{
	enum copy_result rc = fetch_status(s);

	if (rc != COPY_GOOD)
		return rc;
	if (stored_length(s) < s->at) {
		atomic_fetch_sub(&s->run->bytes, s->at - stored_length(s));
		s->at = stored_length(s);
	}
	return COPY_GOOD;
}

static enum copy_result report_read_error(struct storing *s)
{
	s->spoiled = true;
	if (s->error) {
		tools_error("%s: cannot read the source: %s", s->file->label, strerror(s->error));
		return COPY_FAILED;
	}
	tools_error("%s: the source became shorter during the copy; try again", s->file->label);
	return COPY_FAILED;
}

/* The stored file is a mixture: another writer may have replaced or cut the earlier bytes. */
static enum copy_result report_other_writer(struct storing *s)
{
	tools_error("%s: somebody else writes to it; try again", s->file->label);
	s->spoiled = true;
	return COPY_FAILED;
}

/* The bytes before `offset` have been given: they count as sent, until a failure. */
static void count_given_bytes(struct storing *s, uint64_t offset)
{
	uint64_t bytes = offset - s->at;

	atomic_fetch_add(&s->run->bytes, bytes - s->counted);
	s->counted = bytes;
	copy_progress(s->run, s->file->label);
}

/* The next bytes of the source, read straight into the send queue. */
static int give_put_bytes(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	struct storing *s = arg;
	const uint8_t *from = s->bytes;
	int result;

	count_given_bytes(s, offset);
	if (!from) {
		result = read_slices(s->file->fd, offset, iov, count);
		s->error = result < 0 ? -result : 0;
		return result ? -ECANCELED : 0;
	}
	from += offset - s->at;
	for (unsigned i = 0; i < count; from += iov[i++].iov_len)
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
	return 0;
}

/* A part is stored. */
static enum copy_result note_stored_part(struct storing *s, uint64_t length,
					 const struct rxafs_attributes *now)
{
	/* Each call that stores makes the next version. The first one replaces everything. */
	bool alone = s->at == 0 || now->version <= s->now.version + 1;

	count_given_bytes(s, s->at + length);
	s->outage = (struct outage){0};
	s->succeeded = true;
	s->at += length;
	s->now = *now;
	return alone ? COPY_GOOD : report_other_writer(s);
}

/* The part could not be stored, and is not to be tried again. */
static enum copy_result judge_store(struct storing *s, struct attempt *t)
{
	s->unanswered = t->request.failure.origin == RXAFS_FROM_NETWORK || t->error.passing;
	s->gone = t->value == -ESTALE;
	if (note_full(s, t) || may_begin_again(s))
		return COPY_FAILED;
	attempt_complain(t);
	return attempt_result(t);
}

/* One call at s->at. Without `succeeded` afterwards, it is to be repeated from the new s->at. */
static enum copy_result store_part(struct storing *s, const uint8_t *bytes, uint64_t length,
				   bool last)
{
	struct path_watch watch = {.count = 0};
	struct rxafs_path_use use;
	const struct rxafs_store store = {
		.use = &use,
		.offset = s->at,
		.length = length,
		.size = s->at + length,
		.set = {.set = RXAFS_SET_TIME | (last && s->set_mode ? RXAFS_SET_MODE : 0),
			.time = s->mtime,
			.mode = s->mode}};
	struct attempt t = attempt_begin(s->run, CHANGE_STORE, s->file->label);
	struct rxafs_attributes now;
	int result;

	t.later = true;
	t.outage = s->outage;
	s->bytes = bytes;
	s->counted = 0;
	s->error = 0;
	s->succeeded = false;
	result = rxafs_store_stream(s->object, &t.request, &store, give_put_bytes, s, &now);
	if (result == 0)
		path_uses_add(s->run, &watch, &use, use.server.ss_family != AF_UNSPEC);
	if (result == 0)
		return note_stored_part(s, length, &now);
	atomic_fetch_sub(&s->run->bytes, s->counted);
	if (result == -ECANCELED)
		return report_read_error(s);
	if (!attempt_again(&t, result))
		return judge_store(s, &t);
	s->outage = t.outage;
	return find_stored_length(s);
}

/* Bytes of the next call, at most PART, after a hole at s->at was skipped. 0: the call only sets the length to s->at. */
static uint64_t next_part(struct storing *s)
{
	return find_data(s->file->fd, &s->at, s->size, PART, stored_length(s) <= s->at);
}

/* ---- over several paths ---- */

/* Whether the file may go over several paths. With --continue it may not: what an earlier run has stored is kept. */
static bool is_for_several_paths(const struct storing *s)
{
	return s->plain && s->at == 0 && s->size >= SCATTER_LEAST && s->run->set.paths != 1 &&
	       !s->run->set.resume;
}

/* The whole file. Without `succeeded` afterwards nothing was stored, and one path is used. */
static enum copy_result store_over_paths(struct storing *s)
{
	struct scatter file = {.run = s->run,
			       .object = s->object,
			       .label = s->file->label,
			       .fd = s->file->fd,
			       .size = s->size,
			       .set = {.set = RXAFS_SET_TIME | (s->set_mode ? RXAFS_SET_MODE : 0),
				       .time = s->mtime,
				       .mode = s->mode}};
	struct attempt t = attempt_begin(s->run, CHANGE_STORE, s->file->label);
	enum copy_result rc;
	bool stored;

	s->succeeded = false;
	s->counted = 0;
	t.later = true;
	t.outage = s->outage;
	rc = scatter_store(&file, &t, &stored);
	if (stored)
		return note_stored_part(s, s->size, &file.now);
	if (!file.unread)
		return rc == COPY_GOOD ? rc : judge_store(s, &t);
	s->error = file.error;
	return report_read_error(s);
}

bool put_file_is_unchanged(const struct put_file *f)
{
	struct stat now;

	return fstat(f->fd, &now) == 0 && now.st_size == f->st.st_size &&
	       now.st_mtim.tv_sec == f->st.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == f->st.st_mtim.tv_nsec;
}

/* Store a regular file, from s->at on. */
static enum copy_result store_file(struct storing *s)
{
	bool complete = s->created && s->size == 0 && !s->set_mode;

	assert(s->plain);
	if (is_for_several_paths(s)) {
		enum copy_result rc = store_over_paths(s);

		if (rc != COPY_GOOD)
			return rc;
		complete = s->succeeded;
	}
	while (!complete) {
		uint64_t before = s->at, length = next_part(s);
		enum copy_result rc;

		atomic_fetch_add(&s->run->bytes, s->at - before);
		rc = store_part(s, NULL, length, s->at + length >= s->size);
		if (rc != COPY_GOOD)
			return rc;
		complete = s->succeeded && s->at >= s->size;
	}
	if (s->size && stored_length(s) != s->size) {
		tools_error(
			"%s: it has %llu bytes instead of %llu: somebody else writes to it; try "
			"again",
			s->file->label, (unsigned long long)stored_length(s),
			(unsigned long long)s->size);
	} else if (put_file_is_unchanged(s->file)) {
		return COPY_GOOD;
	} else {
		tools_error("%s: the source changed during the copy; try again", s->file->label);
	}
	s->spoiled = true;
	return COPY_FAILED;
}

/* Fill the buffer from a pipe. The number of bytes, less at its end; -1 with errno. */
static ssize_t read_full(int fd, uint8_t *buffer, size_t size)
{
	size_t used = 0;

	while (used < size) {
		/* Files of /proc/sys refuse reads of 4 MiB. */
		size_t left = size - used;
		ssize_t n = read(fd, buffer + used, left < READ_MOST ? left : READ_MOST);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* Store a source that is no regular file: its length is unknown, and it can be read only once. */
static enum copy_result store_stream(struct storing *s)
{
	uint8_t *buffer = malloc(STREAM);
	enum copy_result rc = COPY_GOOD;
	ssize_t n = STREAM;

	if (!buffer) {
		tools_error("no memory");
		return COPY_STOP;
	}
	while (rc == COPY_GOOD && n == STREAM) {
		uint64_t from = s->at;

		/* A signal cannot interrupt this. */
		atomic_store(&s->run->at_once, true);
		n = read_full(s->file->fd, buffer, STREAM);
		atomic_store(&s->run->at_once, false);
		if (n < 0) {
			s->error = errno;
			rc = report_read_error(s);
			break;
		}
		do {
			s->succeeded = false;
			/* Data that the server lost of earlier calls are gone. */
			if (s->at < from) {
				tools_error("%s: the server has lost data; try again",
					    s->file->label);
				rc = COPY_FAILED;
				break;
			}
			rc = store_part(s, buffer, (uint64_t)n, n < STREAM);
		} while (rc == COPY_GOOD && !s->succeeded);
	}
	free(buffer);
	return rc;
}

/* ---- sources ---- */

/*
 * Whether reading gives as many bytes as the status says: files of /proc say 0, files of /sys 4096.
 * Neither has blocks. They are read as a stream, which also finds out what cannot be read.
 */
static bool tells_its_length(const struct put_file *f)
{
	char byte;

	if (!S_ISREG(f->st.st_mode))
		return false;
	if (f->st.st_blocks && f->st.st_size)
		return true;
	if (f->st.st_size && pread(f->fd, &byte, 1, f->st.st_size - 1) != 1)
		return false;
	return pread(f->fd, &byte, 1, f->st.st_size) == 0;
}

static enum copy_result store_contents(struct storing *s)
{
	return s->plain ? store_file(s) : store_stream(s);
}

/* ---- failures ---- */

/* Remove the object that this put has made, without a message: the reason was reported. */
static enum copy_result remove_made(struct storing *s)
{
	struct attempt t = attempt_begin(s->run, CHANGE_REMOVE, s->file->label);

	t.later = true;
	return remove_stored_name(s, &t);
}

static bool is_stored_object(const struct storing *s, const struct spot *spot)
{
	struct rxafs_fid own;

	if (!spot->object)
		return false;
	rxafs_get_fid(s->object, &own);
	return rxafs_fid_same(&own, &spot->attributes.fid);
}

/* Remove it unless something else has the name by now. */
static enum copy_result remove_own(struct storing *s)
{
	enum copy_result rc = COPY_FAILED;
	struct spot spot;

	if (s->gone || look_at_name(s, s->name, &spot) != COPY_GOOD)
		return COPY_FAILED;
	if (is_stored_object(s, &spot))
		rc = remove_made(s);
	spot_free(&spot);
	return rc;
}

/*
 * The stored file differs from its source. It gets another time, so that --continue stores it
 * again.
 */
static void mark_incomplete(struct storing *s)
{
	const struct rxafs_changes set = {.set = RXAFS_SET_TIME, .time = s->mtime ? 0 : 1};
	struct attempt t = attempt_begin(s->run, CHANGE_STATUS, s->file->label);
	struct rxafs_attributes now;

	t.later = true;
	while (attempt_again(&t, rxafs_setattr(s->object, &t.request, &set, &now)))
		;
}

/* Tell the user if a put in place has cut or changed what was there. `old` are the attributes before. */
static void tell_loss(struct storing *s, const struct rxafs_attributes *old)
{
	struct attempt t;
	bool known = !s->unanswered && try_status(s, &t) == COPY_GOOD;

	if (known && s->now.version == old->version)
		return;
	if (known)
		tools_error("%s: its old contents are gone; it has %llu bytes of the new ones",
			    s->file->label, (unsigned long long)stored_length(s));
	else
		tools_error("%s: its old contents may be gone", s->file->label);
}

/* ---- one file ---- */

/* Write to the object itself, which is new or cannot be replaced. */
static enum copy_result put_in_place(struct storing *s)
{
	const struct rxafs_attributes old = s->now;
	bool loses = !s->created && s->at == 0 && old.stat.st_size;
	enum copy_result rc = store_contents(s);
	bool worthless = s->spoiled || (s->created && s->at == 0);

	if (rc == COPY_GOOD || (rc == COPY_FAILED && may_begin_again(s)))
		return rc;
	/* An interrupted put leaves its part for --continue. */
	if (worthless && !s->unanswered && !run_interrupted(s->run) &&
	    (!s->created || remove_own(s) != COPY_GOOD) && s->spoiled)
		mark_incomplete(s);
	if (loses)
		tell_loss(s, &old);
	return rc;
}

/* Whether the user may make, rename and write files in the directory. */
static bool has_rights_to_replace(struct storing *s)
{
	const uint32_t needed = RXAFS_INSERT | RXAFS_DELETE | RXAFS_WRITE;
	struct rxafs_request request = session_request(s->run);
	uint32_t own;

	return rxafs_get_rights(s->file->directory, &request, &own, NULL) == 0 &&
	       (own & needed) == needed;
}

/*
 * Whether something else can take the place of the file: not if that is noticed elsewhere. An empty
 * file may be one that another put has just made, and writes to.
 */
static bool is_replaceable(struct storing *s)
{
	return !s->created && !s->file->by_link && s->at == 0 && s->now.stat.st_nlink == 1 &&
	       !s->now.locks && s->now.stat.st_mode & 0200 && has_rights_to_replace(s);
}

/* KiB that may be stored, as far as the server tells it. */
static bool ask_room(struct storing *s, uint64_t *kib)
{
	struct rxafs_request request = session_request(s->run);
	struct rxafs_volume volume;

	if (rxafs_examine(s->file->directory, &request, &volume) < 0)
		return false;
	*kib = volume.free;
	if (volume.quota && volume.quota < volume.used + *kib)
		*kib = volume.quota > volume.used ? volume.quota - volume.used : 0;
	return true;
}

/*
 * Whether the volume has room for the new file in place of the old one, but not beside it. `full`:
 * there was none beside it.
 */
static bool fits_only_in_place(struct storing *s, bool full)
{
	uint64_t size = s->size / 1024, old = stored_length(s) / 1024, kib;

	if (!s->plain || !ask_room(s, &kib))
		return false;
	return (full || size > kib) && size <= kib + old;
}

/*
 * A version of the source that no other machine has. 0: it cannot be known. The host is told by its
 * name and, since containers have names of their choice, by the namespace whose claims it sees.
 */
static uint64_t version_of(const struct put_file *f)
{
	const struct stat *st = &f->st;
	struct rxafs_fid directory;
	uint64_t version = 0;
	struct utsname host;
	struct stat net;

	if (uname(&host) < 0 || stat("/proc/self/ns/net", &net) < 0)
		return 0;
	rxafs_get_fid(f->directory, &directory);
	for (const char *p = host.nodename; *p; p++)
		version = part_version(version, (unsigned char)*p);
	version = part_version(version, net.st_ino);
	version = part_version(version, st->st_dev);
	version = part_version(version, st->st_ino);
	version = part_version(version, (uint64_t)st->st_size);
	version = part_version(version, (uint64_t)st->st_mtim.tv_sec);
	version = part_version(version, (uint64_t)st->st_mtim.tv_nsec);
	version = part_version(version, (uint64_t)directory.volume << 32 | directory.vnode);
	return part_version(version, directory.unique);
}

/* Whether an earlier run can have left the object: it is a beginning of the source. */
static bool is_part(const struct storing *s, const struct spot *spot)
{
	const struct rxafs_attributes *a = &spot->attributes;
	uint64_t length = (uint64_t)a->stat.st_size;

	return a->kind == RXAFS_FILE && a->stat.st_nlink == 1 && a->stat.st_mtime == s->mtime &&
	       length <= s->size &&
	       is_beginning_of(s->run, spot->object, length, s->file->fd, s->file->label);
}

/*
 * Continue or replace what has the name of the part. *taken stays true if something has the name
 * that afscp has not left there.
 */
static enum copy_result use_part(struct storing *s, const struct spot *spot, bool *taken)
{
	enum copy_result rc;

	if (spot->object && !is_part(s, spot)) {
		if (!run_interrupted(s->run))
			tools_error("%s: \"%s\" beside it is not its beginning: not used, and left "
				    "as it is",
				    s->file->label, s->name);
		return COPY_GOOD;
	}
	if (!spot->object || !s->run->set.resume) {
		/* Another name does as well if the part has changed meanwhile. */
		if (spot->object && remove_made(s) != COPY_GOOD)
			return COPY_GOOD;
		rc = create_object(s, taken);
		return *taken ? COPY_GOOD : rc;
	}
	*taken = false;
	set_stored_object(s, rxafs_hold(spot->object), &spot->attributes);
	s->at = stored_length(s);
	s->set_mode = true;
	atomic_fetch_add(&s->run->left_out, s->at);
	return COPY_GOOD;
}

static enum copy_result take_part(struct storing *s, bool *taken)
{
	struct spot spot;
	enum copy_result rc = look_at_name(s, s->name, &spot);

	if (rc != COPY_GOOD)
		return rc;
	rc = use_part(s, &spot, taken);
	spot_free(&spot);
	return rc;
}

/*
 * Make the part. It has the name of a version if no other process can write to that part now, or
 * rename it. Otherwise it has a random name. *claim: to be closed at the end, or -1.
 */
static enum copy_result create_part(struct storing *s, char part[PART_NAME], int *claim)
{
	uint64_t version = s->plain ? version_of(s->file) : 0;
	enum copy_result rc;
	bool taken = true;

	s->name = part;
	*claim = version ? part_claim(version) : -1;
	if (*claim >= 0) {
		part_name(part, s->file->name, version);
		rc = create_object(s, &taken);
		if (taken)
			rc = take_part(s, &taken);
		if (!taken || rc != COPY_GOOD)
			return rc;
	}
	part_name_once(part, s->file->name);
	rc = create_object(s, &taken);
	if (taken)
		tools_error("%s: cannot make \"%s\" beside it: it exists", s->file->label, part);
	return rc;
}

/* Whether what has the name of the file now is a part of the same source, not complete yet. */
static enum copy_result look_at_successor(struct storing *s)
{
	struct rxafs_request request = session_request(s->run);
	struct spot spot;
	enum copy_result rc;
	bool part;

	/* The names that are known cannot be right. */
	rxafs_forget(s->file->directory, &request);
	rc = look_at_name(s, s->file->name, &spot);
	if (rc != COPY_GOOD)
		return rc;
	part = spot.object && spot.attributes.kind == RXAFS_FILE &&
	       spot.attributes.stat.st_mtime == s->mtime &&
	       (uint64_t)spot.attributes.stat.st_size < s->size;
	spot_free(&spot);
	if (!part)
		return COPY_GOOD;
	tools_error("%s: another command stores the same file, and is not ready; try again",
		    s->file->label);
	return COPY_FAILED;
}

/*
 * A file is renamed by its name, which a command on a machine that cannot be told from this one may
 * have given to its own part meanwhile. If the object is still there it has been renamed: the part
 * was its only name.
 */
static enum copy_result check_renamed(struct storing *s)
{
	uint64_t stored = s->now.version;
	struct attempt t;
	enum copy_result rc = try_status(s, &t);

	if (rc == COPY_GOOD)
		return s->now.version == stored ? rc : report_other_writer(s);
	if (s->gone)
		return look_at_successor(s);
	attempt_complain(&t);
	return rc;
}

static enum copy_result rename_part(struct storing *s)
{
	struct attempt t = attempt_begin(s->run, CHANGE_RENAME, s->file->label);

	while (attempt_again(&t, rxafs_rename(s->file->directory, &t.request, s->name,
					      s->file->directory, s->file->name, false)))
		;
	return t.value < 0 ? attempt_result(&t) : check_renamed(s);
}

/* Make the part, fill it, and let it take the place of the file. */
static enum copy_result replace_by_part(struct storing *new)
{
	char part[PART_NAME];
	int claim;
	enum copy_result rc = create_part(new, part, &claim);

	if (rc == COPY_GOOD)
		rc = store_contents(new);
	if (rc == COPY_GOOD)
		rc = rename_part(new);
	/* An interrupted part stays for --continue. */
	if (rc != COPY_GOOD && !new->unanswered && !new->gone && !run_interrupted(new->run) &&
	    new->object)
		remove_own(new);
	if (claim >= 0)
		close(claim);
	return rc;
}

/* Store the contents as another file, and let it take the place of the file. */
static enum copy_result replace_object(struct storing *s)
{
	struct storing new = *s;
	enum copy_result rc;

	assert(!s->created && s->at == 0);
	if (s->size > PART && fits_only_in_place(s, false))
		return put_in_place(s);
	new.object = NULL;
	new.hold = true;
	if (!s->run->set.preserve)
		new.mode = s->now.stat.st_mode & 0777;
	rc = replace_by_part(&new);
	if (rc == COPY_GOOD) {
		set_stored_object(s, new.object, &new.now);
		return rc;
	}
	if (new.object)
		rxafs_release(new.object);
	if (!new.full.value)
		return rc;
	if (fits_only_in_place(s, true))
		return put_in_place(s);
	attempt_complain(&new.full);
	return attempt_result(&new.full);
}

/* --continue: true if the file is stored already. Otherwise s->at becomes the length that is. */
static bool find_resume_point(struct storing *s)
{
	uint64_t length = stored_length(s);

	assert(s->plain);
	if (!s->run->set.resume || s->now.stat.st_mtime != s->mtime || length > s->size)
		return false;
	if (length == s->size && !s->created) {
		copy_skip(s->run, s->file->label, length);
		return true;
	}
	if (is_beginning_of(s->run, s->object, length, s->file->fd, s->file->label)) {
		/* These bytes do not count as copied. */
		atomic_fetch_add(&s->run->left_out, length);
		s->at = length;
	}
	return false;
}

/* Store the contents in the object that has the name, or in place of it. */
static enum copy_result store_whole_object(struct storing *s)
{
	enum copy_result rc;

	if (s->plain && find_resume_point(s))
		return COPY_GOOD;
	rc = is_replaceable(s) ? replace_object(s) : put_in_place(s);
	if (rc == COPY_GOOD)
		copy_done(s->run, s->file->label, stored_length(s));
	return rc;
}

/* *again: the file was not stored, and may be once more; without a message. NULL: it may not. */
static enum copy_result put_once(struct run *run, struct put_file *f, bool *again)
{
	bool regular = S_ISREG(f->st.st_mode), plain = tells_its_length(f), linked;
	struct storing s = {.run = run,
			    .file = f,
			    .name = f->name,
			    .plain = plain,
			    .once = !again,
			    .size = plain ? (uint64_t)f->st.st_size : 0,
			    .mtime = time_in_afs(regular ? f->st.st_mtime : time(NULL)),
			    .mode = put_mode(run, regular ? f->st.st_mode : 0666)};
	enum copy_result rc;

	rc = open_stored_object(&s);
	linked = rc == COPY_GOOD && s.now.stat.st_nlink > 1;
	/* Another thread may be writing to it by another of its names. */
	if (linked) {
		pthread_mutex_lock(&run->linked_lock);
		rc = fetch_status(&s);
	}
	if (rc == COPY_GOOD)
		rc = store_whole_object(&s);
	if (linked)
		pthread_mutex_unlock(&run->linked_lock);
	if (again)
		*again = rc == COPY_FAILED && may_begin_again(&s);
	if (again && *again)
		atomic_fetch_sub(&run->bytes, s.at);
	set_stored_object(&s, NULL, NULL);
	return rc;
}

enum copy_result put_file(struct run *run, struct put_file *f)
{
	bool again;
	enum copy_result rc = put_once(run, f, &again);

	if (!again)
		return rc;
	if (f->existing)
		rxafs_release(f->existing);
	f->existing = NULL;
	return put_once(run, f, NULL);
}

static enum copy_result put_file_work(struct run *run, void *arg)
{
	struct put_file *f = arg;
	enum copy_result rc = put_file(run, f);

	if (f->level)
		put_level_leave(run, f->level, false);
	f->level = NULL;
	put_file_drop(f);
	return rc;
}

const struct job_kind put_file_job = {.work = put_file_work, .drop = put_file_drop};
