/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's cache in a model of servers: what it shows without asking is never older than the last change whose break was acknowledged,
 * nor than an own change that returned. RXW_SIM_SEEDS: how many seeds (1,000); RXW_SIM_FIRST: the first (1). A failure names the seed,
 * which repeats it; with RXW_SIM_TRACE the events of its objects are printed.
 */
#include "tests/tools/testing.h"

#include <stdarg.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "client/cache/changes.h"
#include "client/cache/listing.h"
#include "tests/client/cache/model.h"

#define SEEDS		  1000u
#define RUN		  (1500 * MODEL_SECOND)
#define IDENTITIES	  3u
#define FILLERS		  600u /* objects that displace others in a small cache */
#define CELL		  1u
#define VOLUME_ID(volume) (100 + (volume))

/* What a client holds of a block, as a disk cache would: it outlives the object. */
struct block {
	bool present;
	uint64_t version, token;
	uint32_t incarnation;
	unsigned stores; /* begun, of this block */
	bool storing;
};

struct client {
	struct cl_cache *cache;
	bool small;
	struct block blocks[VOLUMES][OBJECTS][BLOCKS];
	unsigned changes[VOLUMES][OBJECTS]; /* in flight */
};

struct world {
	struct model *model;
	struct client clients[CLIENTS];
	uint64_t seed, tokens;
	uint64_t hits, misses, changes, checks;
	bool traced;
	uint32_t fillers;
};

/* What a call needs when its answer comes. */
struct errand {
	struct world *world;
	struct cl_object *object; /* reference */
	size_t floor;		  /* when it was sent */
	unsigned stores;
};

static void fail_seed(const struct world *world, unsigned client, unsigned volume, unsigned object,
		      const char *what)
{
	ck_abort_msg("seed %llu, %.3f s: client %u shows an old %s of %u.%u",
		     (unsigned long long)world->seed,
		     (double)model_now(world->model) / MODEL_SECOND, client, what, volume, object);
}

static struct rxafs_fid object_fid(unsigned volume, unsigned object)
{
	return (struct rxafs_fid){CELL, VOLUME_ID(volume), object ? 2 * object : 1, object + 1};
}

static const char *const kinds[CALL_KINDS] = {"status", "data", "bulk",	  "store",
					      "chmod",	"acl",	"create", "remove"};

/* A line for an event of an object at a client, with what the client knows of it then. */
__attribute__((format(printf, 5, 6))) static void trace(struct world *world, unsigned client,
							unsigned volume, unsigned object,
							const char *format, ...)
{
	struct rxafs_fid fid = object_fid(volume, object);
	struct cl_status status = {0};
	struct cl_object *known;
	va_list arguments;

	if (!world->traced)
		return;
	known = cl_cache_find(world->clients[client].cache, &fid);
	if (known)
		cl_object_status(known, model_now(world->model), &status);
	printf("%12.6f client %u %u.%u ", (double)model_now(world->model) / MODEL_SECOND, client,
	       volume, object);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("; moment %zu, floor %zu; knows version %llu from %llu sync %u until %.3f\n",
	       model_history(world->model, volume, object)->count - 1,
	       model_floor(world->model, client, volume, object),
	       (unsigned long long)status.version, (unsigned long long)status.clean_from,
	       status.incarnation, (double)status.valid_until / MODEL_SECOND);
	fflush(stdout);
	cl_object_put(known);
}

/* -- what is shown ------------------------------------------------------------------------- */

static bool same_status(const struct state *state, const struct cl_status *status)
{
	return state->version == status->version && state->mode == status->mode &&
	       state->time == status->changed && model_rights(state, 0) == status->anonymous;
}

typedef bool match_fn(const struct state *state, const void *shown, unsigned detail);

static bool match_status(const struct state *state, const void *shown, unsigned detail)
{
	(void)detail;
	return same_status(state, shown);
}

static bool match_block(const struct state *state, const void *shown, unsigned block)
{
	return state->blocks[block] == *(const uint64_t *)shown;
}

static bool match_name(const struct state *state, const void *shown, unsigned name)
{
	return state->names[name] == *(const uint32_t *)shown;
}

static bool match_rights(const struct state *state, const void *shown, unsigned identity)
{
	return model_rights(state, identity) == *(const uint32_t *)shown;
}

/* Some state from the oldest permitted one on must have what is shown. */
static bool is_permitted(struct world *world, size_t floor, unsigned volume, unsigned object,
			 match_fn *match, const void *shown, unsigned detail)
{
	struct history *history = model_history(world->model, volume, object);

	world->checks++;
	for (size_t m = floor; m < history->count; m++)
		if (match(&history->moments[m].state, shown, detail))
			return true;
	return false;
}

static void check_shown(struct world *world, unsigned client, unsigned volume, unsigned object,
			enum model_part part, const void *shown, unsigned detail)
{
	static const struct {
		match_fn *match;
		const char *name;
	} parts[] = {[PART_STATUS] = {match_status, "status"},
		     [PART_BLOCK] = {match_block, "block"},
		     [PART_NAME] = {match_name, "name"},
		     [PART_RIGHTS] = {match_rights, "right"}};
	size_t floor = model_floor_of(world->model, client, volume, object, part, detail);

	world->hits++;
	trace(world, client, volume, object, "shows %s %u", parts[part].name, detail);
	if (!is_permitted(world, floor, volume, object, parts[part].match, shown, detail))
		fail_seed(world, client, volume, object, parts[part].name);
}

/* -- calls --------------------------------------------------------------------------------- */

static struct cl_object *get_object(struct client *client, unsigned volume, unsigned object)
{
	struct rxafs_fid fid = object_fid(volume, object);
	struct cl_object *got = cl_cache_get(client->cache, &fid);

	ck_assert_ptr_nonnull(got);
	return got;
}

static void send_call(struct world *world, struct call *call)
{
	struct client *client = &world->clients[call->client];
	struct errand *errand = calloc(1, sizeof(*errand));

	ck_assert_ptr_nonnull(errand);
	world->misses += call->kind <= CALL_LAST_READ;
	world->changes += call->kind > CALL_LAST_READ;
	errand->world = world;
	errand->object = get_object(client, call->volume, call->object);
	errand->floor = model_floor(world->model, call->client, call->volume, call->object);
	if (call->kind == CALL_DATA || call->kind == CALL_STORE)
		errand->stores = client->blocks[call->volume][call->object][call->value].stores;
	if (call->kind > CALL_LAST_READ) {
		if (call->kind == CALL_CHMOD || call->kind == CALL_ACL)
			cl_change_begin_quiet(errand->object);
		else
			cl_change_begin(errand->object);
		client->changes[call->volume][call->object]++;
	}
	call->note = cl_cache_note(client->cache);
	call->user = errand;
	call->server = call->volume;
	if (call->volume == RELEASED)
		call->server = (unsigned)model_random(world->model, SERVERS);
	trace(world, call->client, call->volume, call->object, "calls %s %u", kinds[call->kind],
	      call->value);
	model_call(world->model, call);
}

static struct cl_reply make_reply(const struct call *call)
{
	return (struct cl_reply){.note = call->note,
				 .sent = call->sent,
				 .server = call->server,
				 .identity = call->identity,
				 .sync = call->sync,
				 .lifetime = call->lifetime};
}

static AFSFetchStatus make_status(const struct state *state, unsigned object, uint32_t identity)
{
	AFSFetchStatus status = {.InterfaceVersion = 1,
				 .FileType = object ? RXAFS_FILE : RXAFS_DIRECTORY,
				 .LinkCount = 1,
				 .UnixModeBits = state->mode,
				 .ServerModTime = state->time,
				 .CallerAccess = model_rights(state, identity),
				 .AnonymousAccess = model_rights(state, 0),
				 .ParentVnode = 1,
				 .ParentUnique = 1};

	afs_status_set_version(&status, state->version);
	afs_status_set_length(&status, object ? 10 : AFS_DIR_PAGE);
	return status;
}

/* -- answers ------------------------------------------------------------------------------- */

static uint8_t *make_image(const struct state *state, size_t *length)
{
	struct afs_dir dir;

	ck_assert_int_eq(afs_dir_begin(&dir, 1, 1, 1, 1), 0);
	for (unsigned n = 0; n < NAMES; n++) {
		char name = (char)('a' + (int)n);

		if (state->names[n])
			ck_assert_int_eq(afs_dir_add(&dir, &name, 1, 1000 + 2 * n, state->names[n]),
					 0);
	}
	return afs_dir_take(&dir, length);
}

static void take_image(struct call *call, const struct cl_reply *reply)
{
	const struct state *state =
		model_state(call->model, call->volume, call->object, call->moments[call->object]);
	AFSFetchStatus status = make_status(state, call->object, call->identity);
	struct errand *errand = call->user;
	const char *fault;
	uint8_t *image;
	size_t length;

	image = make_image(state, &length);
	ck_assert_int_ne(cl_dir_load(errand->object, reply, &status, image, length, NULL, &fault),
			 -EIO);
	free(image);
}

/* Keep a block that was fetched, unless a store of it began or ended meanwhile. */
static void take_block(struct call *call, const struct cl_status *known)
{
	const struct state *state =
		model_state(call->model, call->volume, call->object, call->moments[call->object]);
	struct errand *errand = call->user;
	struct block *block = &errand->world->clients[call->client]
				       .blocks[call->volume][call->object][call->value];

	if (block->storing || block->stores != errand->stores)
		return;
	*block = (struct block){.present = true,
				.version = state->version,
				.token = state->blocks[call->value],
				.incarnation = call->volume == RELEASED ? state->time : call->sync,
				.stores = block->stores};
	(void)known;
}

/* The answer must not be older than what had to be known when the request was sent. */
static void check_answer(struct call *call, const struct cl_status *known)
{
	struct errand *errand = call->user;

	if (!is_permitted(errand->world, errand->floor, call->volume, call->object, match_status,
			  known, 0))
		fail_seed(errand->world, call->client, call->volume, call->object, "answer");
	if (call->volume != RELEASED)
		model_saw(call->model, call->client, call->volume, call->object,
			  call->moments[call->object]);
}

static void take_bulk(struct call *call, const struct cl_reply *reply)
{
	struct errand *errand = call->user;

	for (unsigned o = 0; o < OBJECTS; o++) {
		const struct state *state =
			model_state(call->model, call->volume, o, call->moments[o]);
		AFSFetchStatus status = make_status(state, o, call->identity);
		struct cl_object *object =
			get_object(&errand->world->clients[call->client], call->volume, o);

		cl_cache_apply(object, reply, &status, NULL);
		cl_object_put(object);
	}
}

static void take_read(struct call *call)
{
	const struct state *state =
		model_state(call->model, call->volume, call->object, call->moments[call->object]);
	AFSFetchStatus status = make_status(state, call->object, call->identity);
	struct cl_reply reply = make_reply(call);
	struct errand *errand = call->user;
	struct cl_status known;
	enum cl_verdict verdict;

	if (call->kind == CALL_BULK) {
		take_bulk(call, &reply);
		return;
	}
	verdict = cl_cache_apply(errand->object, &reply, &status, &known);
	if (verdict == CL_OTHER_SITE || verdict == CL_ASK_AGAIN)
		return;
	check_answer(call, &known);
	if (call->kind == CALL_DATA && call->object)
		take_block(call, &known);
	else if (call->kind == CALL_DATA)
		take_image(call, &reply);
}

static void end_change(struct call *call)
{
	struct errand *errand = call->user;
	struct client *client = &errand->world->clients[call->client];
	char name = (char)('a' + (int)call->value);
	struct cl_edit edit = {.added = &name,
			       .added_length = 1,
			       .vnode = 1000 + 2 * call->value,
			       .unique = call->unique};
	struct cl_reply reply = make_reply(call);
	struct cl_effect effect = {.outcome = CL_UNKNOWN,
				   .reply = &reply,
				   .now = model_now(call->model),
				   .raised = call->kind != CALL_CHMOD && call->kind != CALL_ACL,
				   .acl = call->kind == CALL_ACL};
	AFSFetchStatus status;

	if (call->kind == CALL_REMOVE)
		edit = (struct cl_edit){.removed = &name, .removed_length = 1};
	if (call->kind == CALL_CREATE || call->kind == CALL_REMOVE)
		effect.edit = &edit;
	if (call->failed)
		effect.outcome = CL_NOT_DONE;
	else if (call->answered) {
		effect.outcome = CL_DONE;
		status = make_status(
			model_state(call->model, call->volume, call->object, call->change),
			call->object, call->identity);
		effect.status = &status;
	}
	client->changes[call->volume][call->object]--;
	cl_change_end(errand->object, &effect, NULL);
}

/* A block that was stored is that of the new version; without an answer nothing is known of it. */
static void end_store(struct call *call)
{
	struct errand *errand = call->user;
	struct block *block = &errand->world->clients[call->client]
				       .blocks[call->volume][call->object][call->value];

	block->storing = false;
	block->stores++;
	block->present = call->answered;
	if (call->answered)
		*block = (struct block){.present = true,
					.version = model_state(call->model, call->volume,
							       call->object, call->change)
							   ->version,
					.token = call->token,
					.incarnation = call->sync,
					.stores = block->stores};
}

static void take_answer(struct call *call)
{
	struct errand *errand = call->user;

	if (call->kind <= CALL_LAST_READ && call->answered)
		take_read(call);
	if (call->kind > CALL_LAST_READ)
		end_change(call);
	if (call->kind == CALL_STORE)
		end_store(call);
	trace(errand->world, call->client, call->volume, call->object,
	      "%s %s %u of %.6f: moment %zu, lifetime %u", call->answered ? "has" : "abandons",
	      kinds[call->kind], call->value, (double)call->sent / MODEL_SECOND,
	      call->moments[call->object], call->lifetime);
	cl_object_put(errand->object);
	free(errand);
}

/* -- notices ------------------------------------------------------------------------------- */

static void take_break(void *arg, unsigned client, unsigned volume, unsigned object)
{
	struct rxafs_fid fid = object_fid(volume, object);
	struct world *world = arg;
	bool whole;

	cl_object_put(cl_cache_break(world->clients[client].cache, &fid, &whole));
	ck_assert(!whole);
	trace(world, client, volume, object, "has a break");
}

static void take_volume_break(void *arg, unsigned client, unsigned volume)
{
	struct rxafs_fid fid = {CELL, VOLUME_ID(volume), 0, 0};
	struct world *world = arg;
	bool whole;

	ck_assert_ptr_null(cl_cache_break(world->clients[client].cache, &fid, &whole));
	ck_assert(whole);
	for (unsigned o = 0; o < OBJECTS; o++)
		trace(world, client, volume, o, "has a break of all");
}

static void take_reset(void *arg, unsigned client, unsigned server)
{
	struct world *world = arg;

	cl_cache_reset(world->clients[client].cache, server);
	for (unsigned v = 0; v < VOLUMES; v++)
		for (unsigned o = 0; o < OBJECTS && (v == server || v == RELEASED); o++)
			trace(world, client, v, o, "has a reset of server %u", server);
}

/* -- steps of clients ---------------------------------------------------------------------- */

static void look_at_status(struct world *world, struct call *call, struct cl_object *object)
{
	struct cl_status status;

	if (cl_object_status(object, model_now(world->model), &status) == 0) {
		check_shown(world, call->client, call->volume, call->object, PART_STATUS, &status,
			    0);
		return;
	}
	call->kind = model_random(world->model, 3) ? CALL_STATUS : CALL_BULK;
	send_call(world, call);
}

static void read_block(struct world *world, struct call *call, struct cl_object *object)
{
	struct block *block;
	struct cl_status status;

	call->value = (uint32_t)model_random(world->model, BLOCKS);
	block = &world->clients[call->client].blocks[call->volume][call->object][call->value];
	if (block->storing)
		return;
	if (cl_object_status(object, model_now(world->model), &status) == 0 && block->present &&
	    block->version >= status.clean_from && block->version <= status.version &&
	    block->incarnation == status.incarnation) {
		check_shown(world, call->client, call->volume, call->object, PART_BLOCK,
			    &block->token, call->value);
		return;
	}
	call->kind = CALL_DATA;
	send_call(world, call);
}

static void look_for_name(struct world *world, struct call *call, struct cl_object *directory)
{
	unsigned number = (unsigned)model_random(world->model, NAMES);
	char name = (char)('a' + (int)number);
	struct rxafs_fid fid;
	int result = cl_dir_find(directory, &name, 1, model_now(world->model), &fid);

	if (result == -ESTALE) {
		call->kind = CALL_DATA;
		send_call(world, call);
		return;
	}
	if (result == -ENOENT)
		fid.unique = 0;
	check_shown(world, call->client, call->volume, call->object, PART_NAME, &fid.unique,
		    number);
}

static void look_at_rights(struct world *world, struct call *call, struct cl_object *directory)
{
	uint32_t rights;

	if (cl_object_rights(directory, call->identity, model_now(world->model), &rights) == 0) {
		check_shown(world, call->client, call->volume, call->object, PART_RIGHTS, &rights,
			    call->identity);
		return;
	}
	call->kind = CALL_STATUS;
	send_call(world, call);
}

static void change_file(struct world *world, struct call *call)
{
	struct client *client = &world->clients[call->client];

	call->kind = model_random(world->model, 3) ? CALL_STORE : CALL_CHMOD;
	call->value = (uint32_t)model_random(world->model, BLOCKS);
	if (call->kind == CALL_CHMOD) {
		call->value = 0600 + (uint32_t)model_random(world->model, 8);
	} else {
		struct block *block = &client->blocks[call->volume][call->object][call->value];

		if (block->storing)
			return;
		block->storing = true;
		block->stores++;
		call->token = 1000 + ++world->tokens;
	}
	send_call(world, call);
}

static void change_directory(struct world *world, struct call *call)
{
	call->value = (uint32_t)model_random(world->model, NAMES);
	call->kind = model_random(world->model, 2) ? CALL_CREATE : CALL_REMOVE;
	if (model_random(world->model, 5) == 0) {
		call->kind = CALL_ACL;
		call->value = (uint32_t)model_random(world->model, 128);
	}
	send_call(world, call);
}

static void change_something(struct world *world, struct call *call)
{
	const struct client *client = &world->clients[call->client];

	if (call->volume == RELEASED || client->changes[call->volume][call->object] > 2)
		return;
	if (call->object)
		change_file(world, call);
	else
		change_directory(world, call);
}

/* Promises of evicted objects, which the model takes back at once: no client may trust them from here on. */
static void give_promises_back(struct world *world, unsigned client)
{
	struct cl_cache *cache = world->clients[client].cache;
	struct rxafs_fid fids[8];
	uint32_t server;
	size_t count = cl_cache_give_up(cache, &server, fids, 8);

	cl_cache_gave_up(cache, fids, count, model_random(world->model, 4) != 0,
			 model_now(world->model));
}

/* Other objects, of which a small cache forgets those that matter. */
static void fill_cache(struct world *world, unsigned client)
{
	for (unsigned i = 0; i < FILLERS; i++) {
		struct rxafs_fid fid = {CELL, VOLUME_ID(VOLUMES), ++world->fillers, 1};

		cl_object_put(cl_cache_get(world->clients[client].cache, &fid));
	}
}

static void take_step(void *arg, unsigned client)
{
	struct world *world = arg;
	struct call call = {.client = client,
			    .volume = (unsigned)model_random(world->model, VOLUMES),
			    .object = (unsigned)model_random(world->model, OBJECTS),
			    .identity = (uint32_t)model_random(world->model, IDENTITIES)};
	struct cl_object *object = get_object(&world->clients[client], call.volume, call.object);
	uint64_t choice = model_random(world->model, 100);

	if (world->clients[client].small && model_random(world->model, 100) == 0)
		fill_cache(world, client);
	if (choice < 25)
		change_something(world, &call);
	else if (choice < 50)
		look_at_status(world, &call, object);
	else if (choice < 54)
		give_promises_back(world, client);
	else if (choice < 55)
		cl_cache_doubt(world->clients[client].cache);
	else if (call.object)
		read_block(world, &call, object);
	else if (choice < 80)
		look_for_name(world, &call, object);
	else
		look_at_rights(world, &call, object);
	cl_object_put(object);
}

/* -- runs ---------------------------------------------------------------------------------- */

static const struct model_ops ops = {
	.answer = take_answer,
	.broken = take_break,
	.whole = take_volume_break,
	.reset = take_reset,
	.act = take_step,
};

static void open_clients(struct world *world)
{
	for (unsigned c = 0; c < CLIENTS; c++) {
		struct cl_cache_limits limits = {.key = {c + 1, world->seed}};

		/* Some caches are so small that objects are forgotten all the time. */
		if ((world->seed + c) % 3 == 0)
			limits.objects = 1;
		world->clients[c].small = limits.objects == 1;
		world->clients[c].cache = cl_cache_create(&limits);
		ck_assert_ptr_nonnull(world->clients[c].cache);
		cl_cache_set_readonly(world->clients[c].cache, CELL, VOLUME_ID(RELEASED), true);
	}
}

static void add_counts(struct cl_cache_counts *sum, struct cl_cache *cache)
{
	struct cl_cache_counts counts;

	cl_cache_count(cache, &counts);
	sum->breaks += counts.breaks;
	sum->broken_early += counts.broken_early;
	sum->overtaken += counts.overtaken;
	sum->reordered += counts.reordered;
	sum->conflicts += counts.conflicts;
	sum->replaced += counts.replaced;
	sum->evicted += counts.evicted;
}

static void run_seed(uint64_t seed, struct world *sums, struct cl_cache_counts *counts)
{
	struct world *world = calloc(1, sizeof(*world));

	ck_assert_ptr_nonnull(world);
	world->seed = seed;
	world->traced = getenv("RXW_SIM_TRACE") != NULL;
	open_clients(world);
	world->model = model_create(seed, &ops, world);
	model_run(world->model, model_now(world->model) + RUN);
	sums->hits += world->hits;
	sums->misses += world->misses;
	sums->changes += world->changes;
	sums->checks += world->checks;
	for (unsigned c = 0; c < CLIENTS; c++)
		add_counts(counts, world->clients[c].cache);
	model_finish(world->model);
	for (unsigned c = 0; c < CLIENTS; c++)
		cl_cache_destroy(world->clients[c].cache);
	model_destroy(world->model);
	free(world);
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(never_stale)
{
	uint64_t seeds = number_from("RXW_SIM_SEEDS", SEEDS);
	uint64_t first = number_from("RXW_SIM_FIRST", 1);
	struct cl_cache_counts counts = {0};
	struct world sums = {0};

	for (uint64_t seed = first; seed < first + seeds; seed++)
		run_seed(seed, &sums, &counts);
	printf("%llu seeds: %llu shown without a call, %llu asked, %llu changes; breaks %llu, "
	       "promises broken early %llu, statuses overtaken %llu, own changes reordered %llu, "
	       "conflicts %llu, volumes replaced %llu, objects evicted %llu\n",
	       (unsigned long long)seeds, (unsigned long long)sums.hits,
	       (unsigned long long)sums.misses, (unsigned long long)sums.changes,
	       (unsigned long long)counts.breaks, (unsigned long long)counts.broken_early,
	       (unsigned long long)counts.overtaken, (unsigned long long)counts.reordered,
	       (unsigned long long)counts.conflicts, (unsigned long long)counts.replaced,
	       (unsigned long long)counts.evicted);
	/* A run in which nothing happens proves nothing. */
	if (seeds >= 100) {
		ck_assert_uint_gt(sums.hits, sums.misses / 4);
		ck_assert_uint_gt(counts.broken_early, seeds);
		ck_assert_uint_gt(counts.overtaken, seeds);
		ck_assert_uint_gt(counts.reordered, seeds / 20);
		ck_assert_uint_gt(counts.conflicts, seeds);
		ck_assert_uint_gt(counts.replaced, seeds);
		ck_assert_uint_gt(counts.evicted, seeds);
	}
}
END_TEST

TEST_MAIN_WITHIN(600, "client promises", never_stale)
