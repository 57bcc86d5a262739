/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs scenarios under plans of faults; shared parts of scenarios. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenario.h"

#define LIMIT 60 /* seconds after which a run counts as hanging */
#define MANY  1000000u
#define CLEAN_RUNS 20
/*
 * A client waits without end for a peer that answers but is busy, at growing intervals; the
 * shortage ends before that takes long.
 */
#define LASTS 200000000u /* ns */

char scenario_running[200];

static void hangs(int sig)
{
	static const char text[] = " does not end\n";

	(void)sig;
	if (write(2, scenario_running, strlen(scenario_running)) < 0 ||
	    write(2, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

static void announce(const struct shim_plan *p)
{
	snprintf(scenario_running, sizeof(scenario_running),
		 "%s: occurrence %llu, %llu in a row, %s, jump %lld ms", shim_name(p->kind),
		 (unsigned long long)p->at, (unsigned long long)p->many, strerror(p->error),
		 (long long)(p->jump / 1000000));
	signal(SIGALRM, hangs);
	alarm(LIMIT);
	if (getenv("RXW_TEST_LOG"))
		fprintf(stderr, "%s\n", scenario_running);
}

void scenario_sane(const char *what, long result)
{
	expect(result >= -RXW_ENOKEY, "%s returned %ld", what, result);
}

int scenario_engine(rxw_engine **engine)
{
	struct rxw_config config;
	int r;

	rxw_config_init(&config, sizeof(config));
	config.listeners = 2;
	config.dead_ms = 1000;
	r = rxw_engine_create(&config, engine);
	scenario_sane("engine_create", r);
	return r;
}

int scenario_endpoint(rxw_engine *engine, bool server, rxw_endpoint **endpoint)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = (struct sockaddr *)&any,
					 .address_len = sizeof(any),
					 .server = server,
					 .paused = server};
	int r = rxw_endpoint_create(engine, &o, endpoint);

	scenario_sane("endpoint_create", r);
	return r;
}

void scenario_destroy(rxw_endpoint *endpoint, rxw_engine *engine)
{
	int r = rxw_endpoint_destroy(endpoint);

	expect(!r, "cannot destroy an endpoint: %s", rxw_strerror(r));
	r = rxw_engine_destroy(engine);
	expect(!r, "cannot destroy an engine: %s", rxw_strerror(r));
}

/* Detached workers cannot be joined: wait for their last instructions. */
static void nothing_left(struct shim_held before)
{
	struct shim_held now = shim_held();

	for (unsigned i = 0; now.threads != before.threads && i < MANY; i++) {
		usleep(100);
		now = shim_held();
	}
	expect(now.threads == before.threads, "%ld threads are left", now.threads - before.threads);
	expect(now.memory == before.memory, "%ld blocks are left", now.memory - before.memory);
	expect(now.descriptors == before.descriptors, "%ld descriptors are left",
	       now.descriptors - before.descriptors);
}

void scenario_run(const struct scenario *s, const struct shim_plan *plan)
{
	struct shim_held before = shim_held();
	bool whole;

	announce(plan);
	if (s->prepare)
		s->prepare();
	if (!s->calm_up)
		shim_arm(plan);
	whole = s->up();
	if (s->calm_up)
		shim_arm(plan);
	if (whole)
		s->work();
	shim_disarm();
	s->lives_on(whole);
	s->down();
	nothing_left(before);
	shim_set_clock_back();
	alarm(0);
}

void scenario_clean(const struct scenario *s, enum shim_kind last)
{
	bool seen[SHIM_KINDS] = {false}, all = false;

	for (int run = 0; run < CLEAN_RUNS && !all; run++) {
		scenario_run(s, &(struct shim_plan){.kind = SHIM_MEMORY});
		ck_assert_uint_eq(shim_refused(), 0);
		all = true;
		for (enum shim_kind k = 0; k <= last; k++) {
			seen[k] = seen[k] || shim_seen(k) > 0;
			all = all && seen[k];
		}
	}
	for (enum shim_kind k = 0; k <= last; k++)
		ck_assert_msg(seen[k], "%s was never seen", shim_name(k));
}

static void sweep(const struct scenario *s, struct shim_plan *plan, unsigned first, unsigned step)
{
	unsigned runs = 0;

	for (plan->at = first;; plan->at += step) {
		scenario_run(s, plan);
		if (!shim_refused())
			break;
		runs++;
	}
	if (getenv("RXW_TEST_LOG"))
		fprintf(stderr, "%s, %s: %u runs\n", shim_name(plan->kind), strerror(plan->error),
			runs);
}

void scenario_sweep(const struct scenario *s, enum shim_kind kind, int error, uint64_t many,
		    unsigned first, unsigned step)
{
	struct shim_plan plan = {.kind = kind, .many = many, .lasts = LASTS, .error = error};

	sweep(s, &plan, first, step);
}

void scenario_sweep_clock(const struct scenario *s, enum shim_kind kind, int64_t jump,
			  unsigned first, unsigned step)
{
	struct shim_plan plan = {.kind = kind, .many = 1, .jump = jump};

	sweep(s, &plan, first, step);
}

unsigned scenario_step(unsigned usual)
{
	const char *text = getenv("RXW_FAULTS_STEP");
	unsigned step = text ? (unsigned)atoi(text) : usual;

	return step ? step : 1;
}

bool scenario_chosen(unsigned i, unsigned share)
{
	return scenario_step(2) == 1 || i % share == 0;
}
