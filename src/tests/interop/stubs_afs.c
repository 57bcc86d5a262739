/* SPDX-License-Identifier: BSD-2-Clause */
/* Client and server of interop.xg on OpenAFS's library, with stubs of OpenAFS's rxgen. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "interop.h" /* OpenAFS's */

#include "afsrx.h"

typedef struct rx_connection iop_connection;
typedef struct rx_call iop_call;
#define INOUT_TEXT (-451)

#include "stubs.h"

static iop_connection *connect_to(int port)
{
	static struct rx_securityClass *security;
	struct rx_connection *c;

	if (!security)
		security = rxnull_NewClientSecurityObject();
	c = rx_NewConnection(htonl(INADDR_LOOPBACK), htons((uint16_t)port), 40, security, 0);
	rx_SetConnDeadTime(c, 6);
	return c;
}

static iop_call *call_begin(iop_connection *c)
{
	return rx_NewCall(c);
}

static int32_t call_end(iop_call *call, int32_t code)
{
	return rx_EndCall(call, code);
}

static bool call_write(iop_call *call, const void *data, size_t length)
{
	return rx_Write(call, (char *)data, (int)length) == (int)length;
}

static bool call_read(iop_call *call, void *data, size_t length)
{
	return rx_Read(call, data, (int)length) == (int)length;
}

static void free_points(iop_points *v)
{
	xdr_free((xdrproc_t)xdr_iop_points, v);
}

static void free_blob(iop_blob *v)
{
	xdr_free((xdrproc_t)xdr_iop_blob, v);
}

static void free_all(iop_all *v)
{
	xdr_free((xdrproc_t)xdr_iop_all, v);
}

static void ask_each(iop_connection **c, unsigned count, afs_int32 question, const char *text)
{
	afs_int32 answer = 0;
	char *who = NULL;
	iop_points points = {0};

	multi_Rx(c, (int)count)
	{
		multi_IOP_Ask(question, text, &answer, &who, &points);
		answered((unsigned)multi_i, multi_error, answer, who, &points);
		free(who);
		who = NULL;
		free_points(&points);
		memset(&points, 0, sizeof(points));
	}
	multi_End;
}

/* -- the functions that the server stubs call ------------------------------------------------- */

afs_int32 SIOP_Nothing(struct rx_call *call)
{
	(void)call;
	return 0;
}

afs_int32 SIOP_Scalars(struct rx_call *call, afs_int32 a, afs_uint32 b, afs_int64 c, afs_uint64 d,
		       short e, char f, iop_color g, afs_int32 *ra, afs_uint32 *rb, afs_int64 *rc,
		       afs_uint64 *rd, short *re, char *rf, iop_color *rg)
{
	(void)call;
	*ra = a;
	*rb = b;
	*rc = c;
	*rd = d;
	*re = e;
	*rf = f;
	*rg = g;
	return 0;
}

afs_int32 SIOP_Texts(struct rx_call *call, char *name, char **changed, char **longer)
{
	(void)call;
	return serve_texts(name, changed, longer);
}

afs_int32 SIOP_Blobs(struct rx_call *call, iop_blob *blob, iop_block *block, iop_points *points,
		     iop_blob *reversed)
{
	(void)call;
	return serve_blobs(blob, block, points, reversed);
}

afs_int32 SIOP_All(struct rx_call *call, afs_uint32 seed, iop_all *all, iop_all *answer)
{
	(void)call;
	return serve_all(seed, all, answer);
}

afs_int32 SIOP_Fail(struct rx_call *call, afs_int32 code, afs_int32 *seven, char **well)
{
	(void)call;
	return serve_fail(code, seven, well);
}

afs_int32 SIOP_Sum(struct rx_call *call, afs_int32 *a, afs_int32 b, iop_triple *t)
{
	(void)call;
	*a += b;
	for (size_t i = 0; i < 3; i++)
		(*t)[i] = (afs_int32)((uint32_t)(*t)[i] + (uint32_t)b);
	return 0;
}

afs_int32 SIOP_Store(struct rx_call *call, char *name, afs_uint64 length, afs_uint64 *stored,
		     afs_uint64 *bad)
{
	return serve_store(call, name, length, stored, bad);
}

afs_int32 SIOP_Fetch(struct rx_call *call, afs_uint64 position, afs_uint64 length, afs_uint64 *sent,
		     char **name)
{
	return serve_fetch(call, position, length, sent, name);
}

afs_int32 SIOP_Exchange(struct rx_call *call, afs_uint64 length, iop_points *points)
{
	return serve_exchange(call, length, points);
}

afs_int32 SIOP_Ask(struct rx_call *call, afs_int32 question, char *text, afs_int32 *answer,
		   char **who, iop_points *points)
{
	(void)call;
	return serve_ask(question, text, answer, who, points);
}

/* The second package is for clients alone; its server stubs want these to be there. */
afs_int32 SIOQ_Nothing(struct rx_call *call, afs_int32 *more)
{
	(void)call;
	(void)more;
	return 1;
}

afs_int32 SIOQ_Texts(struct rx_call *call, char *name, char *changed, char **shorter)
{
	(void)call;
	(void)name;
	(void)changed;
	(void)shorter;
	return 1;
}

afs_int32 SIOQ_Blobs(struct rx_call *call, iop_block *block)
{
	(void)call;
	(void)block;
	return 1;
}

afs_int32 SIOQ_Sum(struct rx_call *call, char *name)
{
	(void)call;
	(void)name;
	return 1;
}

afs_int32 SIOQ_Unknown(struct rx_call *call)
{
	(void)call;
	return 1;
}

static void serve(int port)
{
	struct rx_securityClass *security;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rx_Init(htons((uint16_t)port)))
		die("port %d: the library cannot open it", port);
	security = rxnull_NewServerSecurityObject();
	if (!rx_NewService(0, 40, "interop", &security, 1, IOP_ExecuteRequest))
		die("the library refuses the service");
	rx_StartServer(0);
	printf("ready %d\n", port);
	fflush(stdout);
	sigwait(&set, &sig);
	_Exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "client") && rx_Init(0))
		die("the library cannot open a port");
	return run_main(argc, argv);
}
