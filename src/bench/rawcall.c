/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw baseline of small calls: one datagram each way, without a protocol. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/rawcall.h"

#define END_TRIES 20
#define END_MS    100 /* between two of them */
#define SECONDS   2   /* unless --seconds or --calls say otherwise */
#define LONGEST_S 600
#define MOST_OUT  (4u << 20) /* bytes outstanding: a socket buffer's size */

static const char *const mode_names[RAWCALL_MODES] = {
	[RAWCALL_BLOCK] = "block",
	[RAWCALL_POLL] = "poll",
	[RAWCALL_MMSG] = "mmsg",
	[RAWCALL_BURSTS] = "bursts",
};

static const char usage_text[] =
	"usage: rawcall [--mode block|poll|mmsg|bursts] [--outstanding CALLS] [--size BYTES]\n"
	"               [--calls CALLS] [--seconds SECONDS] [--pin CPU,CPU]\n"
	"Make calls between two processes over loopback, with one datagram of BYTES each way (28 of\n"
	"them stand for a header), and print one JSON object. block, poll: one message per system call,\n"
	"blocking or busy-polling; mmsg: sendmmsg and recvmmsg; bursts: UDP_SEGMENT and UDP_GRO.\n"
	"--outstanding: 1 with block and poll, 64 otherwise. --pin: the CPUs of client and server.\n";

static enum rawcall_mode parse_mode(const char *text)
{
	for (unsigned i = 0; i < RAWCALL_MODES; i++)
		if (strcmp(text, mode_names[i]) == 0)
			return (enum rawcall_mode)i;
	raw_usage_error("--mode", text);
}

static void parse(struct rawcall_options *o, struct raw_options *raw, int argc, char **argv)
{
	static const struct option options[] = {
		{ "mode", 1, NULL, 'm' },    { "outstanding", 1, NULL, 'o' },
		{ "size", 1, NULL, 's' },    { "calls", 1, NULL, 'c' },
		{ "seconds", 1, NULL, 't' }, { "pin", 1, NULL, 'p' },
		{ "help", 0, NULL, 'h' },    { NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'm': o->mode = parse_mode(optarg); break;
		case 'o':
			o->outstanding = (unsigned)raw_number("--outstanding", optarg, 1,
							      RAW_MAX_WINDOW);
			break;
		case 's':
			o->size = (unsigned)raw_number("--size", optarg, RAWCALL_HEADER, 65000);
			break;
		case 'c': o->calls = raw_number("--calls", optarg, 1, UINT64_MAX / 2); break;
		case 't':
			o->seconds = (unsigned)raw_number("--seconds", optarg, 1, LONGEST_S);
			break;
		case 'p': raw_parse_pin(raw, optarg); break;
		case 'h': fputs(usage_text, stdout); exit(0);
		default: exit(2);
		}
	}
	if (optind < argc)
		raw_usage_error("unknown argument", argv[optind]);
	if (!o->outstanding)
		o->outstanding = o->mode <= RAWCALL_POLL ? 1 : 64;
	if ((uint64_t)o->outstanding * o->size > MOST_OUT)
		raw_usage_error("--outstanding", "with this --size it is more than 4 MiB, which a "
				"socket's buffer does not hold");
	if (!o->seconds)
		o->seconds = o->calls ? LONGEST_S : SECONDS;
	if (!o->calls)
		o->calls = UINT64_MAX / 2;
	raw->mode = o->mode == RAWCALL_BURSTS ? RAW_GSO_GRO : RAW_MSG;
}

static void connect_to(int fd, const struct sockaddr_storage *to)
{
	if (connect(fd, (const struct sockaddr *)to, sizeof(struct sockaddr_in)) < 0)
		raw_fail("connect", strerror(errno));
}

/*
 * Short timeouts for the client, which retransmits lost requests. The server keeps its long ones.
 */
static void wait_shortly(int fd)
{
	struct timeval t = { .tv_usec = END_MS * 1000 };

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0)
		raw_fail("SO_RCVTIMEO", strerror(errno));
}

/* The server's process. It writes its results to the pipe. */
static void serve(const struct rawcall_options *o, int cpu, int fd, int report)
{
	struct raw_usage u = { 0 };

	raw_pin(cpu);
	raw_measure(&u, -1);
	rawcall_server(o, fd, &u);
	raw_measure(&u, 1);
	if (write(report, &u, sizeof(u)) != sizeof(u))
		raw_fail("server", "no way to report");
	exit(0);
}

/* Asks the server to end until it reports. */
static void end_server(const struct rawcall_options *o, int fd, int report, pid_t child,
		       struct raw_usage *u)
{
	struct pollfd p = { .fd = report, .events = POLLIN };
	int status, r = 0;

	for (int i = 0; i < END_TRIES && r == 0; i++) {
		rawcall_end(o, fd);
		r = poll(&p, 1, END_MS);
	}
	if (r <= 0 || read(report, u, sizeof(*u)) != sizeof(*u))
		raw_fail("server", "ended without a report");
	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		raw_fail("server", "failed");
}

static void print_end(const char *name, const struct raw_usage *u)
{
	printf(",\"%s\":{\"cpu_user_s\":%.4f,\"cpu_sys_s\":%.4f,\"syscalls\":%llu,"
	       "\"messages\":%llu,\"context_switches\":%llu}", name, u->user_s, u->sys_s,
	       (unsigned long long)u->syscalls, (unsigned long long)u->messages,
	       (unsigned long long)u->switches);
}

static void print(const struct rawcall_options *o, const struct raw_options *raw,
		  const struct rawcall_result *r, const struct raw_usage *client,
		  const struct raw_usage *server)
{
	double cpu = client->user_s + client->sys_s + server->user_s + server->sys_s;
	double calls = (double)r->calls;

	printf("{\"program\":\"rawcall\",\"mode\":\"%s\",\"outstanding\":%u,\"size\":%u,"
	       "\"pin\":[%d,%d],\"calls\":%llu,\"seconds\":%.6f,\"calls_per_s\":%.1f,"
	       "\"cpu_us_per_call\":%.4f,\"syscalls_per_call\":%.4f,"
	       "\"context_switches_per_call\":%.4f,\"p50_us\":%.2f,\"p99_us\":%.2f,"
	       "\"resent\":%llu",
	       mode_names[o->mode], o->outstanding, o->size, raw->sender_cpu, raw->receiver_cpu,
	       (unsigned long long)r->calls, r->elapsed, calls / r->elapsed, cpu * 1e6 / calls,
	       (double)(client->syscalls + server->syscalls) / calls,
	       (double)(client->switches + server->switches) / calls, rawcall_quantile(r, 0.5),
	       rawcall_quantile(r, 0.99), (unsigned long long)r->resent);
	print_end("client", client);
	print_end("server", server);
	puts("}");
}

int main(int argc, char **argv)
{
	struct raw_options raw = { .sender_cpu = -1, .receiver_cpu = -1 };
	struct rawcall_options o = { .mode = RAWCALL_BLOCK, .size = RAWCALL_HEADER + 100 };
	struct raw_usage client = { 0 }, server = { 0 };
	static struct rawcall_result result;
	struct sockaddr_storage there, here;
	int fds[2], sfd, cfd;
	pid_t child;

	parse(&o, &raw, argc, argv);
	/* Both ends receive bursts. Both are bound before either sends. */
	sfd = raw_socket(&raw, &there, true);
	cfd = raw_socket(&raw, &here, true);
	connect_to(sfd, &here);
	connect_to(cfd, &there);
	wait_shortly(cfd);
	if (pipe(fds) < 0)
		raw_fail("pipe", strerror(errno));
	child = fork();
	if (child < 0)
		raw_fail("fork", strerror(errno));
	if (child == 0) {
		close(cfd);
		close(fds[0]);
		serve(&o, raw.receiver_cpu, sfd, fds[1]);
	}
	close(sfd);
	close(fds[1]);
	raw_pin(raw.sender_cpu);
	raw_measure(&client, -1);
	rawcall_client(&o, cfd, &result, &client);
	raw_measure(&client, 1);
	end_server(&o, cfd, fds[0], child, &server);
	print(&o, &raw, &result, &client, &server);
	return 0;
}
