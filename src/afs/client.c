/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients: endpoint, calls, and the way from a volume's name to its server. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "afs/client_internal.h"
#include "afs/uuid.h"

#define PROBE_MS       4000 /* for each of several addresses of a server */
#define SITE_ADDRESSES 15   /* of one server; more are not looked at */

void afs_error_text(struct afs_error *error, const char *format, ...)
{
	va_list args;

	error->code = 0;
	error->origin = RXW_ORIGIN_LOCAL;
	error->result = 0;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
}

void afs_error_code(struct afs_error *error, const char *what, int32_t code, enum rxw_origin origin)
{
	int number = rxw_code_to_errno(code);
	const char *why = origin == RXW_ORIGIN_PEER && number > 0 && number < 134 &&
					  code != number && strerror(number)
				  ? strerror(number)
				  : rxw_code_text(code);

	if (origin != RXW_ORIGIN_PEER && code == RXW_CALL_DEAD)
		why = "no answer; is a server running there?";
	else if (origin == RXW_ORIGIN_PEER && code > 0 && code < 100)
		why = strerror(code);
	afs_error_text(error, "%s: %s (code %d)", what, why, code);
	error->code = code;
	error->origin = origin;
}

static int failed(struct afs_error *error, const char *what, int rc)
{
	afs_error_text(error, "%s: %s", what, rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
	error->result = rc;
	return -1;
}

int afs_begin(rxw_connection *connection, const char *what, unsigned deadline_ms, rxw_call **call,
	      struct afs_error *error)
{
	struct rxw_call_options co = { .size = sizeof(co), .deadline_ms = deadline_ms };
	int rc = rxw_call_begin(connection, &co, call);

	return rc < 0 ? failed(error, what, rc) : 0;
}

int afs_end(rxw_call *call, const char *what, int32_t code, struct afs_error *error)
{
	enum rxw_origin origin = RXW_ORIGIN_NONE;

	/* The call's own error, if it has one, is what the stubs stumbled over. */
	code = rxw_call_end(call, code, &origin);
	if (code == 0)
		return 0;
	if (code == RXW_RPC_CC_UNMARSHAL && origin != RXW_ORIGIN_PEER) {
		afs_error_text(error, "%s: the server's answer makes no sense", what);
		error->code = code;
	} else {
		afs_error_code(error, what, code, origin);
	}
	return -1;
}

/* A random (version 4) UUID: nobody asks for this client by it a second time. */
static void make_identity(struct rxw_uuid *self)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		memset(bytes, 0x5a, sizeof(bytes));
	bytes[6] = (bytes[6] & 0x0f) | 0x40;
	bytes[8] = (bytes[8] & 0x3f) | 0x80;
	afs_uuid_from_octets(self, bytes);
}

/* Any address of the family, any port. */
static int open_endpoint(rxw_engine *engine, const struct afs_client_options *options,
			 rxw_endpoint **endpoint)
{
	struct sockaddr_storage any = { .ss_family = options->vl->ss_family };
	struct rxw_endpoint_options eo = {
		.size = sizeof(eo),
		.address = (struct sockaddr *)&any,
		.address_len = any.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
							   sizeof(struct sockaddr_in),
		.config = options->config,
	};

	return rxw_endpoint_create(engine, &eo, endpoint);
}

int afs_client_open(rxw_engine *engine, const struct afs_client_options *options,
		    struct afs_client **client, struct afs_error *error)
{
	struct afs_client *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return failed(error, "client", -RXW_ENOMEM);
	memcpy(&c->vl_address, options->vl, options->vl_len);
	c->vl_len = options->vl_len;
	c->fs_port = options->fs_port ? options->fs_port : AFS_PORT_FS;
	c->security = options->security ? rxw_security_ref(options->security) : NULL;
	make_identity(&c->self.uuid);
	rc = open_endpoint(engine, options, &c->endpoint);
	if (rc == 0)
		rc = afs_client_callbacks(c);
	if (rc == 0)
		rc = rxw_connection_create(c->endpoint, (struct sockaddr *)&c->vl_address,
					   c->vl_len, AFS_SERVICE_VL, c->security, &c->vl);
	if (rc < 0) {
		failed(error, "cannot open a socket", rc);
		afs_client_close(c);
		return -1;
	}
	*client = c;
	return 0;
}

void afs_client_close(struct afs_client *client)
{
	if (!client)
		return;
	if (client->vl)
		rxw_connection_release(client->vl);
	if (client->fs)
		rxw_connection_release(client->fs);
	if (client->endpoint)
		rxw_endpoint_destroy(client->endpoint);
	rxw_security_unref(client->security);
	free(client);
}

int afs_client_renew(struct afs_client *client, rxw_security *security, struct afs_error *error)
{
	rxw_connection *vl, *fs = NULL;
	int rc = rxw_connection_create(client->endpoint, (struct sockaddr *)&client->vl_address,
				       client->vl_len, AFS_SERVICE_VL, security, &vl);

	if (rc == 0 && client->fs) {
		rc = rxw_connection_create(client->endpoint, (struct sockaddr *)&client->fs_address,
					   client->fs_len, AFS_SERVICE_FS, security, &fs);
		if (rc < 0)
			rxw_connection_release(vl);
	}
	if (rc < 0)
		return failed(error, "cannot connect with another token", rc);
	rxw_connection_release(client->vl);
	client->vl = vl;
	if (client->fs) {
		rxw_connection_release(client->fs);
		client->fs = fs;
	}
	if (security)
		rxw_security_ref(security);
	rxw_security_unref(client->security);
	client->security = security;
	return 0;
}

int afs_client_identity(const struct afs_client *client, struct rxw_identity *identity)
{
	return client->fs ? rxw_connection_identity(client->fs, identity) : -RXW_ESTATE;
}

rxw_endpoint *afs_client_endpoint(struct afs_client *client)
{
	return client->endpoint;
}

/* What both generations of a location entry say. */
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

/* The new generation. In a site without its flag the first word of the UUID is the address. */
static int entry_by_name_u(struct afs_client *c, const char *name, const char *what,
			   struct location *location, struct afs_error *error)
{
	rxw_call *call;
	uvldbentry e;
	int32_t code;

	if (afs_begin(c->vl, what, 0, &call, error) < 0)
		return -1;
	code = StartVL_GetEntryByNameU(call, name);
	if (code == 0)
		code = EndVL_GetEntryByNameU(call, &e);
	if (afs_end(call, what, code, error) < 0)
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

static int entry_by_name_n(struct afs_client *c, const char *name, const char *what,
			   struct location *location, struct afs_error *error)
{
	rxw_call *call;
	nvldbentry e;
	int32_t code;

	if (afs_begin(c->vl, what, 0, &call, error) < 0)
		return -1;
	code = StartVL_GetEntryByNameN(call, name);
	if (code == 0)
		code = EndVL_GetEntryByNameN(call, &e);
	if (afs_end(call, what, code, error) < 0)
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

/* GetEntryByNameU; older servers know only the N form. */
static int locate(struct afs_client *c, const char *name, const char *what,
		  struct location *location, struct afs_error *error)
{
	int rc = entry_by_name_u(c, name, what, location, error);

	if (rc < 0 && error->code == RXW_RPC_OPCODE)
		rc = entry_by_name_n(c, name, what, location, error);
	if (rc == 0 && location->sites > NMAXNSERVERS) {
		afs_error_text(error, "%s: the location server's answer makes no sense", what);
		rc = -1;
	}
	return rc;
}

/* The type that a name asks for, and its id in the entry. */
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
 * IPv4 addresses of a server, at most SITE_ADDRESSES. Returns their number; 0 if none is known.
 */
static uint32_t addresses_by_uuid(struct afs_client *c, const struct rxw_uuid *uuid,
				  uint32_t address[SITE_ADDRESSES])
{
	const ListAddrByAttributes attr = {.Mask = AFS_VL_BY_UUID, .uuid = *uuid};
	struct afs_error ignored;
	bulkaddrs addrs = {0};
	int32_t unique, entries, code;
	struct rxw_uuid same;
	uint32_t count = 0;
	rxw_call *call;

	if (afs_begin(c->vl, "addresses", 0, &call, &ignored) < 0)
		return 0;
	code = StartVL_GetAddrsU(call, &attr);
	if (code == 0)
		code = EndVL_GetAddrsU(call, &same, &unique, &entries, &addrs);
	if (afs_end(call, "addresses", code, &ignored) == 0 && addrs.len > 0) {
		count = addrs.len < SITE_ADDRESSES ? addrs.len : SITE_ADDRESSES;
		memcpy(address, addrs.val, count * sizeof(*address));
	}
	xdrfree_bulkaddrs(&addrs);
	return count;
}

/*
 * Addresses to try, best first: that of the location server when it is listed, or when only it can
 * be reached.
 */
struct candidates {
	struct sockaddr_storage address[NMAXNSERVERS * SITE_ADDRESSES];
	unsigned count;
};

/*
 * `address` is a struct sockaddr_in or sockaddr_in6 of `size` bytes; copied bytewise, as aliasing
 * rules want.
 */
static void add_candidate(struct candidates *list, const void *address, size_t size, bool first)
{
	struct sockaddr_storage *at = &list->address[list->count];

	if (list->count == sizeof(list->address) / sizeof(list->address[0]))
		return;
	if (first) {
		memmove(&list->address[1], &list->address[0],
			list->count * sizeof(list->address[0]));
		at = &list->address[0];
	}
	memset(at, 0, sizeof(*at));
	memcpy(at, address, size);
	list->count++;
}

static void find_candidates(struct afs_client *c, const struct location *entry,
			    enum afs_vl_type type, struct candidates *list)
{
	int32_t wanted = type == AFS_VL_RO ? VLSF_ROVOL : VLSF_RWVOL;
	struct sockaddr_in vl;
	struct sockaddr_in6 vl6;

	list->count = 0;
	if (c->vl_address.ss_family == AF_INET6) {
		memcpy(&vl6, &c->vl_address, sizeof(vl6));
		vl6.sin6_port = htons(c->fs_port);
		add_candidate(list, &vl6, sizeof(vl6), false);
		return;
	}
	memcpy(&vl, &c->vl_address, sizeof(vl));
	for (uint32_t s = 0; s < entry->sites; s++) {
		uint32_t address[SITE_ADDRESSES] = {entry->site[s].address};
		uint32_t count = address[0] != 0;

		if (!(entry->site[s].flags & wanted) || (entry->site[s].flags & VLSF_DONTUSE))
			continue;
		if (entry->site[s].by_uuid)
			count = addresses_by_uuid(c, &entry->site[s].uuid, address);
		for (uint32_t i = 0; i < count; i++) {
			struct sockaddr_in sa = { .sin_family = AF_INET,
						  .sin_port = htons(c->fs_port),
						  .sin_addr.s_addr = htonl(address[i]) };

			add_candidate(list, &sa, sizeof(sa),
				      sa.sin_addr.s_addr == vl.sin_addr.s_addr);
		}
	}
}

int afs_client_use(struct afs_client *client, const struct afs_volume *volume,
		   struct afs_error *error)
{
	rxw_connection *connection;
	int rc = rxw_connection_create(client->endpoint, (const struct sockaddr *)&volume->server,
				       volume->server_len, AFS_SERVICE_FS, client->security, &connection);

	if (rc < 0)
		return failed(error, "cannot connect to the file server", rc);
	if (client->fs)
		rxw_connection_release(client->fs);
	client->fs = connection;
	client->fs_address = volume->server;
	client->fs_len = volume->server_len;
	return 0;
}

/* Does the server at hand know the volume? 0, or -1: try the next. */
static int probe(struct afs_client *c, const struct afs_volume *volume, unsigned deadline_ms,
		 struct afs_error *error)
{
	const AFSFid root = {volume->id, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};
	AFSFetchStatus ignored;
	char text[INET6_ADDRSTRLEN], what[160];
	size_t at = volume->server.ss_family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_addr)
							 : offsetof(struct sockaddr_in, sin_addr);
	const void *raw = (const char *)&volume->server + at;

	inet_ntop(volume->server.ss_family, raw, text, sizeof(text));
	snprintf(what, sizeof(what), "file server %s port %u, volume %s", text, c->fs_port,
		 volume->name);
	if (afs_fetch_status(c, &root, what, deadline_ms, &ignored, error) == 0)
		return 0;
	/* Refused by the server itself, for reasons of rights, say: it is the right server. */
	if (error->origin == RXW_ORIGIN_PEER && rxw_code_to_errno(error->code) == EACCES)
		return 0;
	return -1;
}

int afs_client_volume(struct afs_client *client, const char *name, struct afs_volume *volume,
		      struct afs_error *error)
{
	struct location entry;
	struct candidates *list;
	enum afs_vl_type type;
	char what[160];
	int result = -1;

	snprintf(what, sizeof(what), "volume %.80s", name);
	if (*name == 0 || strlen(name) >= VL_MAXNAMELEN) {
		afs_error_text(error, "%s: a volume's name has 1 to 64 characters", what);
		return -1;
	}
	if (locate(client, name, what, &entry, error) < 0) {
		if (error->origin == RXW_ORIGIN_PEER && error->code == AFS_VL_NOENT)
			snprintf(error->text, sizeof(error->text),
				 "%s: no such volume; the location server does not know it", what);
		else if (error->origin != RXW_ORIGIN_PEER && error->code == RXW_CALL_DEAD)
			snprintf(
				error->text, sizeof(error->text),
				"no answer from the location server; is it running, and is -s right?");
		return -1;
	}
	memset(volume, 0, sizeof(*volume));
	snprintf(volume->name, sizeof(volume->name), "%s", name);
	if (choose_type(name, &entry, &type, &volume->id) < 0) {
		afs_error_text(error, "%s: no volume of that type exists", what);
		return -1;
	}
	list = malloc(sizeof(*list));
	if (!list)
		return failed(error, what, -RXW_ENOMEM);
	find_candidates(client, &entry, type, list);
	if (list->count == 0)
		afs_error_text(error, "%s: the location server knows no address that serves it",
			       what);
	for (unsigned i = 0; result < 0 && i < list->count; i++) {
		volume->server = list->address[i];
		volume->server_len = volume->server.ss_family == AF_INET6 ?
					     sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
		result = afs_client_use(client, volume, error);
		if (result == 0)
			result = probe(client, volume, i + 1 < list->count ? PROBE_MS : 0, error);
	}
	free(list);
	return result;
}

int afs_client_call(struct afs_client *client, const struct rxw_call_options *options,
		    rxw_call **call, struct afs_error *error)
{
	int rc = client->fs ? rxw_call_begin(client->fs, options, call) : -RXW_ESTATE;

	return rc < 0 ? failed(error, "cannot begin a call", rc) : 0;
}
