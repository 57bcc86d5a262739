/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of volumes. */
#include "volume/store/txn/volumes.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/held.h"
#include "volume/store/disk/crc.h"
#include "volume/store/txn/cache.h"

#define KEPT_CLONES 2 /* whose ids are kept when there is none */

struct volume {
	void *id_chain, *name_chain;
	struct volrec record;
	bool damaged;
	uint64_t serial; /* of all that there were */
	_Atomic uint64_t promised;
	_Atomic uint64_t moves;
	struct volume *next_spare;
};

static uint64_t hash_volume_id(uint32_t id)
{
	return (uint64_t)id * 0x9e3779b97f4a7c15u >> 32;
}

static uint64_t hash_volume_by_id(const void *item, const uint64_t key[2])
{
	(void)key;
	return hash_volume_id(((const struct volume *)item)->record.id);
}

static uint64_t hash_volume_name(const char *name)
{
	return store_crc(0, name, strlen(name));
}

static uint64_t hash_volume_by_name(const void *item, const uint64_t key[2])
{
	(void)key;
	return hash_volume_name(((const struct volume *)item)->record.name);
}

int volumes_init(struct volumes *volumes)
{
	if (!htable_init(&volumes->by_id, offsetof(struct volume, id_chain), hash_volume_by_id,
			 NULL, 0))
		return -ENOMEM;
	if (!htable_init(&volumes->by_name, offsetof(struct volume, name_chain),
			 hash_volume_by_name, NULL, 0)) {
		htable_fini(&volumes->by_id, NULL);
		return -ENOMEM;
	}
	pthread_rwlock_init(&volumes->lock, NULL);
	return 0;
}

void volumes_fini(struct volumes *volumes)
{
	for (struct volume *spare = volumes->spare, *next; spare; spare = next) {
		next = spare->next_spare;
		free(spare);
	}
	htable_fini(&volumes->by_name, NULL);
	htable_fini(&volumes->by_id, free);
	free(volumes->order);
	free(volumes->plain);
	free(volumes->kept);
	pthread_rwlock_destroy(&volumes->lock);
}

/* -- the table -- */

static struct volume *find_volume_by_id(struct volumes *volumes, uint32_t id)
{
	struct volume *volume = htable_first(&volumes->by_id, hash_volume_id(id));

	assert(rwlock_is_held(&volumes->lock));
	while (volume && volume->record.id != id)
		volume = volume->id_chain;
	return volume;
}

static struct volume *find_volume_by_name(struct volumes *volumes, const char *name)
{
	struct volume *volume = htable_first(&volumes->by_name, hash_volume_name(name));

	assert(rwlock_is_held(&volumes->lock));
	while (volume && strcmp(volume->record.name, name) != 0)
		volume = volume->name_chain;
	return volume;
}

/* The place of the first volume with this id or a greater one. */
static size_t find_order_place(struct volume *const *order, size_t count, uint32_t id)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (order[middle]->record.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The place among the ids of clones of the first one that is not less. */
static size_t find_kept_place(const struct volumes *volumes, uint32_t id)
{
	size_t low = 0, high = volumes->kept_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (volumes->kept[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The ids that a record keeps for clones. Two volumes keep none in common. */
static void keep_clone_ids(struct volumes *volumes, const struct volrec *record, bool keep)
{
	for (int i = 0; i < KEPT_CLONES; i++) {
		uint32_t id = record->clone_id[i];
		size_t at = find_kept_place(volumes, id);
		bool there = at < volumes->kept_count && volumes->kept[at] == id;

		if (!id || there == keep)
			continue;
		memmove(&volumes->kept[at + keep], &volumes->kept[at + !keep],
			(volumes->kept_count - at - !keep) * sizeof(volumes->kept[0]));
		if (keep)
			volumes->kept[at] = id;
		volumes->kept_count += keep ? 1 : (size_t)-1;
	}
}

static bool is_hidden(const struct volrec *record)
{
	return record->offline & VOLUME_HIDDEN;
}

/* Whether it is found by its name. */
static bool has_own_name(const struct volrec *record)
{
	return !(record->cell & VOLUME_NAMELESS);
}

/* Whether the order and the sums stay the same with another record, as after most changes. */
static bool is_accounted_alike(const struct volume *volume, const struct volrec *record,
			       bool damaged)
{
	return volume->damaged == damaged && volume->record.type == record->type &&
	       is_hidden(&volume->record) == is_hidden(record) &&
	       !((volume->record.cell ^ record->cell) & VOLUME_CELL) &&
	       !memcmp(volume->record.clone_id, record->clone_id,
		       KEPT_CLONES * sizeof(record->clone_id[0]));
}

/* Room in the arrays for so many volumes. */
static bool make_volume_room(struct volumes *volumes, size_t count)
{
	size_t room = volumes->room ? volumes->room : 64;
	struct volume **order, **plain;
	uint32_t *kept;

	while (room < count)
		room *= 2;
	if (room == volumes->room)
		return true;
	order = realloc(volumes->order, room * sizeof(*order));
	if (order)
		volumes->order = order;
	plain = order ? realloc(volumes->plain, room * sizeof(*plain)) : NULL;
	if (plain)
		volumes->plain = plain;
	kept = plain ? realloc(volumes->kept, KEPT_CLONES * room * sizeof(*kept)) : NULL;
	if (!kept)
		return false;
	volumes->kept = kept;
	volumes->room = room;
	return true;
}

static void insert_in_order(struct volume **order, size_t *count, struct volume *volume)
{
	size_t at = find_order_place(order, *count, volume->record.id);

	memmove(&order[at + 1], &order[at], ((*count)++ - at) * sizeof(order[0]));
	order[at] = volume;
}

static void remove_from_order(struct volume **order, size_t *count, const struct volume *volume)
{
	size_t at = find_order_place(order, *count, volume->record.id);

	assert(at < *count && order[at] == volume);
	memmove(&order[at], &order[at + 1], (--*count - at) * sizeof(order[0]));
}

/* Add a volume to the order and the sums over all volumes, or take it away. */
static void account_volume(struct volumes *volumes, struct volume *volume, bool on)
{
	assert(rwlock_is_held(&volumes->lock));
	keep_clone_ids(volumes, &volume->record, on);
	if (!volume->damaged && is_hidden(&volume->record))
		return;
	if (!volume->damaged && volume->record.type < STORE_TYPES)
		volumes->of_type[volume->record.type] += on ? 1 : UINT32_MAX;
	assert(!on || volumes->count < volumes->room);
	if (on)
		insert_in_order(volumes->order, &volumes->count, volume);
	else
		remove_from_order(volumes->order, &volumes->count, volume);
	if (volume->record.cell & VOLUME_CELL)
		return;
	if (on)
		insert_in_order(volumes->plain, &volumes->plain_count, volume);
	else
		remove_from_order(volumes->plain, &volumes->plain_count, volume);
}

static int copy_volume_record(const struct volume *from, struct volrec *volume)
{
	if (!from)
		return STORE_VNOVOL;
	*volume = from->record;
	return from->damaged ? STORE_VSALVAGE : 0;
}

/* -- the interface -- */

int volumes_get(struct volumes *volumes, uint32_t id, struct volrec *volume)
{
	int result;

	pthread_rwlock_rdlock(&volumes->lock);
	result = copy_volume_record(find_volume_by_id(volumes, id), volume);
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

int volumes_view(struct volumes *volumes, uint32_t id, struct view *view)
{
	const struct volume *volume;
	int result = 0;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	if (!volume)
		result = STORE_VNOVOL;
	else if (volume->damaged)
		result = STORE_VSALVAGE;
	/* A restore for one of its clones finds it. */
	else if (volume->record.cell & VOLUME_GHOST && !(volume->record.offline & VOLUME_BUSY))
		result = STORE_VNOVOL;
	else if (volume->record.hold_read)
		result = volume->record.hold_read;
	else if (volume->record.offline)
		result = volume->record.offline & VOLUME_BUSY ? STORE_VBUSY : STORE_VOFFLINE;
	if (volumes_has_view(result))
		*view = (struct view){.volume = id,
				      .group = volume->record.group,
				      .epoch = volume->record.type == STORE_RW
						       ? CACHE_HEAD
						       : volume->record.epoch,
				      .type = volrec_shown_type(&volume->record),
				      .owner = volume->record.owner};
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

bool volumes_hold(struct volumes *volumes, uint32_t id, int for_readers, int for_writers)
{
	struct volume *volume;

	assert(for_readers <= UINT8_MAX && for_writers <= UINT8_MAX);
	pthread_rwlock_wrlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	if (volume) {
		volume->record.hold_read = (uint8_t)for_readers;
		volume->record.hold_write = (uint8_t)for_writers;
	}
	pthread_rwlock_unlock(&volumes->lock);
	return volume != NULL;
}

int volumes_by_name(struct volumes *volumes, const char *name, struct volrec *volume)
{
	int result;

	pthread_rwlock_rdlock(&volumes->lock);
	result = copy_volume_record(find_volume_by_name(volumes, name), volume);
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

int volumes_next(struct volumes *volumes, uint32_t id, struct volrec *volume)
{
	size_t at;
	int result;

	pthread_rwlock_rdlock(&volumes->lock);
	at = id < UINT32_MAX ? find_order_place(volumes->order, volumes->count, id + 1)
			     : volumes->count;
	result = copy_volume_record(at < volumes->count ? volumes->order[at] : NULL, volume);
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

int volumes_at(struct volumes *volumes, uint32_t at, struct volrec *volume)
{
	int result;

	pthread_rwlock_rdlock(&volumes->lock);
	result = copy_volume_record(at < volumes->plain_count ? volumes->plain[at] : NULL, volume);
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

void volumes_totals(struct volumes *volumes, struct store_totals *totals)
{
	pthread_rwlock_rdlock(&volumes->lock);
	totals->count = (uint32_t)volumes->count;
	totals->plain = (uint32_t)volumes->plain_count;
	memcpy(totals->of_type, volumes->of_type, sizeof(totals->of_type));
	totals->last = volumes->count ? volumes->order[volumes->count - 1]->record.id : 0;
	pthread_rwlock_unlock(&volumes->lock);
}

bool volumes_keeps(struct volumes *volumes, uint32_t id)
{
	size_t at;
	bool found;

	pthread_rwlock_rdlock(&volumes->lock);
	at = find_kept_place(volumes, id);
	found = find_volume_by_id(volumes, id) ||
		(at < volumes->kept_count && volumes->kept[at] == id);
	pthread_rwlock_unlock(&volumes->lock);
	return found;
}

bool volumes_has(struct volumes *volumes, uint32_t id)
{
	bool found;

	pthread_rwlock_rdlock(&volumes->lock);
	found = find_volume_by_id(volumes, id) != NULL;
	pthread_rwlock_unlock(&volumes->lock);
	return found;
}

bool volumes_has_name(struct volumes *volumes, const char *name)
{
	bool found;

	pthread_rwlock_rdlock(&volumes->lock);
	found = find_volume_by_name(volumes, name) != NULL;
	pthread_rwlock_unlock(&volumes->lock);
	return found;
}

static bool add_spare_volume(struct volumes *volumes)
{
	struct volume *spare = calloc(1, sizeof(*spare));

	if (!spare)
		return false;
	spare->next_spare = volumes->spare;
	volumes->spare = spare;
	volumes->spares++;
	return true;
}

static struct volume *add_new_volume(struct volumes *volumes, const struct volrec *record,
				     bool damaged)
{
	struct volume *volume;

	if (!make_volume_room(volumes, volumes->by_id.count + 1) ||
	    (!volumes->spares && !add_spare_volume(volumes)))
		return NULL;
	assert(volumes->spare && rwlock_is_held(&volumes->lock));
	volume = volumes->spare;
	volumes->spare = volume->next_spare;
	volumes->spares--;
	volume->record = *record;
	volume->serial = ++volumes->serial;
	htable_add(&volumes->by_id, volume);
	if (has_own_name(record))
		htable_add(&volumes->by_name, volume);
	volume->damaged = damaged;
	account_volume(volumes, volume, true);
	return volume;
}

int volumes_reserve(struct volumes *volumes, unsigned count)
{
	bool enough;

	pthread_rwlock_wrlock(&volumes->lock);
	enough = make_volume_room(volumes, volumes->by_id.count + count);
	while (enough && volumes->spares < count)
		enough = add_spare_volume(volumes);
	pthread_rwlock_unlock(&volumes->lock);
	return enough ? 0 : -ENOMEM;
}

int volumes_put(struct volumes *volumes, const struct volrec *record, bool damaged)
{
	struct volume *volume;
	struct volrec held;
	bool renamed, same;

	pthread_rwlock_wrlock(&volumes->lock);
	volume = find_volume_by_id(volumes, record->id);
	if (volume) {
		held = volume->record;
		renamed = strcmp(held.name, record->name) != 0 ||
			  has_own_name(&held) != has_own_name(record);
		if (renamed && has_own_name(&held))
			htable_remove(&volumes->by_name, volume);
		same = is_accounted_alike(volume, record, damaged);
		if (!same)
			account_volume(volumes, volume, false);
		volume->record = *record;
		volume->record.hold_read = held.hold_read;
		volume->record.hold_write = held.hold_write;
		volume->damaged = damaged;
		if (!same)
			account_volume(volumes, volume, true);
		if (renamed && has_own_name(record))
			htable_add(&volumes->by_name, volume);
	} else {
		volume = add_new_volume(volumes, record, damaged);
	}
	pthread_rwlock_unlock(&volumes->lock);
	return volume ? 0 : -ENOMEM;
}

void volumes_drop(struct volumes *volumes, uint32_t id)
{
	struct volume *volume;

	pthread_rwlock_wrlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	if (volume) {
		htable_remove(&volumes->by_id, volume);
		if (has_own_name(&volume->record))
			htable_remove(&volumes->by_name, volume);
		account_volume(volumes, volume, false);
		free(volume);
	}
	pthread_rwlock_unlock(&volumes->lock);
}

static int add_volume_promise(struct volume *volume, uint64_t kib, uint64_t held, uint64_t spare)
{
	uint64_t quota = volrec_quota(&volume->record), promised = volume->promised;
	bool fits;

	assert(promised >= held);
	do {
		fits = !quota || !kib || volume->record.used_kib + promised + kib <= quota + spare;
	} while (!atomic_compare_exchange_weak(&volume->promised, &promised,
					       fits ? promised + kib : promised - held));
	return fits ? 0 : STORE_VOVERQUOTA;
}

int volumes_promise(struct volumes *volumes, uint32_t id, uint64_t kib, uint64_t held,
		    uint64_t spare, uint64_t *promise)
{
	struct volume *volume;
	int result = STORE_VNOVOL;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	if (volume && (!*promise || *promise == volume->serial)) {
		result = add_volume_promise(volume, kib, held, spare);
		*promise = result ? *promise : volume->serial;
	}
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

void volumes_take_back(struct volumes *volumes, uint32_t id, uint64_t promise, uint64_t kib)
{
	struct volume *volume;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	if (volume && volume->serial == promise) {
		assert(volume->promised >= kib);
		volume->promised -= kib;
	}
	pthread_rwlock_unlock(&volumes->lock);
}

uint64_t volumes_moves(struct volumes *volumes, uint32_t id)
{
	const struct volume *volume;
	uint64_t moves;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	moves = volume ? volume->moves : 0;
	pthread_rwlock_unlock(&volumes->lock);
	return moves;
}

void volumes_moved(struct volumes *volumes, uint32_t id)
{
	struct volume *volume;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	if (volume)
		volume->moves++;
	pthread_rwlock_unlock(&volumes->lock);
}

uint64_t volumes_promised(struct volumes *volumes, uint32_t id)
{
	const struct volume *volume;
	uint64_t kib;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_volume_by_id(volumes, id);
	kib = volume ? volume->promised : 0;
	pthread_rwlock_unlock(&volumes->lock);
	return kib;
}
