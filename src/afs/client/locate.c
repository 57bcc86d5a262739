/* SPDX-License-Identifier: BSD-2-Clause */
/* Locating a volume: from its name to a server that answers, and to another one if that fails. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/client/private.h"
#include "common/clock.h"

#define PROBE_MS       4000 /* for each of several addresses of a server */
#define SITE_ADDRESSES 15   /* of a server; further ones are ignored */

/* The fields that both generations of a location entry have. */
struct location {
	uint32_t sites;
	struct {
		bool by_uuid;
		struct rxw_uuid uuid; /* or else: */
		uint32_t address;     /* 10.77.0.1 = 0x0a4d0001, 0 = unknown */
		int32_t flags;	      /* VLSF_… */
	} site[NMAXNSERVERS];
	uint32_t id[MAXTYPES]; /* by enum afs_vl_type */
	int32_t flags;	       /* VLF_… */
};

/* GetEntryByNameU. In a site without the flag the first word of the UUID is the address. */
static int entry_by_name_u(struct afs_client *c, const char *name, const char *what, unsigned ms,
			   struct location *location, struct afs_error *error)
{
	rxw_call *call;
	uvldbentry e = {0};
	int32_t code;

	if (afs_begin(c, c->vl, what, ms, &call, error) < 0)
		return -1;
	code = StartVL_GetEntryByNameU(call, name);
	if (code == 0)
		code = EndVL_GetEntryByNameU(call, &e);
	if (afs_end(c, call, what, code, error) < 0)
		return -1;
	memset(location, 0, sizeof(*location));
	location->sites = (uint32_t)e.nServers;
	for (uint32_t i = 0; i < NMAXNSERVERS; i++) {
		location->site[i].by_uuid = e.serverFlags[i] & VLSF_UUID;
		location->site[i].uuid = e.serverNumber[i];
		location->site[i].address = e.serverNumber[i].time_low;
		location->site[i].flags = e.serverFlags[i];
	}
	memcpy(location->id, e.volumeId, sizeof(location->id));
	location->flags = e.flags;
	return 0;
}

static int entry_by_name_n(struct afs_client *c, const char *name, const char *what, unsigned ms,
			   struct location *location, struct afs_error *error)
{
	rxw_call *call;
	nvldbentry e = {0};
	int32_t code;

	if (afs_begin(c, c->vl, what, ms, &call, error) < 0)
		return -1;
	code = StartVL_GetEntryByNameN(call, name);
	if (code == 0)
		code = EndVL_GetEntryByNameN(call, &e);
	if (afs_end(c, call, what, code, error) < 0)
		return -1;
	memset(location, 0, sizeof(*location));
	location->sites = (uint32_t)e.nServers;
	for (uint32_t i = 0; i < NMAXNSERVERS; i++) {
		location->site[i].address = (uint32_t)e.serverNumber[i];
		location->site[i].flags = e.serverFlags[i];
	}
	memcpy(location->id, e.volumeId, sizeof(location->id));
	location->flags = e.flags;
	return 0;
}

/* Look up the entry with GetEntryByNameU, or GetEntryByNameN at older servers. */
static int find_location_entry(struct afs_client *c, const char *name, const char *what,
			       unsigned ms, struct location *location, struct afs_error *error)
{
	int rc = entry_by_name_u(c, name, what, ms, location, error);

	if (rc < 0 && error->code == RXW_RPC_OPCODE)
		rc = entry_by_name_n(c, name, what, ms, location, error);
	if (rc == 0 && location->sites > NMAXNSERVERS) {
		afs_error_text(error, "%s: malformed answer of the location server", what);
		rc = -1;
	}
	return rc;
}

/* The type that a name selects, and its id in the entry. */
static int choose_type(const char *name, const struct location *entry, enum afs_vl_type *type,
		       uint32_t *id)
{
	static const int32_t exists[] = {VLF_RWEXISTS, VLF_ROEXISTS, VLF_BACKEXISTS};
	size_t length = strlen(name);
	int wanted = -1;

	if (length > 9 && strcmp(name + length - 9, ".readonly") == 0)
		wanted = AFS_VL_RO;
	else if (length > 7 && strcmp(name + length - 7, ".backup") == 0)
		wanted = AFS_VL_BACKUP;
	for (int i = 0; wanted < 0 && i < 3; i++)
		if (entry->id[i] && strtoul(name, NULL, 10) == entry->id[i] &&
		    strspn(name, "0123456789") == length)
			wanted = i;
	if (wanted < 0)
		wanted = (entry->flags & VLF_RWEXISTS) && entry->id[AFS_VL_RW] ? AFS_VL_RW
									       : AFS_VL_RO;
	if (!(entry->flags & exists[wanted]) || !entry->id[wanted])
		return -1;
	*type = (enum afs_vl_type)wanted;
	*id = entry->id[wanted];
	return 0;
}

/*
 * IPv4 addresses of a server, at most SITE_ADDRESSES. 0 and their number, which may be 0; or -1 and
 * *error if the location server does not answer.
 */
static int addresses_by_uuid(struct afs_client *c, const struct rxw_uuid *uuid, unsigned ms,
			     uint32_t address[SITE_ADDRESSES], uint32_t *count,
			     struct afs_error *error)
{
	const ListAddrByAttributes attr = {.Mask = AFS_VL_BY_UUID, .uuid = *uuid};
	bulkaddrs addrs = {0};
	int32_t unique, entries, code;
	struct rxw_uuid same;
	rxw_call *call;
	int rc;

	*count = 0;
	if (afs_begin(c, c->vl, "addresses", ms, &call, error) < 0)
		return -1;
	code = StartVL_GetAddrsU(call, &attr);
	if (code == 0)
		code = EndVL_GetAddrsU(call, &same, &unique, &entries, &addrs);
	rc = afs_end(c, call, "addresses", code, error);
	if (rc == 0 && addrs.len > 0) {
		*count = addrs.len < SITE_ADDRESSES ? addrs.len : SITE_ADDRESSES;
		memcpy(address, addrs.val, *count * sizeof(*address));
	}
	xdrfree_bulkaddrs(&addrs);
	/* Other errors from the location server than a restart count as no addresses. */
	if (rc < 0 && (error->origin != RXW_ORIGIN_PEER || error->remedy == AFS_REMEDY_WAIT))
		return -1;
	return 0;
}

/*
 * Addresses of servers that have a volume, in the order of trying: that of the location server if
 * it is listed, or if no other can be reached; then the first address of each server, the second
 * ones, and so on.
 */
struct candidates {
	struct sockaddr_storage address[NMAXNSERVERS * SITE_ADDRESSES];
	unsigned count, used; /* used: index of the one in use */
};

/*
 * `address` is a struct sockaddr_in or sockaddr_in6 of `size` bytes; copied bytewise, as aliasing
 * rules want.
 */
static void add_candidate(struct candidates *list, const void *address, size_t size, bool first)
{
	struct sockaddr_storage one = {0}, *at = &list->address[list->count];

	memcpy(&one, address, size);
	if (list->count == sizeof(list->address) / sizeof(list->address[0]))
		return;
	for (unsigned i = 0; i < list->count; i++)
		if (afs_same_address(&list->address[i], &one))
			return;
	if (first) {
		memmove(&list->address[1], &list->address[0],
			list->count * sizeof(list->address[0]));
		at = &list->address[0];
	}
	*at = one;
	list->count++;
}

/* Milliseconds until `end`, at least one: 0 would mean no limit. */
static unsigned remaining_search_ms(uint64_t end)
{
	uint64_t now = monotonic_ns();

	return end > now + 1000000 ? (unsigned)((end - now) / 1000000) : 1;
}

/* The addresses of all sites that may be used, by site; the others stay 0. 0, or -1 and *error. */
static int collect_addresses(struct afs_client *c, const struct location *entry, int32_t wanted,
			     uint64_t end, uint32_t address[NMAXNSERVERS][SITE_ADDRESSES],
			     struct afs_error *error)
{
	memset(address, 0, NMAXNSERVERS * sizeof(address[0]));
	for (uint32_t s = 0; s < entry->sites; s++) {
		uint32_t count;

		if (!(entry->site[s].flags & wanted) || (entry->site[s].flags & VLSF_DONTUSE))
			continue;
		if (!entry->site[s].by_uuid)
			address[s][0] = entry->site[s].address;
		else if (addresses_by_uuid(c, &entry->site[s].uuid, remaining_search_ms(end),
					   address[s], &count, error) < 0)
			return -1;
	}
	return 0;
}

static int find_candidates(struct afs_client *c, const struct location *entry,
			   enum afs_vl_type type, uint64_t end, struct candidates *list,
			   struct afs_error *error)
{
	int32_t wanted = type == AFS_VL_RO ? VLSF_ROVOL : VLSF_RWVOL;
	uint32_t address[NMAXNSERVERS][SITE_ADDRESSES];
	struct sockaddr_in vl;
	struct sockaddr_in6 vl6;

	list->count = list->used = 0;
	if (c->vl_address.ss_family == AF_INET6) {
		memcpy(&vl6, &c->vl_address, sizeof(vl6));
		vl6.sin6_port = htons(c->fs_port);
		add_candidate(list, &vl6, sizeof(vl6), false);
		return 0;
	}
	memcpy(&vl, &c->vl_address, sizeof(vl));
	if (collect_addresses(c, entry, wanted, end, address, error) < 0)
		return -1;
	for (unsigned i = 0; i < SITE_ADDRESSES; i++)
		for (uint32_t s = 0; s < NMAXNSERVERS; s++) {
			struct sockaddr_in sa = {.sin_family = AF_INET,
						 .sin_port = htons(c->fs_port),
						 .sin_addr.s_addr = htonl(address[s][i])};

			if (address[s][i])
				add_candidate(list, &sa, sizeof(sa),
					      sa.sin_addr.s_addr == vl.sin_addr.s_addr);
		}
	return 0;
}

/* Whether the current server has the volume. 0, or -1: try the next. */
static int probe_file_server(struct afs_client *c, const struct afs_volume *volume,
			     unsigned deadline_ms, struct afs_error *error)
{
	const AFSFid root = {volume->id, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
	AFSFetchStatus ignored;
	char what[160];

	snprintf(what, sizeof(what), "volume %s", volume->name);
	if (afs_fetch_status(c, &root, what, deadline_ms, &ignored, error) == 0)
		return 0;
	/* A refusal for lack of rights shows that it is the right server. */
	if (error->origin == RXW_ORIGIN_PEER && rxw_code_to_errno(error->code) == EACCES)
		return 0;
	return -1;
}

/* Connect to candidate `i` and probe it. */
static int try_candidate(struct afs_client *c, unsigned i, unsigned ms, struct afs_volume *volume,
			 struct afs_error *error)
{
	volume->server = c->sites->address[i];
	volume->server_len = volume->server.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
								  : sizeof(struct sockaddr_in);
	c->sites->used = i;
	if (afs_client_use(c, volume, error) < 0)
		return -1;
	return probe_file_server(c, volume, ms, error);
}

/*
 * Find a candidate that serves the volume, starting at `from`, in cyclic order. Of several errors
 * one with a remedy is kept. 0, or -1 and *error.
 */
static int try_all_candidates(struct afs_client *c, unsigned from, uint64_t end,
			      struct afs_volume *volume, struct afs_error *error)
{
	unsigned count = c->sites->count;
	struct afs_error kept = {.remedy = AFS_REMEDY_NONE};

	for (unsigned n = 0; n < count; n++) {
		unsigned ms = remaining_search_ms(end);

		if (n > 0 && ms < 2) {
			afs_error_text(error,
				       "volume %s: no file server answered within %u s; %u of %u "
				       "addresses were tried",
				       volume->name, (c->limit_ms + 999) / 1000, n, count);
			error->remedy = kept.remedy;
			return -1;
		}
		if (count > 1 && ms > PROBE_MS)
			ms = PROBE_MS;
		if (try_candidate(c, (from + n) % count, ms, volume, error) == 0)
			return 0;
		if (error->interrupted)
			return -1;
		if (n == 0 || kept.remedy == AFS_REMEDY_NONE)
			kept = *error;
	}
	*error = kept;
	return -1;
}

/* Connect to the location server, also to another one. 0, or -1 and *error. */
static int connect_location(struct afs_client *c, const char *what, struct afs_error *error)
{
	rxw_connection *vl, *old;
	int rc = rxw_connection_create(c->endpoint, (const struct sockaddr *)&c->vl_address,
				       c->vl_len, AFS_SERVICE_VL, c->security, &vl);

	if (rc < 0)
		return afs_failed(error, what, rc);
	pthread_mutex_lock(&c->lock);
	old = c->vl;
	c->vl = vl;
	pthread_mutex_unlock(&c->lock);
	rxw_connection_release(old);
	return 0;
}

/* The next location server becomes the one in use, and this one the last to be tried. */
static int next_location(struct afs_client *c, const char *what, struct afs_error *error)
{
	struct sockaddr_storage used = c->vl_address;

	c->vl_address = c->vl_others[0];
	memmove(&c->vl_others[0], &c->vl_others[1],
		(c->vl_other_count - 1) * sizeof(c->vl_others[0]));
	c->vl_others[c->vl_other_count - 1] = used;
	return connect_location(c, what, error);
}

/* Ask the location servers in turn, until one has an answer that counts. 0, or -1 and *error. */
static int locate_at_any(struct afs_client *c, const char *name, const char *what, uint64_t end,
			 struct location *entry, struct afs_error *error)
{
	/* A server that stops or restarts ends connections. */
	if (rxw_connection_error(c->vl, NULL) && connect_location(c, what, error) < 0)
		return -1;
	for (unsigned left = c->vl_other_count;; left--) {
		unsigned ms = remaining_search_ms(end);

		if (find_location_entry(c, name, what, left && ms > PROBE_MS ? PROBE_MS : ms, entry,
					error) == 0)
			return 0;
		if (!left || error->interrupted ||
		    (error->origin == RXW_ORIGIN_PEER && error->remedy == AFS_REMEDY_NONE))
			return -1;
		if (next_location(c, what, error) < 0)
			return -1;
	}
}

/* Ask the location server, and store the candidates in c->sites. 0, or -1 and *error. */
static int look_up_volume(struct afs_client *c, const char *name, uint64_t end,
			  struct afs_volume *volume, struct afs_error *error)
{
	struct location entry;
	struct candidates *list;
	enum afs_vl_type type;
	char what[160], server[96];

	snprintf(what, sizeof(what), "volume %.80s", name);
	if (locate_at_any(c, name, what, end, &entry, error) < 0) {
		if (error->origin == RXW_ORIGIN_PEER && error->code == AFS_VL_NOENT)
			snprintf(error->text, sizeof(error->text),
				 "%s: no such volume; the location server does not know it", what);
		else if (error->origin != RXW_ORIGIN_PEER && error->code == RXW_CALL_DEAD)
			snprintf(error->text, sizeof(error->text),
				 "no answer from the %s; check that it is running and that -s "
				 "is right",
				 afs_server_text(&c->vl_address, "location server", server,
						 sizeof(server)));
		return -1;
	}
	memset(volume, 0, sizeof(*volume));
	snprintf(volume->name, sizeof(volume->name), "%s", name);
	if (choose_type(name, &entry, &type, &volume->id) < 0)
		return afs_error_text(error, "%s: no volume of this type exists", what);
	list = malloc(sizeof(*list));
	if (!list)
		return afs_failed(error, what, -RXW_ENOMEM);
	if (find_candidates(c, &entry, type, end, list, error) < 0) {
		free(list);
		return -1;
	}
	free(c->sites);
	c->sites = list;
	if (list->count > 0)
		return 0;
	return afs_error_text(error, "%s: the location server knows no address that serves it",
			      what);
}

static uint64_t end_of_search(const struct afs_client *c)
{
	return monotonic_ns() + (uint64_t)c->limit_ms * 1000000;
}

int afs_client_volume(struct afs_client *client, const char *name, struct afs_volume *volume,
		      struct afs_error *error)
{
	uint64_t end = end_of_search(client);

	if (*name == 0 || strlen(name) >= VL_MAXNAMELEN)
		return afs_error_text(error, "volume %.80s: a volume's name has 1 to 64 characters",
				      name);
	if (look_up_volume(client, name, end, volume, error) < 0)
		return -1;
	return try_all_candidates(client, 0, end, volume, error);
}

unsigned afs_client_sites(const struct afs_client *client)
{
	return client->sites ? client->sites->count : 0;
}

int afs_client_recover(struct afs_client *client, struct afs_volume *volume, enum afs_remedy remedy,
		       struct afs_error *error)
{
	struct afs_volume now = *volume;
	uint64_t end = end_of_search(client);
	unsigned from;

	if (remedy == AFS_REMEDY_NONE || !client->sites ||
	    (remedy == AFS_REMEDY_OTHER && afs_client_sites(client) < 2)) {
		error->remedy = AFS_REMEDY_NONE;
		return -1;
	}
	from = client->sites->used + 1;
	if (remedy == AFS_REMEDY_LOCATE) {
		if (look_up_volume(client, volume->name, end, &now, error) < 0)
			return -1;
		from = 0;
	}
	if (try_all_candidates(client, from, end, &now, error) < 0)
		return -1;
	*volume = now;
	return 0;
}
