/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of promises: an array of slots, mapped. */
#include "fileserver/callbacks/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/clients.h"

#define FORMAT	1
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define PIECE	1024 /* slots that are read at a time */

static const char magic[8] = "rxfsdprm";
static const uint64_t key[2] = {0x6c65646765720001ull, 0x70726f6d69736573ull};

/* The header before the slots, in the byte order of the machine, whose boot id it has. */
struct header {
	char magic[8];
	uint32_t version, slot_size;
	uint64_t inode; /* of this file: a copy of it is not up to date */
	char boot[48];
	uint64_t check; /* of the members before */
};

/*
 * A promise. A slot is free unless `check` fits the members before it; it is written last, and zeroed
 * first. `expires` has a check of its own and changes in one step. So the slot is right whenever the
 * process ends.
 */
struct slot {
	struct slot_key {
		uint8_t family, zero; /* 4 or 6 */
		uint8_t port[2];      /* as on the wire */
		uint8_t address[16];
		uint32_t scope;
		uint32_t volume, vnode, unique;
	} key;
	_Atomic uint32_t check;
	_Atomic uint64_t expires; /* second of the monotonic clock, and a check in the upper half */
};
_Static_assert(sizeof(struct slot) == 48, "the format of the file");

/* The lock of the clients covers it. */
struct fsd_ledger {
	struct slot *slots;
	void *map;
	size_t map_size;
	uint32_t max, used; /* slots from `used` on were never used */
	uint32_t *free;	    /* free ones before that */
	uint32_t free_count;
};

/* -- slots -- */

static uint32_t key_check(const struct slot_key *k)
{
	return (uint32_t)rxw_siphash(k, sizeof(*k), key) | 1;
}

static uint64_t seal_expiry(uint64_t expires, uint32_t check)
{
	const uint64_t words[2] = {expires & UINT32_MAX, check};

	return rxw_siphash(words, sizeof(words), key) << 32 | words[0];
}

static void to_key(const struct sockaddr_storage *peer, const AFSFid *fid, struct slot_key *k)
{
	*k = (struct slot_key){.volume = fid->Volume, .vnode = fid->Vnode, .unique = fid->Unique};
	if (peer->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)peer;

		k->family = 4;
		memcpy(k->port, &in->sin_port, 2);
		memcpy(k->address, &in->sin_addr, 4);
	} else {
		const struct sockaddr_in6 *in6 = (const void *)peer;

		k->family = 6;
		memcpy(k->port, &in6->sin6_port, 2);
		memcpy(k->address, &in6->sin6_addr, 16);
		k->scope = in6->sin6_scope_id;
	}
}

static bool from_key(const struct slot_key *k, struct sockaddr_storage *peer, AFSFid *fid)
{
	memset(peer, 0, sizeof(*peer));
	*fid = (AFSFid){k->volume, k->vnode, k->unique};
	if (k->family == 4) {
		struct sockaddr_in *in = (void *)peer;

		in->sin_family = AF_INET;
		memcpy(&in->sin_port, k->port, 2);
		memcpy(&in->sin_addr, k->address, 4);
	} else if (k->family == 6) {
		struct sockaddr_in6 *in6 = (void *)peer;

		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_port, k->port, 2);
		memcpy(&in6->sin6_addr, k->address, 16);
		in6->sin6_scope_id = k->scope;
	}
	return peer->ss_family && (k->port[0] || k->port[1]) && fid->Volume;
}

uint32_t fsd_ledger_put(struct fsd_ledger *ledger, const struct promise *promise)
{
	struct slot *slot;
	uint32_t at, check;

	if (!ledger || (!ledger->free_count && ledger->used == ledger->max))
		return FSD_NO_SLOT;
	at = ledger->free_count ? ledger->free[--ledger->free_count] : ledger->used++;
	assert(at < ledger->used && ledger->used <= ledger->max);
	slot = &ledger->slots[at];
	to_key(&promise->host->peer, &promise->object->fid, &slot->key);
	check = key_check(&slot->key);
	atomic_store_explicit(&slot->expires, seal_expiry(promise->expires, check),
			      memory_order_relaxed);
	atomic_store_explicit(&slot->check, check, memory_order_release);
	return at;
}

void fsd_ledger_renew(struct fsd_ledger *ledger, uint32_t at, uint64_t expires)
{
	struct slot *slot = &ledger->slots[at];

	assert(at < ledger->used);
	atomic_store_explicit(&slot->expires, seal_expiry(expires, slot->check),
			      memory_order_relaxed);
}

void fsd_ledger_free(struct fsd_ledger *ledger, uint32_t at)
{
	if (!ledger || at == FSD_NO_SLOT)
		return;
	assert(at < ledger->used && ledger->free_count < ledger->used);
	/* A later promise in this slot must not be written before. */
	atomic_store(&ledger->slots[at].check, 0);
	ledger->free[ledger->free_count++] = at;
}

/* -- a new file -- */

static void fill_header(struct header *header, uint64_t inode)
{
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);

	memset(header, 0, sizeof(*header));
	memcpy(header->magic, magic, sizeof(magic));
	header->version = FORMAT;
	header->slot_size = sizeof(struct slot);
	header->inode = inode;
	if (fd >= 0) {
		if (read(fd, header->boot, sizeof(header->boot) - 1) < 0)
			header->boot[0] = '\0';
		close(fd);
	}
	header->check = rxw_siphash(header, offsetof(struct header, check), key);
}

void fsd_ledger_close(struct fsd_ledger *ledger)
{
	if (!ledger)
		return;
	if (ledger->map)
		munmap(ledger->map, ledger->map_size);
	free(ledger->free);
	free(ledger);
}

/* All of its blocks are allocated: a full disk must not stop the server when it gives a promise. */
static int map_file(struct fsd_ledger *ledger, int fd)
{
	struct header header;
	struct stat st;
	int error = fstat(fd, &st) ? errno : posix_fallocate(fd, 0, (off_t)ledger->map_size);

	if (error)
		return error;
	fill_header(&header, st.st_ino);
	ledger->map = mmap(NULL, ledger->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ledger->map == MAP_FAILED) {
		ledger->map = NULL;
		return errno;
	}
	ledger->slots = (void *)((char *)ledger->map + sizeof(header));
	memcpy(ledger->map, &header, sizeof(header));
	return 0;
}

static int create_ledger(const char *path, size_t max, struct fsd_ledger **out)
{
	struct fsd_ledger *ledger = calloc(1, sizeof(*ledger));
	int fd, error;

	if (!ledger)
		return ENOMEM;
	ledger->max = (uint32_t)(max < FSD_NO_SLOT ? max : FSD_NO_SLOT - 1);
	ledger->map_size = sizeof(struct header) + ledger->max * sizeof(struct slot);
	ledger->free = calloc(ledger->max, sizeof(*ledger->free));
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	error = !ledger->free ? ENOMEM : fd < 0 ? errno : map_file(ledger, fd);
	if (fd >= 0)
		close(fd);
	if (error)
		fsd_ledger_close(ledger);
	else
		*out = ledger;
	return error;
}

/* -- the old file -- */

struct loading {
	struct fsd_clients *clients;
	uint64_t now;
	size_t restored;
	bool damaged, lost;
};

static void load_slot(struct loading *loading, const struct slot *slot)
{
	uint32_t check = slot->check;
	uint64_t expires = slot->expires & UINT32_MAX;
	struct sockaddr_storage peer;
	AFSFid fid;

	if (!check)
		return;
	if (check != key_check(&slot->key) || slot->expires != seal_expiry(expires, check) ||
	    expires > loading->now + 2 * FSD_PROMISE_S || !from_key(&slot->key, &peer, &fid)) {
		loading->damaged = true;
		return;
	}
	if (expires + KEEP_S < loading->now)
		return;
	if (fsd_promise_restore(loading->clients, &peer, &fid, expires, loading->now))
		loading->restored++;
	else
		loading->lost = true;
}

static void load_slots(struct loading *loading, int fd)
{
	struct slot *slots = calloc(PIECE, sizeof(*slots));
	off_t at = sizeof(struct header);
	ssize_t n = -1;

	while (slots && (n = pread(fd, slots, PIECE * sizeof(*slots), at)) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(*slots); i++)
			load_slot(loading, &slots[i]);
		at += n;
		if ((size_t)n % sizeof(*slots)) {
			loading->damaged = true;
			break;
		}
	}
	loading->damaged |= n < 0;
	free(slots);
}

/* Whether the file is from the same life of the machine. */
static bool load_ledger(struct loading *loading, int fd)
{
	struct header header, expected;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    pread(fd, &header, sizeof(header), 0) != sizeof(header)) {
		loading->damaged = true;
		return false;
	}
	fill_header(&expected, header.inode);
	memcpy(expected.boot, header.boot, sizeof(expected.boot));
	expected.check = rxw_siphash(&expected, offsetof(struct header, check), key);
	if (memcmp(&header, &expected, sizeof(header)) != 0) {
		loading->damaged = true;
		return false;
	}
	fill_header(&expected, st.st_ino);
	if (!expected.boot[0] || memcmp(&header, &expected, sizeof(header)) != 0)
		return false;
	load_slots(loading, fd);
	return !loading->damaged && !loading->lost;
}

static bool load_path(struct loading *loading, const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool complete;

	if (fd < 0) {
		loading->damaged = errno != ENOENT;
		return false;
	}
	complete = load_ledger(loading, fd);
	close(fd);
	return complete;
}

static bool is_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

int fsd_ledger_open(struct fsd_clients *clients, const char *path, size_t max, uint64_t now,
		    bool *complete, size_t *restored, char *message)
{
	struct loading loading = {.clients = clients, .now = now};
	char new_path[4096 + 64];
	int error;

	snprintf(new_path, sizeof(new_path), "%s.new", path);
	error = create_ledger(new_path, max, &clients->ledger);
	if (is_full(error)) {
		/* The old file is not used: its clients are told that their promises are void. */
		unlink(path);
		error = create_ledger(new_path, max, &clients->ledger);
	}
	if (is_full(error)) {
		unlink(new_path);
		fsd_log(RXW_LOG_WARNING,
			"%s: %s: promises are not kept for the next start, whose clients all have to ask again; make room, and "
			"restart the server",
			path, strerror(error));
		return 0;
	}
	if (!error) {
		*complete = load_path(&loading, path);
		*restored = loading.restored;
		/* The new file has what the old one had: at each moment one of them is right. */
		error = rename(new_path, path) ? errno : 0;
	}
	if (loading.damaged)
		fsd_log(RXW_LOG_WARNING,
			"%s is damaged, or no file of promises: clients get none before those that "
			"it may have had have expired",
			path);
	if (!error)
		return 0;
	unlink(new_path);
	return fail_with(
		-1, message, FSD_MESSAGE_MAX,
		"%.300s: %s; promises must be kept for the next start: make room, or lower "
		"--promises",
		path, strerror(error));
}
