/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The volume service as administrators use it: the levels of calls and of dumps to other servers, calls that never end, and any calls in
 * any order with any arguments and streams (RXW_TEST_SEED; RXW_FUZZ_SECONDS: for so long).
 */
#include "tests/fileserver/anycall.h"
#include "tests/fileserver/shop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <time.h>
#include <rxwire/keys.h>
#include <rxwire/security.h>

#include "afs/afsvol.h"
#include "afs/numbers.h"
#include "fileserver/audit/audit.h"
#include "fileserver/guard/guard.h"

static struct shop shop;
static char key_path[4300], audit_path[64];
static bool keep_audit;

/* -- a server that knows administrators, and their connections -- */

static void open_guarded_shop(const char *require)
{
	const struct fsd_guard_options options = {.keytab = key_path,
						  .cell = "test.cell",
						  .require = &require,
						  .require_count = 1,
						  .listen = "127.0.0.1"};
	char why[FSD_MESSAGE_MAX];
	struct fsd_guard *guard;
	rxw_keys *keys;

	shop_make(&shop);
	snprintf(key_path, sizeof(key_path), "%s/keys", shop.folder);
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 3, 18), 0);
	ck_assert_int_eq(rxw_keys_write(keys, key_path, 0, why, sizeof(why)), 0);
	rxw_keys_unref(keys);
	ck_assert_msg(fsd_guard_open(&options, &guard, why) == 0, "%s", why);
	shop.guard = guard;
	snprintf(audit_path, sizeof(audit_path), "/tmp/rxw-vol-audit-%d", (int)getpid());
	shop.audit = fsd_audit_open(audit_path, true, why);
	ck_assert_msg(shop.audit != NULL, "%s", why);
	shop_serve(&shop);
	fsd_service_set_vol_endpoint(shop.service, shop.vol);
}

static void close_guarded_shop(void)
{
	struct fsd_guard *guard = shop.guard;
	struct fsd_audit *audit = shop.audit;

	shop_close(&shop);
	fsd_guard_close(guard);
	fsd_audit_close(audit);
	if (!keep_audit)
		unlink(audit_path);
}

static uint16_t port_of(rxw_endpoint *endpoint)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	ck_assert_int_eq(rxw_endpoint_address(endpoint, &sa, &length), 0);
	return ntohs(((struct sockaddr_in *)&sa)->sin_port);
}

static rxw_connection *call_as_cell(rxw_endpoint *server, uint16_t id, unsigned client,
				    uint8_t level)
{
	rxw_security *security = fsd_guard_as_service(shop.guard, level);
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(port_of(server)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	rxw_connection *connection;

	ck_assert_ptr_nonnull(security);
	ck_assert_int_eq(rxw_connection_create(shop_client(&shop, client)->endpoint,
					       (struct sockaddr *)&sa, sizeof(sa), id, security,
					       &connection),
			 0);
	rxw_security_unref(security);
	return connection;
}

/* The volume service as the cell itself. */
static rxw_connection *act_as_cell(unsigned client, uint8_t level)
{
	return call_as_cell(shop.vol, AFS_SERVICE_VOL, client, level);
}

static int32_t begin_in(rxw_connection *connection, uint32_t volume, int32_t mode)
{
	int32_t tid;

	ck_assert_int_eq(AFSVolTransCreate(connection, volume, 0, mode, &tid), 0);
	return tid;
}

static int32_t create_in(rxw_connection *connection, const char *name, uint32_t id)
{
	int32_t tid;

	ck_assert_int_eq(AFSVolCreateVolume(connection, 0, name, 0, id, &id, &tid), 0);
	return tid;
}

static int32_t end_in(rxw_connection *connection, int32_t tid)
{
	int32_t code = -1, ended;

	code = AFSVolEndTrans(connection, tid, &ended);
	return code ? code : ended;
}

static void fill_data(void)
{
	static uint8_t bytes[300000];
	AFSFid root = shop_root(&shop), fid = shop_file(&shop, &root, "large");

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 1000);
	ck_assert_int_eq(shop_put(shop_client(&shop, 0), &fid, 0, sizeof(bytes), sizeof(bytes),
				  bytes, sizeof(bytes), NULL),
			 0);
	fid = shop_file(&shop, &root, "small");
	ck_assert_int_eq(shop_put(shop_client(&shop, 0), &fid, 0, 6, 6, "small", 6, NULL), 0);
}

/* The dump of a transaction's volume; *bytes is to be freed. The code. */
static int32_t take_dump(rxw_connection *connection, int32_t tid, uint8_t **bytes, size_t *length)
{
	size_t room = 1 << 20;
	rxw_call *call;
	ssize_t n;

	*bytes = malloc(room);
	ck_assert_ptr_nonnull(*bytes);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(StartAFSVolDump(call, tid, 0), 0);
	n = rxw_call_read(call, *bytes, room);
	*length = n > 0 ? (size_t)n : 0;
	return rxw_call_end(call, 0, NULL);
}

static const restoreCookie cookie = {.name = "copy", .parent = 5000};

static int32_t restore_from(rxw_connection *connection, int32_t tid, const void *bytes,
			    size_t length)
{
	rxw_call *call;
	ssize_t n;
	int32_t code;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	code = StartAFSVolRestore(call, tid, 0, &cookie);
	/* It may end before all of it is written. */
	n = code ? 0 : rxw_call_write(call, bytes, length);
	ck_assert(code || n == (ssize_t)length || n == -RXW_ECALL);
	return rxw_call_end(call, code ? code : EndAFSVolRestore(call), NULL);
}

/* -- levels -- */

static const struct {
	const char *name;
	uint8_t level;
} levels[] = {{"vol:clear", RXW_LEVEL_CLEAR},
	      {"vol:auth", RXW_LEVEL_AUTH},
	      {"vol:crypt", RXW_LEVEL_CRYPT}};

/*
 * A volume goes through dump, restore and forward, to this server itself: what is required of callers is required of the server that
 * sends, too. All bytes behind the headers are the same afterwards.
 */
START_TEST(each_level)
{
	const uint8_t mark[] = {3, 0, 0, 0, 1, 0, 0, 0, 1};
	uint8_t *first, *second;
	size_t length, again;
	rxw_connection *admin;
	int32_t tid, to;
	destServer here = {.destHost = INADDR_LOOPBACK, .destSSID = 1};

	for (int i = 0; i < _i; i++) {
		int32_t none;

		open_guarded_shop(levels[_i].name);
		admin = act_as_cell(1, levels[i].level);
		ck_assert_int_ne(AFSVolTransCreate(admin, shop.volume, 0, 2, &none), 0);
		rxw_connection_release(admin);
		close_guarded_shop();
	}
	open_guarded_shop(levels[_i].name);
	fill_data();
	here.destPort = port_of(shop.vol);
	admin = act_as_cell(1, levels[_i].level);
	tid = begin_in(admin, shop.volume, 2);
	ck_assert_int_eq(take_dump(admin, tid, &first, &length), 0);
	ck_assert_uint_gt(length, 300000);
	to = create_in(admin, "copy", 5000);
	ck_assert_int_eq(AFSVolForward(admin, tid, 0, &here, to, &cookie), 0);
	ck_assert_int_eq(end_in(admin, tid), 0);
	ck_assert_int_eq(take_dump(admin, to, &second, &again), 0);
	ck_assert_int_eq(end_in(admin, to), 0);
	for (int i = 0; i < 2; i++) {
		const uint8_t *a = memmem(first, length, mark, sizeof(mark));
		const uint8_t *b = memmem(second, again, mark, sizeof(mark));

		ck_assert(a && b);
		ck_assert_uint_eq((size_t)(first + length - a), (size_t)(second + again - b));
		ck_assert_mem_eq(a, b, (size_t)(first + length - a));
		free(second);
		second = NULL;
		if (i)
			break;
		to = begin_in(admin, 5000, 1);
		ck_assert_int_eq(restore_from(admin, to, first, length), 0);
		ck_assert_int_eq(take_dump(admin, to, &second, &again), 0);
		ck_assert_int_eq(end_in(admin, to), 0);
	}
	free(first);
	rxw_connection_release(admin);
	close_guarded_shop();
}
END_TEST

/* -- calls that never end -- */

#define STALLED 40
#define SHARE	28 /* of a caller, of 56 */

static unsigned count_running(rxw_connection *connection)
{
	transDebugEntries list = {0};
	unsigned running = 0;

	ck_assert_int_eq(AFSVolMonitor(connection, &list), 0);
	for (uint32_t i = 0; i < list.len; i++)
		running += list.val[i].callValid != 0;
	xdrfree_transDebugEntries(&list);
	return running;
}

/*
 * Restores whose clients send nothing hold threads of the server, but not all: other clients have theirs, and so have the short calls
 * of the same one.
 */
START_TEST(stalled_restores)
{
	rxw_connection *admin[STALLED / 4], *other;
	rxw_call *call[STALLED];
	int32_t tid[STALLED], to, code;
	unsigned refused, running;
	uint8_t *bytes;
	size_t length;
	char name[16];

	open_guarded_shop("vol:clear");
	fill_data();
	other = act_as_cell(2, RXW_LEVEL_CLEAR);
	for (unsigned i = 0; i < STALLED; i++) {
		if (i % 4 == 0)
			admin[i / 4] = act_as_cell(1, RXW_LEVEL_CLEAR);
		snprintf(name, sizeof(name), "stalled%u", i);
		tid[i] = create_in(other, name, 6000 + i);
	}
	for (unsigned i = 0; i < STALLED; i++) {
		ck_assert_int_eq(rxw_call_begin(admin[i / 4], NULL, &call[i]), 0);
		ck_assert_int_eq(StartAFSVolRestore(call[i], tid[i], 0, &cookie), 0);
		ck_assert_int_eq(rxw_call_flush(call[i]), 0);
	}
	/* Those that get no thread end at once: this waits until a caller has no more than its share. */
	do {
		running = count_running(other);
		refused = 0;
		for (unsigned i = 0; i < STALLED; i++)
			refused += rxw_call_error(call[i], NULL) == AFS_VOL_VOLBUSY;
	} while (running + refused != STALLED || running > SHARE);
	ck_assert_uint_eq(running, SHARE);
	to = begin_in(other, shop.volume, 2);
	ck_assert_int_eq(take_dump(other, to, &bytes, &length), 0);
	free(bytes);
	ck_assert_int_eq(end_in(other, to), 0);
	for (unsigned i = 0; i < STALLED; i++) {
		rxw_call_abort(call[i], 1);
		rxw_call_end(call[i], 1, NULL);
		do {
			code = end_in(other, tid[i]);
		} while (code == AFS_VOL_VOLBUSY);
		ck_assert_int_eq(code, 0);
	}
	for (unsigned i = 0; i < STALLED / 4; i++)
		rxw_connection_release(admin[i]);
	rxw_connection_release(other);
	close_guarded_shop();
}
END_TEST

/* A server that answers PINGs, but whose volume service reads nothing. */
static rxw_endpoint *open_silent_server(rxw_queue *queue)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .server = true,
					       .address = (void *)&sa,
					       .address_len = sizeof(sa)};
	struct rxw_service_options offered = {
		.size = sizeof(offered), .id = AFS_SERVICE_VOL, .name = "silent", .queue = queue};
	rxw_endpoint *endpoint;
	rxw_service *service;

	offered.security = fsd_guard_classes(shop.guard, FSD_VOL, &offered.security_count);
	ck_assert_int_eq(rxw_endpoint_create(shop.engine, &options, &endpoint), 0);
	ck_assert_int_eq(rxw_service_add(endpoint, &offered, &service), 0);
	return endpoint;
}

/* A move that was interrupted has left its source out of service. It is repeated: the source is cloned, and stays as it is. */
START_TEST(clone_out_of_service)
{
	AFSFetchStatus status;
	AFSCallBack promise;
	rxw_connection *admin;
	uint32_t id = 5001;
	AFSVolSync sync;
	AFSFid root;
	int32_t tid;

	open_guarded_shop("vol:clear");
	root = shop_root(&shop);
	admin = act_as_cell(1, RXW_LEVEL_CLEAR);
	tid = begin_in(admin, shop.volume, 2);
	ck_assert_int_eq(AFSVolSetFlags(admin, tid, 2), 0);
	ck_assert_int_eq(AFSVolClone(admin, tid, 0, 1, "move-clone-temp", &id), 0);
	ck_assert_int_eq(AFSVolReClone(admin, tid, id), 0);
	ck_assert_int_eq(end_in(admin, tid), 0);
	ck_assert_int_eq(
		RXAFS_FetchStatus(shop_client(&shop, 0)->fs, &root, &status, &promise, &sync),
		STORE_VOFFLINE);
	/* One that is temporary has nothing that anybody should keep. */
	tid = create_in(admin, "new", 5010);
	id = 5011;
	ck_assert_int_eq(AFSVolClone(admin, tid, 0, 1, "clone", &id), STORE_VOFFLINE);
	ck_assert_int_eq(end_in(admin, tid), 0);
	rxw_connection_release(admin);
	close_guarded_shop();
}
END_TEST

/* What a dead client has left is ended by any administrator, at once: its restore, and its forward to a server that reads nothing. */
START_TEST(stalled_call_ended)
{
	destServer there = {.destHost = INADDR_LOOPBACK, .destSSID = 1};
	rxw_connection *admin, *other;
	rxw_endpoint *silent;
	rxw_queue *queue;
	rxw_call *call;
	int32_t tid;

	open_guarded_shop("vol:clear");
	fill_data();
	other = act_as_cell(2, RXW_LEVEL_CLEAR);
	admin = act_as_cell(1, RXW_LEVEL_CLEAR);
	tid = create_in(admin, "stalled", 6000);
	ck_assert_int_eq(rxw_call_begin(admin, NULL, &call), 0);
	ck_assert_int_eq(StartAFSVolRestore(call, tid, 0, &cookie), 0);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	while (!count_running(other))
		;
	ck_assert_int_eq(end_in(other, tid), 0);
	ck_assert_int_eq(end_in(other, tid), ENOENT);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), ENOENT);
	ck_assert_int_eq(AFSVolTransCreate(other, 6000, 0, 1, &tid), AFS_VNOVOL);

	ck_assert_int_eq(rxw_queue_create(shop.engine, NULL, &queue), 0);
	silent = open_silent_server(queue);
	there.destPort = port_of(silent);
	tid = begin_in(admin, shop.volume, 2);
	ck_assert_int_eq(rxw_call_begin(admin, NULL, &call), 0);
	ck_assert_int_eq(StartAFSVolForward(call, tid, 0, &there, 1, &cookie), 0);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	while (!count_running(other))
		;
	ck_assert_int_eq(end_in(other, tid), 0);
	ck_assert_int_eq(rxw_call_end(call, EndAFSVolForward(call), NULL), ENOENT);
	ck_assert_uint_eq(count_running(other), 0);
	ck_assert_int_eq(end_in(other, begin_in(other, shop.volume, 1)), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(silent), 0);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	rxw_connection_release(admin);
	rxw_connection_release(other);
	close_guarded_shop();
}
END_TEST

/* A forward whose caller has given up ends, although the other server never answers. */
START_TEST(forward_without_caller)
{
	const struct rxw_call_options hurried = {.size = sizeof(hurried), .deadline_ms = 500};
	destServer there = {.destHost = INADDR_LOOPBACK, .destSSID = 1};
	rxw_connection *admin;
	rxw_endpoint *silent;
	rxw_queue *queue;
	rxw_call *call;
	int32_t tid, code;

	open_guarded_shop("vol:clear");
	fill_data();
	admin = act_as_cell(1, RXW_LEVEL_CLEAR);
	ck_assert_int_eq(rxw_queue_create(shop.engine, NULL, &queue), 0);
	silent = open_silent_server(queue);
	there.destPort = port_of(silent);
	tid = begin_in(admin, shop.volume, 2);
	ck_assert_int_eq(rxw_call_begin(admin, &hurried, &call), 0);
	code = StartAFSVolForward(call, tid, 0, &there, 1, &cookie);
	ck_assert_int_eq(rxw_call_end(call, code ? code : EndAFSVolForward(call), NULL),
			 RXW_CALL_TIMEOUT);
	do {
		code = end_in(admin, tid);
	} while (code == AFS_VOL_VOLBUSY);
	ck_assert_int_eq(code, 0);
	ck_assert_int_eq(rxw_endpoint_destroy(silent), 0);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	rxw_connection_release(admin);
	close_guarded_shop();
}
END_TEST

/* -- the audit log -- */

/* Whether a line of the log has all these texts. */
static bool has_record(const char *path, const char *operation, const char *a, const char *b)
{
	char line[4096];
	bool found = false;
	FILE *f = fopen(path, "r");

	ck_assert_ptr_nonnull(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, operation) && strstr(line, a) && strstr(line, b);
	fclose(f);
	return found;
}

/* Who has done what to which volume, and who was refused. */
START_TEST(recorded)
{
	char path[4300], why[FSD_MESSAGE_MAX];
	rxw_connection *admin, *stranger;
	uint32_t id = 5001;
	int32_t tid;

	open_guarded_shop("none");
	admin = act_as_cell(1, RXW_LEVEL_CRYPT);
	stranger = shop_connect(&shop, 2, AFS_SERVICE_VOL);
	snprintf(path, sizeof(path), "%s", audit_path);
	tid = create_in(admin, "made", 5000);
	ck_assert_int_eq(AFSVolSetIdsTypes(admin, tid, "renamed", 0, 5000, 0, 0), 0);
	ck_assert_int_eq(AFSVolDeleteVolume(admin, tid), 0);
	ck_assert_int_eq(end_in(admin, tid), 0);
	tid = begin_in(admin, shop.volume, 2);
	ck_assert_int_eq(AFSVolClone(admin, tid, 0, 0, "cloned", &id), 0);
	ck_assert_int_eq(end_in(admin, tid), 0);
	ck_assert_int_ne(AFSVolTransCreate(stranger, shop.volume, 0, 1, &tid), 0);
	ck_assert_int_eq(AFSVolNukeVolume(admin, 0, 5001), 0);
	rxw_connection_release(stranger);
	rxw_connection_release(admin);
	snprintf(why, sizeof(why), "\"fid\":\"%u.0.0\"", shop.volume);
	keep_audit = true;
	close_guarded_shop();
	ck_assert(has_record(path, "\"VOL.CreateVolume\"", "\"5000.0.0\"", "\"name\":\"made\""));
	ck_assert(has_record(path, "\"VOL.SetIdsTypes\"", "\"name\":\"made\"",
			     "\"to_name\":\"renamed\""));
	ck_assert(has_record(path, "\"VOL.DeleteVolume\"", "\"5000.0.0\"", "\"code\":0}"));
	ck_assert(has_record(path, "\"VOL.Clone\"", why, "\"to_name\":\"cloned\",\"code\":0}"));
	ck_assert(has_record(path, "\"VOL.TransCreate\"", why, "\"who\":\"afs\""));
	ck_assert(has_record(path, "\"VOL.TransCreate\"", "\"id\":0", "\"code\":1492325127}"));
	ck_assert(has_record(path, "\"VOL.NukeVolume\"", "\"5001.0.0\"", "\"code\":0}"));
	unlink(path);
}
END_TEST

/* -- any calls -- */

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16) % below;
}

#define TIDS 6
static struct any_calls {
	rxw_connection *connection[2]; /* of administrators at two addresses */
	rxw_connection *stranger;
	int32_t tid[TIDS];
	uint8_t *dump;
	size_t length;
	uint8_t request[4096 + 400000];
	size_t at;
	unsigned done, succeeded;
} all;

static void put_word(uint32_t word)
{
	rxw_xdr_store32(all.request + all.at, any(200) ? word : any(UINT32_MAX));
	all.at += 4;
}

static void put_text(const char *text)
{
	size_t length = strlen(text);

	put_word((uint32_t)length);
	memset(all.request + all.at, 0, (length + 3) & ~3u);
	memcpy(all.request + all.at, text, length);
	all.at += (length + 3) & ~(size_t)3;
}

static const char *any_name(void)
{
	static const char *const names[] = {
		"a",	    "b",	  "a.readonly",
		"b.backup", "data",	  "n\n",
		"",	    "x.readonly", "a-name-that-is-longer-than-thirty-one-bytes-are"};

	return names[any(sizeof(names) / sizeof(names[0]))];
}

static uint32_t any_volume(void)
{
	return any(8) ? 7000 + any(6) : any(2) ? shop.volume : 0;
}

static void put_any_tid(void)
{
	put_word((uint32_t)all.tid[any(TIDS)]);
}

static void put_cookie(void)
{
	char name[32] = {0};

	snprintf(name, sizeof(name), "%s", any_name());
	for (int i = 0; i < 32; i++)
		put_word((uint8_t)name[i]);
	put_word(any(3));
	put_word(any_volume());
	put_word(any_volume());
}

/* A dump, with some bytes changed or missing. */
static void put_any_dump(void)
{
	size_t length = any(3) ? all.length : any((uint32_t)all.length);

	memcpy(all.request + all.at, all.dump, length);
	for (uint32_t i = any(3) ? 0 : any(5); i > 0 && length; i--)
		all.request[all.at + any((uint32_t)(any(2)	   ? length
						    : length < 500 ? length
								   : 500))] = (uint8_t)any(256);
	all.at += length;
}

static const uint32_t any_opcode[] = {100, 101,	  102,	 102,	103,   104, 104, 104, 105, 106,
				      106, 107,	  108,	 108,	108,   109, 110, 111, 112, 113,
				      114, 116,	  117,	 118,	120,   121, 122, 123, 125, 126,
				      128, 65536, 65537, 65538, 65547, 1,   99};

static void put_arguments(uint32_t opcode)
{
	switch (opcode) {
	case 100:
		put_word(0), put_text(any_name()), put_word(any(3));
		put_word(any_volume()), put_word(any_volume());
		break;
	case 108:
		put_word(any_volume()), put_word(0), put_word(1u << any(5));
		break;
	case 122:
	case 65536:
	case 121:
	case 125:
		put_word(0), put_word(any_volume());
		break;
	case 116:
		put_word(0), put_word(any(2));
		break;
	case 103:
	case 128:
		put_any_tid(), put_word(0);
		if (opcode == 128)
			put_word(1), put_any_tid();
		put_word(INADDR_LOOPBACK), put_word(port_of(shop.vol)), put_word(1);
		put_any_tid();
		put_cookie();
		break;
	case 105:
		put_any_tid(), put_word(any(3) ? 0 : any_volume()), put_word(any(3));
		put_text(any_name()), put_word(any_volume());
		break;
	case 117:
		put_any_tid(), put_text(any_name()), put_word(any(3));
		put_word(any_volume()), put_word(any_volume()), put_word(any_volume());
		break;
	case 126:
		put_any_tid();
		for (int i = 0; i < 55; i++)
			put_word(any(3) ? UINT32_MAX : any(100000));
		break;
	case 102:
		put_any_tid(), put_word(any(2)), put_cookie();
		put_any_dump();
		break;
	default:
		put_any_tid(), put_word(any(3) ? any(4) : any_volume()), put_word(any(2));
	}
}

/* The number of a transaction is remembered. Some calls are given up on before their end. */
static void make_any_call(void)
{
	uint32_t opcode = any_opcode[any(sizeof(any_opcode) / sizeof(any_opcode[0]))];
	rxw_connection *connection = any(20) ? all.connection[any(2)] : all.stranger;
	uint8_t reply[65536];
	rxw_call *call;
	ssize_t n, got = 0;

	all.at = 0;
	put_word(opcode);
	put_arguments(opcode);
	if (!any(30))
		all.at = any((uint32_t)all.at + 1);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	n = all.at ? rxw_call_write(call, all.request, all.at) : 0;
	ck_assert(n == (ssize_t)all.at || n == -RXW_ECALL);
	if (!any(25)) {
		rxw_call_flush(call);
		rxw_call_abort(call, 1);
	} else if (any(25)) {
		do {
			n = rxw_call_read(call, reply, sizeof(reply));
			got = n > 0 ? n : got;
		} while (n > 0);
	}
	all.done++;
	if (rxw_call_end(call, 0, NULL))
		return;
	all.succeeded++;
	if ((opcode == 100 || opcode == 108) && got >= 4)
		all.tid[any(TIDS)] = (int32_t)rxw_xdr_load32(reply + got - 4);
}

/* Each transaction can be ended once its calls have. */
static void end_all(void)
{
	transDebugEntries list = {0};
	uint32_t left;

	do {
		ck_assert_int_eq(AFSVolMonitor(all.connection[0], &list), 0);
		left = list.len;
		for (uint32_t i = 0; i < list.len; i++)
			end_in(all.connection[0], list.val[i].tid);
		xdrfree_transDebugEntries(&list);
	} while (left);
}

START_TEST(any_calls)
{
	const char *seed = getenv("RXW_TEST_SEED"), *seconds = getenv("RXW_FUZZ_SECONDS");
	time_t until = time(NULL) + (seconds ? atoi(seconds) : 0);
	int32_t tid;

	random_state = (seed ? strtoull(seed, NULL, 0) : 1) * 0x9e3779b97f4a7c15u + 1;
	open_guarded_shop("none");
	fill_data();
	all.connection[0] = act_as_cell(1, RXW_LEVEL_CLEAR);
	all.connection[1] = act_as_cell(2, RXW_LEVEL_CRYPT);
	all.stranger = shop_connect(&shop, 3, AFS_SERVICE_VOL);
	tid = begin_in(all.connection[0], shop.volume, 2);
	ck_assert_int_eq(take_dump(all.connection[0], tid, &all.dump, &all.length), 0);
	ck_assert_uint_lt(all.length, sizeof(all.request) - 4096);
	ck_assert_int_eq(end_in(all.connection[0], tid), 0);
	for (int i = 0; seconds ? time(NULL) < until : i < 1500; i++)
		make_any_call();
	printf("%u calls, %u succeeded\n", all.done, all.succeeded);
	ck_assert_uint_gt(all.succeeded, all.done / 20);
	end_all();
	free(all.dump);
	rxw_connection_release(all.stranger);
	for (int i = 0; i < 2; i++)
		rxw_connection_release(all.connection[i]);
	close_guarded_shop();
}
END_TEST

/* The same for the location service. */
START_TEST(any_locations)
{
	static const struct anycall_form forms[] = {{501, "Nww8i8w8w3iiw"},
						    {502, "iw"},
						    {503, "iw"},
						    {504, "s"},
						    {505, "w"},
						    {506, "iwNww8i8w8w3iiww"},
						    {507, "iwbNwb3iw48ww"},
						    {508, "iwb"},
						    {509, "iww"},
						    {510, "w"},
						    {511, "biwwib"},
						    {512, "biwwib"},
						    {513, ""},
						    {514, ""},
						    {515, "ww"},
						    {516, "ii"},
						    {517, "Nw13i13w13w3iiw9w"},
						    {517, "Nw13i13w13w3ii10w"},
						    {518, "iw"},
						    {519, "s"},
						    {520, "iwNw13i13w13w3iiw9ww"},
						    {521, "w"},
						    {522, "biwwib"},
						    {523, "biwwib"},
						    {524, "sbNwb3iw48ww"},
						    {527, "s"},
						    {532, "11wwl"},
						    {533, "biww11w"},
						    {534, "biwwibsw"},
						    {599, "w"}};
	static const uint32_t ids[] = {0,	   1,		2,	    7000,
				       7001,	   7002,	7003,	    7010,
				       536870912,  536870913,	0x7f000001, 0x0a000001,
				       0x0a000002, 0xffffff00u, 0xffffffffu};
	static const char *const names[] = {
		"data",
		"a",
		"b",
		"c",
		"a.readonly",
		"7000",
		"",
		"a b",
		".*",
		"a[",
		"(a+)+$",
		"a.backup",
		"data.readonly",
		"root.afs",
		"a-name-that-is-longer-than-sixty-four-bytes-which-no-volume-has-in-afs"};
	static struct anycall locations = {.forms = forms,
					   .form_count = sizeof(forms) / sizeof(forms[0]),
					   .ids = ids,
					   .id_count = sizeof(ids) / sizeof(ids[0]),
					   .names = names,
					   .name_count = sizeof(names) / sizeof(names[0])};

	open_guarded_shop("none");
	for (unsigned i = 0; i < 3; i++)
		locations.connection[i] =
			call_as_cell(shop.vl, AFS_SERVICE_VL, 1 + i % 2, RXW_LEVEL_CLEAR);
	locations.connection[3] = shop_connect(&shop, 3, AFS_SERVICE_VL);
	anycall_run(&locations, 1500);
	for (unsigned i = 0; i < 4; i++)
		rxw_connection_release(locations.connection[i]);
	close_guarded_shop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vol_admin");
	TCase *tcase = tcase_create("vol_admin");
	const char *seconds = getenv("RXW_FUZZ_SECONDS");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240 + (seconds ? atoi(seconds) : 0));
	tcase_add_loop_test(tcase, each_level, 0, sizeof(levels) / sizeof(levels[0]));
	tcase_add_test(tcase, stalled_restores);
	tcase_add_test(tcase, clone_out_of_service);
	tcase_add_test(tcase, stalled_call_ended);
	tcase_add_test(tcase, forward_without_caller);
	tcase_add_test(tcase, recorded);
	tcase_add_test(tcase, any_calls);
	tcase_add_test(tcase, any_locations);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
