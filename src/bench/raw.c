/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw baseline: a windowed, acknowledged transfer of datagrams, without a protocol. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/raw.h"

static const char *const mode_names[RAW_MODES] = {
	[RAW_MSG] = "msg", [RAW_MMSG] = "mmsg", [RAW_GSO_MMSG] = "gso+mmsg",
	[RAW_GSO_GRO] = "gso+gro",
};

static const char usage_text[] =
	"usage: raw [--mode msg|mmsg|gso+mmsg|gso+gro] [--window DATAGRAMS] [--ack N|half|batch]\n"
	"           [--room N|half] [--no-merge] [--size BYTES] [--bytes BYTES] [--pin CPU,CPU]\n"
	"           [--streams N] [--threads each|one] [--poll] [--connect] [--ipv6]\n"
	"Moves BYTES (K, M, G: powers of two) over loopback from one process to another, prints\n"
	"one JSON object. --ack: acknowledge when N are owed, or once for each receive batch;\n"
	"--no-merge: never more than N with one acknowledgement. --room: send when the window has\n"
	"room for N. --streams: BYTES in so many at a time, a window each; a thread and a socket for\n"
	"each at both ends, or one for all. --pin: the CPUs of sender and receiver; the same twice:\n"
	"one core.\n";

/* One stream or all of them: socket and thread at each end, and resources used. */
struct hand {
	pthread_t thread;
	const struct raw_options *o;
	int sender, receiver; /* sockets */
	struct sockaddr_storage to, from;
	struct raw_usage u; /* without CPU time, which is counted per process */
	int rc;
};

static enum raw_mode parse_mode(const char *text)
{
	for (unsigned i = 0; i < RAW_MODES; i++)
		if (strcmp(text, mode_names[i]) == 0)
			return (enum raw_mode)i;
	raw_usage_error("--mode", text);
	return RAW_MSG;
}

/* Returns the number of threads. */
static unsigned parse(struct raw_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "mode", 1, NULL, 'm' },    { "window", 1, NULL, 'w' }, { "ack", 1, NULL, 'a' },
		{ "room", 1, NULL, 'r' },    { "no-merge", 0, NULL, 'n' }, { "size", 1, NULL, 's' },
		{ "bytes", 1, NULL, 'b' },   { "pin", 1, NULL, 'p' },    { "poll", 0, NULL, 'l' },
		{ "connect", 0, NULL, 'c' }, { "ipv6", 0, NULL, '6' },   { "help", 0, NULL, 'h' },
		{ "streams", 1, NULL, 'S' }, { "threads", 1, NULL, 't' }, { NULL, 0, NULL, 0 }
	};
	const char *ack = "half", *room = "half", *threads = "each";
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'm': o->mode = parse_mode(optarg); break;
		case 'w':
			o->window = (unsigned)raw_number("--window", optarg, 1, RAW_MAX_WINDOW);
			break;
		case 'a': ack = optarg; break;
		case 'r': room = optarg; break;
		case 'n': o->merge = false; break;
		case 's': o->size = (unsigned)raw_number("--size", optarg, 8, 65000); break;
		case 'b': o->bytes = raw_number("--bytes", optarg, 1, UINT64_MAX / 2); break;
		case 'p': raw_parse_pin(o, optarg); break;
		case 'S':
			o->streams = (unsigned)raw_number("--streams", optarg, 1, RAW_MAX_STREAMS);
			break;
		case 't': threads = optarg; break;
		case 'l': o->poll = true; break;
		case 'c': o->connect = true; break;
		case '6': o->ipv6 = true; break;
		case 'h': fputs(usage_text, stdout); exit(0);
		default: exit(2);
		}
	}
	if (optind < argc)
		raw_usage_error("unknown argument", argv[optind]);
	if (strcmp(ack, "half") == 0)
		o->ack_every = (o->window + 1) / 2;
	else
		o->ack_every = strcmp(ack, "batch") == 0 ? 0 :
			       (unsigned)raw_number("--ack", ack, 1, o->window);
	o->send_room = strcmp(room, "half") == 0 ? (o->window + 1) / 2 :
		       (unsigned)raw_number("--room", room, 1, o->window);
	/*
	 * The sender's outstanding data and the receiver's unacknowledged data must fit the window.
	 */
	if (o->ack_every && o->ack_every + o->send_room > o->window + 1)
		raw_usage_error("--ack and --room together exceed the window", ack);
	if (strcmp(threads, "one") == 0)
		return 1;
	if (strcmp(threads, "each") != 0)
		raw_usage_error("--threads", threads);
	return o->streams;
}

static void *send_all(void *arg)
{
	struct hand *h = arg;

	h->rc = raw_send_all(h->o, h->sender, &h->to, &h->u);
	return NULL;
}

static void *receive_all(void *arg)
{
	struct hand *h = arg;

	h->rc = raw_receive_all(h->o, h->receiver, &h->u);
	return NULL;
}

/* Runs all threads of this process, one of them on this thread. Returns 0, or -1 if one failed. */
static int run(struct hand *hands, unsigned n, int cpu, void *(*work)(void *),
	       struct raw_usage *u)
{
	int rc = 0;

	raw_pin(cpu);
	raw_measure(u, -1);
	for (unsigned i = 1; i < n; i++)
		if (pthread_create(&hands[i].thread, NULL, work, &hands[i]))
			raw_fail("thread", "one more could not be started");
	work(&hands[0]);
	for (unsigned i = 0; i < n; i++) {
		if (i)
			pthread_join(hands[i].thread, NULL);
		rc = hands[i].rc < 0 ? -1 : rc;
		u->syscalls += hands[i].u.syscalls;
		u->messages += hands[i].u.messages;
		u->acks += hands[i].u.acks;
	}
	raw_measure(u, 1);
	return rc;
}

/* The receiver's process. It writes its results to the pipe. */
static void receiver(struct hand *hands, unsigned n, int report)
{
	struct raw_usage u = { 0 };

	for (unsigned i = 0; i < n; i++)
		close(hands[i].sender);
	if (run(hands, n, hands->o->receiver_cpu, receive_all, &u) < 0)
		raw_fail("receiver", "a datagram was lost: is net.core.rmem_max large enough?");
	if (write(report, &u, sizeof(u)) != sizeof(u))
		raw_fail("receiver", "no way to report");
	exit(0);
}

/* Creates the threads' sockets, all bound before any sends. */
static struct hand *make_hands(const struct raw_options *o, unsigned n)
{
	struct hand *hands = calloc(n, sizeof(*hands));

	if (!hands)
		raw_fail("memory", strerror(errno));
	for (unsigned i = 0; i < n; i++) {
		hands[i].o = o;
		hands[i].receiver = raw_socket(o, &hands[i].to, true);
		hands[i].sender = raw_socket(o, &hands[i].from, false);
	}
	return hands;
}

static void print_end(const char *name, const struct raw_usage *u)
{
	printf(",\"%s\":{\"cpu_user_s\":%.4f,\"cpu_sys_s\":%.4f,\"syscalls\":%llu,"
	       "\"messages\":%llu,\"acks\":%llu,\"context_switches\":%llu}", name, u->user_s,
	       u->sys_s, (unsigned long long)u->syscalls, (unsigned long long)u->messages,
	       (unsigned long long)u->acks, (unsigned long long)u->switches);
}

static void print(const struct raw_options *o, unsigned hands, double elapsed,
		  const struct raw_usage *s, const struct raw_usage *r)
{
	unsigned streams = o->streams * hands;
	uint64_t bytes = o->bytes * hands;
	double gb = (double)bytes / 1e9;
	double cpu = s->user_s + s->sys_s + r->user_s + r->sys_s;

	printf("{\"program\":\"raw\",\"mode\":\"%s\",\"family\":%d,\"streams\":%u,"
	       "\"threads\":%u,\"window\":%u,\"ack_every\":%u,"
	       "\"merged\":%s,\"send_room\":%u,\"size\":%u,\"poll\":%s,\"connected\":%s,"
	       "\"pin\":[%d,%d],\"bytes\":%llu,\"seconds\":%.6f,\"GBps\":%.4f,"
	       "\"cpu_s_per_GB\":%.4f",
	       mode_names[o->mode], o->ipv6 ? 6 : 4, streams, hands, o->window, o->ack_every,
	       o->merge ? "true" : "false", o->send_room, o->size, o->poll ? "true" : "false",
	       o->connect ? "true" : "false", o->sender_cpu, o->receiver_cpu,
	       (unsigned long long)bytes, elapsed, gb / elapsed, cpu / gb);
	print_end("sender", s);
	print_end("receiver", r);
	puts("}");
}

int main(int argc, char **argv)
{
	struct raw_options o = { .mode = RAW_GSO_GRO, .merge = true, .size = 1440, .window = 255,
				 .sender_cpu = -1, .receiver_cpu = -1, .bytes = 1u << 30,
				 .streams = 1 };
	struct raw_usage su = { 0 }, ru = { 0 };
	unsigned n = parse(&o, argc, argv);
	struct hand *hands;
	double start, elapsed;
	int fds[2], status;
	pid_t child;

	/* The function that each thread runs. */
	o.streams /= n;
	o.bytes = (o.bytes + n - 1) / n;
	hands = make_hands(&o, n);
	if (pipe(fds) < 0)
		raw_fail("pipe", strerror(errno));
	child = fork();
	if (child < 0)
		raw_fail("fork", strerror(errno));
	if (child == 0)
		receiver(hands, n, fds[1]);
	for (unsigned i = 0; i < n; i++)
		close(hands[i].receiver);
	close(fds[1]);
	start = raw_now();
	if (run(hands, n, o.sender_cpu, send_all, &su) < 0) {
		waitpid(child, &status, 0);
		raw_fail("sender", "nothing is acknowledged any more");
	}
	elapsed = raw_now() - start;
	if (read(fds[0], &ru, sizeof(ru)) != sizeof(ru))
		raw_fail("receiver", "ended without a report");
	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		raw_fail("receiver", "failed");
	print(&o, n, elapsed, &su, &ru);
	free(hands);
	return 0;
}
