/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of files: FetchData64 hands over bytes as they arrive, StoreData64 takes them as they can
 * leave.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/fetch.h"
#include <rxwire/queue.h>

#include "client/net/many.h"
#include "client/net/netpath.h"
#include "client/net/tries.h"

#define SLICES	  64u
#define PIECE	  262144u    /* bytes of a store that are reserved at a time at most */
#define HELD_MOST (8u << 20) /* bytes of a fetch that wait for its status at most */

/* ---- FetchData64 ---- */

/* All steps of one fetch. The code for cl_tries_judge(). */
static rxw_code stream_fetch(struct cl_tries *t, struct afs_fetch *f, cl_take_fn *take, void *arg)
{
	for (;;) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		uint64_t at = f->offset + f->received;
		int rc;

		switch (afs_fetch_step(f, t->sent.call, iov, &count)) {
		case AFS_FETCH_LENT:
			cl_load_moved(&t->sent, f->offset + f->received - at);
			cl_server_moved(&t->sent, false);
			rc = take(arg, at, iov, count);
			cl_server_moved(&t->sent, true);
			if (rc == 0)
				continue;
			cl_tries_stop(t, rc);
			return RXW_USER_ABORT;
		case AFS_FETCH_DONE:
			return 0;
		case AFS_FETCH_AGAIN:
		case AFS_FETCH_ERROR:
		default:
			/*
			 * A call that failed has a code of its own; an answer that makes no sense
			 * is garbled.
			 */
			if (rxw_call_error(t->sent.call, NULL))
				return RXW_USER_ABORT;
			t->why = f->why;
			return RXW_PROTOCOL_ERROR;
		}
	}
}

/* The next bytes of the reply of FetchData are handed over. 0 or the code for cl_tries_judge(). */
static rxw_code hand_over_bytes(struct cl_tries *t, uint64_t at, size_t left, cl_take_fn *take,
				void *arg)
{
	while (left > 0) {
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		ssize_t n = rxw_call_readv(t->sent.call, left, iov, &count);
		int rc;

		if (n <= 0)
			return n == 0 ? RXW_PROTOCOL_ERROR : RXW_USER_ABORT;
		cl_server_moved(&t->sent, false);
		rc = take(arg, at, iov, count);
		cl_server_moved(&t->sent, true);
		if (rc != 0) {
			cl_tries_stop(t, rc);
			return RXW_USER_ABORT;
		}
		at += (uint64_t)n;
		left -= (size_t)n;
	}
	return 0;
}

/* The same at servers without the 64-bit call. Results are stored in f. */
static rxw_code run_old_fetch(struct cl_tries *t, struct afs_fetch *f, cl_take_fn *take, void *arg)
{
	uint8_t head[4];
	struct rxw_xdr x;
	uint32_t length = 0;
	rxw_code code;

	if (f->offset + f->wanted > INT32_MAX) {
		cl_tries_stop(t, cl_fail(t->failure, EFBIG,
					 "FetchData: the server has no files of more than 2 GiB"));
		return RXW_USER_ABORT;
	}
	code = StartRXAFS_FetchData(t->sent.call, &f->fid, (int32_t)f->offset, (int32_t)f->wanted);
	if (code == 0 && rxw_call_read(t->sent.call, head, sizeof(head)) != sizeof(head))
		code = RXW_PROTOCOL_ERROR;
	if (code)
		return code;
	rxw_xdr_reader(&x, head, sizeof(head));
	rxw_xdr_get_u32(&x, &length);
	if (length > f->wanted)
		return RXW_PROTOCOL_ERROR;
	f->received = length;
	code = hand_over_bytes(t, f->offset, length, take, arg);
	if (code == 0)
		code = EndRXAFS_FetchData(t->sent.call, &f->status, &f->callback, &f->sync);
	return code == 0 && !afs_status_usable(&f->status) ? RXW_PROTOCOL_ERROR : code;
}

/* One try. 0 or the code for cl_tries_judge(). */
static rxw_code run_one_fetch(struct cl_tries *t, struct afs_fetch *f, cl_take_fn *take, void *arg)
{
	t->alternative = CL_MISSING_FETCH64;
	if (!cl_tries_lacks(t, CL_MISSING_FETCH64))
		return stream_fetch(t, f, take, arg);
	t->alternative = 0;
	return run_old_fetch(t, f, take, arg);
}

/* Bytes that have come over paths which then fell silent. They are of the version if the server still has it at the end (P-022). */
struct come {
	uint64_t bytes;
	struct cl_server *server;
	uint32_t creation; /* of its volume, before the first of them */
};

/* Where the next call of a fetch of `length` bytes begins. Its path was chosen for what had not come. */
static uint64_t go_on_after(struct come *come, struct cl_tries *t, uint64_t length)
{
	uint32_t creation = cl_tries_creation(t);

	if (come->server == t->sent.server && come->creation == creation)
		return come->bytes;
	if (come->bytes)
		cl_load_restart(&t->sent, length);
	*come = (struct come){.server = t->sent.server, .creation = creation};
	return 0;
}

/* Whether bytes of several calls are of one version: the state of a read-only volume must be known, and the same. */
static bool are_of_version(const struct come *come, const struct cl_tries *t, uint64_t version,
			   const AFSFetchStatus *status)
{
	return afs_status_version(status) == version &&
	       (cl_volume_type(t->volume) == AFS_VL_RW ||
		(come->creation && t->stamp->sync.spare1 == come->creation));
}

/*
 * Bytes that wait for their status. Sites of a read-only volume may have different releases, and readers must not get bytes of another one
 * than that which they are shown.
 */
struct held_bytes {
	uint8_t *bytes; /* NULL: they are not held */
	uint64_t start, length, received;
};

static int hold_fetched(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct held_bytes *held = arg;
	uint64_t at = offset - held->start;

	for (unsigned i = 0; i < count; i++) {
		if (iov[i].iov_len > held->length - at)
			return -EIO;
		memcpy(held->bytes + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	held->received = at;
	return 0;
}

static int give_held_bytes(struct held_bytes *held, cl_take_fn *take, void *arg, int result)
{
	struct iovec iov = {held->bytes, held->received};

	if (!result && held->bytes && held->received)
		result = take(arg, held->start, &iov, 1);
	free(held->bytes);
	return result;
}

int cl_net_fetch_data(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		      uint64_t version, uint64_t offset, uint64_t length, cl_take_fn *take,
		      void *arg, uint64_t *fetched, AFSFetchStatus *status, struct cl_stamp *stamp,
		      struct rxafs_failure *failure)
{
	struct held_bytes held = {.start = offset, .length = length};
	struct come come = {0};
	struct afs_fetch f;
	struct cl_tries t;

	assert(length <= AFS_FETCH_MAX);
	*fetched = 0;
	cl_tries_start(&t, volume, caller, "FetchData64", fid, CL_READS, stamp, failure);
	/* Without memory they are not held. */
	if (cl_volume_type(volume) != AFS_VL_RW && length <= HELD_MOST && cl_tries_choose(&t))
		held.bytes = malloc(length);
	while (t.bytes = length >= CL_BRIEF_READ ? length - come.bytes : 0, cl_tries_next(&t)) {
		uint64_t begun = go_on_after(&come, &t, length);
		rxw_code code;

		held.received = begun;
		afs_fetch_init(&f, fid, offset + begun, length - begun);
		code = held.bytes ? run_one_fetch(&t, &f, hold_fetched, &held)
				  : run_one_fetch(&t, &f, take, arg);
		if (code == 0) {
			/* The server would break it at the address that the call came from, which may be gone then. */
			if (t.sent.read.path && !cl_path_hears(t.sent.read.path))
				f.callback = (AFSCallBack){0};
			t.stamp->callback = f.callback;
			t.stamp->sync = f.sync;
			*fetched = begun + f.received;
			*status = f.status;
		}
		come.bytes = code && version && t.sent.lost ? begun + f.received : 0;
		cl_tries_judge(&t, code, RXAFS_FN_FetchData64);
		if (code == 0 && t.over && !t.result && begun &&
		    !are_of_version(&come, &t, version, status))
			t.over = false;
	}
	return give_held_bytes(&held, take, arg, cl_tries_result(&t));
}

unsigned cl_net_paths(struct cl_volume *volume, uint64_t *share)
{
	uint32_t number = 0;

	*share = 0;
	cl_volume_servers(volume, &number, 1);
	return number ? cl_load_paths(cl_server_at(volume->record->net, number), share) : 1;
}

/* Ask the server of a try which version it has, before it sends a part of one. False: no call is in progress. */
static bool ask_data_version(struct cl_tries *t, struct cl_part *part)
{
	rxw_code code = StartRXAFS_FetchStatus(t->sent.call, &part->fid)
				?: EndRXAFS_FetchStatus(t->sent.call, &part->status,
							&t->stamp->callback, &t->stamp->sync);

	if (code == 0 && !afs_status_usable(&part->status))
		cl_tries_reject(t, "the status is malformed");
	cl_tries_judge(t, code, RXAFS_FN_FetchStatus);
	if (!t->over || t->result)
		return false;
	if (afs_status_version(&part->status) == part->version)
		return cl_tries_same(t);
	if (cl_tries_elsewhere(t)) {
		t->over = false;
		return false;
	}
	part->differs = true;
	cl_tries_stop(t, -EAGAIN);
	return false;
}

int cl_net_fetch_part(struct cl_volume *volume, const struct cl_caller *caller,
		      struct cl_part *part, struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct afs_fetch f;
	struct cl_tries t;

	assert(part->length <= AFS_FETCH_MAX);
	part->fetched = 0;
	cl_tries_start(&t, volume, caller, "FetchData64", &part->fid, CL_READS, stamp, failure);
	while (cl_tries_next(&t)) {
		uint64_t at = part->offset + part->fetched;
		rxw_code code;

		t.alternative = 0;
		if ((at > 0 || cl_tries_choose(&t)) && !ask_data_version(&t, part))
			continue;
		afs_fetch_init(&f, &part->fid, at, part->length - part->fetched);
		code = run_one_fetch(&t, &f, part->take, part->arg);
		part->fetched += f.received;
		if (code == 0) {
			t.stamp->callback = f.callback;
			t.stamp->sync = f.sync;
			part->status = f.status;
		}
		/* Nothing can be added to what such a server has sent. */
		if (code == RXW_PROTOCOL_ERROR)
			cl_tries_reject(&t, f.why ? f.why : "its answer is malformed");
		cl_tries_judge(&t, code, RXAFS_FN_FetchData64);
	}
	return cl_tries_result(&t);
}

/* ---- several files ---- */

/* Fetches that are in progress together. */
struct fetching {
	struct cl_fetch *fetches;
	struct afs_fetch state[CL_MANY];
};

static void send_fetch(void *arg, unsigned i, rxw_call *call)
{
	struct fetching *all = arg;
	struct cl_fetch *fetch = &all->fetches[i];

	afs_fetch_init(&all->state[i], &fetch->fid, 0, fetch->length);
	/* A failure shows again in the next step. */
	afs_fetch_send(&all->state[i], call);
}

static rxw_code receive_fetch(void *arg, unsigned i, struct cl_tries *t)
{
	struct fetching *all = arg;
	struct cl_fetch *fetch = &all->fetches[i];
	struct afs_fetch *state = &all->state[i];
	rxw_code code = stream_fetch(t, state, fetch->take, fetch->arg);

	if (code == 0) {
		t->stamp->callback = state->callback;
		t->stamp->sync = state->sync;
		fetch->fetched = state->received;
		fetch->status = state->status;
	}
	return code;
}

static void end_shared_fetch(void *arg, unsigned i, int result)
{
	struct cl_fetch *fetch = &((struct fetching *)arg)->fetches[i];

	fetch->result = result;
	fetch->ended(fetch->arg, fetch);
}

void cl_net_fetch_many(struct cl_volume *volume, const struct cl_caller *caller,
		       struct cl_fetch *fetches, unsigned count)
{
	struct fetching all = {.fetches = fetches};
	const struct cl_flight flight = {.function = RXAFS_FN_FetchData64,
					 .missing = CL_MISSING_FETCH64,
					 .send = send_fetch,
					 .receive = receive_fetch,
					 .ended = end_shared_fetch,
					 .arg = &all};
	struct cl_tries tries[CL_MANY];

	assert(count && count <= CL_MANY);
	for (unsigned i = 0; i < count; i++)
		cl_tries_start(&tries[i], volume, caller, "FetchData64", &fetches[i].fid, CL_READS,
			       &fetches[i].stamp, NULL);
	cl_tries_together(tries, count, &flight);
}

/* ---- StoreData64 ---- */

/* Send the bytes. 0; or the code for cl_tries_judge(). */
static rxw_code send_bytes(struct cl_tries *t, uint64_t offset, uint64_t length, cl_give_fn *give,
			   void *arg)
{
	uint64_t done = 0;

	while (done < length) {
		size_t want = length - done < PIECE ? (size_t)(length - done) : PIECE;
		struct iovec iov[SLICES];
		unsigned count = SLICES;
		ssize_t n = rxw_call_reserve(t->sent.call, want, iov, &count);
		int rc;

		if (n <= 0)
			return RXW_USER_ABORT;
		cl_server_moved(&t->sent, false);
		rc = give(arg, offset + done, iov, count);
		if (rc != 0) {
			cl_tries_stop(t, rc);
			return RXW_USER_ABORT;
		}
		if (rxw_call_commit(t->sent.call, (size_t)n) < 0)
			return RXW_USER_ABORT;
		done += (uint64_t)n;
		cl_server_moved(&t->sent, true);
	}
	return 0;
}

/* What to store, and where. */
struct storing {
	const AFSFid *fid;
	const AFSStoreStatus *how;
	uint64_t offset, length, file_length, known_length;
	cl_give_fn *give;
	void *arg;
};

/* The length of the file that is sent (K-076). */
static uint64_t length_to_send(const struct cl_tries *t, const struct storing *s)
{
	uint64_t end = s->offset + s->length;

	if (s->file_length != CL_NO_CUT || !cl_tries_lacks(t, CL_MISSING_NO_CUT))
		return s->file_length;
	return end > s->known_length ? end : s->known_length;
}

/* At servers without the 64-bit call. */
static rxw_code run_old_store(struct cl_tries *t, const struct storing *s, uint64_t file_length,
			      AFSFetchStatus *status)
{
	uint64_t end = s->offset + s->length;
	rxw_code code;

	if (file_length == CL_NO_CUT)
		file_length = end > s->known_length ? end : s->known_length;
	if (file_length > INT32_MAX || end > INT32_MAX) {
		cl_tries_stop(t, cl_fail(t->failure, EFBIG,
					 "StoreData: the server has no files of more than 2 GiB"));
		return RXW_USER_ABORT;
	}
	code = StartRXAFS_StoreData(t->sent.call, s->fid, s->how, (uint32_t)s->offset,
				    (uint32_t)s->length, (uint32_t)file_length);
	if (code == 0)
		code = send_bytes(t, s->offset, s->length, s->give, s->arg);
	return code ?: EndRXAFS_StoreData(t->sent.call, status, &t->stamp->sync);
}

static rxw_code stream_store(struct cl_tries *t, const struct storing *s, AFSFetchStatus *status)
{
	uint64_t file_length = length_to_send(t, s);
	rxw_code code;

	if (cl_tries_lacks(t, CL_MISSING_STORE64)) {
		t->alternative = 0;
		return run_old_store(t, s, file_length, status);
	}
	t->alternative = CL_MISSING_STORE64;
	code = StartRXAFS_StoreData64(t->sent.call, s->fid, s->how, s->offset, s->length,
				      file_length);
	if (code == 0)
		code = send_bytes(t, s->offset, s->length, s->give, s->arg);
	return code ?: EndRXAFS_StoreData64(t->sent.call, status, &t->stamp->sync);
}

/* Whether the server has refused a length that cannot cut: the next try sends a known one. */
static bool is_length_refused(const struct cl_tries *t, const struct storing *s)
{
	return s->file_length == CL_NO_CUT && t->over && !cl_tries_lacks(t, CL_MISSING_NO_CUT) &&
	       t->origin == RXW_ORIGIN_PEER && (t->result == -EFBIG || t->result == -EINVAL);
}

int cl_net_store_data(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		      const AFSStoreStatus *how, uint64_t offset, uint64_t length,
		      uint64_t file_length, uint64_t known_length, cl_give_fn *give, void *arg,
		      AFSFetchStatus *status, struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	const struct storing s = {.fid = fid,
				  .how = how,
				  .offset = offset,
				  .length = length,
				  .file_length = file_length,
				  .known_length = known_length,
				  .give = give,
				  .arg = arg};
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, "StoreData64", fid, 0, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = stream_store(&t, &s, status);

		if (code == 0 && !afs_status_usable(status))
			cl_tries_reject(&t, "the status is malformed");
		cl_tries_judge(&t, code, RXAFS_FN_StoreData64);
		if (is_length_refused(&t, &s)) {
			atomic_fetch_or(&t.sent.server->missing, CL_MISSING_NO_CUT);
			t.over = false;
			t.result = 0;
		}
	}
	return cl_tries_result(&t);
}

/* ---- several files ---- */

static void send_store(void *arg, unsigned i, rxw_call *call)
{
	const struct cl_store *store = &((struct cl_store *)arg)[i];

	/* A failure shows again in the reply. */
	if (StartRXAFS_StoreData64(call, &store->fid, &store->how, 0, store->length,
				   store->length) == 0 &&
	    (!store->length ||
	     rxw_call_write(call, store->bytes, store->length) == (ssize_t)store->length))
		rxw_call_send_end(call);
}

static rxw_code receive_stored(void *arg, unsigned i, struct cl_tries *t)
{
	struct cl_store *store = &((struct cl_store *)arg)[i];
	rxw_code code = EndRXAFS_StoreData64(t->sent.call, &store->status, &t->stamp->sync);

	if (code == 0 && !afs_status_usable(&store->status))
		cl_tries_reject(t, "the status is malformed");
	return code;
}

static void end_shared_store(void *arg, unsigned i, int result)
{
	((struct cl_store *)arg)[i].result = result;
}

void cl_net_store_many(struct cl_volume *volume, const struct cl_caller *caller,
		       struct cl_store *stores, unsigned count)
{
	const struct cl_flight flight = {.function = RXAFS_FN_StoreData64,
					 .missing = CL_MISSING_STORE64,
					 .send = send_store,
					 .receive = receive_stored,
					 .ended = end_shared_store,
					 .arg = stores};
	struct cl_tries tries[CL_MANY];

	assert(count && count <= CL_MANY);
	for (unsigned i = 0; i < count; i++)
		cl_tries_start(&tries[i], volume, caller, "StoreData64", &stores[i].fid, 0,
			       &stores[i].stamp, &stores[i].failure);
	cl_tries_together(tries, count, &flight);
}
