/* SPDX-License-Identifier: BSD-2-Clause */
/* Contents of files past the cache, as they arrive and as they can leave. */
#include <errno.h>
#include <string.h>

#include <rxafs/stream.h>

#include "afs/fetch.h"
#include "afs/fetchstatus.h"
#include "client/fs/operate.h"
#include "client/fs/show.h"
#include "client/net/many.h"
#include "client/net/pathstore.h"

_Static_assert(RXAFS_SMALL_MOST == CL_MANY, "one group of calls");
_Static_assert(sizeof((struct rxafs_path_use){0}.device) == IF_NAMESIZE, "names of interfaces");
_Static_assert(RXAFS_SPANS == CL_HOLES && RXAFS_PATHS == CL_PATHS, "one fetch over several paths");
_Static_assert(RXAFS_STORE_UNIT == CL_STORE_UNIT, "one store over several paths");

static int find_streamed(rxafs_object *file, struct fs_vnode **vnode)
{
	if (file->kind != RXAFS_FILE || file->what != FS_PLAIN)
		return file->kind == RXAFS_DIRECTORY ? -EISDIR : -EINVAL;
	*vnode = file->vnode;
	return 0;
}

/* One call. */
static int fetch_range(struct fs_vnode *v, struct rxafs_request *request, uint64_t offset,
		       uint64_t length, rxafs_take_fn *take, void *arg, uint64_t *fetched,
		       AFSFetchStatus *answer)
{
	AFSFid fid = fs_afs_fid(&v->fid);
	struct cl_status known;
	struct fs_call call;
	int result;

	fs_begin_call(&call, v->client, request);
	result = cl_net_fetch_data(v->volume, &call.caller, &fid, 0, offset, length, take, arg,
				   fetched, answer, &call.stamp, &request->failure);
	if (result == -ESTALE)
		cl_object_gone(v->object);
	if (result)
		return result;
	cl_cache_apply(v->object, fs_reply(&call, &call.stamp.callback), answer, &known);
	fs_learned(v, &known);
	return 0;
}

int rxafs_fetch_stream(rxafs_object *file, struct rxafs_request *request, uint64_t offset,
		       uint64_t length, rxafs_take_fn *take, void *arg, uint64_t *fetched,
		       struct rxafs_attributes *attributes)
{
	uint64_t version = 0, part = 0, wanted;
	AFSFetchStatus answer;
	struct fs_vnode *v;
	int result = find_streamed(file, &v);

	*fetched = 0;
	if (result)
		return result;
	do {
		wanted = length - *fetched < AFS_FETCH_MAX ? length - *fetched : AFS_FETCH_MAX;
		result = fetch_range(v, request, offset + *fetched, wanted, take, arg, &part,
				     &answer);
		if (result)
			return result;
		if (*fetched && afs_status_version(&answer) != version)
			return fs_fail(request, -EAGAIN, "the file has changed meanwhile");
		version = afs_status_version(&answer);
		*fetched += part;
	} while (part == wanted && *fetched < length);
	fs_show_status(v->client, &v->fid, &answer, attributes);
	return 0;
}

/* *server: that which was asked last; 0 = unknown. */
static int fetch_version(rxafs_object *file, struct rxafs_request *request, uint64_t version,
			 uint64_t offset, uint64_t length, rxafs_take_fn *take, void *arg,
			 struct rxafs_attributes *attributes, uint32_t *server)
{
	struct cl_part part = {.version = version, .offset = offset, .take = take, .arg = arg};
	uint64_t end = offset + length;
	struct cl_status known;
	struct fs_vnode *v;
	struct fs_call call;
	int result = find_streamed(file, &v);

	if (result)
		return result;
	part.fid = fs_afs_fid(&v->fid);
	do {
		part.length = end - part.offset < AFS_FETCH_MAX ? end - part.offset : AFS_FETCH_MAX;
		fs_begin_call(&call, v->client, request);
		result = cl_net_fetch_part(v->volume, &call.caller, &part, &call.stamp,
					   &request->failure);
		*server = call.stamp.server;
		if (result == -ESTALE)
			cl_object_gone(v->object);
		if (result && !part.differs)
			return result;
		cl_cache_apply(v->object, fs_reply(&call, &call.stamp.callback), &part.status,
			       &known);
		fs_learned(v, &known);
		part.offset += part.fetched;
	} while (!result && part.fetched == part.length && part.offset < end &&
		 afs_status_version(&part.status) == version);
	fs_show_status(v->client, &v->fid, &part.status, attributes);
	return result;
}

int rxafs_fetch_version(rxafs_object *file, struct rxafs_request *request, uint64_t version,
			uint64_t offset, uint64_t length, rxafs_take_fn *take, void *arg,
			struct rxafs_attributes *attributes)
{
	uint32_t server;

	return fetch_version(file, request, version, offset, length, take, arg, attributes,
			     &server);
}

/* ---- several paths ---- */

static void read_spans(struct cl_wide *wide, const struct rxafs_scatter *scatter)
{
	wide->count = scatter->missing_count;
	for (unsigned i = 0; i < wide->count; i++)
		wide->missing[i] =
			(struct cl_hole){scatter->missing[i].offset, scatter->missing[i].end};
}

static void write_spans(struct rxafs_scatter *scatter, const struct cl_wide *wide)
{
	scatter->missing_count = wide->count;
	for (unsigned i = 0; i < wide->count; i++)
		scatter->missing[i] =
			(struct rxafs_span){wide->missing[i].at, wide->missing[i].end};
}

static bool is_use_of(const struct rxafs_path_use *use, const struct cl_path_report *report)
{
	return memcmp(&use->server, &report->remote, sizeof(use->server)) == 0 &&
	       memcmp(&use->local, &report->local, sizeof(use->local)) == 0 &&
	       strcmp(use->device, report->device) == 0;
}

static struct rxafs_path_use *find_path_use(struct rxafs_path_use uses[RXAFS_PATHS],
					    unsigned *count, const struct cl_path_report *report)
{
	unsigned i = 0;

	while (i < *count && !is_use_of(&uses[i], report))
		i++;
	if (i == RXAFS_PATHS)
		return NULL;
	if (i == *count) {
		++*count;
		uses[i].server = report->remote;
		uses[i].local = report->local;
		memcpy(uses[i].device, report->device, sizeof(uses[i].device));
	}
	return &uses[i];
}

static void add_path_uses(struct rxafs_path_use uses[RXAFS_PATHS], unsigned *count,
			  const struct cl_path_report *reports, unsigned paths)
{
	for (unsigned i = 0; i < paths; i++) {
		const struct cl_path_report *report = &reports[i];
		struct rxafs_path_use *use = find_path_use(uses, count, report);

		if (!use)
			continue;
		use->bytes += report->bytes;
		use->repeated += report->repeated;
		use->rtt_ns = report->rtt_ns;
		use->rate = (uint64_t)report->rate;
		use->losses += report->deaths;
		use->state = (enum rxafs_path_state)report->state;
	}
}

/* One who watches a transfer of several calls, of which the earlier ones have done this. */
struct watching {
	rxafs_see_paths_fn *see;
	void *arg;
	const struct rxafs_path_use *uses;
	unsigned count;
};

static void sum_path_reports(void *arg, const struct cl_path_report *reports, unsigned paths)
{
	const struct watching *w = arg;
	struct rxafs_path_use sum[RXAFS_PATHS];
	unsigned count = w->count;

	memset(sum, 0, sizeof(sum));
	memcpy(sum, w->uses, count * sizeof(sum[0]));
	add_path_uses(sum, &count, reports, paths);
	w->see(w->arg, sum, count);
}

/* Bytes that went over the path of ordinary calls to the server that was asked last. */
static void add_usual_use(rxafs_client *client, uint32_t server, uint64_t bytes,
			  struct rxafs_path_use uses[RXAFS_PATHS], unsigned *count)
{
	struct cl_path_report reports[CL_PATHS], usual;
	bool untried[CL_PATHS];

	if (!bytes || !cl_net_server_paths(client->net, server, reports, untried))
		return;
	usual = (struct cl_path_report){.remote = reports[0].remote,
					.local = reports[0].local,
					.rtt_ns = reports[0].rtt_ns,
					.state = CL_PATH_LIVE,
					.bytes = bytes};
	memcpy(usual.device, reports[0].device, sizeof(usual.device));
	add_path_uses(uses, count, &usual, 1);
}

unsigned rxafs_paths_at(rxafs_client *client, uint32_t server, struct rxafs_path_use *uses)
{
	struct cl_path_report reports[CL_PATHS];
	bool untried[CL_PATHS];
	unsigned paths = cl_net_server_paths(client->net, server, reports, untried), count = 0;

	memset(uses, 0, RXAFS_PATHS * sizeof(uses[0]));
	add_path_uses(uses, &count, reports, paths);
	for (unsigned i = 0; i < count; i++)
		if (untried[i])
			uses[i].state = RXAFS_PATH_UNTRIED;
	return count;
}

/* What one call over all paths brings. */
static int fetch_wide(struct fs_vnode *v, struct rxafs_request *request,
		      struct rxafs_scatter *scatter, struct rxafs_attributes *attributes)
{
	struct watching watching = {scatter->see, scatter->arg, scatter->uses, scatter->use_count};
	struct cl_wide wide = {.fid = fs_afs_fid(&v->fid),
			       .see = scatter->see ? sum_path_reports : NULL,
			       .see_arg = &watching,
			       .version = scatter->version,
			       .take = scatter->take,
			       .arg = scatter->arg,
			       .most = scatter->paths};
	struct cl_status known;
	struct fs_call call;
	int result;

	read_spans(&wide, scatter);
	fs_begin_call(&call, v->client, request);
	result = cl_net_fetch_wide(v->volume, &call.caller, &wide, &call.stamp, &request->failure);
	write_spans(scatter, &wide);
	add_path_uses(scatter->uses, &scatter->use_count, wide.paths, wide.path_count);
	if (result == -ESTALE)
		cl_object_gone(v->object);
	if (!wide.known)
		return result;
	cl_cache_apply(v->object, fs_reply(&call, &call.stamp.callback), &wide.status, &known);
	fs_learned(v, &known);
	fs_show_status(v->client, &v->fid, &wide.status, attributes);
	return result;
}

/* Spans that one path brings, as long as there is one only. */
struct spanning {
	struct rxafs_scatter *scatter;
	struct cl_volume *volume;
	uint64_t seen; /* of cl_net_paths_joined() */
	bool joined;   /* there are several now: the fetch was ended for them */
};

/* The next bytes of the first span that is missing. */
static int take_span(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct spanning *s = arg;
	struct rxafs_scatter *scatter = s->scatter;
	uint64_t end = offset;
	int result;

	for (unsigned i = 0; i < count; i++)
		end += iov[i].iov_len;
	result = scatter->take(scatter->arg, offset, iov, count);
	if (result)
		return result;
	scatter->missing[0].offset = end;
	s->joined = scatter->paths != 1 && end < scatter->missing[0].end &&
		    cl_net_paths_joined(s->volume, &s->seen);
	return s->joined ? -ECANCELED : 0;
}

/* What several paths could not bring, one brings, or tells why not. */
static int fetch_spans(rxafs_object *file, struct rxafs_request *request, struct spanning *s,
		       struct rxafs_attributes *attributes)
{
	struct rxafs_scatter *scatter = s->scatter;
	struct rxafs_span *first = &scatter->missing[0];
	int result = 0;

	while (result == 0 && scatter->missing_count) {
		uint64_t before = first->offset;
		uint32_t server = 0;

		result = fetch_version(file, request, scatter->version, before, first->end - before,
				       take_span, s, attributes, &server);
		add_usual_use(file->client, server, first->offset - before, scatter->uses,
			      &scatter->use_count);
		if (first->offset < first->end)
			break;
		scatter->missing_count--;
		memmove(first, first + 1, scatter->missing_count * sizeof(*first));
	}
	return result;
}

int rxafs_fetch_scattered(rxafs_object *file, struct rxafs_request *request,
			  struct rxafs_scatter *scatter, struct rxafs_attributes *attributes)
{
	struct spanning s = {.scatter = scatter};
	struct fs_vnode *v;
	int result = find_streamed(file, &v);

	if (result)
		return result;
	s.volume = v->volume;
	do {
		cl_net_paths_joined(s.volume, &s.seen);
		s.joined = false;
		result = fetch_wide(v, request, scatter, attributes);
		if (!result)
			result = fetch_spans(file, request, &s, attributes);
	} while (s.joined);
	return result;
}

/* ---- several files ---- */

/* One of several. */
struct small_fetch {
	struct rxafs_small *file;
	rxafs_client *client;
	void (*done)(void *arg, struct rxafs_small *file);
	void *arg;
};

static int take_small(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct rxafs_small *file = ((struct small_fetch *)arg)->file;

	if (!file->bytes)
		return file->take(file->arg, offset, iov, count);
	for (unsigned i = 0; i < count; i++) {
		if (offset + iov[i].iov_len > file->length)
			return -EFBIG;
		memcpy((char *)file->bytes + offset, iov[i].iov_base, iov[i].iov_len);
		offset += iov[i].iov_len;
	}
	return 0;
}

static void end_small(void *arg, struct cl_fetch *fetch)
{
	struct small_fetch *small = arg;
	struct rxafs_small *file = small->file;

	file->result = fetch->result;
	file->fetched = (size_t)fetch->fetched;
	if (!file->result)
		fs_show_status(small->client, &file->name->fid, &fetch->status, &file->attributes);
	small->done(small->arg, file);
}

int rxafs_fetch_small(rxafs_object *directory, struct rxafs_request *request,
		      struct rxafs_small *files, unsigned count,
		      void (*done)(void *arg, struct rxafs_small *file), void *arg)
{
	struct cl_fetch fetches[RXAFS_SMALL_MOST];
	struct small_fetch small[RXAFS_SMALL_MOST];
	struct cl_caller caller = fs_caller(directory->client, request);
	struct fs_vnode *v;
	int result = fs_enter(directory, request, &v);

	if (result || !count || count > RXAFS_SMALL_MOST)
		return result ? result : count ? -EINVAL : 0;
	for (unsigned i = 0; i < count; i++) {
		small[i] = (struct small_fetch){&files[i], v->client, done, arg};
		fetches[i] = (struct cl_fetch){.fid = fs_afs_fid(&files[i].name->fid),
					       .length = files[i].length,
					       .take = take_small,
					       .ended = end_small,
					       .arg = &small[i]};
	}
	cl_net_fetch_many(v->volume, &caller, fetches, count);
	return 0;
}

/* Own changes in the cache would be mixed with what is stored. */
static bool is_dirty(struct fs_vnode *v)
{
	int64_t mtime;
	bool dirty;

	pthread_mutex_lock(&v->lock);
	dirty = v->data && cl_data_is_dirty(v->data, &mtime);
	pthread_mutex_unlock(&v->lock);
	return dirty;
}

AFSStoreStatus fs_status_to_set(const struct rxafs_changes *set)
{
	AFSStoreStatus how = {0};

	if (set->set & RXAFS_SET_MODE) {
		how.Mask |= AFS_SETMODE;
		how.UnixModeBits = set->mode & 0777;
	}
	if (set->set & RXAFS_SET_TIME) {
		how.Mask |= AFS_SETMODTIME;
		how.ClientModTime = (uint32_t)fs_nearest_time(set->time);
	}
	return how;
}

/*
 * The cache learns of it as of another client's change, so that it drops the contents that it has.
 */
static void learn_store(struct fs_vnode *v, struct fs_call *call, int result,
			const AFSFetchStatus *answer)
{
	struct cl_status known;

	if (!result) {
		cl_cache_apply(v->object, fs_reply(call, NULL), answer, &known);
		fs_learned(v, &known);
	} else if (call->request->failure.maybe_done) {
		cl_object_doubt(v->object);
	}
}

int rxafs_store_stream(rxafs_object *file, struct rxafs_request *request,
		       const struct rxafs_store *store, rxafs_give_fn *give, void *arg,
		       struct rxafs_attributes *attributes)
{
	AFSStoreStatus how = fs_status_to_set(&store->set);
	AFSFetchStatus answer;
	struct fs_vnode *v;
	struct fs_call call;
	AFSFid fid;
	int result = find_streamed(file, &v);

	if (!result && (store->size < store->length || store->offset > store->size - store->length))
		return fs_fail(request, -EINVAL, "the bytes are behind the end of the file");
	if (!result)
		result = fs_enter_to_change(file, request, &v);
	if (result)
		return result;
	if (is_dirty(v))
		return fs_fail(request, -EBUSY, "the file has changes that are not stored yet");
	if (store->durable)
		how.Mask |= AFS_FSYNC;
	fid = fs_afs_fid(&v->fid);
	fs_begin_call(&call, v->client, request);
	result = cl_net_store_data(v->volume, &call.caller, &fid, &how, store->offset,
				   store->length, store->size, store->size, give, arg, &answer,
				   &call.stamp, &request->failure);
	learn_store(v, &call, result, &answer);
	if (!result)
		fs_show_status(v->client, &v->fid, &answer, attributes);
	if (!result && store->use) {
		unsigned count = 0;

		memset(store->use, 0, sizeof(*store->use));
		add_usual_use(v->client, call.stamp.server, store->length, store->use, &count);
	}
	return result;
}

/* Whether the server takes the parts: in order, apart, and whole units, but for the end of the file. */
static bool are_spans_usable(const struct rxafs_scattered_store *store)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < store->span_count; i++) {
		const struct rxafs_span *span = &store->spans[i];

		if (span->offset % CL_STORE_UNIT || (i && span->offset <= at) ||
		    span->end <= span->offset || span->end > store->size ||
		    (span->end % CL_STORE_UNIT && span->end != store->size))
			return false;
		at = span->end;
	}
	return store->span_count && store->span_count <= RXAFS_SPANS;
}

/* *result of cl_net_store_wide(), and what is kept for the next one. */
static int store_wide(struct fs_vnode *v, struct fs_call *call, struct rxafs_scattered_store *store,
		      AFSFetchStatus *answer)
{
	struct watching watching = {store->see, store->arg, store->uses, store->use_count};
	struct cl_wide_store wide = {.fid = fs_afs_fid(&v->fid),
				     .see = store->see ? sum_path_reports : NULL,
				     .see_arg = &watching,
				     .how = fs_status_to_set(&store->set),
				     .length = store->size,
				     .give = store->give,
				     .arg = store->arg,
				     .most = store->paths,
				     .count = store->span_count,
				     .session = {store->session[0], store->session[1]},
				     .unanswered = store->unanswered};
	int result;

	if (store->durable)
		wide.how.Mask |= AFS_FSYNC;
	for (unsigned i = 0; i < wide.count; i++)
		wide.data[i] = (struct cl_hole){store->spans[i].offset, store->spans[i].end};
	result = cl_net_store_wide(v->volume, &call->caller, &wide, &call->stamp,
				   &call->request->failure);
	store->session[0] = wide.session.high;
	store->session[1] = wide.session.low;
	store->unanswered = wide.unanswered;
	/* What was dropped has to be sent again. */
	for (unsigned i = 0; i < wide.path_count && result && !wide.unanswered; i++) {
		wide.paths[i].repeated += wide.paths[i].bytes;
		wide.paths[i].bytes = 0;
	}
	add_path_uses(store->uses, &store->use_count, wide.paths, wide.path_count);
	*answer = wide.status;
	return result;
}

int rxafs_store_scattered(rxafs_object *file, struct rxafs_request *request,
			  struct rxafs_scattered_store *store, struct rxafs_attributes *attributes)
{
	AFSFetchStatus answer;
	struct fs_vnode *v;
	struct fs_call call;
	int result = find_streamed(file, &v);

	if (!result && !are_spans_usable(store))
		return fs_fail(request, -EINVAL, "the parts are not those of a file");
	if (!result)
		result = fs_enter_to_change(file, request, &v);
	if (result)
		return result;
	if (is_dirty(v))
		return fs_fail(request, -EBUSY, "the file has changes that are not stored yet");
	fs_begin_call(&call, v->client, request);
	result = store_wide(v, &call, store, &answer);
	if (result == -EOPNOTSUPP)
		return result;
	learn_store(v, &call, result, &answer);
	if (!result)
		fs_show_status(v->client, &v->fid, &answer, attributes);
	return result;
}

void rxafs_get_fid(const rxafs_object *object, struct rxafs_fid *fid)
{
	const struct fs_vnode *v = fs_entered(object);

	*fid = v ? v->fid : object->fid;
}
