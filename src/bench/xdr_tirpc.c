/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reply with libtirpc's XDR: routines as its interface compiler, rpcgen, generates them for the
 * same structures, with runs of words inline if the stream permits it.
 */
#ifdef HAVE_TIRPC

#include <rpc/rpc.h>
#include <stdlib.h>
#include <string.h>

#include "xdr.h"

#define STATUS_WORDS(X)                                                                            \
	X(interface_version)                                                                       \
	X(file_type) X(link_count) X(length) X(data_version) X(author) X(owner) X(caller_access)   \
	X(anonymous_access) X(mode) X(parent_vnode) X(parent_unique) X(residency) X(client_time)   \
	X(server_time) X(group) X(sync_counter) X(data_version_high) X(locks) X(length_high)       \
	X(error_code)
#define SYNC_WORDS(X) X(spare1) X(spare2) X(spare3) X(spare4) X(spare5) X(spare6)

#define MEMBER(name) u_int name;
struct status {
	STATUS_WORDS(MEMBER)
};
struct callback {
	u_int version, expires, type;
};
struct volsync {
	SYNC_WORDS(MEMBER)
};
struct statuses {
	u_int len;
	struct status *val;
};
struct callbacks {
	u_int len;
	struct callback *val;
};

#define SLOW(name)                            \
	if (!xdr_u_int(xdrs, &v->name))       \
		return FALSE;
#define PUT(name) IXDR_PUT_U_LONG(buf, v->name);
#define GET(name) v->name = IXDR_GET_U_LONG(buf);

static bool_t code_status(XDR *xdrs, struct status *v)
{
	int32_t *buf = XDR_INLINE(xdrs, XDR_STATUS * BYTES_PER_XDR_UNIT);

	if (!buf) {
		STATUS_WORDS(SLOW)
	} else if (xdrs->x_op == XDR_ENCODE) {
		STATUS_WORDS(PUT)
	} else {
		STATUS_WORDS(GET)
	}
	return TRUE;
}

/* Three words are too few for inline code by rpcgen. */
static bool_t code_callback(XDR *xdrs, struct callback *v)
{
	SLOW(version)
	SLOW(expires)
	SLOW(type)
	return TRUE;
}

static bool_t code_sync(XDR *xdrs, struct volsync *v)
{
	int32_t *buf = XDR_INLINE(xdrs, XDR_SYNC * BYTES_PER_XDR_UNIT);

	if (!buf) {
		SYNC_WORDS(SLOW)
	} else if (xdrs->x_op == XDR_ENCODE) {
		SYNC_WORDS(PUT)
	} else {
		SYNC_WORDS(GET)
	}
	return TRUE;
}

/* An xdrproc_t takes its value by a void pointer. */
static bool_t any_status(XDR *xdrs, void *v, ...)
{
	return code_status(xdrs, (struct status *)v);
}

static bool_t any_callback(XDR *xdrs, void *v, ...)
{
	return code_callback(xdrs, (struct callback *)v);
}

static bool_t code_reply(XDR *xdrs, struct statuses *s, struct callbacks *c, struct volsync *sync)
{
	return xdr_array(xdrs, (char **)&s->val, &s->len, XDR_ENTRIES, sizeof(struct status),
			 (xdrproc_t)any_status) &&
	       xdr_array(xdrs, (char **)&c->val, &c->len, XDR_ENTRIES, sizeof(struct callback),
			 (xdrproc_t)any_callback) &&
	       code_sync(xdrs, sync);
}

static struct status statuses[XDR_ENTRIES];
static struct callback callbacks[XDR_ENTRIES];
static struct statuses all_statuses = { XDR_ENTRIES, statuses };
static struct callbacks all_callbacks = { XDR_ENTRIES, callbacks };
static struct volsync volsync;
static struct statuses got_statuses;
static struct callbacks got_callbacks;
static struct volsync got_sync;
static uint32_t found;

static unsigned fill(void *to, unsigned words, unsigned from)
{
	for (unsigned i = 0; i < words; i++) {
		uint32_t w = xdr_word(from + i);

		memcpy((char *)to + 4 * (size_t)i, &w, 4);
	}
	return from + words;
}

static uint32_t add(const void *of, unsigned words)
{
	uint32_t sum = 0, w;

	for (unsigned i = 0; i < words; i++) {
		memcpy(&w, (const char *)of + 4 * (size_t)i, 4);
		sum += w;
	}
	return sum;
}

static void prepare(void)
{
	unsigned at = fill(statuses, XDR_ENTRIES * XDR_STATUS, 0);

	at = fill(callbacks, XDR_ENTRIES * XDR_CALLBACK, at);
	fill(&volsync, XDR_SYNC, at);
}

static size_t encode(void *memory, size_t size)
{
	XDR xdrs;

	xdrmem_create(&xdrs, (char *)memory, (u_int)size, XDR_ENCODE);
	return code_reply(&xdrs, &all_statuses, &all_callbacks, &volsync) ? xdr_getpos(&xdrs) : 0;
}

static bool decode_all(const void *memory, size_t size)
{
	XDR xdrs;

	got_statuses = (struct statuses){ 0 };
	got_callbacks = (struct callbacks){ 0 };
	xdrmem_create(&xdrs, (char *)(uintptr_t)memory, (u_int)size, XDR_DECODE);
	return code_reply(&xdrs, &got_statuses, &got_callbacks, &got_sync);
}

/*
 * Only the two arrays need freeing. xdr_free() would visit each of their words and take longer than
 * everything else, so this shows libtirpc at its best.
 */
static void free_all(void)
{
	free(got_statuses.val);
	free(got_callbacks.val);
}

static bool decode(const void *memory, size_t size)
{
	bool ok = decode_all(memory, size);

	found = got_sync.spare1;
	free_all();
	return ok;
}

static uint32_t sum(void)
{
	uint8_t memory[XDR_BYTES] __attribute__((aligned(8)));
	uint32_t all = 0;

	encode(memory, sizeof(memory));
	if (decode_all(memory, sizeof(memory)))
		all = add(got_statuses.val, got_statuses.len * XDR_STATUS) +
		      add(got_callbacks.val, got_callbacks.len * XDR_CALLBACK) +
		      add(&got_sync, XDR_SYNC);
	free_all();
	return all;
}

const struct xdr_side xdr_tirpc = { prepare, encode, decode, sum };

#else

#include "xdr.h"

const struct xdr_side xdr_tirpc;

#endif
