/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rxperf service on OpenAFS's own Rx library: the foreign server of the interoperation tests.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "afsrx.h"

/* Totals of all handlers, protected by totals_lock. */
static pthread_mutex_t totals_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t calls;
	uint64_t failed;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t bad;
} totals;

static bool want_verify;
static bool want_fill;

/* One call while it is served. pos_in and pos_out count the data of each direction. */
struct job {
	struct rx_call *call;
	unsigned char *buf;
	size_t size; /* of buf */
	uint32_t read_size;
	uint32_t write_size;
	uint64_t pos_in;
	uint64_t pos_out;
	uint64_t bad;
};

static int take(struct job *j, uint64_t len)
{
	return afsrx_get(j->call, j->buf, j->read_size, len, want_verify, &j->pos_in, &j->bad);
}

static int give(struct job *j, uint64_t len)
{
	return afsrx_put(j->call, j->buf, j->write_size, len, want_fill, &j->pos_out);
}

static int give_cookie(struct job *j)
{
	uint32_t cookie = AFSRX_COOKIE;

	return afsrx_write_words(j->call, &cookie, 1);
}

static int serve_send(struct job *j)
{
	uint32_t bytes;
	int code = afsrx_read_words(j->call, &bytes, 1);

	if (code || bytes > INT32_MAX)
		return -1;
	code = take(j, bytes);
	return code ? code : give_cookie(j);
}

static int serve_recv(struct job *j)
{
	uint32_t bytes;
	int code = afsrx_read_words(j->call, &bytes, 1);

	if (code || bytes > INT32_MAX)
		return -1;
	code = give(j, bytes);
	return code ? code : give_cookie(j);
}

static int serve_rpc(struct job *j)
{
	uint32_t sizes[2];
	int code = afsrx_read_words(j->call, sizes, 2);

	if (code || sizes[0] > INT32_MAX || sizes[1] > INT32_MAX)
		return -1;
	code = take(j, sizes[0]);
	if (!code)
		code = give(j, sizes[1]);
	return code ? code : give_cookie(j);
}

static int serve_file(struct job *j)
{
	uint32_t list[AFSRX_MAX_LIST];
	uint32_t n;
	bool out = false;
	int code = afsrx_read_words(j->call, &n, 1);

	if (code || n > AFSRX_MAX_LIST || afsrx_read_words(j->call, list, n))
		return -1;
	for (uint32_t i = 0; i < n && !code; i++) {
		if (list[i] == 0)
			out = !out;
		else if (list[i] > INT32_MAX / 4)
			code = -1;
		else
			code = out ? give(j, (uint64_t)list[i] * 4)
				   : take(j, (uint64_t)list[i] * 4);
	}
	return code;
}

static int serve_words(struct job *j)
{
	uint32_t head[4];

	if (afsrx_read_words(j->call, head, 4) || head[0] != AFSRX_VERSION || head[2] == 0 ||
	    head[3] == 0 || head[2] > AFSRX_MAX_IO || head[3] > AFSRX_MAX_IO)
		return -1;
	j->read_size = head[2];
	j->write_size = head[3];
	switch (head[1]) {
	case AFSRX_SEND:
		return serve_send(j);
	case AFSRX_RECV:
		return serve_recv(j);
	case AFSRX_RPC:
		return serve_rpc(j);
	case AFSRX_FILE:
		return serve_file(j);
	default:
		return -1;
	}
}

/* The library runs this for each call, on one of its threads; the result ends the call. */
static afs_int32 serve(struct rx_call *call)
{
	struct job j = { .call = call, .size = AFSRX_MAX_IO };
	int code;

	j.buf = calloc(1, j.size);
	if (!j.buf)
		return -1;
	code = serve_words(&j);
	free(j.buf);
	pthread_mutex_lock(&totals_lock);
	totals.calls++;
	totals.failed += code != 0;
	totals.bytes_in += j.pos_in;
	totals.bytes_out += j.pos_out;
	totals.bad += j.bad;
	pthread_mutex_unlock(&totals_lock);
	return code;
}

static void report(double started)
{
	struct afsrx_usage u;

	afsrx_usage_now(&u);
	pthread_mutex_lock(&totals_lock);
	printf("{\"program\":\"afsrx_server\",\"seconds\":%.6f,\"calls\":%" PRIu64
	       ",\"failed\":%" PRIu64 ",\"bytes_in\":%" PRIu64 ",\"bytes_out\":%" PRIu64
	       ",\"bad_bytes\":%" PRIu64 ",\"cpu_user_s\":%.6f,\"cpu_sys_s\":%.6f,"
	       "\"context_switches\":%ld,",
	       afsrx_now() - started, totals.calls, totals.failed, totals.bytes_in,
	       totals.bytes_out, totals.bad, u.user_s, u.sys_s, u.switches);
	pthread_mutex_unlock(&totals_lock);
	afsrx_print_counters();
	printf("}\n");
	fflush(stdout);
}

static void usage(void)
{
	printf("usage: afsrx_server [-p PORT] [--procs N] [--fill] [--verify] [--window PACKETS]\n"
	       "                    [--udp-buffer BYTES] [--no-jumbo] [--hot-thread]\n"
	       "                    [--dead SECONDS] [--rxkad KEY:LEVEL]\n"
	       "Prints \"ready PORT\", serves until SIGTERM or SIGINT, then prints one JSON line.\n"
	       "SIGUSR1 prints the line at once. Status 1 if data failed --verify.\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "port", required_argument, NULL, 'p' },
						 { "procs", required_argument, NULL, 'P' },
						 { "fill", no_argument, NULL, 'F' },
						 { "verify", no_argument, NULL, 'V' },
						 { "help", no_argument, NULL, 'h' },
						 AFSRX_SETUP_OPTIONS,
						 { 0 } };
	struct afsrx_setup setup = { 0 };
	struct rx_securityClass *security[3] = { 0 }; /* by index */
	struct rx_service *service;
	int port = AFSRX_PORT, procs = 40, opt, sig;
	double started = afsrx_now();
	sigset_t set;

	while ((opt = getopt_long(argc, argv, "p:h" AFSRX_SETUP_LETTERS, options, NULL)) != -1) {
		if (opt == 'p')
			port = (int)afsrx_number("--port", optarg, 1, 65535);
		else if (opt == 'P')
			procs = (int)afsrx_number("--procs", optarg, 1, 1000);
		else if (opt == 'F')
			want_fill = true;
		else if (opt == 'V')
			want_verify = true;
		else if (opt == 'h')
			return usage(), 0;
		else if (!afsrx_setup_option(&setup, opt, optarg))
			return 2;
	}
	if (optind != argc)
		afsrx_usage_die("%s: unexpected argument", argv[optind]);

	/* Before any thread exists, so that all of them leave these signals to sigwait(). */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);

	afsrx_pattern_init();
	afsrx_setup_before(&setup);
	if (rx_Init(htons((uint16_t)port)))
		afsrx_die("cannot open port %d", port);
	afsrx_setup_after(&setup);
	if (setup.rxkad)
		security[2] = afsrx_rxkad_server(setup.rxkad);
	else
		security[0] = rxnull_NewServerSecurityObject();
	service = rx_NewService(0, AFSRX_SERVICE, "rxperf", security, 3, serve);
	if (!service)
		afsrx_die("cannot register the service");
	if (setup.dead)
		rx_SetIdleDeadTime(service, setup.dead);
	rx_SetMinProcs(service, 2);
	rx_SetMaxProcs(service, procs);
	rx_StartServer(0);
	printf("ready %d\n", port);
	fflush(stdout);
	for (;;) {
		if (sigwait(&set, &sig))
			continue;
		report(started);
		if (sig != SIGUSR1)
			break;
	}
	/*
	 * rx_Finalize() waits for connections that clients left open; the kernel closes the port.
	 */
	_Exit(totals.bad ? 1 : 0);
}
