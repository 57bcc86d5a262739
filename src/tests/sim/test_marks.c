/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ECN (rx-wide-windows, rule 8): a queue that marks loses nothing and is filled; paths that change
 * or lose marks are found out, and calls over them end well. One bulk reply in each run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MSEC	1000000u
#define ENDLESS ((uint64_t)1 << 44)

static const struct path {
	const char *name;
	const struct rxw_cc_ops *cc;
	double mbit, rtt_ms, queue; /* queue: bandwidth-delay products */
	double codel_ms, step_ms;   /* what the queue marks; 0 = not */
	double loss;
	enum sim_ecn ecn;	     /* of the link to the client */
	double change_ms;	     /* when this begins; 0 = at once */
	uint64_t reply;		     /* 0: endless, for `seconds` from `from` on */
	double seconds, from, least; /* share of the line */
	unsigned state;		     /* of ECN at the end */
	bool off;		     /* at the client */
} paths[] = {
	{"rate, CoDel", &rxw_cc_rate, 100, 50, 2, 5, 0, 0, 0, 0, 0, 12, 2, 0.95, RXW_ECN_CAPABLE,
	 0},
	{"reno, CoDel", &rxw_cc_reno, 20, 20, 20, 5, 0, 0, 0, 0, 0, 12, 2, 0.90, RXW_ECN_CAPABLE,
	 0},
	{"rate, step", &rxw_cc_rate, 100, 50, 2, 0, 20, 0, 0, 0, 0, 12, 2, 0.95, RXW_ECN_CAPABLE,
	 0},
	{"gigabit, CoDel", &rxw_cc_rate, 1000, 100, 1, 5, 0, 0, 0, 0, 0, 10, 3, 0.95,
	 RXW_ECN_CAPABLE, 0},
	{"no queue", &rxw_cc_rate, 0, 20, 0, 0, 0, 0, 0, 0, 8 << 20, 0, 0, 0, RXW_ECN_CAPABLE, 0},
	{"losses", &rxw_cc_rate, 100, 20, 2, 0, 0, 0.02, 0, 0, 16 << 20, 0, 0, 0, RXW_ECN_CAPABLE,
	 0},
	{"bleached", &rxw_cc_rate, 100, 20, 2, 5, 0, 0, SIM_ECN_BLEACHED, 0, 8 << 20, 0, 0, 0,
	 RXW_ECN_BLEACHED, 0},
	{"bleached later", &rxw_cc_rate, 100, 20, 2, 5, 0, 0, SIM_ECN_BLEACHED, 400, 16 << 20, 0, 0,
	 0, RXW_ECN_BLEACHED, 0},
	{"all CE", &rxw_cc_rate, 100, 20, 2, 0, 0, 0, SIM_ECN_CE, 0, 8 << 20, 0, 0, 0,
	 RXW_ECN_MANGLED, 0},
	{"all CE, reno", &rxw_cc_reno, 100, 20, 2, 0, 0, 0, SIM_ECN_CE, 0, 8 << 20, 0, 0, 0,
	 RXW_ECN_MANGLED, 0},
	{"all CE later", &rxw_cc_reno, 100, 20, 2, 0, 0, 0, SIM_ECN_CE, 400, 16 << 20, 0, 0, 0,
	 RXW_ECN_MANGLED, 0},
	{"CE, even where not capable", &rxw_cc_rate, 100, 20, 2, 0, 0, 0, SIM_ECN_CE_ALL, 0,
	 8 << 20, 0, 0, 0, RXW_ECN_MANGLED, 0},
	{"ECT(1)", &rxw_cc_rate, 100, 20, 2, 0, 0, 0, SIM_ECN_ECT1, 0, 8 << 20, 0, 0, 0,
	 RXW_ECN_BLEACHED, 0},
	{"lost", &rxw_cc_rate, 100, 20, 2, 0, 0, 0, SIM_ECN_LOST, 0, 8 << 20, 0, 0, 0, RXW_ECN_LOST,
	 0},
	{"lost later", &rxw_cc_rate, 100, 20, 2, 0, 0, 0, SIM_ECN_LOST, 400, 16 << 20, 0, 0, 0,
	 RXW_ECN_LOST, 0},
	{"switched off", &rxw_cc_rate, 100, 20, 2, 5, 0, 0, 0, 0, 8 << 20, 0, 0, 0, RXW_ECN_OFF, 1},
};

static struct sim sim;
static unsigned long marked_by[2];
static unsigned state;

static void on_marked(struct sim *s, const struct sim_node *from)
{
	const struct sim_conn *c = s->server.conns;

	(void)s;
	marked_by[from->client]++;
	if (c != NULL && c->p.channel[0] != NULL)
		state = c->p.channel[0]->tx.ecn.state;
}

static void set_window(struct rxw_params *p, const struct rxw_cc_ops *cc)
{
	p->window = 16384;
	p->wide_memory = (uint64_t)p->window * 4096;
	p->conn_memory = p->peer_memory = 4 * p->wide_memory;
	p->cc = cc == &rxw_cc_rate ? &rxw_cc_reno : cc;
	p->cc_wide = cc;
	p->ecn = true;
}

static bool run(const struct path *f, uint64_t seed, bool tracing)
{
	double rate = f->mbit * 1e6 / 8, share = 0;
	const struct rxw_pstats *server = &sim.server.stats, *client = &sim.client.stats;
	const struct sim_link *down = &sim.setup.down;
	bool clean = f->ecn == SIM_ECN_PASSES && f->loss == 0 && !f->off, good;
	struct sim_setup setup;
	uint64_t marks;

	sim_default(&setup);
	set_window(&setup.client, f->cc);
	set_window(&setup.server, f->cc);
	setup.client.ecn = !f->off;
	setup.up.delay = setup.down.delay = (uint64_t)(f->rtt_ms / 2 * MSEC);
	setup.down.rate = (uint64_t)rate;
	setup.down.queue = (uint64_t)(rate * f->rtt_ms / 1000 * f->queue);
	setup.down.codel = (uint64_t)(f->codel_ms * MSEC);
	setup.down.step = (uint64_t)(f->step_ms * MSEC);
	setup.down.loss = f->loss;
	if (f->change_ms == 0)
		setup.down.ecn = f->ecn;
	else
		sim_plan(&setup, f->change_ms, SIM_SET_ECN, SIM_DOWN, f->ecn);
	setup.reply = f->reply ? f->reply : ENDLESS;
	setup.marked = on_marked;
	setup.trace = tracing;
	if (f->reply == 0) {
		setup.stop_at = (uint64_t)(f->seconds * 1e9);
		sim_plan(&setup, f->from * 1000, SIM_MARK, 0, 0);
	}
	marked_by[0] = marked_by[1] = 0;
	state = RXW_ECN_OFF;
	good = sim_run(&sim, &setup, seed);
	if (f->reply == 0)
		share = (double)(sim.call_bytes[0] - sim.call_marks[0]) / (f->seconds - f->from) /
			rate;
	state = (unsigned)(rxw_peer_recall_ecn(sim.server.conns->p.peer, sim_clock(&sim.server)));
	marks = server->marks_sent;
	good &= share >= f->least && state == f->state;
	/* A datagram may be sent marked only by who counts it. */
	good &= marked_by[1] == 0 && marked_by[0] == marks;
	if (clean)
		good &= down->dropped == 0 && server->retransmitted == 0 &&
			server->ecn_failures == 0;
	if (clean && (f->codel_ms > 0 || f->step_ms > 0))
		/* The last ones may be on their way. */
		good &= down->marked > 0 && client->marks_received <= down->marked &&
			client->marks_received * 10 >= down->marked * 8 && server->mark_events > 0;
	good &= (marks > 0) == (!f->off && f->ecn != SIM_ECN_CE_ALL);
	good &= server->ecn_failures == (f->state >= RXW_ECN_BLEACHED);
	printf("%s: %s, seed %llu: share %.3f, %s; %llu packets, %llu marked, CE %llu of %llu, "
	       "reactions %llu, dropped %llu, again %llu, failures %llu %s\n",
	       good ? "ok" : "FAILED", f->name, (unsigned long long)seed, share,
	       rxw_ecn_name((enum rxw_ecn_state)state),
	       (unsigned long long)server->packets_sent[RXW_DATA], (unsigned long long)marks,
	       (unsigned long long)client->marks_received, (unsigned long long)down->marked,
	       (unsigned long long)server->mark_events, (unsigned long long)down->dropped,
	       (unsigned long long)server->retransmitted, (unsigned long long)server->ecn_failures,
	       sim.failure);
	fflush(stdout);
	sim_free(&sim);
	return good;
}

int main(int argc, char **argv)
{
	struct sim_args args;
	unsigned failed = 0;

	if (!sim_args_parse(&args, argc, argv, "sfcto", "RXW_SIM_MARKS_SEEDS", 1))
		return 2;
	if (args.seed != 0) {
		args.first = args.seed;
		args.count = 1;
	}
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		for (uint64_t k = 0; k < (args.count ? args.count : 1); k++)
			if (args.only == NULL || strcmp(args.only, paths[i].name) == 0)
				failed += !run(&paths[i], args.first + k, args.trace);
	return failed == 0 ? 0 : 1;
}
