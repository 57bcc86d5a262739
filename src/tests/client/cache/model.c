/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers and network for tests of the client's cache. */
#include "tests/client/cache/model.h"

#include <stdlib.h>
#include <string.h>

#include "common/grow.h"

#define MS	    1000000ull
#define BREAK_DEAD  (4 * MODEL_SECOND)	 /* a server gives a break up */
#define CALL_DEAD   (20 * MODEL_SECOND)	 /* a client gives a call up */
#define SERVER_KEEP (180 * MODEL_SECOND) /* promises are kept longer than the client is told */
#define STEP_MAX    2000u		 /* ms between two steps of a client */

typedef void run_fn(struct model *model, void *arg);

struct event {
	uint64_t time, order;
	run_fn *run;
	void *arg;
};

/* A break or a reset under way. */
struct notice {
	struct model *model;
	struct notice *next;
	unsigned client, server, volume, object;
	bool whole, reset;
	size_t moments[OBJECTS];
	bool resolved;
	unsigned forgotten; /* of the client, before it was sent: later losses need another reset */
	struct call *call;  /* that waits for it */
};

struct server {
	uint64_t promises[CLIENTS][VOLUMES]
			 [OBJECTS]; /* ends; of the read-only volume: object 0 stands for all */
	bool knows[CLIENTS];
	size_t release;		     /* of the read-only volume */
	unsigned forgotten[CLIENTS]; /* how often its promises were dropped without a word */
};

struct model {
	uint64_t now, order, random;
	struct event *events;
	size_t count, room;
	struct call *calls;
	struct notice *notices;
	struct server servers[SERVERS];
	struct history histories[VOLUMES][OBJECTS];
	uint32_t uniques;
	unsigned loss, slow; /* of a thousand packets */
	struct model_ops ops;
	void *clients;
};

/* -- events -------------------------------------------------------------------------------- */

uint64_t model_random(struct model *model, uint64_t below)
{
	model->random ^= model->random << 13;
	model->random ^= model->random >> 7;
	model->random ^= model->random << 17;
	return (model->random * 0x2545f4914f6cdd1dull >> 16) % below;
}

uint64_t model_now(const struct model *model)
{
	return model->now;
}

static bool is_before(const struct event *a, const struct event *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void swap_events(struct model *model, size_t i, size_t j)
{
	struct event swap = model->events[i];

	model->events[i] = model->events[j];
	model->events[j] = swap;
}

static void schedule(struct model *model, uint64_t delay, run_fn *run, void *arg)
{
	if (!grow_array(&model->events, &model->room, model->count, sizeof(*model->events)))
		abort();
	size_t at = model->count++;

	model->events[at] = (struct event){model->now + delay, model->order++, run, arg};
	for (; at && is_before(&model->events[at], &model->events[(at - 1) / 2]); at = (at - 1) / 2)
		swap_events(model, at, (at - 1) / 2);
}

static struct event pop_event(struct model *model)
{
	struct event first = model->events[0];
	size_t at = 0;

	model->events[0] = model->events[--model->count];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < model->count &&
		    is_before(&model->events[child + 1], &model->events[child]))
			child++;
		if (child >= model->count || is_before(&model->events[at], &model->events[child]))
			return first;
		swap_events(model, at, child);
		at = child;
	}
}

void model_run(struct model *model, uint64_t until)
{
	while (model->count && model->events[0].time <= until) {
		struct event event = pop_event(model);

		model->now = event.time;
		event.run(model, event.arg);
	}
}

/* -- the network --------------------------------------------------------------------------- */

static uint64_t packet_delay(struct model *model)
{
	if (model_random(model, 1000) < model->slow)
		return model_random(model, 30 * MODEL_SECOND);
	return MS / 10 + model_random(model, 60 * MS);
}

static bool packet_lost(struct model *model)
{
	return model_random(model, 1000) < model->loss;
}

/* -- histories ----------------------------------------------------------------------------- */

struct history *model_history(struct model *model, unsigned volume, unsigned object)
{
	return &model->histories[volume][object];
}

const struct state *model_state(struct model *model, unsigned volume, unsigned object,
				size_t moment)
{
	return &model->histories[volume][object].moments[moment].state;
}

static struct moment *last_moment(struct model *model, unsigned volume, unsigned object)
{
	struct history *history = model_history(model, volume, object);

	return &history->moments[history->count - 1];
}

static struct moment *add_moment(struct model *model, unsigned volume, unsigned object,
				 const struct state *state, int writer)
{
	struct history *history = model_history(model, volume, object);
	struct moment *moment;

	if (!grow_array(&history->moments, &history->room, history->count,
			sizeof(*history->moments)))
		abort();
	moment = &history->moments[history->count++];
	*moment = (struct moment){.state = *state, .writer = writer};
	for (unsigned c = 0; c < CLIENTS; c++)
		moment->known_from[c] = MODEL_NEVER;
	return moment;
}

size_t model_floor(struct model *model, unsigned client, unsigned volume, unsigned object)
{
	struct history *history = model_history(model, volume, object);
	size_t floor = history->count - 1;

	while (floor > history->seen[client] &&
	       history->moments[floor].known_from[client] > model->now)
		floor--;
	return floor;
}

/* Whether a moment changed one part of the state. */
static bool changed_part(const struct moment *moment, enum model_part part, unsigned detail)
{
	const struct state *now = &moment->state, *before = &moment[-1].state;

	if (now->sync != before->sync)
		return true;
	if (part == PART_BLOCK)
		return now->blocks[detail] != before->blocks[detail];
	if (part == PART_NAME)
		return now->names[detail] != before->names[detail];
	return part == PART_STATUS || now->acl != before->acl;
}

size_t model_floor_of(struct model *model, unsigned client, unsigned volume, unsigned object,
		      enum model_part part, unsigned detail)
{
	struct history *history = model_history(model, volume, object);
	size_t floor = history->count - 1;

	while (floor > history->seen[client] &&
	       (history->moments[floor].known_from[client] > model->now ||
		!changed_part(&history->moments[floor], part, detail)))
		floor--;
	return floor;
}

void model_saw(struct model *model, unsigned client, unsigned volume, unsigned object,
	       size_t moment)
{
	struct history *history = model_history(model, volume, object);
	const struct state *state = &history->moments[moment].state;

	while (moment > 0 && history->moments[moment - 1].state.version == state->version &&
	       history->moments[moment - 1].state.sync == state->sync)
		moment--;
	if (moment > history->seen[client])
		history->seen[client] = moment;
}

uint32_t model_rights(const struct state *state, uint32_t identity)
{
	return (state->acl * (identity + 3) ^ state->acl >> 3) & 127;
}

static void know_moment(struct model *model, unsigned client, unsigned volume, unsigned object,
			size_t number)
{
	struct moment *moment = &model->histories[volume][object].moments[number];

	if (moment->known_from[client] > model->now)
		moment->known_from[client] = model->now;
}

/* All breaks of a change are delivered or given up: its writer gets the answer, and clients may not show what was before. */
static void know_from_now(struct model *model, struct moment *moment)
{
	for (unsigned c = 0; c < CLIENTS; c++)
		if ((int)c != moment->writer && !(moment->exempt >> c & 1) &&
		    moment->known_from[c] > model->now)
			moment->known_from[c] = model->now;
}

/* -- notices ------------------------------------------------------------------------------- */

static void reply_to(struct model *model, struct call *call);
static void serve_call(struct model *model, void *arg);

static void resolve_moment(struct model *model, unsigned volume, unsigned object, size_t moment,
			   struct call *call)
{
	struct moment *found = &model->histories[volume][object].moments[moment];

	if (--found->waiting)
		return;
	know_from_now(model, found);
	if (call)
		reply_to(model, call);
}

static void resolve_notice(struct model *model, struct notice *notice)
{
	if (notice->resolved)
		return;
	notice->resolved = true;
	if (notice->reset)
		serve_call(model, notice->call);
	else
		for (unsigned o = 0; o < OBJECTS; o++)
			if (notice->whole || o == notice->object)
				resolve_moment(model, notice->volume, o, notice->moments[o],
					       notice->call);
}

/* The acknowledgement reaches the server. */
static void ack_notice(struct model *model, void *arg)
{
	struct notice *notice = arg;
	struct server *server = &model->servers[notice->server];

	if (notice->resolved)
		return;
	/* It made no promises while it did not know the client. */
	if (notice->reset && notice->forgotten == server->forgotten[notice->client])
		server->knows[notice->client] = true;
	resolve_notice(model, notice);
}

/*
 * After a reset a client trusts nothing of the server, so it can show no old state of that. Of the read-only volume it may still trust the
 * other server.
 */
static void end_exemptions(struct model *model, unsigned client, unsigned server)
{
	for (unsigned o = 0; o < OBJECTS; o++)
		for (size_t m = 0; m < model->histories[server][o].count; m++) {
			struct moment *moment = &model->histories[server][o].moments[m];

			moment->exempt &= ~(1u << client);
			if (!moment->waiting && moment->writer != (int)client)
				know_moment(model, client, server, o, m);
		}
}

static void deliver_notice(struct model *model, void *arg)
{
	struct notice *notice = arg;

	if (notice->reset) {
		model->ops.reset(model->clients, notice->client, notice->server);
		end_exemptions(model, notice->client, notice->server);
	} else if (notice->whole) {
		model->ops.whole(model->clients, notice->client, notice->volume);
	} else {
		model->ops.broken(model->clients, notice->client, notice->volume, notice->object);
	}
	for (unsigned o = 0; !notice->reset && notice->volume != RELEASED && o < OBJECTS; o++)
		if (notice->whole || o == notice->object)
			know_moment(model, notice->client, notice->volume, o, notice->moments[o]);
	if (!packet_lost(model))
		schedule(model, packet_delay(model), ack_notice, notice);
}

static void forget_client(struct server *server, unsigned client)
{
	server->knows[client] = false;
	server->forgotten[client]++;
	memset(server->promises[client], 0, sizeof(server->promises[0]));
}

/* No acknowledgement in time: the client is down, and told so at its next call. */
static void give_notice_up(struct model *model, void *arg)
{
	struct notice *notice = arg;
	struct server *server = &model->servers[notice->server];

	if (notice->resolved)
		return;
	forget_client(server, notice->client);
	for (unsigned o = 0; !notice->reset && o < OBJECTS; o++)
		if (notice->whole || o == notice->object)
			model->histories[notice->volume][o].moments[notice->moments[o]].exempt |=
				1u << notice->client;
	resolve_notice(model, notice);
}

static void send_notice(struct model *model, const struct notice *form)
{
	struct notice *notice = malloc(sizeof(*notice));

	if (!notice)
		abort();
	*notice = *form;
	notice->forgotten = model->servers[form->server].forgotten[form->client];
	notice->next = model->notices;
	model->notices = notice;
	if (!packet_lost(model))
		schedule(model, packet_delay(model), deliver_notice, notice);
	schedule(model, BREAK_DEAD, give_notice_up, notice);
}

/* -- changes ------------------------------------------------------------------------------- */

/* Whether a break of an object is under way to a client: the next writer waits for him, too. */
static bool is_being_broken(const struct model *model, unsigned client, unsigned volume,
			    unsigned object)
{
	for (const struct notice *n = model->notices; n; n = n->next)
		if (!n->resolved && !n->reset && n->client == client && n->volume == volume &&
		    (n->whole || n->object == object))
			return true;
	return false;
}

/*
 * Break the promises for a moment that was just added. Clients that the server has forgotten may go on with what they have; those without
 * a promise have to ask.
 */
static void break_promises(struct model *model, unsigned server_number, unsigned volume,
			   unsigned object, bool whole, struct call *call)
{
	struct server *server = &model->servers[server_number];
	struct moment *moment = last_moment(model, volume, object);
	struct notice form = {.server = server_number,
			      .volume = volume,
			      .object = object,
			      .whole = whole,
			      .call = call};

	for (unsigned o = 0; o < OBJECTS; o++)
		form.moments[o] = model->histories[volume][o].count - 1;
	for (form.client = 0; form.client < CLIENTS; form.client++) {
		bool holds = false;

		if ((int)form.client == moment->writer)
			continue;
		for (unsigned o = 0; o < OBJECTS; o++)
			if (whole || o == object)
				holds |= server->promises[form.client][volume][o] > model->now ||
					 is_being_broken(model, form.client, volume, o);
		for (unsigned o = 0; o < OBJECTS; o++)
			if (whole || o == object) {
				server->promises[form.client][volume][o] = 0;
				if (!server->knows[form.client])
					last_moment(model, volume, o)->exempt |= 1u << form.client;
				if (holds)
					last_moment(model, volume, o)->waiting++;
			}
		if (holds)
			send_notice(model, &form);
	}
}

static bool change_state(struct model *model, const struct call *call, struct state *state)
{
	bool later = model_random(model, 3) != 0;

	/* The server's clock has seconds: changes often share one. */
	state->time = (uint32_t)(model->now / MODEL_SECOND);
	switch (call->kind) {
	case CALL_STORE:
		state->blocks[call->value] = call->token;
		break;
	case CALL_CHMOD:
		state->mode = call->value;
		if (!later)
			state->time = last_moment(model, call->volume, call->object)->state.time;
		return true;
	case CALL_ACL:
		state->acl = call->value;
		state->time = last_moment(model, call->volume, call->object)->state.time;
		return true;
	case CALL_CREATE:
		if (state->names[call->value])
			return false;
		state->names[call->value] = ++model->uniques;
		break;
	default:
		if (!state->names[call->value])
			return false;
		state->names[call->value] = 0;
	}
	state->version++;
	return true;
}

static void serve_change(struct model *model, struct call *call)
{
	struct moment *moment = last_moment(model, call->volume, call->object);
	struct state state = moment->state;

	call->failed = !change_state(model, call, &state);
	if (call->failed) {
		reply_to(model, call);
		return;
	}
	moment = add_moment(model, call->volume, call->object, &state, (int)call->client);
	moment->waiting = 1;
	call->carried_out = true;
	call->change = model->histories[call->volume][call->object].count - 1;
	call->moments[call->object] = call->change;
	call->sync = state.sync;
	if (call->kind == CALL_CREATE)
		call->unique = state.names[call->value];
	/* The caller has given up, but the change is there. */
	if (call->abandoned)
		moment->known_from[call->client] = model->now;
	break_promises(model, call->server, call->volume, call->object, false, call);
	resolve_moment(model, call->volume, call->object, call->change, call);
}

/* -- calls --------------------------------------------------------------------------------- */

static uint32_t choose_lifetime(struct model *model)
{
	static const uint32_t lifetimes[] = {0, 8, 14, 30, 120, 3600, 3600, 14400};

	return lifetimes[model_random(model, sizeof(lifetimes) / sizeof(lifetimes[0]))];
}

static void serve_read(struct model *model, struct call *call)
{
	struct server *server = &model->servers[call->server];
	uint64_t *promises = server->promises[call->client][call->volume];

	for (unsigned o = 0; o < OBJECTS; o++)
		call->moments[o] = call->volume == RELEASED
					   ? server->release
					   : model->histories[call->volume][o].count - 1;
	call->sync = model_state(model, call->volume, 0, call->moments[0])->sync;
	if (server->knows[call->client])
		call->lifetime = choose_lifetime(model);
	for (unsigned o = 0; o < OBJECTS && call->lifetime; o++) {
		uint64_t end = model->now + call->lifetime * MODEL_SECOND + SERVER_KEEP;

		if ((o == call->object || call->kind == CALL_BULK || call->volume == RELEASED) &&
		    promises[o] < end)
			promises[o] = end;
	}
	reply_to(model, call);
}

static void serve_call(struct model *model, void *arg)
{
	struct call *call = arg;

	if (call->kind <= CALL_LAST_READ)
		serve_read(model, call);
	else
		serve_change(model, call);
}

static void receive_call(struct model *model, void *arg)
{
	struct call *call = arg;
	struct notice form = {
		.client = call->client, .server = call->server, .reset = true, .call = call};

	if (model->servers[call->server].knows[call->client])
		serve_call(model, call);
	else
		send_notice(model, &form);
}

static void receive_reply(struct model *model, void *arg)
{
	struct call *call = arg;

	(void)model;
	if (call->abandoned)
		return;
	call->answered = true;
	model->ops.answer(call);
	if (call->carried_out)
		know_moment(model, call->client, call->volume, call->object, call->change);
}

static void reply_to(struct model *model, struct call *call)
{
	if (!packet_lost(model))
		schedule(model, packet_delay(model), receive_reply, call);
}

static void abandon_call(struct model *model, void *arg)
{
	struct call *call = arg;

	if (call->answered)
		return;
	call->abandoned = true;
	model->ops.answer(call);
	if (call->carried_out)
		know_moment(model, call->client, call->volume, call->object, call->change);
}

void model_call(struct model *model, const struct call *form)
{
	struct call *call = malloc(sizeof(*call));

	if (!call)
		abort();
	*call = *form;
	call->model = model;
	call->next = model->calls;
	model->calls = call;
	call->sent = model->now;
	if (!packet_lost(model))
		schedule(model, packet_delay(model), receive_call, call);
	schedule(model, CALL_DEAD, abandon_call, call);
}

/* -- the world ----------------------------------------------------------------------------- */

static void client_acts(struct model *model, void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;

	model->ops.act(model->clients, client);
	schedule(model, MS + model_random(model, STEP_MAX) * MS, client_acts, arg);
}

static void restart_server(struct model *model, unsigned number)
{
	struct server *server = &model->servers[number];

	for (unsigned c = 0; c < CLIENTS; c++)
		forget_client(server, c);
}

/* A volume becomes what it was some changes ago: versions fall, and data differ from what had them before. */
static void restore_volume(struct model *model, unsigned volume)
{
	uint32_t sync = last_moment(model, volume, 0)->state.sync + 1;

	for (unsigned o = 0; o < OBJECTS; o++) {
		struct history *history = model_history(model, volume, o);
		struct state state = history->moments[model_random(model, history->count)].state;

		state.sync = sync;
		add_moment(model, volume, o, &state, -1)->waiting = 1;
	}
	break_promises(model, volume, volume, 0, true, NULL);
	for (unsigned o = 0; o < OBJECTS; o++)
		resolve_moment(model, volume, o, model->histories[volume][o].count - 1, NULL);
}

/* The next site gets the newest release. Clients must know that when all sites have it. */
static void update_site(struct model *model, void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	struct server *server = &model->servers[number];

	server->release = model->histories[RELEASED][0].count - 1;
	break_promises(model, number, RELEASED, 0, true, NULL);
	for (unsigned o = 0; o < OBJECTS; o++)
		resolve_moment(model, RELEASED, o, server->release, NULL);
}

static void release_volume(struct model *model)
{
	uint32_t sync = last_moment(model, RELEASED, 0)->state.sync + 1;

	/* One release after the other. */
	if (last_moment(model, RELEASED, 0)->waiting)
		return;
	for (unsigned o = 0; o < OBJECTS; o++) {
		struct state state = last_moment(model, 0, o)->state;

		state.sync = sync;
		add_moment(model, RELEASED, o, &state, -1)->waiting = SERVERS;
	}
	for (unsigned s = 0; s < SERVERS; s++)
		schedule(model, model_random(model, 20) * MODEL_SECOND, update_site,
			 (void *)(uintptr_t)s);
}

static void world_acts(struct model *model, void *arg)
{
	switch (model_random(model, 8)) {
	case 0:
		restart_server(model, (unsigned)model_random(model, SERVERS));
		break;
	case 1:
		restore_volume(model, (unsigned)model_random(model, RELEASED));
		break;
	case 2:
	case 3:
	case 4:
		release_volume(model);
		break;
	default: /* the network gets better or worse */
		model->loss = (unsigned)model_random(model, 60);
		model->slow = (unsigned)model_random(model, 120);
	}
	schedule(model, model_random(model, 60 * MODEL_SECOND), world_acts, arg);
}

struct model *model_create(uint64_t seed, const struct model_ops *ops, void *clients)
{
	struct state state = {.sync = 1000, .mode = 0600, .acl = 5, .time = 1};
	struct model *model = calloc(1, sizeof(*model));

	if (!model)
		abort();
	model->random = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
	for (unsigned i = 0; i < 20; i++)
		model_random(model, 2);
	model->ops = *ops;
	model->clients = clients;
	model->now = 5000 * MODEL_SECOND;
	for (unsigned v = 0; v < VOLUMES; v++)
		for (unsigned o = 0; o < OBJECTS; o++) {
			state.blocks[0] = v == RELEASED ? o : v * OBJECTS + o;
			add_moment(model, v, o, &state, -1);
		}
	for (unsigned c = 0; c < CLIENTS; c++)
		schedule(model, c, client_acts, (void *)(uintptr_t)c);
	schedule(model, model_random(model, 60 * MODEL_SECOND), world_acts, NULL);
	return model;
}

void model_finish(struct model *model)
{
	for (struct call *call = model->calls; call; call = call->next)
		if (!call->answered && !call->abandoned)
			abandon_call(model, call);
}

void model_destroy(struct model *model)
{
	for (struct call *call = model->calls, *next; call; call = next) {
		next = call->next;
		free(call);
	}
	for (struct notice *notice = model->notices, *next; notice; notice = next) {
		next = notice->next;
		free(notice);
	}
	for (unsigned v = 0; v < VOLUMES; v++)
		for (unsigned o = 0; o < OBJECTS; o++)
			free(model->histories[v][o].moments);
	free(model->events);
	free(model);
}
