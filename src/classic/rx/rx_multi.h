/* SPDX-License-Identifier: BSD-2-Clause */
/* One call to many servers at once. */
#ifndef RXWIRE_CLASSIC_MULTI_H
#define RXWIRE_CLASSIC_MULTI_H

#include <rx/rx_types.h>

struct rx_call;
struct rx_connection;

/* The macros below use these members; the rest is private. */
struct multi_handle {
	int nConns;
	struct rx_call **calls; /* calls[i] on the connection i; NULL after rx_EndCall() */
	short *ready;		/* nConns indices in the order in which the replies came */
	short nReady;
	short *nextReady;     /* the next one that multi_Select() returns */
	short *firstNotReady; /* behind the last one */
	void *internal;
};

/*
 * Begin a call on each of the connections, in order, waiting for a free channel where there is
 * none. Never NULL. multi_Select() waits for the first reply packet or the failure of one of them
 * and returns its index, each once, and -1 when all have been returned. multi_Finalize() ends the
 * calls that are left with RX_USER_ABORT and frees the handle. One thread.
 */
extern struct multi_handle *multi_Init(struct rx_connection **conns, int nConns);
extern int multi_Select(struct multi_handle *mh);
extern void multi_Finalize(struct multi_handle *mh);

/*
 *	multi_Rx(connections, n) {
 *		multi_P_Procedure(arguments);
 *		... multi_i: the index, multi_error: the code of this call ...
 *		multi_Abort;	(ends the other calls)
 *	} multi_End;
 *
 * multi_P_Procedure() is a macro that rxgen writes, with multi_Body(). The body of the loop runs
 * once for each reply. It first runs up to multi_Body() once for each connection, to send the
 * requests: multi_i0 counts these.
 */
#define multi_Rx(conns, nConns)                      \
	do {                                         \
		struct multi_handle *multi_h;        \
		struct rx_call *multi_call;          \
		afs_int32 multi_error;               \
		int multi_i, multi_i0;               \
		multi_h = multi_Init(conns, nConns); \
		for (multi_i0 = multi_i = 0;; multi_i = multi_i0)

#define multi_Body(startProc, endProc)                                                   \
	if (multi_i < multi_h->nConns && multi_h->nextReady == multi_h->firstNotReady) { \
		multi_call = multi_h->calls[multi_i];                                    \
		if (multi_call) {                                                        \
			startProc;                                                       \
			rx_FlushWrite(multi_call);                                       \
		}                                                                        \
		multi_i0++;                                                              \
		continue;                                                                \
	}                                                                                \
	multi_i = multi_Select(multi_h);                                                 \
	if (multi_i < 0)                                                                 \
		break;                                                                   \
	multi_call = multi_h->calls[multi_i];                                            \
	multi_error = rx_EndCall(multi_call, endProc);                                   \
	multi_h->calls[multi_i] = NULL

#define multi_Abort break

#define multi_End                \
	multi_Finalize(multi_h); \
	}                        \
	while (0)

#endif
