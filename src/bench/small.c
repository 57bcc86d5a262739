/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cost of compiled stubs: a call of 100 bytes each way through them, and the same call with
 * hand-written encoding, alternating between two processes. Prints one line of JSON.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "bench/small.h"
#include "count.h"

#define BY_HAND 1 /* service ids */
#define STUBS	2
#define ROUNDS	301
#define EACH	100 /* calls per round, some milliseconds */
#define BYTES	100
#define NAME	"abcdefghijkl"

/* -- request and reply ------------------------------------------------------------------------ */

static void answer(const small_question *q, const char *name, small_answer *a)
{
	for (unsigned i = 0; i < 25; i++)
		a->word[i] = q->word[i % 20] + (uint8_t)name[i % 12];
}

static int32_t do_ask(void *context, rxw_call *call, const small_question *question,
		      const char *name, small_answer *a)
{
	(void)context;
	(void)call;
	answer(question, name, a);
	return 0;
}

/* Opcode, 20 words, length and bytes of a name of 12 bytes. */
static int32_t ask_by_hand(rxw_connection *connection, const small_question *q, const char *name,
			   small_answer *a)
{
	uint8_t bytes[BYTES];
	rxw_call *call;
	int32_t code = 0;

	if (rxw_call_begin(connection, NULL, &call))
		return RXW_CALL_DEAD;
	rxw_xdr_store32(bytes, SMALL_OP_Ask);
	for (unsigned i = 0; i < 20; i++)
		rxw_xdr_store32(bytes + 4 + 4 * i, q->word[i]);
	rxw_xdr_store32(bytes + 84, 12);
	memcpy(bytes + 88, name, 12);
	if (rxw_call_write(call, bytes, BYTES) != BYTES)
		code = RXW_RPC_CC_MARSHAL;
	else if (rxw_call_read(call, bytes, BYTES) != BYTES)
		code = RXW_RPC_CC_UNMARSHAL;
	else
		for (unsigned i = 0; i < 25; i++)
			a->word[i] = rxw_xdr_load32(bytes + 4 * i);
	return rxw_call_end(call, code, NULL);
}

static int32_t serve_by_hand(rxw_call *call, void *context)
{
	uint8_t bytes[BYTES];
	char name[SMALL_NAMEMAX + 1];
	small_question q;
	small_answer a;

	(void)context;
	if (rxw_call_read(call, bytes, BYTES) != BYTES)
		return RXW_RPC_DECODE;
	if (rxw_xdr_load32(bytes) != SMALL_OP_Ask)
		return RXW_RPC_OPCODE;
	for (unsigned i = 0; i < 20; i++)
		q.word[i] = rxw_xdr_load32(bytes + 4 + 4 * i);
	if (rxw_xdr_load32(bytes + 84) != 12)
		return RXW_RPC_SS_UNMARSHAL;
	memcpy(name, bytes + 88, 12);
	name[12] = 0;
	answer(&q, name, &a);
	for (unsigned i = 0; i < 25; i++)
		rxw_xdr_store32(bytes + 4 * i, a.word[i]);
	return rxw_call_write(call, bytes, BYTES) == BYTES ? 0 : RXW_RPC_SS_MARSHAL;
}

/* -- two processes ---------------------------------------------------------------------------- */

static int fail(const char *what, int r)
{
	fprintf(stderr, "small: %s: %s\n", what, rxw_strerror(r));
	return 1;
}

static int serve(int go, int out)
{
	static const struct SMALL_handlers handlers = { .Ask = do_ask };
	static struct SMALL_service service = { .handlers = &handlers };
	struct rxw_service_options hand = { .size = sizeof(hand), .id = BY_HAND, .name = "hand",
					    .handler = serve_by_hand };
	struct rxw_service_options stubs = { .size = sizeof(stubs), .id = STUBS, .name = "stubs",
					     .handler = SMALL_ExecuteRequest, .context = &service };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct rxw_endpoint_options o = { .size = sizeof(o), .address = (struct sockaddr *)&in,
					  .address_len = sizeof(in), .server = 1 };
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	struct rxw_config config;
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	char c;
	int r;

	/* The parent opens its counter first, so that it covers all threads. */
	if (read(go, &c, 1) != 1)
		return 1;
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/*
	 * One listener: with several the two connections could use different ones, at unequal
	 * distance.
	 */
	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	r = rxw_engine_create(&config, &engine);
	if (!r)
		r = rxw_endpoint_create(engine, &o, &endpoint);
	if (!r)
		r = rxw_service_add(endpoint, &hand, NULL);
	if (!r)
		r = rxw_service_add(endpoint, &stubs, NULL);
	if (!r)
		r = rxw_endpoint_address(endpoint, &bound, &length);
	if (r)
		return fail("server", r);
	if (write(out, &((struct sockaddr_in *)&bound)->sin_port, 2) != 2)
		return 1;
	for (;;)
		pause();
}

struct pair {
	pid_t child;
	clockid_t clock; /* of the server */
	int here, there; /* counters */
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_connection *by_hand, *stubs;
};

static int start(struct pair *p)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int go[2], port[2], r;

	if (pipe(go) || pipe(port))
		return 1;
	p->child = fork();
	if (!p->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(serve(go[0], port[1]));
	}
	p->there = count_open(p->child);
	p->here = count_open(0);
	if (p->child < 0 || clock_getcpuclockid(p->child, &p->clock) || write(go[1], "", 1) != 1 ||
	    read(port[0], &in.sin_port, 2) != 2)
		return 1;
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = rxw_engine_create(NULL, &p->engine);
	if (!r)
		r = rxw_endpoint_create(p->engine, NULL, &p->endpoint);
	if (!r)
		r = rxw_connection_create(p->endpoint, (struct sockaddr *)&in, sizeof(in), BY_HAND,
					  NULL, &p->by_hand);
	if (!r)
		r = rxw_connection_create(p->endpoint, (struct sockaddr *)&in, sizeof(in), STUBS,
					  NULL, &p->stubs);
	return r ? fail("client", r) : 0;
}

static void end(struct pair *p)
{
	rxw_connection_release(p->by_hand);
	rxw_connection_release(p->stubs);
	rxw_endpoint_destroy(p->endpoint);
	rxw_engine_destroy(p->engine);
	kill(p->child, SIGKILL);
	waitpid(p->child, NULL, 0);
}

/* -- measuring -------------------------------------------------------------------------------- */

struct figures {
	double wall[ROUNDS], cpu[ROUNDS]; /* seconds per call; CPU of both processes */
	uint64_t instructions;
};

static double cpu_of_both(const struct pair *p)
{
	return count_cpu(CLOCK_PROCESS_CPUTIME_ID) + count_cpu(p->clock);
}

static int32_t run(const struct pair *p, bool stubs, struct figures *f, unsigned round)
{
	uint64_t instructions = count_read(p->here) + count_read(p->there);
	double cpu = cpu_of_both(p), wall = count_now();
	small_question q;
	small_answer a, want;
	int32_t code = 0;

	for (unsigned i = 0; i < 20; i++)
		q.word[i] = round * 31 + i;
	answer(&q, NAME, &want);
	for (unsigned i = 0; i < EACH && !code; i++)
		code = stubs ? SMALL_Ask(p->stubs, &q, NAME, &a)
			     : ask_by_hand(p->by_hand, &q, NAME, &a);
	f->wall[round] = (count_now() - wall) / EACH;
	f->cpu[round] = (cpu_of_both(p) - cpu) / EACH;
	f->instructions += count_read(p->here) + count_read(p->there) - instructions;
	if (!code && memcmp(&a, &want, sizeof(a)))
		code = RXW_RPC_CC_UNMARSHAL;
	return code;
}

/* Successive rounds run under the same conditions, so the result is the median of their ratios. */
static double ratio(const double *a, const double *b)
{
	double each[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++)
		each[i] = a[i] / b[i];
	return count_median(each, ROUNDS);
}

static void say(const char *name, struct figures *f)
{
	printf("\"%s\": {\"us\": %.3f, \"cpu_us\": %.3f", name,
	       count_median(f->wall, ROUNDS) * 1e6, count_median(f->cpu, ROUNDS) * 1e6);
	if (f->instructions)
		printf(", \"instructions\": %.0f", (double)f->instructions / (ROUNDS * EACH));
	printf("}");
}

int main(void)
{
	static struct figures hand, stubs;
	struct pair p;
	int32_t code = 0;

	if (start(&p))
		return 1;
	for (unsigned round = 0; round < ROUNDS && !code; round++) {
		bool first = round % 2;

		code = run(&p, first, first ? &stubs : &hand, round);
		if (!code)
			code = run(&p, !first, first ? &hand : &stubs, round);
	}
	end(&p);
	if (code) {
		fprintf(stderr, "small: a call ended with %d: %s\n", code, rxw_code_text(code));
		return 1;
	}
	printf("{\"cpu_ratio\": %.4f, \"ratio\": %.4f, ", ratio(stubs.cpu, hand.cpu),
	       ratio(stubs.wall, hand.wall));
	say("by_hand", &hand);
	printf(", ");
	say("stubs", &stubs);
	printf("}\n");
	return 0;
}
