/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume location service of one server with one volume. */
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/error.h>

#include "afs/opcodes.h"
#include "fileserver/service.h"

#define REQUEST_MAX	   2048
#define REPLY_MAX	   (16 + AFS_VL_ENTRY_U_BYTES)
#define FIRST_INDEX	   1
#define ADDRESS_BY_INDEX   0xff000000u /* GetAddrs: a server that has a UUID, base 0 */
#define ADDRESS_GENERATION 1	       /* the list of a server is made once */

/* One call: the request behind its operation number, and room for the reply. */
struct vl_call {
	struct fsd_service *service;
	uint32_t opcode;
	struct rxw_xdr in, out;
	uint32_t address[FSD_ADDRS_MAX]; /* of this server, for this client */
	unsigned address_count;
};

static void add_address(struct vl_call *call, uint32_t address)
{
	for (unsigned i = 0; i < call->address_count; i++)
		if (call->address[i] == address)
			return;
	if (address && call->address_count < FSD_ADDRS_MAX)
		call->address[call->address_count++] = address;
}

/* The address that was asked comes first: it is the one that surely can be reached. */
static void find_addresses(struct vl_call *call, const struct sockaddr_storage *local)
{
	if (local->ss_family == AF_INET) {
		add_address(call, ntohl(((const struct sockaddr_in *)local)->sin_addr.s_addr));
	} else if (local->ss_family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)local)->sin6_addr;
		uint32_t v4;

		memcpy(&v4, a->s6_addr + 12, 4);
		if (IN6_IS_ADDR_V4MAPPED(a))
			add_address(call, ntohl(v4));
	}
	for (unsigned i = 0; i < call->service->advertise_count; i++)
		add_address(call, call->service->advertise[i]);
}

static void fill_entry(const struct vl_call *call, const char *name, struct afs_vl_entry *entry)
{
	struct afs_vl_site *site = &entry->site[0];

	memset(entry, 0, sizeof(*entry));
	strncpy(entry->name, name, sizeof(entry->name) - 1);
	entry->sites = 1;
	site->uuid = call->service->uuid;
	site->unique = ADDRESS_GENERATION;
	site->address = call->address_count ? call->address[0] : 0;
	site->flags = AFS_VL_SITE_RW;
	entry->id[AFS_VL_RW] = fsd_volume_id(call->service->volume);
	entry->flags = AFS_VL_RW_EXISTS;
}

static bool all_digits(const char *name)
{
	return strspn(name, "0123456789") == strlen(name);
}

static void strip(char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	if (n > s && strcmp(name + n - s, suffix) == 0)
		name[n - s] = 0;
}

/* The entry that a client's name means: 0 and the entry, or a code. */
static int32_t by_name(const struct vl_call *call, char *name, struct afs_vl_entry *entry)
{
	const char *volume = fsd_volume_name(call->service->volume);

	if (all_digits(name)) { /* "" is id 0, which nobody has */
		if (strtoull(name, NULL, 10) != fsd_volume_id(call->service->volume))
			return AFS_VL_NOENT;
		fill_entry(call, volume, entry);
		return 0;
	}
	size_t before = strlen(name);

	strip(name, ".readonly");
	if (strlen(name) == before)
		strip(name, ".backup");
	if (strlen(name) >= AFS_VL_NAME || (!all_digits(name) && !afs_vl_name_valid(name)))
		return AFS_VL_BADNAME;
	if (strcmp(name, volume) && strcmp(name, "root.cell") && strcmp(name, "root.afs"))
		return AFS_VL_NOENT;
	fill_entry(call, name, entry);
	return 0;
}

static int32_t get_by_name(struct vl_call *call)
{
	struct afs_vl_entry entry;
	char name[AFS_VL_NAME + 1];
	int32_t code;

	if (!rxw_xdr_copy_string(&call->in, AFS_VL_NAME, name))
		return RXW_RPC_SS_UNMARSHAL;
	code = by_name(call, name, &entry);
	if (code)
		return code;
	switch (call->opcode) {
	case AFS_VL_GET_ENTRY_BY_NAME_U:
		afs_vl_entry_u_put(&call->out, &entry);
		break;
	case AFS_VL_GET_ENTRY_BY_NAME_N:
		afs_vl_entry_n_put(&call->out, &entry);
		break;
	default:
		afs_vl_entry_o_put(&call->out, &entry);
		break;
	}
	return 0;
}

static int32_t get_by_id(struct vl_call *call)
{
	struct afs_vl_entry entry;
	uint32_t id = 0;
	int32_t type;

	rxw_xdr_get_u32(&call->in, &id);
	if (!rxw_xdr_get_i32(&call->in, &type))
		return RXW_RPC_SS_UNMARSHAL;
	if (type < -1 || type > 2)
		return AFS_VL_BADVOLTYPE;
	if (id != fsd_volume_id(call->service->volume) || type > 0)
		return AFS_VL_NOENT;
	fill_entry(call, fsd_volume_name(call->service->volume), &entry);
	if (call->opcode == AFS_VL_GET_ENTRY_BY_ID_N)
		afs_vl_entry_n_put(&call->out, &entry);
	else
		afs_vl_entry_o_put(&call->out, &entry);
	return 0;
}

static bool is_ours(const struct vl_call *call, uint32_t address)
{
	for (unsigned i = 0; i < call->address_count; i++)
		if (call->address[i] == address)
			return true;
	return false;
}

static int32_t get_addrs_u(struct vl_call *call)
{
	struct afs_vl_addr_query query;
	struct afs_vl_addrs addrs = {.uuid = call->service->uuid, .unique = ADDRESS_GENERATION};
	bool found;

	if (!afs_vl_addr_query_get(&call->in, &query))
		return RXW_RPC_SS_UNMARSHAL;
	switch (query.mask) {
	case AFS_VL_BY_ADDRESS:
		found = is_ours(call, query.address);
		break;
	case AFS_VL_BY_INDEX:
		if (query.index == 0)
			return AFS_VL_INDEXERANGE;
		found = query.index == FIRST_INDEX;
		break;
	case AFS_VL_BY_UUID:
		found = afs_uuid_equal(&query.uuid, &call->service->uuid);
		break;
	default:
		return AFS_VL_BADMASK;
	}
	if (!found)
		return AFS_VL_NOENT;
	addrs.count = call->address_count;
	memcpy(addrs.address, call->address, sizeof(addrs.address));
	afs_vl_addrs_put(&call->out, &addrs);
	return 0;
}

static int32_t get_addrs(struct vl_call *call)
{
	if (!rxw_xdr_skip(&call->in, 8))
		return RXW_RPC_SS_UNMARSHAL;
	for (int i = 0; i < 4; i++)
		rxw_xdr_put_u32(&call->out, 0);
	rxw_xdr_put_u32(&call->out, 1);
	rxw_xdr_put_u32(&call->out, 1);
	rxw_xdr_put_u32(&call->out, ADDRESS_BY_INDEX + FIRST_INDEX);
	return 0;
}

/* VldbListByAttributes: does our one entry fit? */
static bool get_attributes(struct vl_call *call, bool *match)
{
	uint32_t mask = 0, server = 0, partition = 0, id = 0, flag = 0;

	rxw_xdr_get_u32(&call->in, &mask);
	rxw_xdr_get_u32(&call->in, &server);
	rxw_xdr_get_u32(&call->in, &partition);
	rxw_xdr_skip(&call->in, 4);
	rxw_xdr_get_u32(&call->in, &id);
	rxw_xdr_get_u32(&call->in, &flag);
	*match = (!(mask & 1) || is_ours(call, server)) && (!(mask & 2) || partition == 0) &&
		 (!(mask & 8) || id == fsd_volume_id(call->service->volume)) &&
		 (!(mask & 0x10) || (flag & AFS_VL_RW_EXISTS));
	return rxw_xdr_ok(&call->in);
}

/*
 * A pattern that means our volume, or all? Expressions are for administrators, of whom there are
 * none.
 */
static int32_t match_pattern(const struct vl_call *call, const char *pattern, bool *match)
{
	const char *volume = fsd_volume_name(call->service->volume);
	size_t n = strlen(pattern);

	if (n == 0 || strcmp(pattern, ".*") == 0)
		return 0;
	if (*pattern == '^')
		pattern++, n--;
	if (n && pattern[n - 1] == '$')
		n--;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)pattern[i]) && !strchr("._-", pattern[i]))
			return AFS_VL_PERM;
	*match = *match && n == strlen(volume) && memcmp(pattern, volume, n) == 0;
	return 0;
}

static void put_entry(struct vl_call *call, bool wide)
{
	struct afs_vl_entry entry;

	fill_entry(call, fsd_volume_name(call->service->volume), &entry);
	if (wide)
		afs_vl_entry_n_put(&call->out, &entry);
	else
		afs_vl_entry_o_put(&call->out, &entry);
}

static int32_t list_attributes(struct vl_call *call)
{
	char pattern[AFS_VL_NAME + 1];
	bool match,
		linked = call->opcode == AFS_VL_LINKED_LIST || call->opcode == AFS_VL_LINKED_LIST_N;
	bool wide = call->opcode != AFS_VL_LIST_ATTRIBUTES && call->opcode != AFS_VL_LINKED_LIST;
	uint32_t start = 0;

	if (!get_attributes(call, &match))
		return RXW_RPC_SS_UNMARSHAL;
	if (call->opcode == AFS_VL_LIST_ATTRIBUTES_N2) {
		int32_t code;

		rxw_xdr_copy_string(&call->in, AFS_VL_NAME, pattern);
		if (!rxw_xdr_get_u32(&call->in, &start))
			return RXW_RPC_SS_UNMARSHAL;
		code = match_pattern(call, pattern, &match);
		if (code)
			return code;
		match = match && start == 0;
	}
	rxw_xdr_put_u32(&call->out, match);
	rxw_xdr_put_u32(&call->out,
			match); /* count of an array, or "an element follows" of a list */
	if (match)
		put_entry(call, wide);
	if (match && linked)
		rxw_xdr_put_u32(&call->out, 0);
	if (call->opcode == AFS_VL_LIST_ATTRIBUTES_N2)
		rxw_xdr_put_u32(&call->out, (uint32_t)-1);
	return 0;
}

static int32_t list_entry(struct vl_call *call)
{
	bool wide = call->opcode == AFS_VL_LIST_ENTRY_N;
	uint32_t previous;

	if (!rxw_xdr_get_u32(&call->in, &previous))
		return RXW_RPC_SS_UNMARSHAL;
	rxw_xdr_put_u32(&call->out, 0);
	rxw_xdr_put_u32(&call->out, previous == 0);
	if (previous == 0) {
		put_entry(call, wide);
	} else {
		unsigned bytes = wide ? AFS_VL_ENTRY_N_BYTES : AFS_VL_ENTRY_O_BYTES;

		for (unsigned i = 0; i < bytes; i += 4)
			rxw_xdr_put_u32(&call->out, 0);
	}
	return 0;
}

static int32_t get_stats(struct vl_call *call)
{
	rxw_xdr_put_u32(&call->out, call->service->start_time);
	for (int i = 1; i < 116; i++)
		rxw_xdr_put_u32(&call->out, 0);
	return 0;
}

static int32_t run(struct vl_call *call)
{
	switch (call->opcode) {
	case AFS_VL_PROBE_SERVER:
		return 0;
	case AFS_VL_GET_ENTRY_BY_NAME_U:
	case AFS_VL_GET_ENTRY_BY_NAME_N:
	case AFS_VL_GET_ENTRY_BY_NAME_O:
		return get_by_name(call);
	case AFS_VL_GET_ENTRY_BY_ID_N:
	case AFS_VL_GET_ENTRY_BY_ID:
		return get_by_id(call);
	case AFS_VL_GET_ADDRS_U:
		return get_addrs_u(call);
	case AFS_VL_GET_ADDRS:
		return get_addrs(call);
	case AFS_VL_LIST_ATTRIBUTES_N2:
	case AFS_VL_LIST_ATTRIBUTES_N:
	case AFS_VL_LIST_ATTRIBUTES:
	case AFS_VL_LINKED_LIST:
	case AFS_VL_LINKED_LIST_N:
		return list_attributes(call);
	case AFS_VL_LIST_ENTRY_N:
	case AFS_VL_LIST_ENTRY:
		return list_entry(call);
	case AFS_VL_GET_STATS:
		return get_stats(call);
	case AFS_VL_GET_NEW_VOLUME_ID:
	case AFS_VL_REGISTER_ADDRS:
	case AFS_VL_CHANGE_ADDR:
	case AFS_VL_CREATE_ENTRY:
	case AFS_VL_CREATE_ENTRY_N:
	case AFS_VL_DELETE_ENTRY:
	case AFS_VL_REPLACE_ENTRY:
	case AFS_VL_REPLACE_ENTRY_N:
	case AFS_VL_UPDATE_ENTRY:
	case AFS_VL_UPDATE_ENTRY_BY_NAME:
	case AFS_VL_SET_LOCK:
	case AFS_VL_RELEASE_LOCK:
		return AFS_VL_PERM;
	default:
		return RXW_RPC_OPCODE;
	}
}

int32_t fsd_vl_serve(struct fsd_service *service, struct fsd_stream *stream)
{
	struct vl_call call = {.service = service};
	uint8_t request[REQUEST_MAX], reply[REPLY_MAX];
	ssize_t n = stream->ops->read(stream, request, sizeof(request));
	int32_t code;

	if (n < 0)
		return RXW_USER_ABORT;
	rxw_xdr_reader(&call.in, request, (size_t)n);
	rxw_xdr_writer(&call.out, reply, sizeof(reply));
	if (!rxw_xdr_get_u32(&call.in, &call.opcode))
		return RXW_RPC_DECODE;
	find_addresses(&call, &stream->local);
	code = run(&call);
	atomic_fetch_add_explicit(&service->counters.vl_calls, 1, memory_order_relaxed);
	if (code)
		return code;
	if (!rxw_xdr_ok(&call.out))
		return RXW_RPC_SS_MARSHAL;
	if (rxw_xdr_used(&call.out) == 0)
		return 0;
	return fsd_stream_write(stream, reply, rxw_xdr_used(&call.out)) ? RXW_USER_ABORT : 0;
}
