/* SPDX-License-Identifier: BSD-2-Clause */
/* Contents of one file, from or to AFS, as streams past the cache. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rxafs/stream.h>

#include "afscp/contents.h"
#include "afscp/local.h"
#include "afscp/scatter.h"
#include "program/message.h"

#define CALL	 (64u << 20) /* bytes of a call that stores */
#define WHOLE	 (1u << 20)  /* a new file of up to this length is one call, and needs no part */
#define BUFFER	 (4u << 20)  /* from AFS to AFS, at a time */
#define RESUME	 (16u << 20) /* files from this length on are continued by a later run */
#define EDGE	 65536u	     /* bytes at the beginning and at the end of a part that are compared */
#define RESTARTS 3	     /* of a file that changes while it is read */
#define CHANGED	 (-ENODATA)  /* the source has changed */
#define UNSIZED	 (64u << 20) /* bytes of a file whose status does not tell its length */

static enum copy_result no_memory(void)
{
	tools_error("no memory");
	return COPY_STOP;
}

/* ---- sources ---- */

/* A file that is read: a local one by its descriptor, one in AFS by its object. */
struct origin {
	struct transfer *t;
	int fd;
	struct stat st;
	rxafs_object *object;
	uint64_t size, version;
	int64_t mtime;
	mode_t mode;
	uint8_t *buffer; /* of a source in AFS: bytes from `at` on */
	uint64_t at;
	bool whole; /* buffer has all of it */
};

static void close_origin(struct origin *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->object)
		rxafs_release(o->object);
	free(o->buffer);
}

static enum copy_result report_gone(struct transfer *t)
{
	t->vanished = true;
	return COPY_GOOD;
}

/* Files of /proc have contents, though their length is 0. They are read to their end. */
static enum copy_result read_unsized(struct origin *o)
{
	struct transfer *t = o->t;
	uint64_t room = 0;
	ssize_t n;

	for (;; o->size += (uint64_t)n) {
		if (o->size == room) {
			uint8_t *more = realloc(o->buffer, room = room ? 4 * room : 4096);

			if (!more)
				return no_memory();
			o->buffer = more;
		}
		n = pread(o->fd, o->buffer + o->size, room - o->size, (off_t)o->size);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return local_failed(t->from->run, t->label, "read it");
		else if (n == 0)
			break;
		if (o->size + (uint64_t)n > UNSIZED) {
			tools_error("%s: it has more than %u bytes, but the length 0", t->label,
				    UNSIZED);
			return COPY_FAILED;
		}
	}
	o->whole = o->size > 0;
	return COPY_GOOD;
}

static enum copy_result open_local_origin(struct origin *o)
{
	struct transfer *t = o->t;

	o->fd = openat(t->from->fd, t->source->name,
		       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (o->fd < 0 && errno == ENOENT)
		return report_gone(t);
	if (o->fd < 0 || fstat(o->fd, &o->st) < 0)
		return local_failed(t->from->run, t->label, "read it");
	if (!S_ISREG(o->st.st_mode)) {
		tools_error("%s: it is no regular file any more", t->label);
		return COPY_FAILED;
	}
	o->size = (uint64_t)o->st.st_size;
	o->mtime = time_in_afs(o->st.st_mtim.tv_sec);
	o->mode = o->st.st_mode & 0777;
	return o->size ? COPY_GOOD : read_unsized(o);
}

static void learn_origin(struct origin *o, const struct rxafs_attributes *a)
{
	o->size = (uint64_t)a->stat.st_size;
	o->version = a->version;
	o->mtime = a->stat.st_mtim.tv_sec;
	o->mode = a->stat.st_mode & 0777;
}

/* The status of the file, from the listing of its directory; `again`: from the server. */
static enum copy_result look_at_origin(struct origin *o, bool again)
{
	struct transfer *t = o->t;
	struct rxafs_name name = {.text = t->source->name, .fid = t->source->fid};
	struct rxafs_attributes a;
	struct attempt try = attempt_begin(t->from->run, CHANGE_NONE, t->label);
	int result = 0;

	if (!again) {
		o->size = t->source->size;
		o->mtime = t->source->mtime;
		o->mode = t->source->mode;
		return COPY_GOOD;
	}
	while (attempt_again(
		&try, rxafs_fetch_attributes(t->from->object, &try.request, &name, 1, &a, &result)))
		;
	if (try.value)
		return attempt_result(&try);
	if (result)
		return report_gone(t);
	learn_origin(o, &a);
	return COPY_GOOD;
}

static enum copy_result open_origin(struct origin *o, struct transfer *t)
{
	*o = (struct origin){.t = t, .fd = -1};
	if (t->from->ops->local)
		return open_local_origin(o);
	o->object = take_item(t->from, t->source, t->label);
	if (!o->object)
		return COPY_FAILED;
	return look_at_origin(o, false);
}

/* Whether a local file is as it was when it was opened. */
static bool is_origin_same(const struct origin *o)
{
	struct stat now;

	return fstat(o->fd, &now) == 0 && now.st_size == o->st.st_size &&
	       now.st_mtim.tv_sec == o->st.st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == o->st.st_mtim.tv_nsec;
}

/* After a fetch: what was read is a part of the version that the copy began with. */
static bool is_version_same(struct origin *o, const struct rxafs_attributes *a)
{
	if (!o->version)
		o->version = a->version;
	return a->version == o->version && (uint64_t)a->stat.st_size == o->size;
}

/* ---- fetching ---- */

static enum copy_result report_short_answer(const struct origin *o, uint64_t offset,
					    uint64_t wanted, uint64_t fetched)
{
	tools_error("%s: the server sent %llu bytes at offset %llu instead of %llu; the file has "
		    "%llu",
		    o->t->label, (unsigned long long)fetched, (unsigned long long)offset,
		    (unsigned long long)wanted, (unsigned long long)o->size);
	return COPY_FAILED;
}

/* Bytes that come from AFS into memory, or are compared with memory. */
struct taking {
	uint8_t *bytes;
	uint64_t from;
	bool compare;
};

static int take_or_compare(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct taking *k = arg;
	uint8_t *at = k->bytes + (offset - k->from);

	for (unsigned i = 0; i < count; at += iov[i++].iov_len)
		if (!k->compare)
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
		else if (memcmp(at, iov[i].iov_base, iov[i].iov_len) != 0)
			return -ECANCELED;
	return 0;
}

/* Bytes of a source in AFS to memory. *changed: it is another version. */
static enum copy_result fetch_bytes(struct origin *o, uint64_t offset, uint64_t length,
				    uint8_t *bytes, bool *changed)
{
	struct taking k = {.bytes = bytes, .from = offset};
	struct attempt t = attempt_begin(o->t->from->run, CHANGE_NONE, o->t->label);
	struct rxafs_attributes a;
	uint64_t fetched;

	while (attempt_again_unless(&t,
				    rxafs_fetch_stream(o->object, &t.request, offset, length,
						       take_or_compare, &k, &fetched, &a),
				    -ESTALE))
		;
	if (t.value == -ESTALE)
		return report_gone(o->t);
	if (t.value)
		return attempt_result(&t);
	*changed = !is_version_same(o, &a);
	return *changed || fetched == length ? COPY_GOOD
					     : report_short_answer(o, offset, length, fetched);
}

/* ---- into a local file ---- */

struct filling {
	struct origin *origin;
	struct sink *sink;
	uint64_t at; /* what has arrived */
	int error;
};

static int write_to_sink(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct filling *f = arg;
	uint64_t end = offset;

	for (unsigned i = 0; i < count; i++)
		end += iov[i].iov_len;
	if (sink_write(f->sink, iov, count, offset) < 0) {
		f->error = errno;
		return -ECANCELED;
	}
	f->at = end;
	return 0;
}

/* All bytes from f->at on. *changed: they are of different versions. */
static enum copy_result fill_sink(struct filling *f, bool *changed)
{
	struct origin *o = f->origin;
	struct transfer *t = o->t;
	struct rxafs_attributes a;
	int result;

	while (f->at < o->size && !*changed) {
		uint64_t end = f->at + pace_part(t->pace, o->size - f->at), from = f->at, fetched;
		struct attempt try = attempt_begin(t->from->run, CHANGE_NONE, t->label);

		if (!pace_wait(t->pace, t->from->run, end - f->at))
			return COPY_STOP;
		/* Bytes that arrived before a failure are kept. */
		do {
			from = f->at;
			result = rxafs_fetch_stream(o->object, &try.request, from, end - from,
						    write_to_sink, f, &fetched, &a);
		} while (attempt_again_unless(&try, result, f->error ? -ECANCELED : -ESTALE));
		if (f->error) {
			errno = f->error;
			return local_failed(t->to->run, t->to_label, "write it");
		}
		if (try.value == -ESTALE)
			return report_gone(t);
		if (try.value)
			return attempt_result(&try);
		*changed = !is_version_same(o, &a);
		if (!*changed && fetched != end - from)
			return report_short_answer(o, from, end - from, fetched);
	}
	return COPY_GOOD;
}

/* Whether the local file has the same bytes at `offset`. */
static bool has_local_bytes(int fd, const uint8_t *bytes, size_t length, uint64_t offset)
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

static int compare_with_file(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	const int *fd = arg;

	for (unsigned i = 0; i < count; offset += iov[i++].iov_len)
		if (!has_local_bytes(*fd, iov[i].iov_base, iov[i].iov_len, offset))
			return -ECANCELED;
	return 0;
}

static bool is_same_range(struct run *run, rxafs_object *object, uint64_t offset, uint64_t length,
			  int fd, const char *label)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, label);
	struct rxafs_attributes a;
	uint64_t fetched = 0;

	t.later = true;
	while (attempt_again_unless(&t,
				    rxafs_fetch_stream(object, &t.request, offset, length,
						       compare_with_file, &fd, &fetched, &a),
				    -ECANCELED))
		;
	return t.value == 0 && fetched == length;
}

bool is_beginning_of(struct run *run, rxafs_object *object, uint64_t length, int fd,
		     const char *label)
{
	uint64_t some = length < EDGE ? length : EDGE;

	return !length ||
	       (is_same_range(run, object, 0, some, fd, label) &&
		(length == some || is_same_range(run, object, length - some, some, fd, label)));
}

static bool is_beginning(void *arg, int fd, uint64_t length, const char *name)
{
	struct origin *o = arg;

	(void)name;
	return length <= o->size &&
	       is_beginning_of(o->t->from->run, o->object, length, fd, o->t->label);
}

/* A large file has a part, which a later run continues. 0, or -1 with errno. */
static int open_sink(struct origin *o, struct sink *sink)
{
	struct transfer *t = o->t;
	const struct rxafs_fid *fid = &t->source->fid;
	struct sink_part part = {.resume = true, .is_ours = is_beginning, .arg = o};

	if (o->size < RESUME)
		return sink_open(sink, t->to->fd, t->name, true, o->mode);
	part.version = part_version(0, (uint64_t)fid->volume << 32 | fid->vnode);
	part.version = part_version(part.version, (uint64_t)fid->unique << 32 | (uint32_t)o->mtime);
	part.version = part_version(part.version, o->size);
	return sink_open_part(sink, t->to->fd, t->name, true, &part);
}

static enum copy_result copy_to_local(struct origin *o)
{
	struct transfer *t = o->t;
	struct sink sink;
	struct filling f = {.origin = o, .sink = &sink};
	enum copy_result rc = COPY_GOOD;
	bool changed = false;

	if (open_sink(o, &sink) < 0)
		return local_failed(t->to->run, t->to_label, "write it");
	f.at = sink.begun;
	for (unsigned tries = 0; rc == COPY_GOOD && !t->vanished; tries++) {
		rc = fill_sink(&f, &changed);
		if (rc != COPY_GOOD || !changed || t->vanished)
			break;
		if (tries == RESTARTS || sink_restart(&sink) < 0) {
			tools_error("%s: the file changes while it is copied", t->label);
			rc = COPY_FAILED;
		} else {
			f.at = 0;
			changed = false;
			rc = look_at_origin(o, true);
		}
	}
	t->copied = o->size - sink.begun;
	if (rc == COPY_GOOD && !t->vanished && sink_commit(&sink, o->mode, (uint32_t)o->mtime) < 0)
		rc = local_failed(t->to->run, t->to_label, "write it");
	sink.keep = rc == COPY_STOP && !f.error;
	sink_abandon(&sink);
	return rc;
}

/* ---- into AFS ---- */

/* A file that is being stored in AFS. */
struct storing {
	struct origin *origin;
	rxafs_object *object; /* a reference, or NULL */
	char name[PART_NAME]; /* it has at the moment */
	int claim;	      /* of a part, or -1 */
	uint64_t at;
	bool created;
	bool clear; /* it has nothing from `at` on */
	int error;  /* of reading the source */
};

/* 0, CHANGED, or a negative errno. */
static int give_local_bytes(struct origin *o, uint64_t offset, const struct iovec *iov,
			    unsigned count)
{
	int result = read_slices(o->fd, offset, iov, count);

	return result > 0 ? CHANGED : result;
}

static int give_from_origin(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	struct storing *s = arg;
	struct origin *o = s->origin;
	const uint8_t *from = o->buffer + (offset - o->at);

	if (o->fd >= 0 && !o->whole) {
		s->error = give_local_bytes(o, offset, iov, count);
		return s->error ? -ECANCELED : 0;
	}
	assert(offset >= o->at);
	for (unsigned i = 0; i < count; from += iov[i++].iov_len)
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
	return 0;
}

/* Have the bytes from s->at on at hand, at most *length of them. */
static enum copy_result prepare_bytes(struct storing *s, uint64_t *length, bool *changed)
{
	struct origin *o = s->origin;

	if (o->fd >= 0 && !o->whole) {
		*length = find_data(o->fd, &s->at, o->size, *length < CALL ? *length : CALL,
				    s->clear);
		return COPY_GOOD;
	}
	if (o->whole)
		return COPY_GOOD;
	if (!o->buffer && !(o->buffer = malloc(BUFFER)))
		return no_memory();
	*length = *length < BUFFER ? *length : BUFFER;
	o->at = s->at;
	return fetch_bytes(o, s->at, *length, o->buffer, changed);
}

static enum copy_result report_source_error(struct storing *s, bool *changed)
{
	*changed = s->error == CHANGED;
	errno = -s->error;
	return *changed ? COPY_GOOD
			: local_failed(s->origin->t->from->run, s->origin->t->label, "read it");
}

/* One call. */
static enum copy_result store_piece(struct storing *s, uint64_t length, bool *changed)
{
	struct origin *o = s->origin;
	struct transfer *t = o->t;
	bool last = s->at + length == o->size;
	struct rxafs_store store = {.offset = s->at,
				    .length = length,
				    .size = s->at + length,
				    .set = {.set = RXAFS_SET_TIME | (last ? RXAFS_SET_MODE : 0),
					    .time = last ? o->mtime : 0,
					    .mode = o->mode}};
	struct attempt try = attempt_begin(t->to->run, CHANGE_STORE, t->to_label);
	struct rxafs_attributes a;
	int result;

	if (!pace_wait(t->pace, t->to->run, length))
		return COPY_STOP;
	do
		result = rxafs_store_stream(s->object, &try.request, &store, give_from_origin, s,
					    &a);
	while (attempt_again_unless(&try, result, s->error ? -ECANCELED : 1));
	if (s->error)
		return report_source_error(s, changed);
	if (try.value)
		return attempt_result(&try);
	s->at += length;
	s->clear = true;
	return COPY_GOOD;
}

/* Whether the file may go over several paths; with a limit of the rate it goes over one. */
static bool may_use_paths(const struct storing *s)
{
	const struct origin *o = s->origin;

	return o->fd >= 0 && !o->whole && s->at == 0 && o->size >= SCATTER_LEAST &&
	       o->t->to->run->set.paths != 1 && !o->t->pace->rate;
}

/* The whole file. With s->at still 0 nothing was stored, and one path is used. */
static enum copy_result store_by_paths(struct storing *s, bool *changed)
{
	struct origin *o = s->origin;
	struct transfer *t = o->t;
	struct scatter file = {
		.run = t->to->run,
		.object = s->object,
		.label = t->to_label,
		.fd = o->fd,
		.size = o->size,
		.set = {.set = RXAFS_SET_TIME | RXAFS_SET_MODE, .time = o->mtime, .mode = o->mode}};
	struct attempt try = attempt_begin(t->to->run, CHANGE_STORE, t->to_label);
	bool stored;
	enum copy_result rc = scatter_store(&file, &try, &stored);

	if (stored)
		s->at = o->size;
	if (!file.unread)
		return rc == COPY_GOOD ? rc : attempt_result(&try);
	s->error = file.error ? -file.error : CHANGED;
	return report_source_error(s, changed);
}

/* From s->at to the end. */
static enum copy_result store_origin(struct storing *s, bool *changed)
{
	struct origin *o = s->origin;
	enum copy_result rc = may_use_paths(s) ? store_by_paths(s, changed) : COPY_GOOD;
	bool begun = s->at;

	while (rc == COPY_GOOD && !*changed && !o->t->vanished && (s->at < o->size || !begun)) {
		uint64_t length = pace_part(o->t->pace, o->size - s->at);

		rc = prepare_bytes(s, &length, changed);
		if (rc == COPY_GOOD && !*changed && !o->t->vanished)
			rc = store_piece(s, length, changed);
		begun = true;
	}
	if (rc == COPY_GOOD && !*changed && o->fd >= 0)
		*changed = !o->whole && !is_origin_same(o);
	return rc;
}

/* Make the object; *exists: something has the name. */
static enum copy_result make_stored_file(struct storing *s, int64_t mtime, bool *exists)
{
	struct origin *o = s->origin;
	struct transfer *t = o->t;
	struct rxafs_changes set = {.set = RXAFS_SET_MODE | RXAFS_SET_TIME,
				    .mode = mtime ? o->mode : o->mode | 0200,
				    .time = mtime};
	struct attempt try = attempt_begin(t->to->run, CHANGE_CREATE, t->to_label);
	struct rxafs_attributes a;

	while (attempt_again_unless(
		&try, rxafs_make_file(t->to->object, &try.request, s->name, &set, &s->object, &a),
		-EEXIST))
		;
	*exists = try.value == -EEXIST;
	s->created = s->clear = try.value == 0;
	if (try.value)
		s->object = NULL;
	return *exists ? COPY_GOOD : attempt_result(&try);
}

/*
 * The number of the part of a file in a directory, by which a later run on this machine finds it. 0: it cannot be
 * known. The host is told by its name and, since containers have names of their choice, by the namespace whose claims it sees.
 */
static uint64_t number_of_part(const struct folder *to, const char *name)
{
	struct rxafs_fid fid;
	struct utsname host;
	struct stat net;
	uint64_t number = 0;

	if (uname(&host) < 0 || stat("/proc/self/ns/net", &net) < 0)
		return 0;
	rxafs_get_fid(to->object, &fid);
	for (const char *p = host.nodename; *p; p++)
		number = part_version(number, (unsigned char)*p);
	for (const char *p = name; *p; p++)
		number = part_version(number, (unsigned char)*p);
	number = part_version(number, net.st_ino);
	number = part_version(number, (uint64_t)fid.volume << 32 | fid.vnode);
	return part_version(number, fid.unique);
}

/* A file beside the old one. What an earlier run has left there is removed. */
static enum copy_result make_part(struct storing *s)
{
	struct transfer *t = s->origin->t;
	uint64_t number = number_of_part(t->to, t->name);
	enum copy_result rc;
	bool exists;

	s->claim = number ? part_claim(number) : -1;
	if (s->claim >= 0)
		part_name(s->name, t->name, number);
	else
		part_name_once(s->name, t->name);
	rc = make_stored_file(s, 0, &exists);
	if (rc != COPY_GOOD || !exists)
		return rc;
	rc = t->to->ops->remove(t->to, s->name, false, t->to_label);
	if (rc == COPY_GOOD)
		rc = make_stored_file(s, 0, &exists);
	if (rc == COPY_GOOD && exists) {
		tools_error("%s: cannot make \"%s\" beside it: it exists", t->to_label, s->name);
		rc = COPY_FAILED;
	}
	return rc;
}

static enum copy_result name_stored_file(struct storing *s)
{
	struct transfer *t = s->origin->t;
	struct attempt try = attempt_begin(t->to->run, CHANGE_RENAME, t->to_label);

	while (attempt_again(&try, rxafs_rename(t->to->object, &try.request, s->name, t->to->object,
						t->name, false)))
		;
	if (try.value == 0)
		s->created = false;
	return attempt_result(&try);
}

/* Whether the user may make and rename names in the directory. */
static bool may_replace_names(struct transfer *t)
{
	const uint32_t needed = RXAFS_INSERT | RXAFS_DELETE;
	struct rxafs_request request = session_request(t->to->run);
	uint32_t own;

	return rxafs_get_rights(t->to->object, &request, &own, NULL) != 0 ||
	       (own & needed) == needed;
}

/*
 * A new file that fits into one call is made under its name, others beside it. Without the rights for that, all are
 * made under their names, and old ones are overwritten.
 */
static enum copy_result make_stored_place(struct storing *s, bool *direct)
{
	struct origin *o = s->origin;
	const struct item *old = o->t->old;
	bool exists = false;
	enum copy_result rc;

	*direct = (!old && o->size <= WHOLE) || !may_replace_names(o->t);
	if (*direct && old) {
		s->object = take_item(o->t->to, old, o->t->to_label);
		return s->object ? COPY_GOOD : COPY_FAILED;
	}
	if (*direct) {
		assert(strlen(o->t->name) < sizeof(s->name));
		strcpy(s->name, o->t->name);
		rc = make_stored_file(s, o->size ? 0 : o->mtime, &exists);
		if (rc != COPY_GOOD || !exists)
			return rc;
		*direct = false;
	}
	return make_part(s);
}

/* The source has changed: begin again with what it is now. */
static enum copy_result restart_store(struct storing *s, unsigned tries)
{
	struct origin *o = s->origin;

	s->at = 0;
	s->clear = false;
	s->error = 0;
	if (tries == RESTARTS) {
		tools_error("%s: the file changes while it is copied", o->t->label);
		return COPY_FAILED;
	}
	if (o->fd < 0)
		return o->version = 0, look_at_origin(o, true);
	close(o->fd);
	return open_local_origin(o);
}

static enum copy_result copy_to_afs(struct origin *o)
{
	struct transfer *t = o->t;
	struct storing s = {.origin = o, .claim = -1};
	bool direct, changed = false;
	enum copy_result rc = make_stored_place(&s, &direct);

	if (rc == COPY_GOOD && (o->size || !direct || !s.created))
		for (unsigned tries = 0;; tries++) {
			rc = store_origin(&s, &changed);
			if (rc != COPY_GOOD || !changed || t->vanished)
				break;
			changed = false;
			rc = restart_store(&s, tries);
			if (rc != COPY_GOOD || t->vanished)
				break;
		}
	t->copied = o->size;
	if (rc == COPY_GOOD && !t->vanished && !direct)
		rc = name_stored_file(&s);
	if ((rc != COPY_GOOD || t->vanished) && s.created && !atomic_load(&t->to->run->interrupted))
		t->to->ops->remove(t->to, s.name, false, t->to_label);
	if (s.object)
		rxafs_release(s.object);
	if (s.claim >= 0)
		close(s.claim);
	return rc;
}

static enum copy_result copy_origin(struct transfer *t)
{
	struct origin o;
	enum copy_result rc = open_origin(&o, t);

	if (rc == COPY_GOOD && !t->vanished)
		rc = t->to->ops->local ? copy_to_local(&o) : copy_to_afs(&o);
	close_origin(&o);
	return rc;
}

enum copy_result transfer_file(struct transfer *t)
{
	const struct item *source = t->source;
	enum copy_result rc = copy_origin(t);
	struct item now;
	bool exists = true;

	/* A file in AFS that took the place of the one that was to be copied. */
	for (unsigned i = 0; i < RESTARTS && rc == COPY_GOOD && t->vanished && exists; i++) {
		rc = t->from->ops->look(t->from, source->name, t->label, &now, &exists);
		exists &= rc == COPY_GOOD && now.kind == ITEM_FILE;
		if (!exists)
			break;
		t->source = &now;
		t->vanished = false;
		rc = copy_origin(t);
	}
	t->source = source;
	if (t->vanished)
		tools_error("%s: it has vanished", t->label);
	return rc;
}

/* ---- comparing ---- */

/* Compare a range of the file in AFS with bytes. */
static enum copy_result compare_range(struct transfer *t, rxafs_object *object, const char *label,
				      uint64_t offset, uint64_t length, uint8_t *bytes, bool *same)
{
	struct taking k = {.bytes = bytes, .from = offset, .compare = true};
	struct attempt try = attempt_begin(t->from->run, CHANGE_NONE, label);
	struct rxafs_attributes a;
	uint64_t fetched = 0;

	if (!pace_wait(t->pace, t->from->run, length))
		return COPY_STOP;
	while (attempt_again_unless(&try,
				    rxafs_fetch_stream(object, &try.request, offset, length,
						       take_or_compare, &k, &fetched, &a),
				    -ECANCELED))
		;
	*same = try.value == 0 && fetched == length;
	return try.value == -ECANCELED ? COPY_GOOD : attempt_result(&try);
}

/* The next bytes of one file, a local one or in AFS, to memory. */
static enum copy_result read_range(struct origin *o, uint64_t offset, uint64_t length,
				   uint8_t *bytes, bool *changed)
{
	const struct iovec iov = {.iov_base = bytes, .iov_len = length};
	int rc;

	if (o->fd < 0)
		return fetch_bytes(o, offset, length, bytes, changed);
	if (o->whole) {
		memcpy(bytes, o->buffer + offset, length);
		return COPY_GOOD;
	}
	rc = give_local_bytes(o, offset, &iov, 1);
	*changed = rc == CHANGED;
	errno = -rc;
	return rc && !*changed ? local_failed(o->t->from->run, o->t->label, "read it") : COPY_GOOD;
}

enum copy_result transfer_compare(struct transfer *t, bool *same)
{
	/* The local side is read to memory; if both are in AFS, the source. */
	bool turned = t->to->ops->local;
	struct transfer read = {.from = turned ? t->to : t->from,
				.source = turned ? t->old : t->source,
				.label = turned ? t->to_label : t->label,
				.pace = t->pace};
	const char *label = turned ? t->label : t->to_label;
	struct origin o;
	enum copy_result rc = open_origin(&o, &read);
	rxafs_object *object = NULL;
	bool changed = false;
	uint8_t *bytes = malloc(BUFFER);

	*same = true;
	if (!bytes)
		rc = no_memory();
	if (rc == COPY_GOOD && !read.vanished) {
		object = turned ? take_item(t->from, t->source, label)
				: take_item(t->to, t->old, label);
		rc = object ? COPY_GOOD : COPY_FAILED;
	}
	for (uint64_t at = 0; rc == COPY_GOOD && *same && !read.vanished && at < o.size;) {
		uint64_t n = pace_part(t->pace, o.size - at < BUFFER ? o.size - at : BUFFER);

		rc = read_range(&o, at, n, bytes, &changed);
		if (rc == COPY_GOOD && !changed && !read.vanished)
			rc = compare_range(t, object, label, at, n, bytes, same);
		*same &= !changed;
		at += n;
	}
	*same &= !read.vanished;
	if (object)
		rxafs_release(object);
	close_origin(&o);
	free(bytes);
	return rc;
}
