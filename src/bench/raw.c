/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw yardstick: a windowed, acknowledged transfer of datagrams, without a protocol. */
#include <errno.h>
#include <getopt.h>
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
	"           [--poll] [--connect] [--ipv6]\n"
	"Moves BYTES (K, M, G: powers of two) over loopback from one process to another, prints\n"
	"one JSON object. --ack: acknowledge when N are owed, or once for each receive batch;\n"
	"--no-merge: never more than N with one acknowledgement. --room: send when the window has\n"
	"room for N. --pin: the CPUs of sender and receiver; the same twice: one core.\n";

static enum raw_mode parse_mode(const char *text)
{
	for (unsigned i = 0; i < RAW_MODES; i++)
		if (strcmp(text, mode_names[i]) == 0)
			return (enum raw_mode)i;
	raw_usage_error("--mode", text);
	return RAW_MSG;
}

static void parse(struct raw_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "mode", 1, NULL, 'm' },    { "window", 1, NULL, 'w' }, { "ack", 1, NULL, 'a' },
		{ "room", 1, NULL, 'r' },    { "no-merge", 0, NULL, 'n' }, { "size", 1, NULL, 's' },
		{ "bytes", 1, NULL, 'b' },   { "pin", 1, NULL, 'p' },    { "poll", 0, NULL, 'l' },
		{ "connect", 0, NULL, 'c' }, { "ipv6", 0, NULL, '6' },   { "help", 0, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	const char *ack = "half", *room = "half";
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
	/* What the sender waits for and what the receiver keeps back must fit the window. */
	if (o->ack_every && o->ack_every + o->send_room > o->window + 1)
		raw_usage_error("--ack and --room together exceed the window", ack);
}

/* The receiver's process: its figures go to the pipe. */
static void receiver(const struct raw_options *o, int fd, int report)
{
	struct raw_usage u = { 0 };

	raw_pin(o->receiver_cpu);
	raw_measure(&u, -1);
	if (raw_receive_all(o, fd, &u) < 0)
		raw_fail("receiver", "a datagram was lost: is net.core.rmem_max large enough?");
	raw_measure(&u, 1);
	if (write(report, &u, sizeof(u)) != sizeof(u))
		raw_fail("receiver", "no way to report");
	exit(0);
}

static void print(const struct raw_options *o, double elapsed, const struct raw_usage *s,
		  const struct raw_usage *r)
{
	double gb = (double)o->bytes / 1e9;
	double cpu = s->user_s + s->sys_s + r->user_s + r->sys_s;

	printf("{\"program\":\"raw\",\"mode\":\"%s\",\"family\":%d,\"window\":%u,\"ack_every\":%u,"
	       "\"merged\":%s,\"send_room\":%u,\"size\":%u,\"poll\":%s,\"connected\":%s,"
	       "\"pin\":[%d,%d],\"bytes\":%llu,\"seconds\":%.6f,\"GBps\":%.4f,"
	       "\"cpu_s_per_GB\":%.4f,\"sender\":{\"cpu_user_s\":%.4f,\"cpu_sys_s\":%.4f,"
	       "\"syscalls\":%llu,\"messages\":%llu,\"acks\":%llu,\"context_switches\":%llu},"
	       "\"receiver\":{\"cpu_user_s\":%.4f,\"cpu_sys_s\":%.4f,\"syscalls\":%llu,"
	       "\"messages\":%llu,\"acks\":%llu,\"context_switches\":%llu}}\n",
	       mode_names[o->mode], o->ipv6 ? 6 : 4, o->window, o->ack_every,
	       o->merge ? "true" : "false", o->send_room, o->size, o->poll ? "true" : "false",
	       o->connect ? "true" : "false", o->sender_cpu, o->receiver_cpu,
	       (unsigned long long)o->bytes, elapsed, gb / elapsed, cpu / gb, s->user_s, s->sys_s,
	       (unsigned long long)s->syscalls, (unsigned long long)s->messages,
	       (unsigned long long)s->acks, (unsigned long long)s->switches, r->user_s, r->sys_s,
	       (unsigned long long)r->syscalls, (unsigned long long)r->messages,
	       (unsigned long long)r->acks, (unsigned long long)r->switches);
}

int main(int argc, char **argv)
{
	struct raw_options o = { .mode = RAW_GSO_GRO, .merge = true, .size = 1440, .window = 255,
				 .sender_cpu = -1, .receiver_cpu = -1, .bytes = 1u << 30 };
	struct raw_usage su = { 0 }, ru = { 0 };
	struct sockaddr_storage to, from;
	int fds[2], rfd, sfd, status;
	double start, elapsed;
	pid_t child;

	parse(&o, argc, argv);
	rfd = raw_socket(&o, &to, true);
	sfd = raw_socket(&o, &from, false);
	if (pipe(fds) < 0)
		raw_fail("pipe", strerror(errno));
	child = fork();
	if (child < 0)
		raw_fail("fork", strerror(errno));
	if (child == 0) {
		close(sfd);
		receiver(&o, rfd, fds[1]);
	}
	close(rfd);
	close(fds[1]);
	raw_pin(o.sender_cpu);
	raw_measure(&su, -1);
	start = raw_now();
	if (raw_send_all(&o, sfd, &to, &su) < 0) {
		waitpid(child, &status, 0);
		raw_fail("sender", "nothing is acknowledged any more");
	}
	elapsed = raw_now() - start;
	raw_measure(&su, 1);
	if (read(fds[0], &ru, sizeof(ru)) != sizeof(ru))
		raw_fail("receiver", "ended without a report");
	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		raw_fail("receiver", "failed");
	print(&o, elapsed, &su, &ru);
	return 0;
}
