/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of locations: in memory, and in a table of the store. */
#include "fileserver/cell/private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "afs/uuid.h"
#include "afs/volname.h"
#include "base/hash.h"
#include "common/bytes.h"
#include "common/held.h"

#define FORMAT	     1
#define RECORD_MAX   256
#define SERVERS_MAX  254
#define FIRST_SERVER 0xffffff00u /* ids of rows from here on are those of servers */

/*
 * An entry; its key is the first of its ids. A site at a server that has registered has 1 + the place of that server instead of an
 * address, so that the entry stays right when the addresses of the server change.
 */
struct location {
	void *id_chain[3], *name_chain;
	struct fsd_location entry;
};

/* -- the form on the disk -- */

static void encode_location_text(uint8_t **at, const char *text)
{
	size_t length = strlen(text);

	assert(length < 65);
	put_little(at, length, 1);
	memcpy(*at, text, length);
	*at += length;
}

static size_t encode_location(const struct fsd_location *entry, uint8_t record[RECORD_MAX])
{
	uint8_t *at = record;

	put_little(&at, FORMAT, 1);
	encode_location_text(&at, entry->name);
	for (int i = 0; i < 3; i++)
		put_little(&at, entry->id[i], 4);
	put_little(&at, entry->clone, 4);
	put_little(&at, entry->flags, 4);
	put_little(&at, entry->count, 1);
	for (unsigned i = 0; i < entry->count; i++) {
		put_little(&at, entry->site[i].address, 4);
		put_little(&at, entry->site[i].partition, 1);
		put_little(&at, entry->site[i].flags, 1);
	}
	assert((size_t)(at - record) <= RECORD_MAX);
	return (size_t)(at - record);
}

static bool decode_location(const void *record, size_t length, struct fsd_location *entry)
{
	struct bytes from = {.at = record, .left = length};
	uint64_t format = get_little(&from, 1), name = get_little(&from, 1);

	*entry = (struct fsd_location){0};
	if (format != FORMAT || name >= sizeof(entry->name) || name > from.left)
		return false;
	memcpy(entry->name, from.at, name);
	from.at += name;
	from.left -= name;
	for (int i = 0; i < 3; i++)
		entry->id[i] = (uint32_t)get_little(&from, 4);
	entry->clone = (uint32_t)get_little(&from, 4);
	entry->flags = (uint32_t)get_little(&from, 4);
	entry->count = (unsigned)get_little(&from, 1);
	for (unsigned i = 0; i < entry->count && i < FSD_SITES; i++) {
		entry->site[i].address = (uint32_t)get_little(&from, 4);
		entry->site[i].partition = (uint8_t)get_little(&from, 1);
		entry->site[i].flags = (uint8_t)get_little(&from, 1);
	}
	return !from.bad && !from.left && entry->count <= FSD_SITES;
}

static void encode_server_uuid(uint8_t **at, const struct rxw_uuid *uuid)
{
	put_little(at, uuid->time_low, 4);
	put_little(at, uuid->time_mid, 2);
	put_little(at, uuid->time_hi_and_version, 2);
	put_little(at, (uint8_t)uuid->clock_seq_hi_and_reserved, 1);
	put_little(at, (uint8_t)uuid->clock_seq_low, 1);
	for (int i = 0; i < 6; i++)
		put_little(at, (uint8_t)uuid->node[i], 1);
}

static void decode_server_uuid(struct bytes *from, struct rxw_uuid *uuid)
{
	uuid->time_low = (uint32_t)get_little(from, 4);
	uuid->time_mid = (uint16_t)get_little(from, 2);
	uuid->time_hi_and_version = (uint16_t)get_little(from, 2);
	uuid->clock_seq_hi_and_reserved = (int8_t)get_little(from, 1);
	uuid->clock_seq_low = (int8_t)get_little(from, 1);
	for (int i = 0; i < 6; i++)
		uuid->node[i] = (int8_t)get_little(from, 1);
}

static size_t encode_server(const struct fsd_cell_server *server, uint8_t record[RECORD_MAX])
{
	uint8_t *at = record;

	put_little(&at, FORMAT, 1);
	encode_server_uuid(&at, &server->uuid);
	put_little(&at, server->unique, 4);
	put_little(&at, server->count, 1);
	for (unsigned i = 0; i < server->count; i++)
		put_little(&at, server->address[i], 4);
	assert((size_t)(at - record) <= RECORD_MAX);
	return (size_t)(at - record);
}

static bool decode_server(const void *record, size_t length, struct fsd_cell_server *server)
{
	struct bytes from = {.at = record, .left = length};

	*server = (struct fsd_cell_server){0};
	if (get_little(&from, 1) != FORMAT)
		return false;
	decode_server_uuid(&from, &server->uuid);
	server->unique = (uint32_t)get_little(&from, 4);
	server->count = (uint32_t)get_little(&from, 1);
	for (unsigned i = 0; i < server->count && i < FSD_SERVER_ADDRESSES; i++)
		server->address[i] = (uint32_t)get_little(&from, 4);
	return !from.bad && !from.left && server->count <= FSD_SERVER_ADDRESSES;
}

/* -- in memory -- */

static uint64_t hash_location_id(uint32_t id)
{
	return (uint64_t)id * 0x9e3779b97f4a7c15u >> 32;
}

static uint64_t hash_rw(const void *item, const uint64_t key[2])
{
	(void)key;
	return hash_location_id(((const struct location *)item)->entry.id[0]);
}

static uint64_t hash_ro(const void *item, const uint64_t key[2])
{
	(void)key;
	return hash_location_id(((const struct location *)item)->entry.id[1]);
}

static uint64_t hash_backup(const void *item, const uint64_t key[2])
{
	(void)key;
	return hash_location_id(((const struct location *)item)->entry.id[2]);
}

static uint64_t hash_location_name(const void *item, const uint64_t key[2])
{
	const char *name = ((const struct location *)item)->entry.name;

	return rxw_siphash(name, strlen(name), key);
}

static uint32_t key_of(const struct fsd_location *entry)
{
	return entry->id[0] ? entry->id[0] : entry->id[1] ? entry->id[1] : entry->id[2];
}

static struct location *find_location_by_id(struct locations *all, uint32_t id)
{
	for (int i = 0; i < 3 && id; i++) {
		struct location *item = htable_first(&all->by_id[i], hash_location_id(id));

		while (item && item->entry.id[i] != id)
			item = item->id_chain[i];
		if (item)
			return item;
	}
	return NULL;
}

static struct location *find_location_by_name(struct locations *all, const char *name)
{
	struct location *item =
		htable_first(&all->by_name, rxw_siphash(name, strlen(name), all->by_name.key));

	while (item && strcmp(item->entry.name, name) != 0)
		item = item->name_chain;
	return item;
}

/* -- sites -- */

static bool has_server_address(const struct fsd_cell_server *server, uint32_t address)
{
	for (uint32_t i = 0; i < server->count; i++)
		if (server->address[i] == address)
			return true;
	return false;
}

static bool is_place(uint32_t address)
{
	return address > 0 && address <= SERVERS_MAX;
}

/* 1 + the place of the server with this address; 0: none has it. */
static uint32_t place_of_address(const struct locations *all, uint32_t address)
{
	for (uint32_t i = 0; i < all->server_count; i++)
		if (has_server_address(&all->servers[i], address))
			return i + 1;
	return 0;
}

/* From addresses to places. */
static void link_sites(const struct locations *all, struct fsd_location *entry)
{
	for (unsigned i = 0; i < entry->count; i++) {
		uint32_t place = entry->site[i].address == FSD_HERE
					 ? 0
					 : place_of_address(all, entry->site[i].address);

		if (place)
			entry->site[i].address = place;
	}
}

/* And back: the first address of the server. */
static void show_sites(const struct locations *all, struct fsd_location *entry)
{
	for (unsigned i = 0; i < entry->count; i++) {
		uint32_t place = entry->site[i].address;

		if (!is_place(place))
			continue;
		entry->site[i].address = place <= all->server_count && all->servers[place - 1].count
						 ? all->servers[place - 1].address[0]
						 : UINT32_MAX;
	}
}

/* Whether an entry has a site there, by address or place. */
static bool is_location_used(const struct locations *all, uint32_t address)
{
	for (uint32_t i = 0; i < all->count; i++)
		for (unsigned k = 0; k < all->order[i]->entry.count; k++)
			if (all->order[i]->entry.site[k].address == address)
				return true;
	return false;
}

/* The place of the first entry with this key or a greater one. */
static uint32_t find_location_place(const struct locations *all, uint32_t key)
{
	uint32_t low = 0, high = all->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (key_of(&all->order[middle]->entry) < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert_location(struct locations *all, struct location *item)
{
	uint32_t at = find_location_place(all, key_of(&item->entry));

	assert(all->count < all->room);
	memmove(&all->order[at + 1], &all->order[at], (all->count++ - at) * sizeof(all->order[0]));
	all->order[at] = item;
	for (int i = 0; i < 3; i++)
		if (item->entry.id[i])
			htable_add(&all->by_id[i], item);
	htable_add(&all->by_name, item);
}

static void remove_location(struct locations *all, struct location *item)
{
	uint32_t at = find_location_place(all, key_of(&item->entry));

	assert(at < all->count && all->order[at] == item);
	memmove(&all->order[at], &all->order[at + 1], (--all->count - at) * sizeof(all->order[0]));
	for (int i = 0; i < 3; i++)
		if (item->entry.id[i])
			htable_remove(&all->by_id[i], item);
	htable_remove(&all->by_name, item);
}

/* Memory for one more: NULL, or an item that insert_location() takes. */
static struct location *make_location(struct locations *all, const struct fsd_location *entry)
{
	struct location *item = calloc(1, sizeof(*item));

	if (item && all->count == all->room) {
		uint32_t room = all->room ? 2 * all->room : 64;
		struct location **more = realloc(all->order, room * sizeof(*more));

		if (!more) {
			free(item);
			return NULL;
		}
		all->order = more;
		all->room = room;
	}
	if (item)
		item->entry = *entry;
	return item;
}

/* -- opening -- */

/* At its place. Places before it may be vacant: their servers have no address. */
static bool set_cell_server(struct locations *all, uint32_t at,
			    const struct fsd_cell_server *server)
{
	if (at >= all->server_count) {
		struct fsd_cell_server *more = realloc(all->servers, (at + 1) * sizeof(*more));

		if (!more)
			return false;
		memset(&more[all->server_count], 0, (at + 1 - all->server_count) * sizeof(*more));
		all->servers = more;
		all->server_count = at + 1;
	}
	all->servers[at] = *server;
	return true;
}

/* What is damaged, or left of a change that a crash cut short, is passed over: later rows count. */
static int load_row(void *arg, uint32_t id, const void *record, size_t length)
{
	struct locations *all = arg;
	struct fsd_cell_server server;
	struct fsd_location entry;
	struct location *item;

	if (id >= FIRST_SERVER)
		return id - FIRST_SERVER >= SERVERS_MAX ||
				       !decode_server(record, length, &server) ||
				       set_cell_server(all, id - FIRST_SERVER, &server)
			       ? 0
			       : -ENOMEM;
	if (!decode_location(record, length, &entry) || key_of(&entry) != id ||
	    find_location_by_name(all, entry.name) || find_location_by_id(all, entry.id[0]) ||
	    find_location_by_id(all, entry.id[1]) || find_location_by_id(all, entry.id[2]))
		return 0;
	item = make_location(all, &entry);
	if (!item)
		return -ENOMEM;
	insert_location(all, item);
	return 0;
}

int locations_open(struct fsd_cell *cell)
{
	static htable_hash_fn *const hashes[] = {hash_rw, hash_ro, hash_backup};
	struct locations *all = &cell->locations;
	uint64_t key[2] = {0};
	bool good = rxw_random(key, sizeof(key)) == 0 &&
		    htable_init(&all->by_name, offsetof(struct location, name_chain),
				hash_location_name, key, 0);

	pthread_mutex_init(&all->change, NULL);
	pthread_rwlock_init(&all->lock, NULL);
	for (size_t i = 0; i < 3 && good; i++)
		good = htable_init(&all->by_id[i],
				   offsetof(struct location, id_chain) + i * sizeof(void *),
				   hashes[i], NULL, 0);
	return good ? cellvol_locations(cell->store, load_row, all) : -ENOMEM;
}

void locations_close(struct fsd_cell *cell)
{
	struct locations *all = &cell->locations;

	for (uint32_t i = 0; i < all->count; i++)
		free(all->order[i]);
	free(all->order);
	free(all->servers);
	for (int i = 0; i < 3; i++)
		htable_fini(&all->by_id[i], NULL);
	htable_fini(&all->by_name, NULL);
	pthread_rwlock_destroy(&all->lock);
	pthread_mutex_destroy(&all->change);
}

/* -- asking -- */

bool fsd_location_by_id(struct fsd_cell *cell, uint32_t id, struct fsd_location *location)
{
	const struct location *item;

	pthread_rwlock_rdlock(&cell->locations.lock);
	item = find_location_by_id(&cell->locations, id);
	if (item) {
		*location = item->entry;
		show_sites(&cell->locations, location);
	}
	pthread_rwlock_unlock(&cell->locations.lock);
	return item != NULL;
}

bool fsd_location_by_name(struct fsd_cell *cell, const char *name, struct fsd_location *location)
{
	const struct location *item;

	pthread_rwlock_rdlock(&cell->locations.lock);
	item = find_location_by_name(&cell->locations, name);
	if (item) {
		*location = item->entry;
		show_sites(&cell->locations, location);
	}
	pthread_rwlock_unlock(&cell->locations.lock);
	return item != NULL;
}

bool fsd_location_at(struct fsd_cell *cell, uint32_t at, struct fsd_location *location)
{
	bool found;

	pthread_rwlock_rdlock(&cell->locations.lock);
	found = at < cell->locations.count;
	if (found) {
		*location = cell->locations.order[at]->entry;
		show_sites(&cell->locations, location);
	}
	pthread_rwlock_unlock(&cell->locations.lock);
	return found;
}

uint32_t fsd_location_count(struct fsd_cell *cell)
{
	uint32_t count;

	pthread_rwlock_rdlock(&cell->locations.lock);
	count = cell->locations.count;
	pthread_rwlock_unlock(&cell->locations.lock);
	return count;
}

/* -- changing -- */

/* Another entry than `old` has the name, or one of the ids. With the lock of changes only they read. */
static int32_t check_location_free(struct locations *all, const struct location *old,
				   const struct fsd_location *entry)
{
	const struct location *other = find_location_by_name(all, entry->name);

	assert(mutex_is_held(&all->change));
	if (other && other != old)
		return AFS_VL_NAMEEXIST;
	for (int i = 0; i < 3; i++) {
		other = find_location_by_id(all, entry->id[i]);
		if (other && other != old)
			return AFS_VL_IDEXIST;
	}
	return 0;
}

static int32_t check_location(const struct fsd_location *entry)
{
	if (!afs_volume_name_valid(entry->name))
		return AFS_VL_BADNAME;
	for (unsigned i = 0; i < entry->count && i < FSD_SITES; i++)
		if (is_place(entry->site[i].address))
			return AFS_VL_BADSERVER;
	return !key_of(entry) || key_of(entry) >= FIRST_SERVER || entry->count > FSD_SITES
		       ? AFS_VL_BADENTRY
		       : 0;
}

/* The row of the new key is written before that of the old one goes. */
static int write_location(struct fsd_cell *cell, const struct location *old,
			  const struct fsd_location *entry)
{
	uint8_t record[RECORD_MAX];
	uint32_t key = entry ? key_of(entry) : 0;
	int result = !entry ? 0
			    : cellvol_put_location(cell->store, key, record,
						   encode_location(entry, record));

	if (!result && old && key_of(&old->entry) != key)
		result = cellvol_put_location(cell->store, key_of(&old->entry), NULL, 0);
	return result;
}

/* `entry` NULL: the old one goes. */
static int32_t change_location(struct fsd_cell *cell, struct location *old,
			       const struct fsd_location *entry)
{
	struct locations *all = &cell->locations;
	struct location *item;

	assert(mutex_is_held(&all->change) && (old || entry));
	pthread_rwlock_wrlock(&all->lock);
	item = entry ? make_location(all, entry) : NULL;
	pthread_rwlock_unlock(&all->lock);
	if (entry && !item)
		return AFS_VL_NOMEM;
	if (write_location(cell, old, entry)) {
		free(item);
		return AFS_VL_IO;
	}
	pthread_rwlock_wrlock(&all->lock);
	if (old)
		remove_location(all, old);
	if (item)
		insert_location(all, item);
	pthread_rwlock_unlock(&all->lock);
	free(old);
	return 0;
}

int32_t fsd_location_put(struct fsd_cell *cell, uint32_t id, const struct fsd_location *location)
{
	struct locations *all = &cell->locations;
	struct fsd_location linked = *location;
	struct location *old;
	int32_t code = check_location(location);

	if (code)
		return code;
	pthread_mutex_lock(&all->change);
	link_sites(all, &linked);
	old = find_location_by_id(all, id);
	code = id && !old ? AFS_VL_NOENT : check_location_free(all, old, &linked);
	if (!code)
		code = change_location(cell, old, &linked);
	pthread_mutex_unlock(&all->change);
	return code;
}

int32_t fsd_location_delete(struct fsd_cell *cell, uint32_t id)
{
	struct locations *all = &cell->locations;
	struct location *old;
	int32_t code;

	pthread_mutex_lock(&all->change);
	old = find_location_by_id(all, id);
	code = old ? change_location(cell, old, NULL) : AFS_VL_NOENT;
	pthread_mutex_unlock(&all->change);
	return code;
}

int32_t fsd_location_lock(struct fsd_cell *cell, uint32_t id, uint32_t lock)
{
	struct locations *all = &cell->locations;
	struct fsd_location entry;
	struct location *old;
	int32_t code = 0;

	assert(!(lock & ~FSD_LOCKS));
	pthread_mutex_lock(&all->change);
	old = find_location_by_id(all, id);
	if (!old)
		code = AFS_VL_NOENT;
	else if (lock && old->entry.flags & FSD_LOCKS)
		code = AFS_VL_ENTRYLOCKED;
	if (!code) {
		entry = old->entry;
		entry.flags = (entry.flags & ~FSD_LOCKS) | lock;
		code = change_location(cell, old, &entry);
	}
	pthread_mutex_unlock(&all->change);
	return code;
}

/* -- servers -- */

static struct fsd_cell_server *find_server_by_uuid(struct locations *all,
						   const struct rxw_uuid *uuid)
{
	for (uint32_t i = 0; i < all->server_count; i++)
		if (all->servers[i].count && afs_uuid_same(&all->servers[i].uuid, uuid))
			return &all->servers[i];
	return NULL;
}

static uint32_t count_shared(const struct fsd_cell_server *server,
			     const struct fsd_cell_server *other)
{
	uint32_t shared = 0;

	for (uint32_t i = 0; i < other->count; i++)
		shared += has_server_address(server, other->address[i]);
	return shared;
}

/* One whose server's row was lost may still be named by entries: another server there would get their volumes. */
static uint32_t vacant_place(const struct locations *all)
{
	uint32_t at = 0;

	while (at < SERVERS_MAX && ((at < all->server_count && all->servers[at].count) ||
				    is_location_used(all, at + 1)))
		at++;
	return at;
}

/*
 * A new server takes the place of the one that had its address. A known one takes addresses of another, *loser, that keeps some
 * (otherwise SERVERS_MAX). What concerns several, an administrator has to settle.
 */
static int32_t find_server_place(struct locations *all, const struct fsd_cell_server *server,
				 uint32_t *at, uint32_t *loser)
{
	const struct fsd_cell_server *known = find_server_by_uuid(all, &server->uuid);
	uint32_t others = 0, other = SERVERS_MAX;

	for (uint32_t i = 0; i < all->server_count; i++)
		if (&all->servers[i] != known && count_shared(server, &all->servers[i])) {
			others++;
			other = i;
		}
	*loser = known ? other : SERVERS_MAX;
	*at = known ? (uint32_t)(known - all->servers) : others ? other : vacant_place(all);
	if (others > 1 || (known && others &&
			   count_shared(server, &all->servers[other]) == all->servers[other].count))
		return AFS_VL_MULTIPADDR;
	return *at >= SERVERS_MAX ? AFS_VL_SIZEEXCEEDED : 0;
}

static bool has_same_addresses(const struct fsd_cell_server *a, const struct fsd_cell_server *b)
{
	return a->count == b->count && afs_uuid_same(&a->uuid, &b->uuid) &&
	       !memcmp(a->address, b->address, a->count * sizeof(a->address[0]));
}

/* Without an address: its place becomes vacant. */
static int32_t write_cell_server(struct fsd_cell *cell, uint32_t at,
				 const struct fsd_cell_server *server)
{
	struct locations *all = &cell->locations;
	uint8_t record[RECORD_MAX];
	size_t length = server->count ? encode_server(server, record) : 0;
	int32_t code = 0;

	assert(mutex_is_held(&all->change));
	if (cellvol_put_location(cell->store, FIRST_SERVER + at, record, length))
		return AFS_VL_IO;
	pthread_rwlock_wrlock(&all->lock);
	if (!set_cell_server(all, at, server))
		code = AFS_VL_NOMEM;
	pthread_rwlock_unlock(&all->lock);
	return code;
}

/* Sites at one of the addresses, which no server had registered, are at another one. */
static int32_t move_sites(struct fsd_cell *cell, const uint32_t *from, uint32_t count, uint32_t to)
{
	struct fsd_cell_server old = {.count = count};
	struct locations *all = &cell->locations;
	int32_t code = 0;

	assert(mutex_is_held(&all->change) && count <= FSD_SERVER_ADDRESSES);
	memcpy(old.address, from, count * sizeof(*from));
	/* The order stays, since the ids do. */
	for (uint32_t i = 0; i < all->count && !code; i++) {
		struct fsd_location entry = all->order[i]->entry;
		bool moved = false;

		for (unsigned k = 0; k < entry.count; k++)
			if (has_server_address(&old, entry.site[k].address)) {
				entry.site[k].address = to;
				moved = true;
			}
		if (moved)
			code = change_location(cell, all->order[i], &entry);
	}
	return code;
}

/* The addresses of `server` are no more those of the one at `place`. */
static int32_t take_server_addresses(struct fsd_cell *cell, uint32_t place,
				     const struct fsd_cell_server *server)
{
	struct fsd_cell_server left = cell->locations.servers[place];

	left.count = 0;
	left.unique++;
	for (uint32_t i = 0; i < cell->locations.servers[place].count; i++)
		if (!has_server_address(server, cell->locations.servers[place].address[i]))
			left.address[left.count++] = cell->locations.servers[place].address[i];
	assert(left.count);
	return write_cell_server(cell, place, &left);
}

/* Its entries follow it. */
static int32_t register_at(struct fsd_cell *cell, uint32_t at, uint32_t loser,
			   struct fsd_cell_server *server)
{
	struct locations *all = &cell->locations;
	int32_t code = 0;

	server->unique = at < all->server_count ? all->servers[at].unique : 0;
	if (server->unique && has_same_addresses(&all->servers[at], server))
		return 0;
	server->unique++;
	if (loser < SERVERS_MAX)
		code = take_server_addresses(cell, loser, server);
	if (!code)
		code = write_cell_server(cell, at, server);
	return code ? code : move_sites(cell, server->address, server->count, at + 1);
}

int32_t fsd_cell_register(struct fsd_cell *cell, const struct fsd_cell_server *server)
{
	struct locations *all = &cell->locations;
	struct fsd_cell_server now = *server;
	uint32_t at, loser;
	int32_t code;

	if (!server->count || server->count > FSD_SERVER_ADDRESSES)
		return AFS_VL_INDEXERANGE;
	for (uint32_t i = 0; i < server->count; i++)
		if (server->address[i] == FSD_HERE || is_place(server->address[i]))
			return AFS_VL_BADSERVER;
	pthread_mutex_lock(&all->change);
	code = find_server_place(all, server, &at, &loser);
	if (!code)
		code = register_at(cell, at, loser, &now);
	pthread_mutex_unlock(&all->change);
	return code;
}

int32_t fsd_cell_move_address(struct fsd_cell *cell, uint32_t from, uint32_t to)
{
	struct locations *all = &cell->locations;
	int32_t code;

	if (from == FSD_HERE || to == FSD_HERE || is_place(from) || is_place(to))
		return AFS_VL_BADSERVER;
	pthread_mutex_lock(&all->change);
	if (!is_location_used(all, from))
		code = AFS_VL_NOENT;
	else if (place_of_address(all, to))
		code = AFS_VL_MULTIPADDR;
	else
		code = move_sites(cell, &from, 1, to);
	pthread_mutex_unlock(&all->change);
	return code;
}

int32_t fsd_cell_remove_server(struct fsd_cell *cell, uint32_t address)
{
	static const struct fsd_cell_server vacant;
	struct locations *all = &cell->locations;
	uint32_t place;
	int32_t code;

	if (address == FSD_HERE || is_place(address))
		return AFS_VL_NOENT;
	pthread_mutex_lock(&all->change);
	place = place_of_address(all, address);
	if (is_location_used(all, place ? place : address))
		code = AFS_VL_IDEXIST;
	else
		code = place ? write_cell_server(cell, place - 1, &vacant) : AFS_VL_NOENT;
	pthread_mutex_unlock(&all->change);
	return code;
}

bool fsd_cell_server_at(struct fsd_cell *cell, uint32_t at, struct fsd_cell_server *server)
{
	bool found;

	pthread_rwlock_rdlock(&cell->locations.lock);
	found = at < cell->locations.server_count;
	if (found)
		*server = cell->locations.servers[at];
	pthread_rwlock_unlock(&cell->locations.lock);
	return found;
}

bool fsd_cell_server_of(struct fsd_cell *cell, uint32_t address, struct fsd_cell_server *server)
{
	for (uint32_t i = 0; fsd_cell_server_at(cell, i, server); i++)
		if (has_server_address(server, address))
			return true;
	return false;
}
