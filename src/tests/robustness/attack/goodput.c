/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the cost of an attack for honest clients. In some rounds the attacker sends to the
 * server that they call, in the others, at the same rate, to a socket whose owner reads and drops.
 * Prints one line of JSON for each attack. Each round has a new server.
 *
 * usage: goodput [--list] [--rounds N] [--seconds N] [--server] [NAME...]
 *
 * --server: no rounds with the sink, for profiles. RXW_ATTACK_RATE: packets per second.
 * RXW_ATTACK_EQUAL: no real-time priority for the attacker's thread.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attacker.h"
#include "tests/support/internals.h"

#define MOST_ROUNDS 50u

struct sink {
	int fd;
	struct sockaddr_storage address;
	_Atomic(bool) stop;
	pthread_t thread;
};

struct round {
	double goodput, rate; /* calls per second; packets per second */
	size_t held;	      /* bytes, of the server */
	struct counters stats;
};

static struct h_bed bed;
static unsigned rounds = 5;
static bool server_only;
static double seconds = 2;
static const struct attack *chosen[64];
static unsigned chosen_count;

static void *sinking(void *arg)
{
	static uint8_t bytes[BURST][2048];
	struct sink *k = arg;
	struct mmsghdr m[BURST];
	struct iovec iov[BURST];

	memset(m, 0, sizeof(m));
	for (unsigned i = 0; i < BURST; i++) {
		iov[i] = (struct iovec){bytes[i], sizeof(bytes[i])};
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	while (!atomic_load(&k->stop))
		(void)recvmmsg(k->fd, m, BURST, MSG_WAITFORONE, NULL);
	return NULL;
}

static void sink_open(struct sink *k)
{
	struct timeval patience = {.tv_usec = 50000};
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(k->address);
	int room = 4 << 20;

	memset(k, 0, sizeof(*k));
	k->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(k->fd, 0);
	setsockopt(k->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (setsockopt(k->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(k->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	ck_assert_int_eq(bind(k->fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(getsockname(k->fd, (struct sockaddr *)&k->address, &length), 0);
	ck_assert_int_eq(pthread_create(&k->thread, NULL, sinking, k), 0);
}

static void sink_close(struct sink *k)
{
	atomic_store(&k->stop, true);
	pthread_join(k->thread, NULL);
	close(k->fd);
}

static struct round play(const struct attack *attack, const struct sink *sink)
{
	struct round r = {.goodput = 0};
	struct honest h[HONEST];
	struct attacker a;
	uint64_t calls, sent, began;
	double passed;
	size_t peak;

	h_open(&bed, &(struct h_options){.server = getenv("RXW_ATTACK_SERVER"),
					 .security = attack->security});
	honest_open(h, &bed);
	honest_start(h, 10);
	honest_end(h, false);
	attacker_first = !getenv("RXW_ATTACK_EQUAL");
	attacker_start(&a, attack, sink ? &sink->address : &bed.address, h, UINT64_MAX);
	honest_start(h, UINT32_MAX);
	usleep(200000); /* until both rates are steady */
	began = h_now_ms();
	calls = honest_calls(h);
	sent = atomic_load(&a.sent);
	usleep((useconds_t)(seconds * 1e6));
	calls = honest_calls(h) - calls;
	sent = atomic_load(&a.sent) - sent;
	passed = (double)(h_now_ms() - began) / 1e3;
	r.goodput = (double)calls / passed;
	r.rate = (double)sent / passed;
	attacker_end(&a, true);
	honest_end(h, true);
	rxw_engine_memory(bed.server_engine, &peak);
	r.stats = counters_of(bed.server);
	r.held = peak + counter_in(&r.stats, "connections_server") * internals_connection_size +
		 counter_in(&r.stats, "peers") * internals_peer_size;
	honest_close(h);
	h_close(&bed);
	return r;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *from, unsigned n)
{
	double v[MOST_ROUNDS];

	memcpy(v, from, n * sizeof(*v));
	qsort(v, n, sizeof(*v), by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void measure(const struct attack *attack)
{
	double attacked[MOST_ROUNDS], alone[MOST_ROUNDS], share[MOST_ROUNDS];
	const struct rxw_counter *c;
	struct round r[2], last = {.goodput = 0};
	double rate[2] = {0, 0}, lowest = 0;
	size_t held = 0;
	struct sink sink;

	sink_open(&sink);
	for (unsigned i = 0; i < rounds; i++) {
		unsigned first = i % 2;

		if (server_only) {
			r[0] = r[1] = play(attack, NULL);
		} else {
			r[first] = play(attack, first ? &sink : NULL);
			r[!first] = play(attack, first ? NULL : &sink);
		}
		attacked[i] = r[0].goodput;
		alone[i] = r[1].goodput;
		share[i] = attacked[i] / alone[i];
		lowest = i && lowest < share[i] ? lowest : share[i];
		rate[0] += r[0].rate / rounds;
		rate[1] += r[1].rate / rounds;
		held = r[0].held > held ? r[0].held : held;
		last = r[0];
	}
	sink_close(&sink);
#define COUNT(name) (unsigned long long)counter_in(&last.stats, name)
	printf("{\"attack\": \"%s\", \"title\": \"%s\", \"rounds\": %u, \"seconds\": %g, "
	       "\"ratio\": %.3f, \"lowest\": %.3f, \"attacked\": %.0f, \"sink\": %.0f, "
	       "\"rate\": %.0f, \"rate_sink\": %.0f, \"held_mib\": %.1f, \"connections\": %llu, "
	       "\"peers\": %llu, \"kernel_drops\": %llu, \"met\": %llu, \"started\": %llu, "
	       "\"unvalidated\": %llu, \"cookies\": %llu",
	       attack->name, attack->title, rounds, seconds, median(share, rounds), lowest,
	       median(attacked, rounds), median(alone, rounds), rate[0], rate[1],
	       (double)held / 1048576, COUNT("connections_server"), COUNT("peers"),
	       COUNT("kernel_drops"),
	       (unsigned long long)(attack->met ? attack->met(&last.stats) : 0),
	       COUNT("calls_started"),
	       COUNT("unvalidated_connections"),
	       COUNT("cookies_sent"));
#undef COUNT
	for (size_t i = 0; (c = rxw_counter_at(i)); i++)
		if (!strncmp(c->name, "drops.", 6) && last.stats.value[i])
			printf(", \"drop_%s\": %llu", c->name + 6,
			       (unsigned long long)last.stats.value[i]);
	printf("}\n");
	fflush(stdout);
}

/* A test, because the harness uses assertions. */
START_TEST(one)
{
	measure(chosen[_i]);
}
END_TEST

static int run(void)
{
	Suite *s = suite_create("goodput");
	TCase *tc = tcase_create("goodput");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 0);
	tcase_add_loop_test(tc, one, 0, (int)chosen_count);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_SILENT);
	failed = srunner_ntests_failed(r);
	if (failed)
		srunner_print(r, CK_NORMAL);
	srunner_free(r);
	return failed != 0;
}

int main(int argc, char **argv)
{
	int at = 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (!strcmp(argv[at], "--list")) {
			for (unsigned i = 0; i < attack_count; i++)
				puts(attacks[i].name);
			return 0;
		}
		if (!strcmp(argv[at], "--rounds") && at + 1 < argc)
			rounds = (unsigned)atoi(argv[++at]);
		else if (!strcmp(argv[at], "--server"))
			server_only = true;
		else if (!strcmp(argv[at], "--seconds") && at + 1 < argc)
			seconds = atof(argv[++at]);
		else
			goto usage;
	}
	if (rounds < 1 || rounds > MOST_ROUNDS || !(seconds > 0))
		goto usage;
	for (unsigned i = 0; at >= argc && i < attack_count; i++)
		chosen[chosen_count++] = &attacks[i];
	for (; at < argc && chosen_count < 64; at++) {
		chosen[chosen_count] = attack_find(argv[at]);
		if (!chosen[chosen_count++])
			goto usage;
	}
	return run();
usage:
	fprintf(stderr,
		"usage: goodput [--list] [--rounds N] [--seconds N] [--server] [NAME...]\n");
	return 2;
}
