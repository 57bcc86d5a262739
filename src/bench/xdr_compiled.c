/* SPDX-License-Identifier: BSD-2-Clause */
/* The reply as the coders do it that rxwgen wrote. */
#include <stdlib.h>
#include <string.h>

#include "afs/rxafs.h"
#include "xdr.h"

static AFSFetchStatus statuses[XDR_ENTRIES];
static AFSCallBack callbacks[XDR_ENTRIES];
static AFSBulkStats stats = { XDR_ENTRIES, statuses };
static AFSCBs cbs = { XDR_ENTRIES, callbacks };
static AFSVolSync volsync;
static uint32_t found;

_Static_assert(sizeof(AFSFetchStatus) == 4 * XDR_STATUS, "words of a status");
_Static_assert(sizeof(AFSCallBack) == 4 * XDR_CALLBACK, "words of a callback");
_Static_assert(sizeof(AFSVolSync) == 4 * XDR_SYNC, "words of a sync");

/* Structures of words are filled and added up as words. */
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
	struct rxw_xdr x;

	rxw_xdr_writer(&x, memory, size);
	xdr_put_AFSBulkStats(&x, &stats);
	xdr_put_AFSCBs(&x, &cbs);
	xdr_put_AFSVolSync(&x, &volsync);
	return rxw_xdr_ok(&x) ? rxw_xdr_used(&x) : 0;
}

static AFSBulkStats got_stats;
static AFSCBs got_cbs;
static AFSVolSync got_sync;

static bool decode_all(const void *memory, size_t size)
{
	struct rxw_xdr x;

	rxw_xdr_reader(&x, memory, size);
	xdr_get_AFSBulkStats(&x, &got_stats);
	xdr_get_AFSCBs(&x, &got_cbs);
	xdr_get_AFSVolSync(&x, &got_sync);
	return rxw_xdr_ok(&x);
}

static void free_all(void)
{
	xdrfree_AFSBulkStats(&got_stats);
	xdrfree_AFSCBs(&got_cbs);
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
	uint8_t memory[XDR_BYTES];
	uint32_t all = 0;

	encode(memory, sizeof(memory));
	if (decode_all(memory, sizeof(memory)))
		all = add(got_stats.val, got_stats.len * XDR_STATUS) +
		      add(got_cbs.val, got_cbs.len * XDR_CALLBACK) + add(&got_sync, XDR_SYNC);
	free_all();
	return all;
}

const struct xdr_side xdr_compiled = { prepare, encode, decode, sum };
