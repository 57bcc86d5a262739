/* SPDX-License-Identifier: BSD-2-Clause */
/* A cell of fake servers in this process, and a client of it. */
#include "tests/client/net/fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "afs/rxafscb.h"
#include "client/net/server.h"
#include "tests/asserts.h"
#include "tests/support/ports.h"

struct fake fake;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;
struct cl_cells *fake_cells;
struct cl_net *fake_net;
struct cl_volume *fake_volume;
struct cl_caller fake_caller;
struct rxafs_failure fake_failure;
struct cl_stamp fake_stamp;
AFSFetchStatus fake_status;

/* -- file servers -- */

/* The answer to a call; waits while calls are held. */
static int32_t take_answer(struct fake_server *s, rxw_call *call)
{
	socklen_t len = sizeof(s->client);
	int32_t code = 0;

	pthread_mutex_lock(&fake_lock);
	s->calls++;
	s->index = (uint8_t)rxw_connection_security_index(rxw_call_connection(call));
	rxw_call_peer(call, &s->client, &len);
	if (s->next < s->count) {
		code = s->answers[s->next];
		if (s->next + 1 < s->count || !(s->flags & FAKE_REPEATS))
			s->next++;
	}
	s->waiting++;
	pthread_cond_broadcast(&fake_changed);
	while (s->hold)
		pthread_cond_wait(&fake_changed, &fake_lock);
	s->waiting--;
	pthread_mutex_unlock(&fake_lock);
	return code;
}

static bool is_missing(const struct fake_server *s, uint32_t call)
{
	return s->missing & call;
}

static void fill_status(const AFSFid *fid, AFSFetchStatus *st)
{
	memset(st, 0, sizeof(*st));
	st->InterfaceVersion = 1;
	st->FileType = fid->Vnode & 1 ? AFS_TYPE_DIR : AFS_TYPE_FILE;
	st->LinkCount = 1;
	st->DataVersion = 7;
	if (st->FileType == AFS_TYPE_FILE)
		st->Length = (uint32_t)fake.length;
}

static void fill_rest(const struct fake_server *s, AFSCallBack *cb, AFSVolSync *sync)
{
	if (cb)
		*cb = (AFSCallBack){CALLBACK_VERSION, s->promised, CB_SHARED};
	memset(sync, 0, sizeof(*sync));
	sync->spare1 = s->creation;
}

static int32_t fetch_status(void *context, rxw_call *call, const AFSFid *fid, AFSFetchStatus *st,
			    AFSCallBack *cb, AFSVolSync *sync)
{
	int32_t code = take_answer(context, call);

	fill_status(fid, st);
	fill_rest(context, cb, sync);
	return code;
}

static int32_t bulk_status(void *context, rxw_call *call, const AFSCBFids *fids, AFSBulkStats *sts,
			   AFSCBs *cbs, AFSVolSync *sync)
{
	int32_t code;

	if (is_missing(context, CL_MISSING_INLINE_BULK))
		return RXW_RPC_OPCODE;
	code = take_answer(context, call);
	sts->val = calloc(fids->len, sizeof(*sts->val));
	cbs->val = calloc(fids->len, sizeof(*cbs->val));
	sts->len = cbs->len = fids->len;
	for (uint32_t i = 0; i < fids->len; i++) {
		fill_status(&fids->val[i], &sts->val[i]);
		fill_rest(context, &cbs->val[i], sync);
	}
	return code;
}

static int32_t create_file(void *context, rxw_call *call, const AFSFid *dir, const char *name,
			   const AFSStoreStatus *ss, AFSFid *fid, AFSFetchStatus *st,
			   AFSFetchStatus *dir_st, AFSCallBack *cb, AFSVolSync *sync)
{
	int32_t code = take_answer(context, call);

	(void)name, (void)ss;
	*fid = (AFSFid){dir->Volume, 2, 9};
	fill_status(fid, st);
	fill_status(dir, dir_st);
	fill_rest(context, cb, sync);
	return code;
}

static int32_t store_status(void *context, rxw_call *call, const AFSFid *fid,
			    const AFSStoreStatus *ss, AFSFetchStatus *st, AFSVolSync *sync)
{
	int32_t code = take_answer(context, call);

	(void)ss;
	fill_status(fid, st);
	fill_rest(context, NULL, sync);
	return code;
}

static int32_t fetch_empty_acl(void *context, rxw_call *call, const AFSFid *dir, AFSOpaque *acl,
			       AFSFetchStatus *st, AFSVolSync *sync)
{
	int32_t code = take_answer(context, call);

	*acl = (AFSOpaque){0};
	fill_status(dir, st);
	fill_rest(context, NULL, sync);
	return code;
}

static int32_t store_acl(void *context, rxw_call *call, const AFSFid *dir, const AFSOpaque *acl,
			 AFSFetchStatus *st, AFSVolSync *sync)
{
	(void)acl;
	if (is_missing(context, CL_MISSING_STORE_ACL))
		return RXW_RPC_OPCODE;
	fill_status(dir, st);
	fill_rest(context, NULL, sync);
	return take_answer(context, call);
}

static int32_t old_store_acl(void *context, rxw_call *call, const AFSFid *dir, const AFSOpaque *acl,
			     AFSFetchStatus *st, AFSVolSync *sync)
{
	(void)acl;
	fill_status(dir, st);
	fill_rest(context, NULL, sync);
	return take_answer(context, call);
}

/* Reads the data of a store. 0 or a code. */
static int32_t read_data(rxw_call *call, uint64_t length)
{
	static _Thread_local char buffer[65536];

	while (length > 0) {
		ssize_t n = rxw_call_read(call, buffer,
					  length < sizeof(buffer) ? length : sizeof(buffer));

		if (n <= 0)
			return RXW_RPC_SS_UNMARSHAL;
		length -= (uint64_t)n;
	}
	return 0;
}

static int32_t note_store(struct fake_server *s, rxw_call *call, const AFSFid *fid, uint64_t length,
			  uint64_t file_length, AFSFetchStatus *st, AFSVolSync *sync)
{
	int32_t code = read_data(call, length);

	if (code == 0)
		code = take_answer(s, call);
	if (code == 0 && file_length == CL_NO_CUT && is_missing(s, CL_MISSING_NO_CUT))
		code = rxw_code_from_errno(EFBIG);
	s->last_length = file_length;
	fill_status(fid, st);
	fill_rest(s, NULL, sync);
	return code;
}

static int32_t store_data64(void *context, rxw_call *call, const AFSFid *fid,
			    const AFSStoreStatus *ss, uint64_t pos, uint64_t length,
			    uint64_t file_length, AFSFetchStatus *st, AFSVolSync *sync)
{
	(void)ss, (void)pos;
	if (is_missing(context, CL_MISSING_STORE64))
		return RXW_RPC_OPCODE;
	return note_store(context, call, fid, length, file_length, st, sync);
}

static int32_t store_data(void *context, rxw_call *call, const AFSFid *fid,
			  const AFSStoreStatus *ss, uint32_t pos, uint32_t length,
			  uint32_t file_length, AFSFetchStatus *st, AFSVolSync *sync)
{
	(void)ss, (void)pos;
	return note_store(context, call, fid, length, file_length, st, sync);
}

static int32_t fetch_data(void *context, rxw_call *call, const AFSFid *fid, int32_t pos,
			  int32_t length, AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	static const uint8_t head[4] = {0, 0, 0, 5};

	(void)pos, (void)length;
	if (rxw_call_write(call, head, 4) < 0 || rxw_call_write(call, "bytes", 5) < 0)
		return RXW_USER_ABORT;
	fill_status(fid, st);
	fill_rest(context, cb, sync);
	return take_answer(context, call);
}

/* A tenth at a time. */
static int32_t drip(rxw_call *call, const uint8_t *data, size_t length, unsigned pause_ms)
{
	for (size_t at = 0, part; at < length; at += part) {
		part = length - at < 100 ? length - at : 100;
		usleep(pause_ms * 1000);
		if (rxw_call_write(call, data + at, part) < 0)
			return RXW_USER_ABORT;
		rxw_call_flush(call);
	}
	return 0;
}

/* The bytes of a long file. */
static int32_t send_long_file(struct fake_server *s, rxw_call *call, uint64_t pos, uint64_t length)
{
	uint8_t piece[4096];

	pthread_mutex_lock(&fake_lock);
	s->data_calls++;
	s->data_from = pos;
	pthread_mutex_unlock(&fake_lock);
	for (uint64_t end = pos + length; pos < end;) {
		size_t part = end - pos < sizeof(piece) ? (size_t)(end - pos) : sizeof(piece);

		for (size_t i = 0; i < part; i++)
			piece[i] = fake_byte(pos + i);
		if (rxw_call_write(call, piece, part) < 0)
			return RXW_USER_ABORT;
		pos += part;
		if (pos < fake.length / 2)
			continue;
		rxw_call_flush(call);
		pthread_mutex_lock(&fake_lock);
		s->data_waiting++;
		pthread_cond_broadcast(&fake_changed);
		while (s->hold_data)
			pthread_cond_wait(&fake_changed, &fake_lock);
		s->data_waiting--;
		pthread_mutex_unlock(&fake_lock);
	}
	return 0;
}

static int32_t fetch_long_file(struct fake_server *s, rxw_call *call, const AFSFid *fid,
			       uint64_t pos, uint64_t length, AFSFetchStatus *st, AFSCallBack *cb,
			       AFSVolSync *sync)
{
	uint8_t head[8];
	struct rxw_xdr x;

	if (pos > fake.length)
		pos = fake.length;
	if (length > fake.length - pos)
		length = fake.length - pos;
	rxw_xdr_writer(&x, head, sizeof(head));
	rxw_xdr_put_u64(&x, length);
	if (rxw_call_write(call, head, 8) < 0 || send_long_file(s, call, pos, length))
		return RXW_USER_ABORT;
	fill_status(fid, st);
	fill_rest(s, cb, sync);
	pthread_mutex_lock(&fake_lock);
	if (s->version)
		st->DataVersion = s->version;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int32_t fetch_data64(void *context, rxw_call *call, const AFSFid *fid, int64_t pos,
			    int64_t length, AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	const struct fake_server *s = context;
	int32_t code;
	uint8_t head[8], data[1000];
	struct rxw_xdr x;

	(void)pos;
	if (is_missing(context, CL_MISSING_FETCH64))
		return RXW_RPC_OPCODE;
	if (fake.length)
		return fetch_long_file(context, call, fid, (uint64_t)pos, (uint64_t)length, st, cb,
				       sync);
	rxw_xdr_writer(&x, head, sizeof(head));
	rxw_xdr_put_u64(&x, length < 1000 ? (uint64_t)length : 1000);
	memset(data, 'x', sizeof(data));
	if (rxw_call_write(call, head, 8) < 0 ||
	    drip(call, data, length < 1000 ? (size_t)length : 1000, s->drip_ms))
		return RXW_USER_ABORT;
	rxw_call_flush(call);
	code = take_answer(context, call);
	fill_status(fid, st);
	fill_rest(context, cb, sync);
	return code;
}

static int32_t get_capabilities(void *context, rxw_call *call, Capabilities *caps)
{
	struct fake_server *s = context;

	(void)call;
	pthread_mutex_lock(&fake_lock);
	s->probes++;
	pthread_cond_broadcast(&fake_changed);
	while (s->mute_probes)
		pthread_cond_wait(&fake_changed, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
	caps->val = calloc(1, sizeof(*caps->val));
	caps->len = 1;
	caps->val[0] = VICED_CAPABILITY_64BITFILES;
	return 0;
}

/* Held as probes are. */
static int32_t get_statistics(void *context, rxw_call *call, ViceStatistics *stats)
{
	struct fake_server *s = context;

	(void)call;
	pthread_mutex_lock(&fake_lock);
	while (s->mute_probes)
		pthread_cond_wait(&fake_changed, &fake_lock);
	memset(stats, 0, sizeof(*stats));
	stats->StartTime = s->started;
	pthread_mutex_unlock(&fake_lock);
	return stats->StartTime ? 0 : RXW_RPC_OPCODE;
}

static int32_t give_up_all(void *context, rxw_call *call)
{
	(void)call;
	((struct fake_server *)context)->given_up++;
	return 0;
}

static int32_t give_up(void *context, rxw_call *call, const AFSCBFids *fids, const AFSCBs *cbs)
{
	(void)call, (void)cbs;
	((struct fake_server *)context)->given_up += fids->len;
	return 0;
}

static const struct RXAFS_handlers fs_handlers = {
	.FetchStatus = fetch_status,
	.InlineBulkStatus = bulk_status,
	.CreateFile = create_file,
	.StoreStatus = store_status,
	.FetchACL = fetch_empty_acl,
	.StoreACL = store_acl,
	.OldStoreACL = old_store_acl,
	.StoreData64 = store_data64,
	.StoreData = store_data,
	.FetchData64 = fetch_data64,
	.FetchData = fetch_data,
	.GetCapabilities = get_capabilities,
	.GetStatistics = get_statistics,
	.GiveUpAllCallBacks = give_up_all,
	.GiveUpCallBacks = give_up,
};

/* -- the location server -- */

static struct rxw_uuid uuid_of(unsigned server)
{
	return (struct rxw_uuid){.time_low = 0x1000 + server, .time_mid = 7};
}

static void add_another_site(uvldbentry *e, unsigned server, int32_t flags)
{
	int32_t i = e->nServers++;

	e->serverNumber[i] = uuid_of(server);
	e->serverUnique[i] = (int32_t)fake.generation;
	e->serverFlags[i] = VLSF_UUID | flags;
}

static void add_site(uvldbentry *e, unsigned server, int32_t flag)
{
	for (int32_t i = 0; i < e->nServers; i++)
		if (e->serverNumber[i].time_low == 0x1000 + server) {
			e->serverFlags[i] |= flag;
			return;
		}
	add_another_site(e, server, flag);
}

/* As vos has it: a site beside that of the read-write volume if one of them is marked. */
static void add_ro_site(uvldbentry *e, unsigned server)
{
	int32_t marks = (fake.new_sites & 1u << server ? VLSF_NEWREPSITE : 0) |
			(fake.closed_sites & 1u << server ? VLSF_DONTUSE : 0);

	if (fake.rw_marked || marks)
		add_another_site(e, server, VLSF_ROVOL | marks);
	else
		add_site(e, server, VLSF_ROVOL);
}

/* The one entry, if it has that name or number. */
static int32_t fill_entry(const void *context, const char *name, uvldbentry *e)
{
	unsigned long id = strtoul(name, NULL, 10);
	int32_t code;

	memset(e, 0, sizeof(*e));
	pthread_mutex_lock(&fake_lock);
	fake.asked++;
	pthread_cond_broadcast(&fake_changed);
	while (fake.vl_hold)
		pthread_cond_wait(&fake_changed, &fake_lock);
	code = *(const int32_t *)context;
	strcpy(e->name, fake.name);
	e->volumeId[AFS_VL_RW] = FAKE_RW + fake.shift;
	e->volumeId[AFS_VL_RO] = FAKE_RO + fake.shift;
	e->volumeId[AFS_VL_BACKUP] = FAKE_BACKUP + fake.shift;
	e->flags = VLF_RWEXISTS | (fake.has_ro ? VLF_ROEXISTS : 0) |
		   (fake.has_backup ? VLF_BACKEXISTS : 0);
	if (fake.rw_marked)
		add_another_site(e, fake.rw_server, VLSF_RWVOL | VLSF_NEWREPSITE);
	else
		add_site(e, fake.rw_server, VLSF_RWVOL);
	for (unsigned i = 0; i < FAKE_SERVERS; i++)
		if (fake.has_ro && (fake.ro_servers & 1u << i))
			add_ro_site(e, i);
	pthread_mutex_unlock(&fake_lock);
	if (code)
		return code;
	id -= fake.shift;
	return strcmp(name, e->name) == 0 || (id >= FAKE_RW && id <= FAKE_BACKUP) ? 0
										  : AFS_VL_NOENT;
}

static int32_t entry_u(void *context, rxw_call *call, const char *name, uvldbentry *e)
{
	(void)call;
	return fake.no_uuids ? RXW_RPC_OPCODE : fill_entry(context, name, e);
}

static int32_t entry_n(void *context, rxw_call *call, const char *name, nvldbentry *e)
{
	uvldbentry u;
	int32_t code = fill_entry(context, name, &u);

	(void)call;
	memset(e, 0, sizeof(*e));
	strcpy(e->name, u.name);
	e->nServers = u.nServers;
	e->flags = u.flags;
	memcpy(e->volumeId, u.volumeId, sizeof(e->volumeId));
	for (int32_t i = 0; i < u.nServers; i++) {
		e->serverNumber[i] = (int32_t)(0x7f000001 + u.serverNumber[i].time_low - 0x1000);
		e->serverFlags[i] = u.serverFlags[i] & ~VLSF_UUID;
	}
	return code;
}

static int32_t get_addrs(void *context, rxw_call *call, const ListAddrByAttributes *attr,
			 struct rxw_uuid *uuid, int32_t *unique, int32_t *entries, bulkaddrs *addrs)
{
	static const uint32_t odd[] = {0,	   0x00000001, 0xe0000001,
				       0xf0000001, 0xffffffff, 0xa9fe0101};
	const unsigned odd_count = sizeof(odd) / sizeof(odd[0]);
	unsigned server = attr->uuid.time_low - 0x1000;

	(void)context, (void)call;
	addrs->val = calloc(FAKE_SERVERS + odd_count + 1, sizeof(*addrs->val));
	if (fake.far)
		addrs->val[addrs->len++] = 0xc0000201;
	for (unsigned i = 0; fake.odd && i < odd_count; i++)
		addrs->val[addrs->len++] = odd[i];
	addrs->val[addrs->len++] = 0x7f000001 + server;
	pthread_mutex_lock(&fake_lock);
	fake.asked_addresses++;
	for (unsigned i = 1; i < FAKE_SERVERS; i++)
		if (server == 0 && (fake.also & 1u << i))
			addrs->val[addrs->len++] = 0x7f000001 + i;
	*unique = (int32_t)fake.generation;
	pthread_mutex_unlock(&fake_lock);
	*uuid = attr->uuid;
	*entries = (int32_t)addrs->len;
	return 0;
}

static const struct VL_handlers vl_handlers = {
	.GetEntryByNameU = entry_u, .GetEntryByNameN = entry_n, .GetAddrsU = get_addrs};

/* -- starting and stopping -- */

static rxw_endpoint *serve(uint32_t address, uint16_t *port, uint16_t id, rxw_handler_fn handler,
			   void *context)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(address)};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&sin,
					  .address_len = sizeof(sin),
					  .server = 1,
					  .paused = 1};
	rxw_security *classes[3] = {rxw_security_null(), fake.security[0], fake.security[1]};
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = id,
					 .name = "fake",
					 .handler = handler,
					 .context = context,
					 .workers_max = 200};
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	rxw_endpoint *endpoint;
	rxw_service *service;

	if (fake.security[0]) {
		so.security = classes;
		so.security_count = fake.security[1] ? 3 : 2;
	}
	if (rxw_endpoint_create(fake.engine, &eo, &endpoint) < 0)
		return NULL;
	ck_assert_int_eq(rxw_service_add(endpoint, &so, &service), 0);
	/* Calls that were under way find the service. */
	ck_assert_int_eq(rxw_endpoint_start(endpoint), 0);
	ck_assert_int_eq(rxw_endpoint_address(endpoint, &bound, &len), 0);
	memcpy(&sin, &bound, sizeof(sin));
	*port = ntohs(sin.sin_port);
	return endpoint;
}

static int take_place(unsigned number, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(0x7f000001 + number)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

int fake_vl_stop(unsigned number)
{
	rxw_endpoint_destroy(fake.vl[number]);
	fake.vl[number] = NULL;
	return take_place(number, fake.vl_port[number]);
}

/* Data packets: others may belong to earlier questions. */
unsigned fake_questions(int fd)
{
	uint8_t packet[2048];
	unsigned count = 0;
	ssize_t n;

	while ((n = recv(fd, packet, sizeof(packet), 0)) > 0)
		count += n >= 28 && packet[20] == 1;
	return count;
}

void fake_server_start(unsigned number)
{
	struct fake_server *s = &fake.servers[number];

	if (s->place)
		close(s->place);
	s->place = 0;
	s->number = number;
	s->service = (struct RXAFS_service){.base.context = s, .handlers = &fs_handlers};
	s->endpoint = serve(0x7f000001 + number, &fake.fs_port, AFS_SERVICE_FS,
			    RXAFS_ExecuteRequest, &s->service);
	ck_assert_ptr_nonnull(s->endpoint);
}

void fake_server_stop(unsigned number)
{
	struct fake_server *s = &fake.servers[number];

	/* Without a word to clients, as after a crash. */
	fake_hold(number, false);
	fake_hold_data(number, false);
	rxw_endpoint_destroy(s->endpoint);
	s->endpoint = NULL;
	s->place = take_place(number, fake.fs_port);
}

static void note_breaks(void *arg, uint32_t server, const struct rxafs_fid *fids, uint32_t count)
{
	(void)arg, (void)server;
	pthread_mutex_lock(&fake_lock);
	for (uint32_t i = 0; i < count; i++)
		fake.broken[fake.breaks++ % 8] = fids[i];
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

static void note_resets(void *arg, uint32_t server, uint32_t resets)
{
	(void)arg, (void)server, (void)resets;
	pthread_mutex_lock(&fake_lock);
	fake.resets++;
	pthread_mutex_unlock(&fake_lock);
}

static bool note_renewal(void *arg, struct cl_identity *identity, uint32_t cell)
{
	(void)arg;
	fake.renewals++;
	if (fake.on_renew)
		fake.on_renew(identity, cell);
	return fake.renew;
}

static void print_note(void *arg, const char *text)
{
	(void)arg;
	pthread_mutex_lock(&fake_lock);
	if (strstr(text, "this machine") && strstr(text, "address")) {
		fake.moves++;
		fake.probes_at_move = fake.servers[0].probes;
	}
	if (strstr(text, "has an older one"))
		fake.older++;
	if (strstr(text, "has no route"))
		fake.unrouted++;
	pthread_mutex_unlock(&fake_lock);
	if (getenv("FAKE_VERBOSE"))
		fprintf(stderr, "note: %s\n", text);
}

void fake_open_client(unsigned soft_ms)
{
	static const struct cl_net_ops ops = {.broken = note_breaks,
					      .reset = note_resets,
					      .renew = note_renewal,
					      .note = print_note};
	const char *const folders[] = {fake.folder ? fake.folder : "/nonexistent"};
	char message[200] = "", given[160], linked[160];
	const char *list[] = {given, linked};
	struct cl_cells_options co = {.home = "example.org",
				      .given = list,
				      .given_count = 2,
				      .folders = folders,
				      .folder_count = 1,
				      .no_dns = true};
	struct cl_net_options no = {.ops = &ops,
				    .soft_ms = soft_ms,
				    .dead_ms = fake.dead_ms ? fake.dead_ms : 30000,
				    .pause_ms = fake.pause_ms ? fake.pause_ms : 10};
	int n = snprintf(given, sizeof(given), "example.org=%s127.0.0.1:%u:%u",
			 fake.no_route ? "[fe80::1]:7003:7000," : "", fake.vl_port[0],
			 fake.fs_port);
	int rc;

	snprintf(linked, sizeof(linked), "linked.org=127.0.0.2:%u:%u", fake.vl_port[1],
		 fake.fs_port);
	if (fake.vl[1] && !fake.folder)
		snprintf(given + n, sizeof(given) - (size_t)n, ",127.0.0.2:%u:%u", fake.vl_port[1],
			 fake.fs_port);
	ck_assert_msg(cl_cells_create(&co, &fake_cells, message, sizeof(message)) == 0, "%s",
		      message);
	no.cells = fake_cells;
	ck_assert_msg(cl_net_create(&no, &fake_net, message, sizeof(message)) == 0, "%s", message);
	memset(&fake_caller, 0, sizeof(fake_caller));
	/* A short limit is for the test, and not for the look-up before it. */
	do
		rc = cl_volume_find(fake_net, cl_cells_home(fake_cells), "vol", CL_WANT_EXACT,
				    &fake_caller, &fake_volume, &fake_failure);
	while (rc == -ETIMEDOUT);
	ck_assert_msg(rc == 0, "%s", fake_failure.text);
}

void fake_open(unsigned servers, unsigned soft_ms)
{
	struct rxw_config config;

	fake.server_count = servers;
	fake.generation = 1;
	fake.name = "vol";
	fake.fs_port = choose_port();
	rxw_config_init(&config, sizeof(config));
	config.workers_max = 200;
	ck_assert_int_eq(rxw_engine_create(&config, &fake.engine), 0);
	for (unsigned i = 0; i < 2; i++) {
		fake.vl_service[i] = (struct VL_service){.base.context = &fake.vl_answer[i],
							 .handlers = &vl_handlers};
		fake.vl[i] = serve(0x7f000001 + i, &fake.vl_port[i], AFS_SERVICE_VL,
				   VL_ExecuteRequest, &fake.vl_service[i]);
	}
	ck_assert(fake.vl[0] && fake.vl[1]);
	for (unsigned i = 0; i < servers; i++)
		fake_server_start(i);
	fake_open_client(soft_ms);
}

void fake_close_client(void)
{
	cl_volume_unref(fake_volume);
	fake_volume = NULL;
	cl_net_close(fake_net, 1000);
	fake_net = NULL;
	cl_cells_free(fake_cells);
	fake_cells = NULL;
}

void fake_close(void)
{
	if (fake_net)
		fake_close_client();
	for (unsigned i = 0; i < FAKE_SERVERS; i++) {
		if (fake.servers[i].endpoint)
			fake_server_stop(i);
		if (fake.servers[i].place)
			close(fake.servers[i].place);
	}
	for (unsigned i = 0; i < 2; i++)
		if (fake.vl[i])
			rxw_endpoint_destroy(fake.vl[i]);
	rxw_engine_destroy(fake.engine);
	/* For the next test in the same process. */
	memset(&fake, 0, sizeof(fake));
}

/* -- what tests tell and ask -- */

void fake_answers(unsigned number, unsigned flags, unsigned count, ...)
{
	struct fake_server *s = &fake.servers[number];
	va_list args;

	pthread_mutex_lock(&fake_lock);
	s->flags = flags;
	s->count = count;
	s->next = s->calls = 0;
	va_start(args, count);
	for (unsigned i = 0; i < count; i++)
		s->answers[i] = va_arg(args, int);
	va_end(args);
	pthread_mutex_unlock(&fake_lock);
}

void fake_hold(unsigned number, bool hold)
{
	pthread_mutex_lock(&fake_lock);
	fake.servers[number].hold = hold;
	if (!hold)
		fake.servers[number].mute_probes = false;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

void fake_await_held(unsigned number, unsigned count)
{
	pthread_mutex_lock(&fake_lock);
	while (fake.servers[number].waiting < count)
		pthread_cond_wait(&fake_changed, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_silence_data(unsigned one, unsigned other)
{
	unsigned number;

	pthread_mutex_lock(&fake_lock);
	while (!fake.servers[one].data_waiting && !fake.servers[other].data_waiting)
		pthread_cond_wait(&fake_changed, &fake_lock);
	number = fake.servers[one].data_waiting ? one : other;
	fake.servers[number].mute_probes = true;
	pthread_mutex_unlock(&fake_lock);
	return number;
}

void fake_hold_data(unsigned number, bool hold)
{
	pthread_mutex_lock(&fake_lock);
	fake.servers[number].hold_data = hold;
	if (!hold)
		fake.servers[number].mute_probes = false;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_calls(unsigned number)
{
	unsigned calls;

	pthread_mutex_lock(&fake_lock);
	calls = fake.servers[number].calls;
	pthread_mutex_unlock(&fake_lock);
	return calls;
}

unsigned fake_asked(void)
{
	unsigned asked;

	pthread_mutex_lock(&fake_lock);
	asked = fake.asked;
	pthread_mutex_unlock(&fake_lock);
	return asked;
}

struct cl_volume *fake_find(const char *name, enum cl_wanted wanted)
{
	struct cl_volume *volume = NULL;
	int rc = cl_volume_find(fake_net, cl_cells_home(fake_cells), name, wanted, &fake_caller,
				&volume, &fake_failure);

	ck_assert_msg(rc == 0, "%s", fake_failure.text);
	return volume;
}

int fake_seek(const char *name)
{
	struct cl_volume *volume;
	int rc = cl_volume_find(fake_net, cl_cells_home(fake_cells), name, CL_WANT_EXACT,
				&fake_caller, &volume, &fake_failure);

	if (rc == 0)
		cl_volume_unref(volume);
	return rc;
}

int fake_look(struct cl_volume *volume)
{
	const AFSFid root = {cl_volume_id(volume), AFS_ROOT_VNODE, AFS_ROOT_UNIQUE};

	return cl_net_fetch_status(volume, &fake_caller, &root, &fake_status, &fake_stamp,
				   &fake_failure);
}

rxw_connection *fake_connect_client(unsigned number)
{
	struct fake_server *s = &fake.servers[number];
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(s->endpoint, (struct sockaddr *)&s->client,
					       s->client.ss_family == AF_INET6
						       ? sizeof(struct sockaddr_in6)
						       : sizeof(struct sockaddr_in),
					       AFS_SERVICE_CB, NULL, &connection),
			 0);
	return connection;
}

int32_t fake_break_by(rxw_connection *connection, const AFSFid *fids, uint32_t count)
{
	AFSCallBack cbs[AFSCBMAX] = {0};

	return RXAFSCB_CallBack(connection, &(AFSCBFids){count, (AFSFid *)fids},
				&(AFSCBs){count, cbs});
}

int32_t fake_break(unsigned number, const AFSFid *fids, uint32_t count)
{
	rxw_connection *connection = fake_connect_client(number);
	int32_t code = fake_break_by(connection, fids, count);

	rxw_connection_release(connection);
	return code;
}
