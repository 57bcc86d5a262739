/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of volumes. */
#include "store/volumes.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "store/cache.h"
#include "store/crc.h"

struct volume {
	void *id_chain, *name_chain;
	struct volrec record;
	bool damaged;
	uint64_t serial; /* of all that there were */
	_Atomic uint64_t promised;
	struct volume *next_spare;
};

static uint64_t id_hash(uint32_t id)
{
	return (uint64_t)id * 0x9e3779b97f4a7c15u >> 32;
}

static uint64_t by_id(const void *item, const uint64_t key[2])
{
	(void)key;
	return id_hash(((const struct volume *)item)->record.id);
}

static uint64_t name_hash(const char *name)
{
	return store_crc(0, name, strlen(name));
}

static uint64_t by_name(const void *item, const uint64_t key[2])
{
	(void)key;
	return name_hash(((const struct volume *)item)->record.name);
}

int volumes_init(struct volumes *volumes)
{
	if (!htable_init(&volumes->by_id, offsetof(struct volume, id_chain), by_id, NULL, 0))
		return -ENOMEM;
	if (!htable_init(&volumes->by_name, offsetof(struct volume, name_chain), by_name, NULL,
			 0)) {
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
	pthread_rwlock_destroy(&volumes->lock);
}

/* -- the caller holds the lock -- */

static struct volume *find_id(struct volumes *volumes, uint32_t id)
{
	struct volume *volume = htable_first(&volumes->by_id, id_hash(id));

	while (volume && volume->record.id != id)
		volume = volume->id_chain;
	return volume;
}

static struct volume *find_name(struct volumes *volumes, const char *name)
{
	struct volume *volume = htable_first(&volumes->by_name, name_hash(name));

	while (volume && strcmp(volume->record.name, name) != 0)
		volume = volume->name_chain;
	return volume;
}

static int copy_record(const struct volume *from, struct volrec *volume)
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
	result = copy_record(find_id(volumes, id), volume);
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

int volumes_view(struct volumes *volumes, uint32_t id, struct view *view)
{
	const struct volume *volume;
	int result = 0;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_id(volumes, id);
	if (!volume)
		result = STORE_VNOVOL;
	else if (volume->damaged)
		result = STORE_VSALVAGE;
	else if (volume->record.offline)
		result = STORE_VOFFLINE;
	if (!result || result == STORE_VOFFLINE)
		*view = (struct view){.volume = id,
				      .group = volume->record.group,
				      .epoch = volume->record.type == STORE_RW
						       ? CACHE_HEAD
						       : volume->record.epoch,
				      .type = volume->record.type,
				      .owner = volume->record.owner};
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

int volumes_by_name(struct volumes *volumes, const char *name, struct volrec *volume)
{
	int result;

	pthread_rwlock_rdlock(&volumes->lock);
	result = copy_record(find_name(volumes, name), volume);
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

int volumes_next(struct volumes *volumes, uint32_t id, struct volrec *volume)
{
	const struct volume *best = NULL;
	int result;

	pthread_rwlock_rdlock(&volumes->lock);
	for (size_t i = 0; i < volumes->by_id.size; i++)
		for (const struct volume *at = *htable_chain(&volumes->by_id, i); at;
		     at = at->id_chain)
			if (at->record.id > id && (!best || at->record.id < best->record.id))
				best = at;
	result = copy_record(best, volume);
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

bool volumes_has(struct volumes *volumes, uint32_t id)
{
	bool found;

	pthread_rwlock_rdlock(&volumes->lock);
	found = find_id(volumes, id) != NULL;
	pthread_rwlock_unlock(&volumes->lock);
	return found;
}

bool volumes_has_name(struct volumes *volumes, const char *name)
{
	bool found;

	pthread_rwlock_rdlock(&volumes->lock);
	found = find_name(volumes, name) != NULL;
	pthread_rwlock_unlock(&volumes->lock);
	return found;
}

static bool add_spare(struct volumes *volumes)
{
	struct volume *spare = calloc(1, sizeof(*spare));

	if (!spare)
		return false;
	spare->next_spare = volumes->spare;
	volumes->spare = spare;
	volumes->spares++;
	return true;
}

static struct volume *add(struct volumes *volumes, const struct volrec *record)
{
	struct volume *volume;

	if (!volumes->spares && !add_spare(volumes))
		return NULL;
	volume = volumes->spare;
	volumes->spare = volume->next_spare;
	volumes->spares--;
	volume->record = *record;
	volume->serial = ++volumes->serial;
	htable_add(&volumes->by_id, volume);
	htable_add(&volumes->by_name, volume);
	return volume;
}

int volumes_reserve(struct volumes *volumes, unsigned count)
{
	bool enough = true;

	pthread_rwlock_wrlock(&volumes->lock);
	while (enough && volumes->spares < count)
		enough = add_spare(volumes);
	pthread_rwlock_unlock(&volumes->lock);
	return enough ? 0 : -ENOMEM;
}

int volumes_put(struct volumes *volumes, const struct volrec *record, bool damaged)
{
	struct volume *volume;
	bool renamed;

	pthread_rwlock_wrlock(&volumes->lock);
	volume = find_id(volumes, record->id);
	if (volume) {
		renamed = strcmp(volume->record.name, record->name) != 0;
		if (renamed)
			htable_remove(&volumes->by_name, volume);
		volume->record = *record;
		if (renamed)
			htable_add(&volumes->by_name, volume);
	} else {
		volume = add(volumes, record);
	}
	if (volume)
		volume->damaged = damaged;
	pthread_rwlock_unlock(&volumes->lock);
	return volume ? 0 : -ENOMEM;
}

void volumes_drop(struct volumes *volumes, uint32_t id)
{
	struct volume *volume;

	pthread_rwlock_wrlock(&volumes->lock);
	volume = find_id(volumes, id);
	if (volume) {
		htable_remove(&volumes->by_id, volume);
		htable_remove(&volumes->by_name, volume);
		free(volume);
	}
	pthread_rwlock_unlock(&volumes->lock);
}

/* With the lock held. */
static int add_promise(struct volume *volume, uint64_t kib, uint64_t spare)
{
	uint64_t quota = volume->record.quota_kib, promised = volume->promised;

	do {
		if (quota && kib && volume->record.used_kib + promised + kib > quota + spare)
			return STORE_VOVERQUOTA;
	} while (!atomic_compare_exchange_weak(&volume->promised, &promised, promised + kib));
	return 0;
}

int volumes_promise(struct volumes *volumes, uint32_t id, uint64_t kib, uint64_t spare,
		    uint64_t *promise)
{
	struct volume *volume;
	int result = STORE_VNOVOL;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_id(volumes, id);
	if (volume && (!*promise || *promise == volume->serial)) {
		result = add_promise(volume, kib, spare);
		*promise = result ? *promise : volume->serial;
	}
	pthread_rwlock_unlock(&volumes->lock);
	return result;
}

void volumes_take_back(struct volumes *volumes, uint32_t id, uint64_t promise, uint64_t kib)
{
	struct volume *volume;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_id(volumes, id);
	if (volume && volume->serial == promise)
		volume->promised -= kib;
	pthread_rwlock_unlock(&volumes->lock);
}

uint64_t volumes_promised(struct volumes *volumes, uint32_t id)
{
	const struct volume *volume;
	uint64_t kib;

	pthread_rwlock_rdlock(&volumes->lock);
	volume = find_id(volumes, id);
	kib = volume ? volume->promised : 0;
	pthread_rwlock_unlock(&volumes->lock);
	return kib;
}
