/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of volumes: kept for an hour, refreshed once however many wait (K-011). */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/volname.h"
#include "base/hash.h"
#include "client/net/pairs.h"
#include "client/net/record.h"
#include "common/htable.h"

#define LIFE_NS	 ((uint64_t)3600 * NS_PER_S)
#define RENEW_NS ((uint64_t)2 * NS_PER_S)   /* a call waits so long for a newer record, */
#define RETRY_NS ((uint64_t)300 * NS_PER_S) /* and uses the old one so long if nobody answers */
#define YOUNG_NS \
	((uint64_t)5 * NS_PER_S) /* a record that is younger is right about what does not exist */
#define REFUSED_NS  ((uint64_t)5 * NS_PER_S) /* that there is no such volume holds so long */
#define UNUSED_MOST 1024u		     /* records without users that are kept */

/*
 * A question that is asked now, or was refused lately; further threads with the same one wait for
 * it.
 */
struct asking {
	struct asking *next;
	struct cl_cell *cell;
	char name[VL_MAXNAMELEN];
	unsigned waiting; /* threads that read the result */
	bool done;
	uint64_t until; /* of a refusal */
	int rc;
	struct rxafs_failure failure;
};

struct cl_records {
	/* The net's table lock covers these. */
	struct htable by_name, by_id;
	struct asking *askings;
	unsigned unused;
};

/* Names come from directories, ids from names: nobody gains by filling a chain of these. */
static uint64_t mix_words(uint64_t a, uint64_t b)
{
	static const uint64_t key[2] = {0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu};

	return rxw_hash_words(a, b, key);
}

static uint64_t hash_cell_name(uint32_t cell, const char *name)
{
	uint64_t h = cell;

	for (; *name; name++)
		h = mix_words(h, (unsigned char)*name);
	return h;
}

const char *cl_record_name(const struct cl_record *record)
{
	return atomic_load(&record->name)->text;
}

static uint64_t hash_record(const void *item, const uint64_t key[2])
{
	const struct cl_record *record = item;

	(void)key;
	return hash_cell_name(cl_cell_number(record->cell), cl_record_name(record));
}

static uint64_t hash_record_volume(const void *item, const uint64_t key[2])
{
	const struct cl_volume *volume = item;

	(void)key;
	return mix_words(cl_cell_number(volume->record->cell), volume->id);
}

int cl_records_create(struct cl_net *net)
{
	struct cl_records *records = calloc(1, sizeof(*records));

	if (!records)
		return -ENOMEM;
	net->records = records;
	if (htable_init(&records->by_name, offsetof(struct cl_record, link), hash_record, NULL,
			0) &&
	    htable_init(&records->by_id, offsetof(struct cl_volume, link), hash_record_volume, NULL,
			0))
		return 0;
	return -ENOMEM;
}

static void free_record(struct cl_record *record)
{
	struct cl_record_name *name;

	assert(atomic_load(&record->refs) == 0);
	while ((name = atomic_load(&record->name))) {
		atomic_store(&record->name, name->former);
		free(name);
	}
	pthread_mutex_destroy(&record->lock);
	free(record);
}

static void drop_record_item(void *item)
{
	free_record(item);
}

void cl_records_free(struct cl_net *net)
{
	struct cl_records *records = net->records;
	struct asking *asking;

	if (!records)
		return;
	while ((asking = records->askings)) {
		records->askings = asking->next;
		free(asking);
	}
	htable_fini(&records->by_id, NULL);
	htable_fini(&records->by_name, drop_record_item);
	free(records);
	net->records = NULL;
}

/* ---- the tables ---- */

static bool is_record_young(struct cl_record *record)
{
	bool young;

	pthread_mutex_lock(&record->lock);
	young = record->fetched_at + YOUNG_NS > cl_net_now();
	pthread_mutex_unlock(&record->lock);
	return young && !atomic_load(&record->stale);
}

static struct cl_record *find_record(struct cl_net *net, struct cl_cell *cell, const char *name)
{
	struct cl_record *record;

	assert(mutex_is_held(&net->table_lock));
	record = htable_first(&net->records->by_name, hash_cell_name(cl_cell_number(cell), name));
	while (record && (record->cell != cell || strcmp(cl_record_name(record), name) != 0))
		record = record->link;
	return record;
}

static struct cl_volume *find_volume_id(struct cl_net *net, const struct cl_cell *cell, uint32_t id)
{
	struct cl_volume *volume;

	assert(mutex_is_held(&net->table_lock));
	volume = htable_first(&net->records->by_id, mix_words(cl_cell_number(cell), id));
	while (volume && (volume->record->cell != cell || volume->id != id))
		volume = volume->link;
	return volume;
}

/* Take a record out of the tables. The caller frees it if it has no users. */
static void unlink_record(struct cl_net *net, struct cl_record *record)
{
	assert(mutex_is_held(&net->table_lock));
	htable_remove(&net->records->by_name, record);
	for (unsigned i = 0; i < MAXTYPES; i++)
		if (record->volumes[i].id)
			htable_remove(&net->records->by_id, &record->volumes[i]);
	record->replaced = true;
	cl_record_unsettle(record);
	if (atomic_load(&record->refs) == 0) {
		net->records->unused--;
		free_record(record);
	}
}

/* Gives a record that is in no table by name another name. False: no memory. */
static bool set_record_name(struct cl_record *record, const char *text)
{
	struct cl_record_name *name = calloc(1, sizeof(*name));

	if (!name)
		return false;
	snprintf(name->text, sizeof(name->text), "%s", text);
	name->former = atomic_load(&record->name);
	atomic_store(&record->name, name);
	return true;
}

/* The volume was renamed. Without memory the old name stays. */
static void rename_record(struct cl_net *net, struct cl_record *record, const char *text)
{
	assert(mutex_is_held(&net->table_lock));
	if (strcmp(cl_record_name(record), text) == 0)
		return;
	htable_remove(&net->records->by_name, record);
	set_record_name(record, text);
	htable_add(&net->records->by_name, record);
}

/* NULL: no memory. */
static struct cl_record *insert_record(struct cl_net *net, struct cl_cell *cell, const char *name)
{
	struct cl_record *record = calloc(1, sizeof(*record));

	assert(mutex_is_held(&net->table_lock));
	if (!record || !set_record_name(record, name)) {
		free(record);
		return NULL;
	}
	record->net = net;
	record->cell = cell;
	pthread_mutex_init(&record->lock, NULL);
	for (unsigned i = 0; i < MAXTYPES; i++) {
		record->volumes[i].record = record;
		record->volumes[i].type = (enum afs_vl_type)i;
		record->volumes[i].last = -1;
	}
	htable_add(&net->records->by_name, record);
	net->records->unused++;
	return record;
}

static void ref_record(struct cl_record *record)
{
	assert(mutex_is_held(&record->net->table_lock));
	if (atomic_fetch_add(&record->refs, 1) == 0)
		record->net->records->unused--;
}

/* Forget the record that has been unused longest. */
static void drop_oldest_record(struct cl_net *net)
{
	struct htable *t = &net->records->by_name;
	struct cl_record *oldest = NULL;

	assert(mutex_is_held(&net->table_lock));
	for (size_t i = 0; i < t->size; i++)
		for (struct cl_record *r = *htable_chain(t, i); r; r = r->link)
			if (atomic_load(&r->refs) == 0 &&
			    (!oldest || atomic_load(&r->used_at) < atomic_load(&oldest->used_at)))
				oldest = r;
	if (oldest)
		unlink_record(net, oldest);
}

struct cl_volume *cl_volume_ref(struct cl_volume *volume)
{
	atomic_fetch_add(&volume->record->refs, 1);
	return volume;
}

void cl_volume_unref(struct cl_volume *volume)
{
	struct cl_record *record;
	struct cl_net *net;

	if (!volume)
		return;
	record = volume->record;
	net = record->net;
	pthread_mutex_lock(&net->table_lock);
	assert(atomic_load(&record->refs) > 0);
	atomic_store(&record->used_at, cl_net_now());
	if (atomic_fetch_sub(&record->refs, 1) == 1) {
		if (record->replaced)
			free_record(record);
		else if (++net->records->unused > UNUSED_MOST)
			drop_oldest_record(net);
	}
	pthread_mutex_unlock(&net->table_lock);
}

void cl_record_doubt(struct cl_net *net, uint32_t cell, uint32_t id)
{
	struct cl_cell *of = cl_cells_at(net->cells, cell);
	struct cl_volume *volume;

	pthread_mutex_lock(&net->table_lock);
	volume = of ? find_volume_id(net, of, id) : NULL;
	if (volume) {
		atomic_store(&volume->record->stale, true);
		cl_record_unsettle(volume->record);
	}
	pthread_mutex_unlock(&net->table_lock);
}

/* ---- entries become records ---- */

/*
 * The server of a UUID, with addresses of this generation if they can be had. -EINTR; or 0, and a
 * server or NULL.
 */
static int find_uuid_server(struct cl_net *net, struct cl_cell *cell,
			    const struct cl_caller *caller, const struct rxw_uuid *uuid,
			    int32_t generation, struct cl_server **server,
			    struct rxafs_failure *failure)
{
	struct cl_address list[CL_ADDRESSES];
	int32_t said = generation;
	unsigned count = 0;
	int rc;

	*server = cl_server_by_uuid(net, cell, uuid);
	if (!*server || cl_server_current(*server, generation))
		return 0;
	rc = cl_location_addresses(net, cell, uuid, caller, list, &count, &said, failure);
	if (rc == 0 && count > 0)
		cl_server_set_addresses(*server, list, cl_pairs_keep(net, list, count), generation);
	else if (!cl_server_reachable(*server))
		*server = NULL;
	return rc == -EINTR ? rc : 0;
}

/*
 * Entries have only IPv4 addresses: seen from an IPv6 location server, the file server is where
 * that is.
 */
static struct cl_server *find_neighbour_server(struct cl_net *net, struct cl_cell *cell,
					       const struct cl_entry *entry)
{
	struct sockaddr_in6 six;

	memcpy(&six, &entry->from, sizeof(six));
	six.sin6_port = htons(entry->fs_port);
	return cl_server_by_address(net, cell, (struct sockaddr *)&six, sizeof(six));
}

static struct cl_server *find_numbered_server(struct cl_net *net, struct cl_cell *cell,
					      uint32_t address, uint16_t port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};

	if (!cl_location_may_be_server(address))
		return NULL;
	return cl_server_by_address(net, cell, (struct sockaddr *)&sin, sizeof(sin));
}

/*
 * While a volume is released, and after a release that did not reach all sites, those that have the new one are marked, and vos marks the
 * others as not to be used. They have the release before, and are used nevertheless: the marked ones are asked first once they are half
 * of all, and before that the others (K-052). If no site is marked, not even the read-write one, one that is not to be used has got no
 * release yet. Returns the number of sites that are left.
 */
static unsigned choose_release(struct cl_site *sites, unsigned count)
{
	unsigned all = 0, fresh = 0, kept = 0;
	bool released = false;

	for (unsigned i = 0; i < count; i++) {
		released |= cl_site_marked(&sites[i]);
		if (sites[i].flags & VLSF_ROVOL) {
			all++;
			fresh += cl_site_marked(&sites[i]);
		}
	}
	for (unsigned i = 0; i < count; i++) {
		struct cl_site *site = &sites[i];
		bool copy = site->flags & VLSF_ROVOL;

		if (site->flags & VLSF_DONTUSE && !(released && copy))
			continue;
		site->behind = copy && fresh && cl_site_marked(site) != (2 * fresh >= all);
		sites[kept++] = *site;
	}
	return kept;
}

/* The servers of an entry's sites, with addresses. 0 or a negative errno value. */
static int find_sites(struct cl_net *net, struct cl_cell *cell, const struct cl_caller *caller,
		      const struct cl_entry *entry, struct cl_site sites[NMAXNSERVERS],
		      unsigned *count, struct rxafs_failure *failure)
{
	*count = 0;
	for (unsigned i = 0; i < entry->count; i++) {
		struct cl_site site = {.flags = entry->site[i].flags};
		int rc = 0;

		if (entry->from.ss_family == AF_INET6)
			site.server = find_neighbour_server(net, cell, entry);
		else if (entry->site[i].by_uuid)
			rc = find_uuid_server(net, cell, caller, &entry->site[i].uuid,
					      entry->site[i].generation, &site.server, failure);
		else
			site.server = find_numbered_server(net, cell, entry->site[i].address,
							   entry->fs_port);
		if (rc < 0)
			return rc;
		if (site.server)
			sites[(*count)++] = site;
	}
	*count = choose_release(sites, *count);
	return 0;
}

/* Whether a record can become that of an entry: no volume of it would get another id. */
static bool is_same_record(const struct cl_record *record, const struct cl_entry *entry)
{
	for (unsigned i = 0; i < MAXTYPES; i++)
		if (record->volumes[i].id && entry->id[i] && record->volumes[i].id != entry->id[i])
			return false;
	return true;
}

/* The record that has a volume of an entry, under whatever name. NULL: none. */
static struct cl_record *find_record_by_ids(struct cl_net *net, const struct cl_cell *cell,
					    const struct cl_entry *entry)
{
	for (unsigned i = 0; i < MAXTYPES; i++) {
		struct cl_volume *volume =
			entry->id[i] ? find_volume_id(net, cell, entry->id[i]) : NULL;

		if (volume)
			return volume->record;
	}
	return NULL;
}

/*
 * The record for an entry: the one that has its volumes, which may have been renamed. Records that
 * contradict the entry are replaced. NULL: none fits.
 */
static struct cl_record *settle_conflicts(struct cl_net *net, struct cl_cell *cell,
					  const struct cl_entry *entry)
{
	struct cl_record *record, *kept = NULL;

	while ((record = find_record_by_ids(net, cell, entry)) && !is_same_record(record, entry))
		unlink_record(net, record);
	kept = record;
	record = find_record(net, cell, entry->name);
	if (record && record != kept) {
		if (!kept && is_same_record(record, entry))
			kept = record;
		else
			unlink_record(net, record);
	}
	if (kept)
		rename_record(net, kept, entry->name);
	return kept;
}

/* Volumes of the entry that the record did not have so far. */
static void add_volumes(struct cl_net *net, struct cl_record *record, const struct cl_entry *entry)
{
	for (unsigned i = 0; i < MAXTYPES; i++) {
		struct cl_volume *volume = &record->volumes[i];

		if (volume->id || !entry->id[i])
			continue;
		volume->id = entry->id[i];
		cl_record_unsettle(record);
		htable_add(&net->records->by_id, volume);
	}
}

static bool are_same_sites(const struct cl_record *record, const struct cl_site *sites,
			   unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (record->sites[i].server != sites[i].server ||
		    record->sites[i].flags != sites[i].flags)
			return false;
	return record->site_count == count;
}

/* What was learnt of sites stays with their servers, but for pauses. */
static void keep_learnt(struct cl_volume *volume, const struct cl_site *sites, unsigned count)
{
	struct cl_record *record = volume->record;
	struct cl_releases before = volume->releases;
	int last = volume->last;

	assert(mutex_is_held(&record->lock));
	memset(volume->pause, 0, sizeof(volume->pause));
	memset(volume->refused, 0, sizeof(volume->refused));
	memset(volume->releases.date, 0, sizeof(before.date));
	memset(volume->releases.asked, 0, sizeof(before.asked));
	memset(volume->releases.heard, 0, sizeof(before.heard));
	volume->gone = 0;
	volume->last = -1;
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < record->site_count; j++)
			if (record->sites[j].server == sites[i].server &&
			    cl_site_serves(&record->sites[j], volume->type) &&
			    cl_site_serves(&sites[i], volume->type)) {
				cl_release_keep(&volume->releases, i, &before, j);
				volume->last = last == (int)j ? (int)i : volume->last;
			}
}

static void set_sites(struct cl_record *record, const struct cl_site *sites, unsigned count)
{
	assert(mutex_is_held(&record->lock));
	if (!are_same_sites(record, sites, count)) {
		for (unsigned i = 0; i < MAXTYPES; i++)
			keep_learnt(&record->volumes[i], sites, count);
		memcpy(record->sites, sites, count * sizeof(*sites));
		record->site_count = count;
		record->version++;
	}
	record->fetched_at = cl_net_now();
	record->renew_at = record->fetched_at + LIFE_NS;
	atomic_store(&record->stale, false);
}

/* Store an entry in the tables. 0 or -ENOMEM. */
static int install_entry(struct cl_net *net, struct cl_cell *cell, const struct cl_entry *entry,
			 const struct cl_site *sites, unsigned count)
{
	struct cl_record *record;

	pthread_mutex_lock(&net->table_lock);
	record = settle_conflicts(net, cell, entry);
	if (!record)
		record = insert_record(net, cell, entry->name);
	if (!record) {
		pthread_mutex_unlock(&net->table_lock);
		return -ENOMEM;
	}
	add_volumes(net, record, entry);
	ref_record(record);
	pthread_mutex_unlock(&net->table_lock);
	pthread_mutex_lock(&record->lock);
	set_sites(record, sites, count);
	pthread_mutex_unlock(&record->lock);
	cl_volume_unref(&record->volumes[0]);
	return 0;
}

/* Ask for a name or a number, and store the answer. 0 or a negative errno value. */
static int fetch_entry(struct cl_net *net, struct cl_cell *cell, const char *name,
		       const struct cl_caller *caller, struct rxafs_failure *failure)
{
	struct cl_site sites[NMAXNSERVERS] = {0};
	struct cl_entry entry;
	unsigned count = 0;
	int rc = cl_location_ask(net, cell, name, caller, &entry, failure);

	if (rc == 0)
		rc = find_sites(net, cell, caller, &entry, sites, &count, failure);
	if (rc < 0)
		return rc;
	if (install_entry(net, cell, &entry, sites, count) < 0)
		return cl_fail(failure, ENOMEM, "volume %s: no memory", name);
	return 0;
}

/* ---- one question for all ---- */

static bool is_asking_done(void *arg)
{
	return __atomic_load_n(&((struct asking *)arg)->done, __ATOMIC_ACQUIRE);
}

/* The question that is asked, or was refused lately. Old refusals go. */
static struct asking *find_asking(struct cl_net *net, struct cl_cell *cell, const char *name)
{
	struct asking **at = &net->records->askings, *asking;
	uint64_t now = cl_net_now();

	assert(mutex_is_held(&net->table_lock));
	while ((asking = *at)) {
		if (asking->done && !asking->waiting && asking->until <= now) {
			*at = asking->next;
			free(asking);
			continue;
		}
		if (asking->cell == cell && strcmp(asking->name, name) == 0 &&
		    (!asking->done || asking->until > now))
			return asking;
		at = &asking->next;
	}
	return NULL;
}

/* Wait for another thread's question. 1: its end says nothing to this caller, who asks himself. */
static int join_question(struct cl_net *net, struct asking *asking, const struct cl_caller *caller,
			 struct rxafs_failure *failure)
{
	int rc;

	assert(mutex_is_held(&net->table_lock));
	asking->waiting++;
	pthread_mutex_unlock(&net->table_lock);
	rc = cl_wait(net, caller->cancel, caller->deadline, is_asking_done, asking);
	pthread_mutex_lock(&net->table_lock);
	asking->waiting--;
	if (rc < 0) {
		rc = cl_fail(failure, -rc, "volume %s: %s", asking->name,
			     rc == -EINTR ? "interrupted" : "no answer in time");
		return rc;
	}
	/* It was interrupted, or refused to him who asked. */
	if (asking->rc == -EINTR || asking->rc == -EACCES)
		return 1;
	if (asking->rc < 0 && failure)
		*failure = asking->failure;
	return asking->rc;
}

/* As fetch_entry(), but once for all that ask at the same time. */
static int ask_location_once(struct cl_net *net, struct cl_cell *cell, const char *name,
			     const struct cl_caller *caller, struct rxafs_failure *failure)
{
	struct asking *asking;
	int rc;

	pthread_mutex_lock(&net->table_lock);
	while ((asking = find_asking(net, cell, name))) {
		rc = join_question(net, asking, caller, failure);
		if (rc == 1)
			continue;
		pthread_mutex_unlock(&net->table_lock);
		return rc;
	}
	asking = calloc(1, sizeof(*asking));
	if (asking) {
		asking->cell = cell;
		snprintf(asking->name, sizeof(asking->name), "%s", name);
		asking->next = net->records->askings;
		net->records->askings = asking;
	}
	pthread_mutex_unlock(&net->table_lock);
	if (!asking)
		return cl_fail(failure, ENOMEM, "volume %s: no memory", name);
	rc = fetch_entry(net, cell, name, caller, &asking->failure);
	if (rc < 0 && failure)
		*failure = asking->failure;
	pthread_mutex_lock(&net->table_lock);
	asking->rc = rc;
	asking->until = rc == -ENODEV ? cl_net_now() + REFUSED_NS : 0;
	__atomic_store_n(&asking->done, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&net->table_lock);
	cl_wake_waiters(net);
	return rc;
}

/* Another record has the volume now: its sites serve this one as well. -ENODEV: none has. */
static int take_over_sites(struct cl_volume *volume)
{
	struct cl_record *record = volume->record, *now = NULL;
	struct cl_site sites[NMAXNSERVERS];
	struct cl_volume *found;
	unsigned count;

	pthread_mutex_lock(&record->net->table_lock);
	found = find_volume_id(record->net, record->cell, volume->id);
	if (found && found->record != record) {
		now = found->record;
		ref_record(now);
	}
	pthread_mutex_unlock(&record->net->table_lock);
	if (!now)
		return record->replaced ? -ENODEV : 0;
	pthread_mutex_lock(&now->lock);
	count = now->site_count;
	memcpy(sites, now->sites, sizeof(sites));
	pthread_mutex_unlock(&now->lock);
	pthread_mutex_lock(&record->lock);
	set_sites(record, sites, count);
	pthread_mutex_unlock(&record->lock);
	cl_volume_unref(found);
	return 0;
}

/* The location service does not know the volume: its name may be that of another one. */
static void forget_volume(struct cl_record *record)
{
	pthread_mutex_lock(&record->net->table_lock);
	if (!record->replaced)
		unlink_record(record->net, record);
	pthread_mutex_unlock(&record->net->table_lock);
}

int cl_record_refresh(struct cl_volume *volume, uint64_t since, const struct cl_caller *caller,
		      bool *changed, struct rxafs_failure *failure)
{
	struct cl_record *record = volume->record;
	uint32_t version;
	char name[16];
	bool fresh;
	int rc;

	pthread_mutex_lock(&record->lock);
	version = record->version;
	fresh = record->fetched_at > since;
	pthread_mutex_unlock(&record->lock);
	*changed = fresh;
	if (fresh)
		return 0;
	/* By number: the name may have been given to another volume. */
	snprintf(name, sizeof(name), "%u", volume->id);
	rc = ask_location_once(record->net, record->cell, name, caller, failure);
	if (rc == 0 && take_over_sites(volume) < 0)
		rc = cl_fail(failure, ENODEV, "volume %s: it does not exist any more", name);
	if (rc == -ENODEV)
		forget_volume(record);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&record->lock);
	*changed = record->version != version;
	pthread_mutex_unlock(&record->lock);
	return 0;
}

int cl_record_renew(struct cl_volume *volume, const struct cl_caller *caller,
		    struct rxafs_failure *failure)
{
	struct cl_record *record = volume->record;
	struct cl_caller brief = *caller;
	uint64_t now = cl_net_now(), due;
	bool changed;
	int rc;

	pthread_mutex_lock(&record->lock);
	due = record->renew_at;
	pthread_mutex_unlock(&record->lock);
	if (now < due && !atomic_load(&record->stale))
		return 0;
	if (cl_location_silent(record->net, record->cell))
		return 0;
	if (!brief.deadline || brief.deadline > now + RENEW_NS)
		brief.deadline = now + RENEW_NS;
	rc = cl_record_refresh(volume, now, &brief, &changed, failure);
	/* Without a quorum of them location servers may refuse. */
	if (rc != -ETIMEDOUT && rc != -EIO)
		return rc;
	/* The volume may be where it was. */
	pthread_mutex_lock(&record->lock);
	record->renew_at = cl_net_now() + RETRY_NS;
	pthread_mutex_unlock(&record->lock);
	atomic_store(&record->stale, false);
	return 0;
}

bool cl_site_serves(const struct cl_site *site, enum afs_vl_type type)
{
	switch (type) {
	case AFS_VL_RO:
		return site->flags & VLSF_ROVOL;
	case AFS_VL_BACKUP:
		return site->flags & (VLSF_RWVOL | VLSF_BACKVOL);
	case AFS_VL_RW:
	default:
		return site->flags & VLSF_RWVOL;
	}
}

/* ---- look-ups ---- */

/* What a name asks for. */
struct wanted_volume {
	char base[VL_MAXNAMELEN]; /* without suffix; "" = by id */
	uint32_t id;
	int type; /* -1: as the rule says */
	enum cl_wanted rule;
};

static bool take_suffix(struct wanted_volume *wanted, const char *suffix, enum afs_vl_type type)
{
	size_t length = strlen(wanted->base), end = strlen(suffix);

	if (length <= end || strcmp(wanted->base + length - end, suffix) != 0)
		return false;
	wanted->base[length - end] = 0;
	wanted->type = (int)type;
	return true;
}

/* False: that can be no volume. */
static bool parse_wanted(const char *name, enum cl_wanted rule, struct wanted_volume *wanted)
{
	size_t length = strlen(name);

	*wanted = (struct wanted_volume){.type = -1, .rule = rule};
	if (length == 0 || length >= sizeof(wanted->base))
		return false;
	if (strspn(name, "0123456789") == length) {
		unsigned long long id = strtoull(name, NULL, 10);

		wanted->id = (uint32_t)id;
		return id > 0 && id <= UINT32_MAX;
	}
	memcpy(wanted->base, name, length + 1);
	if (!take_suffix(wanted, ".readonly", AFS_VL_RO))
		take_suffix(wanted, ".backup", AFS_VL_BACKUP);
	return afs_volume_name_valid(wanted->base);
}

/* The volume of a record that is wanted. NULL: it does not exist. */
static struct cl_volume *select_volume(struct cl_record *record, const struct wanted_volume *wanted,
				       struct cl_volume *by_id)
{
	struct cl_volume *rw = &record->volumes[AFS_VL_RW], *ro = &record->volumes[AFS_VL_RO];
	struct cl_volume *volume;

	if (wanted->type >= 0)
		volume = &record->volumes[wanted->type];
	else if (by_id && (wanted->rule == CL_WANT_EXACT || by_id != rw))
		volume = by_id;
	else if (wanted->rule == CL_WANT_RO)
		volume = ro->id ? ro : rw;
	else
		volume = rw->id ? rw : ro;
	return volume->id ? volume : NULL;
}

/*
 * The record from the tables, with a reference, and the volume of it that is wanted, NULL if it has
 * none of this type. NULL: not known.
 */
static struct cl_record *find_known_volume(struct cl_net *net, struct cl_cell *cell,
					   const struct wanted_volume *wanted,
					   struct cl_volume **volume)
{
	struct cl_volume *by_id = NULL;
	struct cl_record *record;

	pthread_mutex_lock(&net->table_lock);
	if (wanted->id)
		by_id = find_volume_id(net, cell, wanted->id);
	record = wanted->id ? by_id ? by_id->record : NULL : find_record(net, cell, wanted->base);
	if (record) {
		*volume = select_volume(record, wanted, by_id);
		ref_record(record);
	}
	pthread_mutex_unlock(&net->table_lock);
	return record;
}

static void put_record(struct cl_record *record)
{
	cl_volume_unref(&record->volumes[0]);
}

/* Ask for a volume that is not known. 0 or a negative errno value. */
static int ask_for_volume(struct cl_net *net, struct cl_cell *cell,
			  const struct wanted_volume *wanted, const struct cl_caller *caller,
			  struct rxafs_failure *failure)
{
	char asked[VL_MAXNAMELEN];

	if (wanted->id)
		snprintf(asked, sizeof(asked), "%u", wanted->id);
	else
		snprintf(asked, sizeof(asked), "%s", wanted->base);
	return ask_location_once(net, cell, asked, caller, failure);
}

/* The volume of this cell, with a reference. 0 or a negative errno value. */
static int look_up_in_cell(struct cl_net *net, struct cl_cell *cell, const char *name,
			   const struct wanted_volume *wanted, const struct cl_caller *caller,
			   struct cl_volume **volume, struct rxafs_failure *failure)
{
	struct cl_record *record = find_known_volume(net, cell, wanted, volume);
	int rc;

	if (record && *volume) {
		rc = cl_record_renew(*volume, caller, failure);
		put_record(record);
		/* The name of one that is gone may be that of another. */
		if (rc < 0 && (rc != -ENODEV || wanted->id))
			return rc;
		/* Other volumes of the record may exist now, or this one no longer. */
		record = find_known_volume(net, cell, wanted, volume);
		if (record && *volume)
			return 0;
		if (record)
			put_record(record);
	} else if (record) {
		bool young = is_record_young(record);

		put_record(record);
		if (young)
			goto none;
	}
	rc = ask_for_volume(net, cell, wanted, caller, failure);
	if (rc < 0)
		return rc;
	record = find_known_volume(net, cell, wanted, volume);
	if (record && *volume)
		return 0;
	if (record)
		put_record(record);
none:
	return cl_fail(failure, ENODEV, "volume %s: no volume of this type exists in cell %s", name,
		       cl_cell_name(cell));
}

int cl_volume_find(struct cl_net *net, struct cl_cell *cell, const char *name, enum cl_wanted rule,
		   const struct cl_caller *caller, struct cl_volume **volume,
		   struct rxafs_failure *failure)
{
	struct wanted_volume wanted;
	struct cl_cell *linked;
	int rc;

	if (!parse_wanted(name, rule, &wanted))
		return cl_fail(failure, ENODEV, "volume %.80s: no name of a volume", name);
	rc = look_up_in_cell(net, cell, name, &wanted, caller, volume, failure);
	if (rc != -ENODEV || !*cl_cell_linked(cell) ||
	    cl_cells_find(net->cells, cl_cell_linked(cell), caller->deadline, &linked) < 0 ||
	    linked == cell)
		return rc;
	return look_up_in_cell(net, linked, name, &wanted, caller, volume, failure);
}
