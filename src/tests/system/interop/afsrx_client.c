/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the rxperf service on OpenAFS's own Rx library: the foreign client of the
 * interoperation tests and of the benchmark.
 */
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "afsrx.h"

/* The options; read-only once the threads run. */
static struct {
	const char *host;
	int port;
	int service;
	enum afsrx_command command;
	uint32_t bytes;
	uint32_t request;
	uint32_t reply;
	uint32_t read_size;
	uint32_t write_size;
	uint32_t list[AFSRX_MAX_LIST];
	uint32_t list_len;
	int threads;
	int per_connection;
	int calls;
	int deadline;
	bool fill;
	bool verify;
	struct afsrx_setup setup;
} want = {
	.host = "127.0.0.1",
	.port = AFSRX_PORT,
	.service = AFSRX_SERVICE,
	.command = AFSRX_RECV,
	.bytes = 1 << 20,
	.request = 4,
	.reply = 4,
	.read_size = 65536,
	.write_size = 65536,
	.threads = 1,
	.per_connection = 1,
	.calls = 1,
	.deadline = 300,
};

/* One of the -t callers; its thread's own until joined. */
struct worker {
	pthread_t thread;
	struct rx_connection *conn;
	unsigned char *buf;
	uint64_t sent;
	uint64_t received;
	uint64_t bad;
	int done; /* calls that succeeded */
	int code; /* of the first failure */
	double *latency; /* one per call, seconds */
};

static int call_data(struct worker *w, struct rx_call *call, bool out, uint64_t len, uint64_t *pos)
{
	return out ? afsrx_put(call, w->buf, want.write_size, len, want.fill, pos) :
		     afsrx_get(call, w->buf, want.read_size, len, want.verify, pos, &w->bad);
}

static int call_list(struct worker *w, struct rx_call *call, uint64_t *sent, uint64_t *received)
{
	bool out = true;
	int code = 0;

	for (uint32_t i = 0; i < want.list_len && !code; i++) {
		if (want.list[i] == 0)
			out = !out;
		else
			code = call_data(w, call, out, (uint64_t)want.list[i] * 4,
					 out ? sent : received);
	}
	return code;
}

/* The words of the call, then the data to the server. */
static int call_request(struct worker *w, struct rx_call *call, uint64_t *sent)
{
	uint32_t words[6] = { AFSRX_VERSION, want.command, want.read_size, want.write_size };
	uint64_t data = 0;
	size_t n = 4;
	int code;

	if (want.command == AFSRX_RPC) {
		words[n++] = want.request;
		words[n++] = want.reply;
		data = want.request;
	} else if (want.command == AFSRX_FILE) {
		words[n++] = want.list_len;
	} else {
		words[n++] = want.bytes;
		data = want.command == AFSRX_SEND ? want.bytes : 0;
	}
	code = afsrx_write_words(call, words, n);
	if (!code && want.command == AFSRX_FILE)
		code = afsrx_write_words(call, want.list, want.list_len);
	return code ? code : call_data(w, call, true, data, sent);
}

static int call_run(struct worker *w, struct rx_call *call)
{
	uint64_t sent = 0, received = 0, reply = 0;
	uint32_t cookie = 0;
	char surplus;
	int code = call_request(w, call, &sent);

	if (want.command == AFSRX_RECV)
		reply = want.bytes;
	else if (want.command == AFSRX_RPC)
		reply = want.reply;
	if (!code && want.command == AFSRX_FILE)
		code = call_list(w, call, &sent, &received);
	else if (!code)
		code = call_data(w, call, false, reply, &received);
	if (!code && want.command != AFSRX_FILE) {
		code = afsrx_read_words(call, &cookie, 1);
		if (!code && cookie != AFSRX_COOKIE) {
			fprintf(stderr, "afsrx_client: the cookie is 0x%08x\n", cookie);
			code = -1;
		}
	}
	/* The stream must end here: another byte is an error. */
	if (!code && rx_Read(call, &surplus, 1) != 0) {
		fprintf(stderr, "afsrx_client: the reply is longer than requested\n");
		code = -1;
	}
	w->sent += sent;
	w->received += received;
	return code;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < want.calls && !w->code; i++) {
		double start = afsrx_now();
		struct rx_call *call = rx_NewCall(w->conn);
		int code = call_run(w, call);

		w->code = rx_EndCall(call, code);
		w->latency[w->done] = afsrx_now() - start;
		w->done += !w->code;
	}
	return NULL;
}

static uint32_t resolve(const char *host)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_DGRAM }, *found;
	uint32_t addr;

	if (getaddrinfo(host, NULL, &hints, &found))
		afsrx_die("%s: no such host (this library supports IPv4 only)", host);
	addr = ((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr;
	freeaddrinfo(found);
	return addr;
}

/* Connects each group of -C callers by one connection and starts them. */
static void start(struct worker *workers)
{
	struct rx_securityClass *security = want.setup.rxkad ?
						    afsrx_rxkad_client(want.setup.rxkad) :
						    rxnull_NewClientSecurityObject();
	struct rx_connection *conn = NULL;
	uint32_t addr = resolve(want.host);
	size_t size = want.read_size > want.write_size ? want.read_size : want.write_size;

	for (int i = 0; i < want.threads; i++) {
		struct worker *w = &workers[i];

		if (i % want.per_connection == 0)
			conn = rx_NewConnection(addr, htons((uint16_t)want.port),
						(uint16_t)want.service, security,
						want.setup.rxkad ? 2 : 0);
		w->conn = conn;
		w->buf = calloc(1, size);
		w->latency = calloc((size_t)want.calls, sizeof(*w->latency));
		if (!w->buf || !w->latency)
			afsrx_die("out of memory");
	}
	for (int i = 0; i < want.threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			afsrx_die("thread %d of %d cannot start", i + 1, want.threads);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double q)
{
	return n ? sorted[(size_t)(q * (double)(n - 1) + 0.5)] * 1e6 : 0;
}

/* Adds up the callers and prints the JSON line; the exit status. */
static int report(struct worker *workers, double seconds, const struct afsrx_usage *before)
{
	uint64_t sent = 0, received = 0, bad = 0, bytes;
	size_t calls = 0;
	int code = 0;
	struct afsrx_usage u;
	double *all = calloc((size_t)want.threads * (size_t)want.calls, sizeof(*all));

	if (!all)
		afsrx_die("out of memory");
	afsrx_usage_now(&u);
	for (int i = 0; i < want.threads; i++) {
		struct worker *w = &workers[i];

		memcpy(all + calls, w->latency, (size_t)w->done * sizeof(*all));
		calls += (size_t)w->done;
		sent += w->sent;
		received += w->received;
		bad += w->bad;
		if (!code)
			code = w->code;
	}
	qsort(all, calls, sizeof(*all), compare);
	bytes = sent + received;
	u.user_s -= before->user_s;
	u.sys_s -= before->sys_s;
	printf("{\"program\":\"afsrx_client\",\"bytes\":%" PRIu64 ",\"bytes_sent\":%" PRIu64
	       ",\"bytes_received\":%" PRIu64 ",\"bad_bytes\":%" PRIu64
	       ",\"error\":%d,\"seconds\":%.6f,\"MBps\":%.3f,\"calls\":%zu,\"calls_per_s\":%.1f,"
	       "\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"cpu_user_s\":%.6f,"
	       "\"cpu_sys_s\":%.6f,\"cpu_s_per_GB\":%.4f,\"context_switches\":%ld,",
	       bytes, sent, received, bad, code, seconds, (double)bytes / seconds / 1e6, calls,
	       (double)calls / seconds, quantile(all, calls, 0.5), quantile(all, calls, 0.99),
	       quantile(all, calls, 1), u.user_s, u.sys_s,
	       bytes ? (u.user_s + u.sys_s) / ((double)bytes / 1e9) : 0,
	       u.switches - before->switches);
	afsrx_print_counters();
	printf("}\n");
	fflush(stdout);
	free(all);
	if (code)
		fprintf(stderr, "afsrx_client: %s port %d: a call failed with %d\n", want.host,
			want.port, code);
	else if (bad)
		fprintf(stderr, "afsrx_client: %" PRIu64 " bytes differ from the pattern\n", bad);
	return code || bad;
}

static void parse_list(char *text)
{
	char *save = NULL;
	uint64_t bytes;

	for (char *t = strtok_r(text, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (want.list_len == AFSRX_MAX_LIST)
			afsrx_usage_die("-f: more than %d lengths", AFSRX_MAX_LIST);
		bytes = afsrx_number("-f", t, 0, INT32_MAX);
		if (bytes % 4)
			afsrx_usage_die("-f: %s is not a multiple of 4", t);
		want.list[want.list_len++] = (uint32_t)bytes / 4;
	}
}

static void parse_command(const char *text)
{
	if (!strcmp(text, "send"))
		want.command = AFSRX_SEND;
	else if (!strcmp(text, "recv"))
		want.command = AFSRX_RECV;
	else if (!strcmp(text, "rpc"))
		want.command = AFSRX_RPC;
	else if (!strcmp(text, "file"))
		want.command = AFSRX_FILE;
	else
		afsrx_usage_die("-c: \"%s\" must be send, recv, rpc or file", text);
}

static void usage(void)
{
	printf("usage: afsrx_client -c send|recv|rpc|file [-s HOST] [-p PORT] [-b BYTES]\n"
	       "       [-S REQUEST_BYTES] [-R REPLY_BYTES] [-f BYTES,BYTES,0,BYTES] [-t CALLERS]\n"
	       "       [-C CALLERS_PER_CONNECTION] [-T CALLS_EACH] [-r READ_SIZE] [-w WRITE_SIZE]\n"
	       "       [--fill] [--verify] [--deadline SECONDS] [--service ID]\n"
	       "       [--window PACKETS] [--udp-buffer BYTES] [--no-jumbo] [--hot-thread]\n"
	       "       [--dead SECONDS] [--rxkad KEY:LEVEL]\n"
	       "Prints one JSON line. Status 0 if all calls moved the requested bytes, else 1.\n");
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = { { "fill", no_argument, NULL, 'F' },
						 { "verify", no_argument, NULL, 'V' },
						 { "deadline", required_argument, NULL, 'D' },
						 { "service", required_argument, NULL, 'I' },
						 { "help", no_argument, NULL, 'h' },
						 AFSRX_SETUP_OPTIONS,
						 { 0 } };
	int opt;

#define NUMBER(name, low, high) afsrx_number(name, optarg, low, high)
	while ((opt = getopt_long(argc, argv, "c:s:p:b:S:R:f:t:C:T:r:w:h" AFSRX_SETUP_LETTERS,
				  options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			parse_command(optarg);
			break;
		case 's':
			want.host = optarg;
			break;
		case 'p':
			want.port = (int)NUMBER("-p", 1, 65535);
			break;
		case 'b':
			want.bytes = (uint32_t)NUMBER("-b", 0, INT32_MAX);
			break;
		case 'S':
			want.request = (uint32_t)NUMBER("-S", 0, INT32_MAX);
			break;
		case 'R':
			want.reply = (uint32_t)NUMBER("-R", 0, INT32_MAX);
			break;
		case 'f':
			parse_list(optarg);
			break;
		case 't':
			want.threads = (int)NUMBER("-t", 1, 1000);
			break;
		case 'C':
			want.per_connection = (int)NUMBER("-C", 1, 4);
			break;
		case 'T':
			want.calls = (int)NUMBER("-T", 1, 10000000);
			break;
		case 'r':
			want.read_size = (uint32_t)NUMBER("-r", 1, AFSRX_MAX_IO);
			break;
		case 'w':
			want.write_size = (uint32_t)NUMBER("-w", 1, AFSRX_MAX_IO);
			break;
		case 'F':
			want.fill = true;
			break;
		case 'V':
			want.verify = true;
			break;
		case 'D':
			want.deadline = (int)NUMBER("--deadline", 1, 86400);
			break;
		case 'I':
			want.service = (int)NUMBER("--service", 1, 65535);
			break;
		case 'h':
			usage();
			exit(0);
		default:
			if (!afsrx_setup_option(&want.setup, opt, optarg))
				exit(2);
		}
	}
#undef NUMBER
	if (optind != argc)
		afsrx_usage_die("%s: unexpected argument", argv[optind]);
}

int main(int argc, char **argv)
{
	struct afsrx_usage before;
	struct worker *workers;
	double started;

	parse(argc, argv);
	/* A call to a peer that only answers PINGs would never end by itself. */
	alarm((unsigned)want.deadline);
	afsrx_pattern_init();
	afsrx_setup_before(&want.setup);
	if (rx_Init(0))
		afsrx_die("cannot open a port");
	afsrx_setup_after(&want.setup);
	workers = calloc((size_t)want.threads, sizeof(*workers));
	if (!workers)
		afsrx_die("out of memory");
	afsrx_usage_now(&before);
	started = afsrx_now();
	start(workers);
	for (int i = 0; i < want.threads; i++)
		pthread_join(workers[i].thread, NULL);
	return report(workers, afsrx_now() - started, &before);
}
