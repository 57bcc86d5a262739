/* SPDX-License-Identifier: BSD-2-Clause */
/* The cells of an instance: from options, from files, and from DNS when somebody asks for them. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cell/cell.h"
#include "common/clock.h"
#include "common/failure.h"
#include "common/grow.h"
#include "common/held.h"

#define DNS_LIMIT_MS  10000u
#define DNS_LEAST_S   600u   /* an answer of DNS is kept so long at least, */
#define DNS_MOST_S    86400u /* and at most (K-003) */
#define DNS_FAILURE_S 10u
#define REFUSED_MAX   256u /* names that are known not to be cells */

/* A name that DNS is asked for, or was asked for in vain. */
struct refused {
	char name[CL_CELL_NAME];
	uint64_t until; /* CLOCK_BOOTTIME; 0: unused */
	int result;
	bool asking; /* a thread asks DNS now */
};

struct cl_cells {
	pthread_mutex_t lock; /* covers the members below; not held while DNS is asked */
	pthread_cond_t asked; /* a thread has an answer of DNS */
	struct cl_cell **list;
	size_t count, room;
	struct cl_cell *home;
	struct refused refused[REFUSED_MAX];
	unsigned asking;
	/* constant: */
	bool no_dns;
	cl_cell_resolve_fn *resolve;
	void *resolve_arg;
	void (*warn)(void *arg, const char *text);
	void *warn_arg;
};

static uint64_t boot_ns(void)
{
	return (uint64_t)read_clock_ns(CLOCK_BOOTTIME);
}

/* ---- the list ---- */

static struct cl_cell *find_known_cell(struct cl_cells *cells, const char *name)
{
	assert(mutex_is_held(&cells->lock));
	for (size_t i = 0; i < cells->count; i++)
		if (strcmp(cells->list[i]->name, name) == 0)
			return cells->list[i];
	return NULL;
}

/* NULL: no memory. */
static struct cl_cell *add_cell(struct cl_cells *cells, const char *name)
{
	struct cl_cell *cell;

	assert(mutex_is_held(&cells->lock));
	if (!grow_array(&cells->list, &cells->room, cells->count, sizeof(struct cl_cell *)))
		return NULL;
	cell = calloc(1, sizeof(*cell));
	if (!cell)
		return NULL;
	snprintf(cell->name, sizeof(cell->name), "%s", name);
	cell->all = cells;
	cells->list[cells->count++] = cell;
	cell->number = (uint32_t)cells->count;
	return cell;
}

/* ---- files and options ---- */

struct reading {
	struct cl_cells *cells;
	struct cl_cell *cell;
	const struct cl_cell_source *source;
	bool ipv4_only, no_memory;
	bool told; /* that the cell has servers which are not used */
};

/* A cell of a file: the first file that lists it wins, and options before it. */
static bool begin_listed_cell(void *arg, const char *name, const char *linked)
{
	struct reading *r = arg;
	struct cl_cell *known = find_known_cell(r->cells, name);

	r->cell = known;
	r->told = false;
	if (known && (known->given || known->count)) {
		if (!known->linked[0])
			snprintf(known->linked, sizeof(known->linked), "%s", linked);
		return false;
	}
	if (!known)
		r->cell = add_cell(r->cells, name);
	if (!r->cell) {
		r->no_memory = true;
		return false;
	}
	snprintf(r->cell->linked, sizeof(r->cell->linked), "%s", linked);
	return true;
}

static void tell_unused_server(struct reading *r, const char *why)
{
	char text[CL_CELL_NAME + 80];

	if (r->told)
		return;
	r->told = true;
	snprintf(text, sizeof(text), "cell %s: %s", r->cell->name, why);
	cl_cell_warn(r->source, 0, text);
}

static void add_listed_server(void *arg, const struct cl_cell_server *server)
{
	struct reading *r = arg;
	struct cl_cell *cell = r->cell;

	if (r->ipv4_only && server->address.ss_family != AF_INET) {
		tell_unused_server(r, "IPv6 addresses of servers are not used here");
		return;
	}
	if (cell->count == CL_CELL_SERVERS) {
		tell_unused_server(r, "only the first 20 servers are used");
		return;
	}
	cell->servers[cell->count++] = *server;
	cell->expires = UINT64_MAX;
}

static int read_folder(struct cl_cells *cells, const struct cl_cells_options *o, const char *folder)
{
	char path[512];
	struct cl_cell_source source = {.name = path, .warn = o->warn, .arg = o->warn_arg};
	struct reading r = {.cells = cells, .source = &source, .ipv4_only = o->ipv4_only};
	struct cl_cell_reader reader = {begin_listed_cell, add_listed_server, &r};
	char *text;

	snprintf(path, sizeof(path), "%s/CellServDB", folder);
	text = cl_cell_read_file(path);
	if (!text) {
		if (errno != ENOENT && errno != ENOTDIR)
			cl_cell_warn(&source, 0, strerror(errno));
		return 0;
	}
	cl_cell_read_list(text, &source, &reader);
	free(text);
	return r.no_memory ? -ENOMEM : 0;
}

static int read_given_cells(struct cl_cells *cells, const struct cl_cells_options *o, char *message,
			    size_t size)
{
	for (size_t i = 0; i < o->given_count; i++) {
		struct cl_cell_server servers[CL_CELL_SERVERS];
		char name[CL_CELL_NAME];
		int count = cl_cell_read_option(o->given[i], name, servers, message, size);
		struct cl_cell *cell;

		if (count < 0)
			return count;
		cell = find_known_cell(cells, name);
		if (!cell)
			cell = add_cell(cells, name);
		if (!cell)
			return fail_with(-ENOMEM, message, size, "no memory");
		memcpy(cell->servers, servers, sizeof(servers));
		cell->count = (unsigned)count;
		cell->expires = UINT64_MAX;
		cell->given = true;
	}
	return 0;
}

static const char *const default_folders[] = {"/etc/rxwire", "/etc/openafs", "/usr/vice/etc"};

/* The value of "thiscell" in kAFS's configuration: "thiscell = NAME". */
static bool read_kafs_home(const char *text, char name[CL_CELL_NAME])
{
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += strspn(at, " \t\n");
		if (strncmp(at, "thiscell", 8) != 0)
			continue;
		at += 8;
		at += strspn(at, " \t");
		if (*at == '=')
			return cl_cell_read_home(at + 1, name);
	}
	return false;
}

/* The name of the home cell from the environment or a file. False: it is configured nowhere. */
static bool find_home_name(const struct cl_cells_options *o, const char *const *folders,
			   size_t count, char name[CL_CELL_NAME])
{
	const char *set = getenv("AFSCELL");
	char path[512];
	char *text;
	bool found = set && cl_cell_read_home(set, name);

	for (size_t i = 0; i < count && !found; i++) {
		snprintf(path, sizeof(path), "%s/ThisCell", folders[i]);
		text = cl_cell_read_file(path);
		found = text && cl_cell_read_home(text, name);
		free(text);
	}
	if (found || o->folders)
		return found;
	text = cl_cell_read_file("/etc/kafs/client.conf");
	found = text && read_kafs_home(text, name);
	free(text);
	return found;
}

/* A home cell that is listed nowhere is a cell all the same: DNS is asked when it is used. */
static int choose_home(struct cl_cells *cells, const char *name, char *message, size_t size)
{
	cells->home = find_known_cell(cells, name);
	if (!cells->home)
		cells->home = add_cell(cells, name);
	if (!cells->home)
		return fail_with(-ENOMEM, message, size, "no memory");
	return 0;
}

int cl_cells_create(const struct cl_cells_options *o, struct cl_cells **out, char *message,
		    size_t size)
{
	const char *const *folders = o->folders ? o->folders : default_folders;
	size_t count =
		o->folders ? o->folder_count : sizeof(default_folders) / sizeof(default_folders[0]);
	struct cl_cells *cells = calloc(1, sizeof(*cells));
	char home[CL_CELL_NAME];
	int rc;

	if (!cells)
		return fail_with(-ENOMEM, message, size, "no memory");
	pthread_mutex_init(&cells->lock, NULL);
	monotonic_cond_init(&cells->asked);
	cells->no_dns = o->no_dns;
	cells->resolve = o->resolve ? o->resolve : cl_cell_ask_dns;
	cells->resolve_arg = o->resolve_arg;
	cells->warn = o->warn;
	cells->warn_arg = o->warn_arg;
	pthread_mutex_lock(&cells->lock);
	rc = read_given_cells(cells, o, message, size);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = read_folder(cells, o, folders[i]);
	if (rc == 0 && o->home && !cl_cell_name_copy(home, o->home, strlen(o->home)))
		rc = fail_with(-EINVAL, message, size, "%.200s: no name of a cell", o->home);
	if (rc == 0 && (o->home || find_home_name(o, folders, count, home)))
		rc = choose_home(cells, home, message, size);
	pthread_mutex_unlock(&cells->lock);
	if (rc < 0) {
		cl_cells_free(cells);
		return rc;
	}
	*out = cells;
	return 0;
}

/* With the lock of `cells`; nobody else knows `from`. */
static int take_listed_cell(struct cl_cells *cells, const struct cl_cell *from)
{
	struct cl_cell *cell = find_known_cell(cells, from->name);

	assert(mutex_is_held(&cells->lock));
	if (from->given || !from->count || (cell && cell->given))
		return 0;
	if (!cell)
		cell = add_cell(cells, from->name);
	if (!cell)
		return -ENOMEM;
	memcpy(cell->servers, from->servers, sizeof(cell->servers));
	memcpy(cell->linked, from->linked, sizeof(cell->linked));
	cell->count = from->count;
	cell->expires = from->expires;
	return 0;
}

int cl_cells_reload(struct cl_cells *cells, const struct cl_cells_options *options)
{
	struct cl_cells *fresh;
	char message[256];
	int rc = cl_cells_create(options, &fresh, message, sizeof(message));

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&cells->lock);
	for (size_t i = 0; i < fresh->count && rc == 0; i++)
		rc = take_listed_cell(cells, fresh->list[i]);
	/* A name that was none before may be one now. */
	for (unsigned i = 0; i < REFUSED_MAX; i++)
		if (!cells->refused[i].asking)
			cells->refused[i].until = 0;
	pthread_mutex_unlock(&cells->lock);
	cl_cells_free(fresh);
	return rc;
}

void cl_cells_free(struct cl_cells *cells)
{
	if (!cells)
		return;
	assert(!cells->asking);
	for (size_t i = 0; i < cells->count; i++)
		free(cells->list[i]);
	free(cells->list);
	pthread_cond_destroy(&cells->asked);
	pthread_mutex_destroy(&cells->lock);
	free(cells);
}

/* ---- DNS ---- */

/* What is known of a name that is no cell so far. NULL: nothing. */
static struct refused *find_refused(struct cl_cells *cells, const char *name, uint64_t now)
{
	assert(mutex_is_held(&cells->lock));
	for (unsigned i = 0; i < REFUSED_MAX; i++) {
		struct refused *r = &cells->refused[i];

		if ((r->asking || r->until > now) && strcmp(r->name, name) == 0)
			return r;
	}
	return NULL;
}

/*
 * A place for a name that is asked for now: the one whose time ends first. NULL: 256 questions are
 * on their way.
 */
static struct refused *begin_question(struct cl_cells *cells, const char *name)
{
	struct refused *best = NULL;

	assert(mutex_is_held(&cells->lock));
	for (unsigned i = 0; i < REFUSED_MAX; i++) {
		struct refused *r = &cells->refused[i];

		if (!r->asking && (!best || r->until < best->until))
			best = r;
	}
	if (!best)
		return NULL;
	*best = (struct refused){.asking = true};
	snprintf(best->name, sizeof(best->name), "%s", name);
	cells->asking++;
	return best;
}

static unsigned remaining_dns_ms(uint64_t now, uint64_t deadline)
{
	uint64_t left = deadline > now ? (deadline - now) / NS_PER_MS : 0;

	return !deadline || left > DNS_LIMIT_MS ? DNS_LIMIT_MS : (unsigned)left;
}

/* Whether a thread asks for a name. */
static bool is_asked(struct cl_cells *cells, const char *name)
{
	for (unsigned i = 0; i < REFUSED_MAX; i++)
		if (cells->refused[i].asking && strcmp(cells->refused[i].name, name) == 0)
			return true;
	return false;
}

/* Wait until a thread that asks for the same name is done. False: the time is over. */
static bool wait_for_question(struct cl_cells *cells, const char *name, uint64_t deadline)
{
	uint64_t until =
		monotonic_ns() + (uint64_t)remaining_dns_ms(boot_ns(), deadline) * NS_PER_MS;
	int rc = 0;

	assert(mutex_is_held(&cells->lock));
	while (is_asked(cells, name) && rc == 0)
		rc = monotonic_wait(&cells->asked, &cells->lock, until);
	return rc == 0;
}

static uint64_t clamped_life_ns(uint32_t ttl_s)
{
	uint32_t s = ttl_s < DNS_LEAST_S ? DNS_LEAST_S : ttl_s > DNS_MOST_S ? DNS_MOST_S : ttl_s;

	return (uint64_t)s * NS_PER_S;
}

/* Once for each question. */
static void warn_of_answer(const struct cl_cells *cells, const char *name, int count)
{
	char text[CL_CELL_NAME + 64];

	if (!cells->warn)
		return;
	snprintf(text, sizeof(text),
		 count ? "no answer from DNS about cell %s" : "DNS has no cell %s", name);
	cells->warn(cells->warn_arg, text);
}

/*
 * Ask DNS without the lock, and store the answer in `servers`. Their number, or a negative errno
 * value.
 */
static int ask_resolver(struct cl_cells *cells, const char *name, uint64_t deadline,
			struct cl_cell_server servers[CL_CELL_SERVERS], uint32_t *ttl_s)
{
	unsigned limit = remaining_dns_ms(boot_ns(), deadline);
	int count;

	assert(mutex_is_held(&cells->lock));
	pthread_mutex_unlock(&cells->lock);
	*ttl_s = 0;
	count = limit ? cells->resolve(cells->resolve_arg, name, limit, servers, ttl_s)
		      : -ETIMEDOUT;
	if (count <= 0)
		warn_of_answer(cells, name, count);
	pthread_mutex_lock(&cells->lock);
	assert(count <= CL_CELL_SERVERS);
	return count;
}

/*
 * The servers of a name from DNS, which becomes a cell if there are any. One thread asks for a
 * name, the others wait for it. The lock is held, and released meanwhile. 0, or a negative errno
 * value.
 */
static int ask_for_cell(struct cl_cells *cells, const char *name, uint64_t deadline)
{
	struct cl_cell_server servers[CL_CELL_SERVERS];
	struct refused *r = find_refused(cells, name, boot_ns());
	struct cl_cell *cell;
	uint32_t ttl_s;
	int count;

	if (r && !r->asking)
		return r->result;
	if (r) {
		if (!wait_for_question(cells, name, deadline))
			return -ETIMEDOUT;
		cell = find_known_cell(cells, name);
		if (cell && cell->count)
			return 0;
		r = find_refused(cells, name, boot_ns());
		return r ? r->result : -ETIMEDOUT;
	}
	r = begin_question(cells, name);
	if (!r)
		return -EAGAIN;
	count = ask_resolver(cells, name, deadline, servers, &ttl_s);
	r->asking = false;
	cells->asking--;
	r->result = count > 0 ? 0 : count < 0 ? -ETIMEDOUT : -ENOENT;
	r->until = count > 0 ? 0
			     : boot_ns() + (count < 0 ? (uint64_t)DNS_FAILURE_S * NS_PER_S
						      : clamped_life_ns(ttl_s));
	cell = count > 0 ? find_known_cell(cells, name) : NULL;
	if (count > 0 && !cell)
		cell = add_cell(cells, name);
	if (cell) {
		memcpy(cell->servers, servers, sizeof(servers));
		cell->count = (unsigned)count;
		cell->expires = boot_ns() + clamped_life_ns(ttl_s);
	} else if (count > 0) {
		r->result = -ENOMEM;
	}
	pthread_cond_broadcast(&cells->asked);
	return r->result;
}

/* ---- questions of others ---- */

int cl_cells_find(struct cl_cells *cells, const char *name, uint64_t deadline,
		  struct cl_cell **cell)
{
	char own[CL_CELL_NAME];
	int rc = 0;

	name += *name == '.';
	if (!cl_cell_name_copy(own, name, strlen(name)))
		return -EINVAL;
	pthread_mutex_lock(&cells->lock);
	*cell = find_known_cell(cells, own);
	if (!*cell) {
		/*
		 * A name without a dot is not one of DNS: shells and file managers probe many
		 * (K-004).
		 */
		rc = cells->no_dns || !strchr(own, '.') ? -ENOENT
							: ask_for_cell(cells, own, deadline);
		*cell = rc == 0 ? find_known_cell(cells, own) : NULL;
		if (rc == 0 && !*cell)
			rc = -ENOENT;
	}
	pthread_mutex_unlock(&cells->lock);
	return rc;
}

int cl_cell_servers(struct cl_cell *cell, uint64_t deadline,
		    struct cl_cell_server servers[CL_CELL_SERVERS])
{
	struct cl_cells *cells = cell->all;
	int rc = 0;

	pthread_mutex_lock(&cells->lock);
	if (cell->expires <= boot_ns() && !cells->no_dns)
		rc = ask_for_cell(cells, cell->name, deadline);
	/* Old addresses are better than none. */
	if (cell->count) {
		/* They are asked for again after a while only. */
		if (rc < 0)
			cell->expires = boot_ns() + clamped_life_ns(0);
		memcpy(servers, cell->servers, sizeof(cell->servers));
		rc = (int)cell->count;
	}
	pthread_mutex_unlock(&cells->lock);
	return rc == 0 ? -ENOENT : rc;
}

struct cl_cell *cl_cells_home(struct cl_cells *cells)
{
	return cells->home;
}

struct cl_cell *cl_cells_at(struct cl_cells *cells, uint32_t number)
{
	struct cl_cell *cell = NULL;

	pthread_mutex_lock(&cells->lock);
	if (number >= 1 && number <= cells->count)
		cell = cells->list[number - 1];
	pthread_mutex_unlock(&cells->lock);
	return cell;
}

uint32_t cl_cell_number(const struct cl_cell *cell)
{
	return cell->number;
}

const char *cl_cell_name(const struct cl_cell *cell)
{
	return cell->name;
}

const char *cl_cell_linked(const struct cl_cell *cell)
{
	return cell->linked;
}
