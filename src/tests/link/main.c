/* SPDX-License-Identifier: BSD-2-Clause */
/* The program `link`: an emulated link between two network namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define SECOND 1000000000u

static const char usage[] =
	"usage: link [--profile NAME] [--SETTING VALUE]... --a NAMESPACE --b NAMESPACE\n"
	"       link --list | [--profile NAME] [--SETTING VALUE]... --describe\n"
	"NAMESPACE: the file of a network namespace, such as /proc/PID/ns/net\n"
	"  --name-a, --name-b DEVICE  the TUN device at that side (wire0)\n"
	"  --profiles FILE            the file of profiles, which also explains the settings\n"
	"  --commands                 read commands from standard input, one a line:\n"
	"                             SETTING VALUE, rebind, calm, counters\n"
	"  --json                     print the counters as JSON at the end\n"
	"  --realtime                 run before all other programs\n"
	"It prints \"ready\", and its counters on SIGTERM. SIGUSR1: from then on, packets pass\n"
	"unchanged. SIGUSR2: the NAT forgets its mappings.\n";

struct arguments {
	const char *ns[2], *name[2];
	const char *profiles, *profile;
	bool commands, json, realtime, describe, list;
};

static volatile sig_atomic_t stop, calm, rebind;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		calm = 1;
	else if (sig == SIGUSR2)
		rebind = 1;
	else
		stop = 1;
}

static _Noreturn void fail(int status, const char *why)
{
	fprintf(stderr, "link: %s\n", why);
	exit(status);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* --- arguments --- */

static bool is_flag(struct arguments *a, const char *name)
{
	struct {
		const char *name;
		bool *flag;
	} flags[] = {{"commands", &a->commands},
		     {"json", &a->json},
		     {"realtime", &a->realtime},
		     {"describe", &a->describe},
		     {"list", &a->list}};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(name, flags[i].name) == 0) {
			*flags[i].flag = true;
			return true;
		}
	}
	return false;
}

static const char **is_word(struct arguments *a, const char *name)
{
	struct {
		const char *name, **word;
	} words[] = {{"a", &a->ns[0]},	      {"b", &a->ns[1]},		  {"name-a", &a->name[0]},
		     {"name-b", &a->name[1]}, {"profiles", &a->profiles}, {"profile", &a->profile}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(name, words[i].name) == 0)
			return words[i].word;
	return NULL;
}

/* Options of the program; those of the profile are left for the second pass. */
static void parse(struct arguments *a, struct link_profile *p, int argc, char **argv, bool second)
{
	char why[300];

	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + 2, **word;

		if (strncmp(argv[i], "--", 2) != 0)
			fail(2, usage);
		if (strcmp(name, "help") == 0) {
			fputs(usage, stdout);
			exit(0);
		}
		if (is_flag(a, name))
			continue;
		if (++i == argc)
			fail(2, usage);
		word = is_word(a, name);
		if (word != NULL)
			*word = argv[i];
		else if (second && !link_profile_set(p, name, argv[i], why, sizeof(why)))
			fail(2, why);
	}
}

static void print_name(void *arg, const char *name)
{
	(void)arg;
	puts(name);
}

static void describe(const struct link_profile *p)
{
	const struct link_direction *d = p->way;

	printf("{\"name\": \"%s\", \"about\": \"%s\", \"rtt_ms\": %g, \"up_bps\": %" PRIu64
	       ", \"down_bps\": %" PRIu64 ", \"up_queue_bytes\": %" PRIu64
	       ", \"down_queue_bytes\": %" PRIu64 ", \"device_mtu\": %" PRIu64
	       ", \"up_loss\": %g, \"down_loss\": %g, \"nat\": %u}\n",
	       p->name, p->about, (double)link_profile_rtt(p) / 1e6, d[0].way.rate, d[1].way.rate,
	       d[0].way.queue_bytes, d[1].way.queue_bytes, p->device_mtu, d[0].way.loss,
	       d[1].way.loss, p->nat_count);
}

static void prepare(struct arguments *a, struct link_profile *p, int argc, char **argv)
{
	char why[300];

	link_profile_init(p);
	parse(a, p, argc, argv, false);
	if (a->list) {
		if (!link_profile_list(a->profiles, print_name, NULL, why, sizeof(why)))
			fail(1, why);
		exit(0);
	}
	if (a->profile != NULL && !link_profile_load(p, a->profiles, a->profile, why, sizeof(why)))
		fail(2, why);
	parse(a, p, argc, argv, true);
	link_profile_finish(p);
	if (a->describe) {
		describe(p);
		exit(0);
	}
	if (a->ns[0] == NULL || a->ns[1] == NULL)
		fail(2, usage);
	/* Corruption needs complete checksums. */
	if (p->way[0].way.corrupt > 0 || p->way[1].way.corrupt > 0)
		p->offload = 0;
}

/* --- changes during the run --- */

static void do_rebind(struct wire *w)
{
	if (w->nat != NULL)
		link_nat_rebind(w->nat);
}

static bool set(struct wire *w, const char *name, const char *value, uint64_t now)
{
	char why[300];

	if (strcmp(name, "rebind-now") == 0) {
		do_rebind(w);
		return true;
	}
	if (!link_profile_set(&w->profile, name, value, why, sizeof(why))) {
		fprintf(stderr, "link: %s\n", why);
		return false;
	}
	wire_change(w, now);
	return true;
}

static void command(struct wire *w, char *line, uint64_t now)
{
	char *value = strchr(line, ' ');

	if (strcmp(line, "rebind") == 0) {
		do_rebind(w);
		puts("done");
	} else if (strcmp(line, "calm") == 0) {
		wire_calm(w, now);
		puts("done");
	} else if (strcmp(line, "counters") == 0) {
		wire_print_json(w, stdout);
	} else {
		if (value != NULL)
			*value++ = 0;
		puts(value != NULL && set(w, line, value, now) ? "done" : "refused");
	}
	fflush(stdout);
}

/* Reads commands; false at their end. */
static bool commands(struct wire *w, uint64_t now)
{
	static char text[1024];
	static size_t have;
	ssize_t n = read(0, text + have, sizeof(text) - 1 - have);
	char *line = text, *end;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	have += (size_t)n;
	text[have] = 0;
	while ((end = strchr(line, '\n')) != NULL) {
		*end = 0;
		command(w, line, now);
		line = end + 1;
	}
	have -= (size_t)(line - text);
	memmove(text, line, have);
	if (have == sizeof(text) - 1)
		have = 0;
	return true;
}

/* Carry out the plan of the profile; returns the time of its next event. */
static uint64_t planned(struct wire *w, uint64_t began, uint64_t now)
{
	static uint64_t rebind_at;
	static bool done[LINK_CHANGES];
	const struct link_profile *p = &w->profile;
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < p->change_count; i++) {
		uint64_t at = began + p->change[i].at;

		if (!done[i] && at <= now) {
			struct link_change c = p->change[i];

			done[i] = true;
			set(w, c.name, c.value, now);
		} else if (!done[i] && at < next) {
			next = at;
		}
	}
	if (p->rebind == 0)
		return next;
	if (rebind_at == 0)
		rebind_at = began + p->rebind;
	while (rebind_at <= now) {
		do_rebind(w);
		rebind_at += p->rebind;
	}
	return rebind_at < next ? rebind_at : next;
}

/* --- the loop --- */

static void wait_until(struct pollfd *fds, unsigned count, uint64_t at, uint64_t now)
{
	uint64_t ns = at > now ? at - now : 0;
	struct timespec t = {1, 0};

	if (ns < SECOND)
		t = (struct timespec){0, (long)ns};
	if (ppoll(fds, count, &t, NULL) < 0 && errno != EINTR)
		fail(1, strerror(errno));
}

static void serve(struct wire *w, bool with_commands)
{
	struct pollfd fds[3] = {{.fd = w->device[0].fd, .events = POLLIN},
				{.fd = w->device[1].fd, .events = POLLIN},
				{.fd = with_commands ? 0 : -1, .events = POLLIN}};
	uint64_t began = now_ns(), now = began, delivered = 0;
	bool more = false;

	while (!stop) {
		uint64_t next = wire_next(w), plan = planned(w, began, now);

		/* Packets leave in batches: at most one in each grain of time. */
		if (next < delivered + w->profile.grain)
			next = delivered + w->profile.grain;
		wait_until(fds, 3, more ? now : next < plan ? next : plan, now);
		now = now_ns();
		if (calm)
			wire_calm(w, now);
		if (rebind)
			do_rebind(w);
		calm = rebind = 0;
		if (fds[2].revents != 0 && !commands(w, now))
			fds[2].fd = -1;
		if (wire_next(w) <= now && now >= delivered + w->profile.grain) {
			wire_deliver(w, now);
			delivered = now;
		}
		more = wire_take(w, 0, now);
		more |= wire_take(w, 1, now);
	}
}

static void run_first(void)
{
	/* Both ends of a measurement may have 1. */
	struct sched_param priority = {.sched_priority = 2};

	if (sched_setscheduler(0, SCHED_FIFO, &priority) < 0)
		fprintf(stderr, "link: realtime: %s; packets may be late\n", strerror(errno));
}

int main(int argc, char **argv)
{
	static struct wire w;
	struct arguments a = {.name = {"wire0", "wire0"},
			      .profiles = RXW_TEST_SRCDIR "/link/profiles"};
	struct sigaction act = {.sa_handler = on_signal};
	char why[300];

	prepare(&a, &w.profile, argc, argv);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR2, &act, NULL);
	for (unsigned i = 0; i < 2; i++)
		if (!device_open(&w.device[i], a.ns[i], a.name[i], (unsigned)w.profile.device_mtu,
				 w.profile.offload != 0, why, sizeof(why)))
			fail(1, why);
	if (!wire_start(&w, why, sizeof(why)))
		fail(1, why);
	if (a.realtime)
		run_first();
	prctl(PR_SET_TIMERSLACK, 1);
	if (a.commands)
		fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
	puts("ready");
	fflush(stdout);
	serve(&w, a.commands);
	if (a.json)
		wire_print_json(&w, stdout);
	else
		wire_print_words(&w, stdout);
	wire_stop(&w);
	for (unsigned i = 0; i < 2; i++)
		device_close(&w.device[i]);
	return 0;
}
