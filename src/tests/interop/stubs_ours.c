/* SPDX-License-Identifier: BSD-2-Clause */
/* Client and server of interop.xg on librxwire, with stubs of rxwgen. */
#include <signal.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rxwire/rxwire.h>

#include "interop.h" /* rxwgen's */

typedef int32_t afs_int32;
typedef uint32_t afs_uint32;
typedef int64_t afs_int64;
typedef uint64_t afs_uint64;
typedef rxw_connection iop_connection;
typedef rxw_call iop_call;
#define INOUT_TEXT 0

#include "stubs.h"

/* Made once, by main(). */
static rxw_engine *engine;
static rxw_endpoint *endpoint;

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static iop_connection *connect_to(int port)
{
	struct sockaddr_in to = loopback(port);
	rxw_connection *c = NULL;
	int rc = rxw_connection_create(endpoint, (struct sockaddr *)&to, sizeof(to), 40, NULL, &c);

	if (rc)
		die("port %d: %s", port, rxw_strerror(rc));
	rxw_connection_set_timeouts(c, 6000, 0, 0);
	return c;
}

static iop_call *call_begin(iop_connection *c)
{
	rxw_call *call = NULL;
	int rc = rxw_call_begin(c, NULL, &call);

	if (rc)
		die("a call cannot begin: %s", rxw_strerror(rc));
	return call;
}

static int32_t call_end(iop_call *call, int32_t code)
{
	int32_t error = rxw_call_error(call, NULL);

	/* As OpenAFS's library has it: what ended the call goes before what the stub makes of it. */
	return rxw_call_end(call, error ? error : code, NULL);
}

static bool call_write(iop_call *call, const void *data, size_t length)
{
	return rxw_call_write(call, data, length) == (ssize_t)length;
}

static bool call_read(iop_call *call, void *data, size_t length)
{
	return rxw_call_read(call, data, length) == (ssize_t)length;
}

static void free_points(iop_points *v)
{
	xdrfree_iop_points(v);
}

static void free_blob(iop_blob *v)
{
	xdrfree_iop_blob(v);
}

static void free_all(iop_all *v)
{
	xdrfree_iop_all(v);
}

static void on_reply(void *arg, unsigned index, int32_t code, int32_t *answer, char **who,
		     iop_points *points)
{
	(void)arg;
	answered(index, code, *answer, *who, points);
}

static void ask_each(iop_connection **c, unsigned count, afs_int32 question, const char *text)
{
	int rc = multi_IOP_Ask(c, count, question, text, on_reply, NULL);

	if (rc)
		die("multi: %s", rxw_strerror(rc));
}

/* -- the functions that the server stubs call ----------------------------------------------- */

static int32_t nothing(void *context, rxw_call *call)
{
	(void)context;
	(void)call;
	return 0;
}

static int32_t scalars_of(void *context, rxw_call *call, int32_t a, uint32_t b, int64_t c,
			  uint64_t d, int16_t e, char f, iop_color g, int32_t *ra, uint32_t *rb,
			  int64_t *rc, uint64_t *rd, int16_t *re, char *rf, iop_color *rg)
{
	(void)context;
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

static int32_t texts_of(void *context, rxw_call *call, const char *name, char **changed,
			char **longer)
{
	(void)context;
	(void)call;
	return serve_texts(name, changed, longer);
}

static int32_t blobs_of(void *context, rxw_call *call, const iop_blob *blob, const iop_block *block,
			iop_points *points, iop_blob *reversed)
{
	(void)context;
	(void)call;
	return serve_blobs(blob, block, points, reversed);
}

static int32_t all_of(void *context, rxw_call *call, uint32_t seed, const iop_all *all,
		      iop_all *answer)
{
	(void)context;
	(void)call;
	return serve_all(seed, all, answer);
}

static int32_t fail_of(void *context, rxw_call *call, int32_t code, int32_t *seven, char **well)
{
	(void)context;
	(void)call;
	return serve_fail(code, seven, well);
}

static int32_t sum_of(void *context, rxw_call *call, int32_t *a, int32_t b, iop_triple *t)
{
	(void)context;
	(void)call;
	*a += b;
	for (size_t i = 0; i < 3; i++)
		(*t)[i] = (int32_t)((uint32_t)(*t)[i] + (uint32_t)b);
	return 0;
}

static int32_t store_of(void *context, rxw_call *call, const char *name, uint64_t length,
			uint64_t *stored, uint64_t *bad)
{
	(void)context;
	return serve_store(call, name, length, stored, bad);
}

static int32_t fetch_of(void *context, rxw_call *call, uint64_t position, uint64_t length,
			uint64_t *sent, char **name)
{
	(void)context;
	return serve_fetch(call, position, length, sent, name);
}

static int32_t exchange_of(void *context, rxw_call *call, uint64_t length, iop_points *points)
{
	(void)context;
	return serve_exchange(call, length, points);
}

static int32_t ask_of(void *context, rxw_call *call, int32_t question, const char *text,
		      int32_t *answer, char **who, iop_points *points)
{
	(void)context;
	(void)call;
	return serve_ask(question, text, answer, who, points);
}

static const struct IOP_handlers handlers = {
	.Nothing = nothing,
	.Scalars = scalars_of,
	.Texts = texts_of,
	.Blobs = blobs_of,
	.All = all_of,
	.Fail = fail_of,
	.Sum = sum_of,
	.Store = store_of,
	.Fetch = fetch_of,
	.Exchange = exchange_of,
	.Ask = ask_of,
};

static void start(int port)
{
	struct sockaddr_in at = loopback(port);
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&at,
					       .address_len = sizeof(at),
					       .server = port != 0};
	int rc = rxw_engine_create(NULL, &engine);

	if (!rc)
		rc = rxw_endpoint_create(engine, &options, &endpoint);
	if (rc)
		die("port %d: %s", port, rxw_strerror(rc));
}

static void serve(int port)
{
	static struct IOP_service service = {.handlers = &handlers};
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = 40,
					      .name = "interop",
					      .handler = IOP_ExecuteRequest,
					      .context = &service};
	rxw_service *added;
	sigset_t set;
	int sig, rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	start(port);
	rc = rxw_service_add(endpoint, &options, &added);
	if (rc)
		die("the service: %s", rxw_strerror(rc));
	printf("ready %d\n", port);
	fflush(stdout);
	sigwait(&set, &sig);
	rc = rxw_endpoint_destroy(endpoint);
	if (!rc)
		rc = rxw_engine_destroy(engine);
	exit(rc ? 1 : 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "client"))
		start(0);
	return run_main(argc, argv);
}
