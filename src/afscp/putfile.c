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

#include "afs/client/data.h"
#include "program/message.h"
#include "afscp/local.h"
#include "afscp/put.h"

#define PART	   (64u << 20) /* bytes of a call */
#define STREAM	   (8u << 20) /* bytes of a call that come from a pipe, and are kept until it ends */
#define READ_MOST  (1u << 20) /* of a pipe at a time */
#define HOLE_LEAST (1u << 20) /* holes that are worth another call */

/* A file that is being stored. */
struct storing {
	struct copy *copy;
	struct put_file *file;
	const char *name; /* in the directory: the name of the file, or of a part */
	struct afs_object object;
	uint64_t at, size; /* stored so far; of the local file */
	uint32_t mtime;
	bool plain;	/* the source has as many bytes as its status says, and can be read again */
	bool created;	/* for this copy */
	bool set_mode;	/* with the last call */
	bool succeeded; /* the latest call */
	bool spoiled;	/* the source has changed: what is stored is worthless */
	bool unanswered; /* the error of the latest call is that there is no answer */
	bool gone;	 /* it is that somebody else has removed the object */
	bool once;	 /* if that happens to a new file, the copy fails */
	bool hold;	 /* a full volume is not reported, but noted: */
	bool full;
	struct afs_error error; /* then */
	mode_t mode;
	struct outage outage;
	uint64_t counted; /* bytes of the call in progress that the run has counted */
};

static void put_file_drop(void *arg)
{
	struct put_file *f = arg;

	/* There is no client here, so the directory is not completed. */
	if (f->level)
		put_level_leave(NULL, f->level);
	close(f->fd);
	free(f->name);
	free(f->label);
	free(f);
}

struct put_file *put_file_new(int fd, const AFSFid *dir, const char *name, const char *label,
			      struct put_level *level)
{
	struct put_file *f = calloc(1, sizeof(*f));

	if (f) {
		f->fd = fd;
		f->dir = *dir;
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

mode_t put_mode(const struct copy *copy, mode_t mode)
{
	return copy->set->preserve ? mode & 0777 : mode & 0777 & ~copy->run->umask;
}

uint32_t put_time(time_t seconds)
{
	return seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
}

static void count_sent_bytes(void *arg, uint64_t bytes)
{
	struct storing *s = arg;

	atomic_fetch_add(&s->copy->run->bytes, bytes - s->counted);
	s->counted = bytes;
	copy_progress(s->copy->run, s->file->label);
}

/* Whether the volume is full, and the error is kept instead of reported. */
static bool note_full(struct storing *s, const struct afs_error *error)
{
	if (!s->hold || (error->number != EDQUOT && error->number != ENOSPC))
		return false;
	s->full = true;
	s->error = *error;
	return true;
}

/* ---- the object ---- */

enum copy_result put_spare_mount(struct copy *copy, const AFSFid *link, const char *label)
{
	struct outage outage = {0};
	AFSFetchStatus status;
	struct afs_error error;
	char text[AFSPATHMAX + 1];

	copy_fresh(copy);
	while (afs_client_status(copy->client, link, label, &status, &error) < 0 ||
	       (status.FileType == AFS_TYPE_SYMLINK &&
		afs_client_readlink(copy->client, link, label, text, &error) < 0)) {
		if (change_retry(copy, &outage, &error, NULL))
			continue;
		copy_complain(copy, &error);
		return copy_judge(copy, &error);
	}
	if (status.FileType != AFS_TYPE_SYMLINK || !afs_is_mount_point(status.UnixModeBits, text))
		return COPY_GOOD;
	tools_error("%s: a mount point of the volume %.*s has this name; remove it first", label,
		    (int)strnlen(text, 66) - 2, text + 1);
	return COPY_FAILED;
}

/* Remove a symbolic link that has the name: within a tree no link is followed. */
static enum copy_result remove_link(struct storing *s)
{
	enum copy_result rc = put_spare_mount(s->copy, &s->object.fid, s->file->label);
	struct change c = {.op = CHANGE_REMOVE,
			   .label = s->file->label,
			   .dir = s->file->dir,
			   .name = s->file->name};

	if (rc != COPY_GOOD)
		return rc;
	s->file->exists = false;
	return change_make(s->copy, &c);
}

/* Status of the object. Other results than COPY_GOOD with *error, without a message. */
static enum copy_result try_status(struct storing *s, struct afs_error *error)
{
	copy_fresh(s->copy);
	while (afs_client_status(s->copy->client, &s->object.fid, s->file->label, &s->object.status,
				 error) < 0)
		if (!change_retry(s->copy, &s->outage, error, NULL))
			return copy_judge(s->copy, error);
	return COPY_GOOD;
}

/* Get the status of the object, with a message if that fails. */
static enum copy_result fetch_status(struct storing *s)
{
	struct afs_error error;
	enum copy_result rc = try_status(s, &error);

	if (rc != COPY_GOOD)
		copy_complain(s->copy, &error);
	return rc;
}

/*
 * Look at the object that had the name when its directory was read. It may be gone, if it was
 * replaced meanwhile.
 */
static enum copy_result look_at_existing(struct storing *s)
{
	struct afs_error error;
	enum copy_result rc = try_status(s, &error);

	if (rc == COPY_GOOD)
		return s->object.status.FileType == AFS_TYPE_SYMLINK ? remove_link(s) : rc;
	if (!change_is_gone(&error)) {
		copy_complain(s->copy, &error);
		return rc;
	}
	s->file->exists = false;
	return COPY_GOOD;
}

/* Make the file; *taken: something else has the name. */
static enum copy_result create_object(struct storing *s, bool *taken)
{
	struct change c = {.op = CHANGE_CREATE,
			   .label = s->file->label,
			   .dir = s->file->dir,
			   .name = s->name,
			   /* It must be writable until it is complete. */
			   .how = change_status(s->mtime, s->mode | 0200)};
	struct afs_error error;
	enum copy_result rc = change_try(s->copy, &c, &error);

	*taken = rc != COPY_GOOD && error.number == EEXIST;
	if (rc == COPY_GOOD)
		s->object = c.made;
	else if (error.number == EFBIG && s->file->level)
		put_level_full(s->file->level);
	else if (!*taken && !note_full(s, &error))
		change_complain(s->copy, c.op, &error);
	s->created = rc == COPY_GOOD;
	s->set_mode = !(s->mode & 0200);
	return rc;
}

/* Look at the object that has a name in the directory of the file. */
static enum copy_result look_at_name(struct storing *s, const char *name, struct target *t)
{
	snprintf(t->label, sizeof(t->label), "%s", s->file->label);
	return target_look(s->copy, &s->file->dir, name, t);
}

/* Find the object that has the name, or make it. */
static enum copy_result open_stored_object(struct storing *s)
{
	struct target t;
	enum copy_result rc;
	bool taken = false;

	s->object.fid = s->file->existing;
	if (s->file->exists) {
		rc = look_at_existing(s);
		if (rc != COPY_GOOD)
			return rc;
	}
	if (!s->file->exists) {
		rc = create_object(s, &taken);
		if (!taken)
			return rc;
		rc = look_at_name(s, s->name, &t);
		if (rc != COPY_GOOD)
			return rc;
		s->object = t.object;
	}
	s->set_mode = s->copy->set->preserve;
	if (s->object.status.FileType == AFS_TYPE_FILE)
		return COPY_GOOD;
	tools_error("%s: a %s has this name; remove it first", s->file->label,
		    s->object.status.FileType == AFS_TYPE_DIR ? "directory" : "symbolic link");
	return COPY_FAILED;
}

/* ---- data ---- */

/* Find out after an outage which data the server has lost: they are sent again. */
static enum copy_result find_stored_length(struct storing *s)
{
	enum copy_result rc = fetch_status(s);
	uint64_t length = afs_status_length(&s->object.status);

	if (rc != COPY_GOOD)
		return rc;
	if (length < s->at) {
		atomic_fetch_sub(&s->copy->run->bytes, s->at - length);
		s->at = length;
	}
	return COPY_GOOD;
}

static enum copy_result report_read_error(struct storing *s)
{
	s->spoiled = true;
	if (errno) {
		tools_error("%s: cannot read the source: %s", s->file->label, strerror(errno));
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

/*
 * Another put has replaced the new file while this one stored its first bytes: the later one wins.
 */
static bool may_begin_again(const struct storing *s)
{
	return s->gone && s->created && s->plain && !s->once && s->name == s->file->name;
}

/* One StoreData64 at s->at, with retries. */
static enum copy_result store_part(struct storing *s, const uint8_t *data, uint64_t length,
				   bool last)
{
	mode_t mode = last && s->set_mode ? s->mode : (mode_t)-1;
	struct afs_store store = {.fid = s->object.fid,
				  .how = change_status(s->mtime, mode),
				  .offset = s->at,
				  .length = length,
				  .data = data,
				  .fd = s->file->fd,
				  .sent = count_sent_bytes,
				  .arg = s};
	struct afs_error error;
	int rc;

	s->counted = 0;
	s->succeeded = false;
	copy_fresh(s->copy);
	rc = afs_client_store(s->copy->client, &store, s->file->label, &error);
	if (rc == 0) {
		/*
		 * Each call that stores makes the next version. The first one replaces everything.
		 */
		bool alone = s->at == 0 || afs_status_version(&store.status) <=
						   afs_status_version(&s->object.status) + 1;

		s->outage = (struct outage){0};
		s->succeeded = true;
		s->at += length;
		s->object.status = store.status;
		return alone ? COPY_GOOD : report_other_writer(s);
	}
	atomic_fetch_sub(&s->copy->run->bytes, s->counted);
	if (rc > 0)
		return report_read_error(s);
	if (change_retry(s->copy, &s->outage, &error, NULL))
		return find_stored_length(s);
	s->unanswered = error.origin != RXW_ORIGIN_PEER || error.remedy != AFS_REMEDY_NONE;
	s->gone = change_is_gone(&error);
	if (note_full(s, &error) || may_begin_again(s))
		return COPY_FAILED;
	change_complain(s->copy, CHANGE_STORE, &error);
	return copy_judge(s->copy, &error);
}

/* Bytes from `at` on, where there are data, to the next hole that is worth it; at most `most`. */
static uint64_t data_length(int fd, uint64_t at, uint64_t most, uint64_t size)
{
	off_t hole = lseek(fd, (off_t)at, SEEK_HOLE), data;

	while (hole > 0 && (uint64_t)hole - at < most) {
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			break;
		if ((data < 0 ? size : (uint64_t)data) - (uint64_t)hole >= HOLE_LEAST)
			return (uint64_t)hole - at;
		hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
	}
	return most;
}

/*
 * Bytes of the next call, at most PART, after a hole at s->at was skipped. 0: the call only sets
 * the length to s->at. That comes before a hole where the file has older data, which would show
 * there.
 */
static uint64_t next_part(struct storing *s)
{
	bool clear = afs_status_length(&s->object.status) <= s->at;
	uint64_t left = s->size - s->at;
	off_t data = lseek(s->file->fd, (off_t)s->at, SEEK_DATA);

	assert(s->at <= s->size);
	if (data < 0 && errno == ENXIO) {
		/* The rest is a hole, which the length makes. */
		if (clear)
			s->at = s->size;
		return 0;
	}
	if (data >= 0 && (uint64_t)data - s->at >= HOLE_LEAST && (uint64_t)data < s->size) {
		if (!clear)
			return 0;
		s->at = (uint64_t)data;
		left = s->size - s->at;
	}
	left = left < PART ? left : PART;
	return data < 0 ? left : data_length(s->file->fd, s->at, left, s->size);
}

/* Whether the file is as it was at the start. */
static bool is_source_unchanged(const struct put_file *f)
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
	while (!complete) {
		uint64_t before = s->at, length = next_part(s);
		enum copy_result rc;

		atomic_fetch_add(&s->copy->run->bytes, s->at - before);
		rc = store_part(s, NULL, length, s->at + length >= s->size);
		if (rc != COPY_GOOD)
			return rc;
		complete = s->succeeded && s->at >= s->size;
	}
	if (s->size && afs_status_length(&s->object.status) != s->size) {
		tools_error(
			"%s: it has %llu bytes instead of %llu: somebody else writes to it; try "
			"again",
			s->file->label, (unsigned long long)afs_status_length(&s->object.status),
			(unsigned long long)s->size);
	} else if (is_source_unchanged(s->file)) {
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
		atomic_store(&s->copy->run->at_once, true);
		n = read_full(s->file->fd, buffer, STREAM);
		atomic_store(&s->copy->run->at_once, false);
		if (n < 0) {
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
	struct change c = {
		.op = CHANGE_REMOVE, .label = s->file->label, .dir = s->file->dir, .name = s->name};
	struct afs_error error;

	return change_try(s->copy, &c, &error);
}

/* Remove it unless something else has the name by now. */
static enum copy_result remove_own(struct storing *s)
{
	const AFSFid *own = &s->object.fid;
	struct target t;

	if (s->gone || look_at_name(s, s->name, &t) != COPY_GOOD || !t.exists ||
	    t.object.fid.Vnode != own->Vnode || t.object.fid.Unique != own->Unique)
		return COPY_FAILED;
	return remove_made(s);
}

/*
 * The stored file differs from its source. It gets another time, so that --continue stores it
 * again.
 */
static void mark_incomplete(struct storing *s)
{
	struct change c = {.op = CHANGE_STATUS,
			   .label = s->file->label,
			   .fid = s->object.fid,
			   .how = change_status(s->mtime ? 0 : 1, (mode_t)-1)};
	struct afs_error error;

	change_try(s->copy, &c, &error);
}

/* Tell the user if a put in place has cut or changed what was there. `old` is the status before. */
static void tell_loss(struct storing *s, const AFSFetchStatus *old)
{
	AFSFetchStatus now = {0};
	struct afs_error error;
	bool known = !s->unanswered && afs_client_status(s->copy->client, &s->object.fid,
							 s->file->label, &now, &error) == 0;

	if (known && afs_status_version(&now) == afs_status_version(old))
		return;
	if (known)
		tools_error("%s: its old contents are gone; it has %llu bytes of the new ones",
			    s->file->label, (unsigned long long)afs_status_length(&now));
	else
		tools_error("%s: its old contents may be gone", s->file->label);
}

/* ---- one file ---- */

/* Write to the object itself, which is new or cannot be replaced. */
static enum copy_result put_in_place(struct storing *s)
{
	const AFSFetchStatus old = s->object.status;
	bool loses = !s->created && s->at == 0 && afs_status_length(&old);
	enum copy_result rc = store_contents(s);
	bool worthless = s->spoiled || (s->created && s->at == 0);

	if (rc == COPY_GOOD)
		return rc;
	/* An interrupted put leaves its part for --continue. */
	if (worthless && !s->unanswered && !copy_interrupted(s->copy) &&
	    (!s->created || remove_own(s) != COPY_GOOD) && s->spoiled)
		mark_incomplete(s);
	if (loses)
		tell_loss(s, &old);
	return rc;
}

/*
 * Whether something else can take the place of the file: not if that is noticed elsewhere. An empty
 * file may be one that another put has just made, and writes to.
 */
static bool is_replaceable(const struct storing *s)
{
	const uint32_t rights = AFS_RIGHT_INSERT | AFS_RIGHT_DELETE | AFS_RIGHT_WRITE;
	const AFSFetchStatus *status = &s->object.status;

	return !s->created && !s->file->by_link && s->at == 0 && status->LinkCount == 1 &&
	       status->lockCount == 0 && (status->CallerAccess & rights) == rights &&
	       status->UnixModeBits & 0200;
}

/* KiB that may be stored, as far as the server tells it. */
static bool ask_room(struct storing *s, uint64_t *kib)
{
	struct afs_space space;
	struct afs_error error;

	if (afs_client_space(s->copy->client, s->object.fid.Volume, s->file->label, &space,
			     &error) < 0)
		return false;
	*kib = space.free;
	if (space.quota && space.quota < space.used + *kib)
		*kib = space.quota > space.used ? space.quota - space.used : 0;
	return true;
}

/*
 * Whether the volume has room for the new file in place of the old one, but not beside it. `full`:
 * there was none beside it.
 */
static bool fits_only_in_place(struct storing *s, bool full)
{
	uint64_t size = s->size / 1024, old = afs_status_length(&s->object.status) / 1024, kib;

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
	uint64_t version = 0;
	struct utsname host;
	struct stat net;

	if (uname(&host) < 0 || stat("/proc/self/ns/net", &net) < 0)
		return 0;
	for (const char *p = host.nodename; *p; p++)
		version = part_version(version, (unsigned char)*p);
	version = part_version(version, net.st_ino);
	version = part_version(version, st->st_dev);
	version = part_version(version, st->st_ino);
	version = part_version(version, (uint64_t)st->st_size);
	version = part_version(version, (uint64_t)st->st_mtim.tv_sec);
	version = part_version(version, (uint64_t)st->st_mtim.tv_nsec);
	version = part_version(version, (uint64_t)f->dir.Volume << 32 | f->dir.Vnode);
	return part_version(version, f->dir.Unique);
}

/* Whether an earlier run can have left the object: it is a beginning of the source. */
static bool is_part(const struct storing *s, const struct afs_object *object)
{
	const AFSFetchStatus *status = &object->status;
	uint64_t length = afs_status_length(status);

	return status->FileType == AFS_TYPE_FILE && status->LinkCount == 1 &&
	       status->ClientModTime == s->mtime && length <= s->size &&
	       beginning_matches(s->copy, object, length, s->file->fd, s->file->label);
}

/*
 * Continue or replace what has the name of the part. *taken stays true if something has the name
 * that afscp has not left there.
 */
static enum copy_result take_part(struct storing *s, bool *taken)
{
	struct target t;
	enum copy_result rc;

	rc = look_at_name(s, s->name, &t);
	if (rc != COPY_GOOD)
		return rc;
	if (t.exists && !is_part(s, &t.object)) {
		if (!copy_interrupted(s->copy))
			tools_error("%s: \"%s\" beside it is not its beginning: not used, and left "
				    "as it is",
				    s->file->label, s->name);
		return COPY_GOOD;
	}
	if (!t.exists || !s->copy->set->resume) {
		/* Another name does as well if the part has changed meanwhile. */
		if (t.exists && remove_made(s) != COPY_GOOD)
			return COPY_GOOD;
		rc = create_object(s, taken);
		return *taken ? COPY_GOOD : rc;
	}
	*taken = false;
	s->object = t.object;
	s->at = afs_status_length(&t.object.status);
	s->set_mode = true;
	atomic_fetch_add(&s->copy->run->left_out, s->at);
	return COPY_GOOD;
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
	struct target t;
	enum copy_result rc;

	rc = look_at_name(s, s->file->name, &t);
	if (rc != COPY_GOOD || !t.exists || t.object.status.FileType != AFS_TYPE_FILE ||
	    t.object.status.ClientModTime != s->mtime ||
	    afs_status_length(&t.object.status) >= s->size)
		return rc;
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
	uint64_t stored = afs_status_version(&s->object.status);
	struct afs_error error;
	enum copy_result rc = try_status(s, &error);

	if (rc == COPY_GOOD)
		return afs_status_version(&s->object.status) == stored ? rc
								       : report_other_writer(s);
	s->gone = change_is_gone(&error);
	if (s->gone)
		return look_at_successor(s);
	copy_complain(s->copy, &error);
	return rc;
}

static enum copy_result rename_part(struct storing *s)
{
	struct change c = {.op = CHANGE_RENAME,
			   .label = s->file->label,
			   .dir = s->file->dir,
			   .name = s->name,
			   .new_dir = s->file->dir,
			   .new_name = s->file->name,
			   .fid = s->object.fid};
	enum copy_result rc = change_make(s->copy, &c);

	return rc == COPY_GOOD ? check_renamed(s) : rc;
}

/* Store the contents as another file, and let it take the place of the file. */
static enum copy_result replace_object(struct storing *s)
{
	struct storing new = *s;
	char part[PART_NAME];
	enum copy_result rc;
	int claim;

	assert(!s->created && s->at == 0);
	if (s->size > PART && fits_only_in_place(s, false))
		return put_in_place(s);
	new.object = (struct afs_object){0};
	new.hold = true;
	if (!s->copy->set->preserve)
		new.mode = s->object.status.UnixModeBits & 0777;
	if ((rc = create_part(&new, part, &claim)) == COPY_GOOD &&
	    (rc = store_contents(&new)) == COPY_GOOD && (rc = rename_part(&new)) == COPY_GOOD)
		s->object = new.object;
	/* An interrupted part stays for --continue. */
	else if (!new.unanswered && !new.gone && !copy_interrupted(s->copy) && new.object.fid.Vnode)
		remove_own(&new);
	if (claim >= 0)
		close(claim);
	if (rc == COPY_GOOD || !new.full)
		return rc;
	if (fits_only_in_place(s, true))
		return put_in_place(s);
	change_complain(s->copy, CHANGE_STORE, &new.error);
	return copy_judge(s->copy, &new.error);
}

/* --continue: true if the file is stored already. Otherwise s->at becomes the length that is. */
static bool find_resume_point(struct storing *s)
{
	const AFSFetchStatus *status = &s->object.status;
	uint64_t length = afs_status_length(status);

	assert(s->plain);
	if (!s->copy->set->resume || status->ClientModTime != s->mtime || length > s->size)
		return false;
	if (length == s->size && s->file->exists) {
		copy_skip(s->copy->run, s->file->label, length);
		return true;
	}
	if (beginning_matches(s->copy, &s->object, length, s->file->fd, s->file->label)) {
		/* These bytes do not count as copied. */
		atomic_fetch_add(&s->copy->run->left_out, length);
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
		copy_done(s->copy->run, s->file->label, afs_status_length(&s->object.status));
	return rc;
}

/* *again: the file was not stored, and may be once more; without a message. NULL: it may not. */
static enum copy_result put_once(struct copy *copy, struct put_file *f, bool *again)
{
	bool regular = S_ISREG(f->st.st_mode), plain = tells_its_length(f), linked;
	struct storing s = {.copy = copy,
			    .file = f,
			    .name = f->name,
			    .plain = plain,
			    .once = !again,
			    .size = plain ? (uint64_t)f->st.st_size : 0,
			    .mtime = put_time(regular ? f->st.st_mtime : time(NULL)),
			    .mode = put_mode(copy, regular ? f->st.st_mode : 0666)};
	enum copy_result rc;

	rc = open_stored_object(&s);
	linked = rc == COPY_GOOD && s.object.status.LinkCount > 1;
	/* Another thread may be writing to it by another of its names. */
	if (linked) {
		pthread_mutex_lock(&copy->run->linked_lock);
		rc = fetch_status(&s);
	}
	if (rc == COPY_GOOD)
		rc = store_whole_object(&s);
	if (linked)
		pthread_mutex_unlock(&copy->run->linked_lock);
	if (again)
		*again = rc == COPY_FAILED && may_begin_again(&s);
	return rc;
}

static enum copy_result put_file(struct copy *copy, struct put_file *f)
{
	bool again;
	enum copy_result rc = put_once(copy, f, &again);

	if (!again)
		return rc;
	f->exists = false;
	return put_once(copy, f, NULL);
}

static enum copy_result put_file_work(struct copy *copy, void *arg)
{
	struct put_file *f = arg;
	enum copy_result rc = put_file(copy, f);

	if (f->level)
		put_level_leave(copy, f->level);
	f->level = NULL;
	put_file_drop(f);
	return rc;
}

const struct pool_kind put_file_job = {.work = put_file_work, .drop = put_file_drop};
