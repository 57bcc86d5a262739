/* SPDX-License-Identifier: BSD-2-Clause */
/* The complete server with a store, keys and users: identities, administrators, the audit log. */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>
#include <rxwire/error.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "fileserver/server.h"
#include "protection/protection.h"
#include "tests/main.h"
#include "volume/store/store.h"

#define UAE(e) rxw_code_from_errno(e)

static char *folder;
static char store_path[4200], audit_path[4200], key_path[4200];
static char message[FSD_MESSAGE_MAX];
static struct fsd_server *server;
static rxw_keys *keys;
static rxw_engine *engine;
static rxw_endpoint *endpoint;
static rxw_connection *open_connections[8];
static unsigned open_count;
static uint32_t volume;
static int32_t alice_id;

/* A store with one volume, whose root has this ACL. */
static void make_store(const struct store_acl *acl)
{
	const struct store_options options = {.path = store_path};
	const struct store_new_volume new = {.name = "data", .owner = 900, .acl = acl};
	char why[STORE_MESSAGE_MAX];
	struct store *store;

	folder = test_folder();
	snprintf(store_path, sizeof(store_path), "%s/store", folder);
	snprintf(audit_path, sizeof(audit_path), "%s/audit", folder);
	snprintf(key_path, sizeof(key_path), "%s/keys", folder);
	ck_assert_msg(store_make(&options, why) == 0, "%s", why);
	ck_assert_msg(store_open(&options, &store, why) == 0, "%s", why);
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	store->ops->close(store);
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 3, 18), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, 4, 18), 0);
	ck_assert_int_eq(rxw_keys_write(keys, key_path, 0, why, sizeof(why)), 0);
}

static void make_users(void)
{
	const struct prot_options options = {.path = folder, .create = true};
	char why[PROT_MESSAGE_MAX];
	struct prot *prot;
	int32_t root_id, group;

	ck_assert_msg(prot_open(&options, &prot, why) == 0, "%s", why);
	ck_assert_int_eq(prot_add_user(prot, "alice", 0, &alice_id, why), 0);
	ck_assert_int_eq(prot_add_user(prot, "boss", 0, &root_id, why), 0);
	ck_assert_int_eq(prot_add_group(prot, "alice:friends", 0, alice_id, &group, why), 0);
	ck_assert_int_eq(prot_add_member(prot, PROT_ADMINISTRATORS, root_id, why), 0);
	prot_close(prot);
}

static const char *const require_none = "none";
static bool audit_reads;

static int start(const char *listen, bool anonymous_writes)
{
	const struct fsd_settings settings = {
		.store = store_path,
		.anonymous_writes = anonymous_writes,
		.audit_log = audit_path,
		.audit = "strict",
		.audit_reads = audit_reads,
		.protection = folder,
		.cell = "test.example",
		.listen = listen,
		.readers = 2,
		.read_ahead = 8 << 20,
		.promises = 1000,
		.drain_ms = 60000,
		.guard = {.keytab = key_path, .require = &require_none, .require_count = 1},
	};
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	return fsd_server_start(&settings, &config, &server, message);
}

static void open_client(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};

	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &endpoint), 0);
}

static void close_client(void)
{
	while (open_count)
		rxw_connection_release(open_connections[--open_count]);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}

static void clean(void)
{
	rxw_keys_unref(keys);
	tree_remove(folder);
}

/* A connection of a user; takes the reference of the class, which may be NULL. */
static rxw_connection *connect_with(rxw_security *security)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons(fsd_server_fs_port(server)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(endpoint, (struct sockaddr *)&sa, sizeof(sa),
					       AFS_SERVICE_FS, security, &connection),
			 0);
	if (security)
		rxw_security_unref(security);
	open_connections[open_count++] = connection;
	return connection;
}

/* A connection with an rxkad ticket for the user; an anonymous one if that is NULL. */
static rxw_connection *as(const char *name)
{
	return connect_with(name ? token_for_rxkad(keys, name, RXW_LEVEL_CRYPT) : NULL);
}

/* The same with a token for rxgk. */
static rxw_connection *as_by_rxgk(const char *name)
{
	return connect_with(token_for_rxgk(keys, name));
}

static int32_t set_acl(rxw_connection *connection, const AFSFid *dir, const char *text)
{
	AFSOpaque acl = {(uint32_t)strlen(text) + 1, (char *)(uintptr_t)text};
	AFSFetchStatus st;
	AFSVolSync sync;

	return RXAFS_StoreACL(connection, dir, &acl, &st, &sync);
}

static int32_t create(rxw_connection *connection, const char *name, AFSFetchStatus *st)
{
	const AFSFid root = {volume, 1, 1};
	const AFSStoreStatus nothing = {0};
	AFSFetchStatus dir_st;
	AFSCallBack cb;
	AFSVolSync sync;
	AFSFid fid;

	return RXAFS_CreateFile(connection, &root, name, &nothing, &fid, st, &dir_st, &cb, &sync);
}

/* The number of lines of the audit log that have all of these texts. */
static unsigned audited(const char *first, const char *second, const char *third)
{
	FILE *file = fopen(audit_path, "r");
	unsigned found = 0;
	char line[8192];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		found += strstr(line, first) && strstr(line, second) && strstr(line, third);
	fclose(file);
	return found;
}

START_TEST(users_and_administrators)
{
	const AFSFid root = {0};
	AFSFid dir;
	rxw_connection *nobody, *alice, *boss, *stranger;
	AFSStoreVolumeStatus quota = {.Mask = 3, .MinQuota = 7, .MaxQuota = 5000};
	AFSFetchVolumeStatus vs;
	char *name, *offline, *motd;
	AFSFetchStatus st;
	AFSOpaque acl = {0};
	AFSVolSync sync;
	int32_t spare;

	make_store(NULL);
	make_users();
	ck_assert_msg(start("127.0.0.1", false) == 0, "%s", message);
	open_client();
	nobody = as(NULL);
	alice = as("alice@TEST.EXAMPLE");
	boss = as("boss@TEST.EXAMPLE");
	stranger = as("mallory@TEST.EXAMPLE");
	dir = (AFSFid){volume, 1, 1};
	(void)root;
	/* at first the volume belongs to administrators only */
	ck_assert_int_eq(create(nobody, "x", &st), EACCES);
	ck_assert_int_eq(create(alice, "x", &st), EACCES);
	ck_assert_int_eq(set_acl(alice, &dir, "1\n0\nalice\t127\n"), EACCES);
	ck_assert_int_eq(set_acl(boss, &dir, "1\n0\nsomebody\t127\n"), EINVAL);
	ck_assert_int_eq(
		set_acl(boss, &dir, "3\n0\nalice\t15\nalice:friends\t9\nsystem:authuser\t8\n"), 0);
	ck_assert_int_eq(RXAFS_FetchACL(alice, &dir, &acl, &st, &sync), 0);
	ck_assert_str_eq(acl.val, "3\n0\nalice:friends\t9\nsystem:authuser\t8\nalice\t15\n");
	xdrfree_AFSOpaque(&acl);
	ck_assert_uint_eq(st.CallerAccess, 15);
	ck_assert_uint_eq(st.AnonymousAccess, 0);
	ck_assert_int_eq(create(as_by_rxgk("alice@TEST.EXAMPLE"), "hers too", &st), 0);
	ck_assert_uint_eq(st.Owner, (uint32_t)alice_id);
	ck_assert_int_eq(create(as_by_rxgk("mallory@TEST.EXAMPLE"), "x", &st), EACCES);
	ck_assert_int_eq(create(alice, "hers", &st), 0);
	ck_assert_int_eq((int32_t)st.Owner, alice_id);
	ck_assert_int_eq((int32_t)st.Author, alice_id);
	ck_assert_int_eq(create(nobody, "x", &st), EACCES);
	/* a user that the database does not know is anonymous */
	ck_assert_int_eq(create(stranger, "x", &st), EACCES);
	ck_assert_int_eq(RXAFS_FetchACL(stranger, &dir, &acl, &st, &sync), EACCES);

	ck_assert_int_eq(RXAFS_SetVolumeStatus(alice, (int32_t)volume, &quota, "", "", ""), EACCES);
	ck_assert_int_eq(RXAFS_SetVolumeStatus(boss, (int32_t)volume, &quota, "", "", ""), 0);
	quota.MaxQuota = -1;
	ck_assert_int_eq(RXAFS_SetVolumeStatus(boss, (int32_t)volume, &quota, "", "", ""), EINVAL);
	ck_assert_int_eq(
		RXAFS_GetVolumeStatus(nobody, (int32_t)volume, &vs, &name, &offline, &motd), 0);
	ck_assert_int_eq(vs.MaxQuota, 5000);
	ck_assert_int_eq(vs.MinQuota, 7);
	free(name), free(offline), free(motd);
	ck_assert_int_eq(RXAFS_FlushCPS(boss, &(ViceIds){0}, &(IPAddrs){0}, 0, &spare, &spare), 0);
	ck_assert_int_eq(RXAFS_FlushCPS(alice, &(ViceIds){0}, &(IPAddrs){0}, 0, &spare, &spare),
			 EPERM);
	close_client();
	ck_assert_int_eq(fsd_server_stop(server), 0);
	ck_assert(audited("\"who\":\"alice@TEST.EXAMPLE\"", "CreateFile", "\"name\":\"hers\""));
	ck_assert(audited("\"operation\":\"CreateFile\"", "\"name\":\"x\"", "\"code\":13"));
	ck_assert(audited("\"who\":\"boss@TEST.EXAMPLE\"", "StoreACL", "\"code\":0"));
	ck_assert(audited("FetchACL", "mallory", "\"code\":13"));
	ck_assert(!audited("GetVolumeStatus", "", ""));
	clean();
}
END_TEST

static void expect_bulk(rxw_connection *connection, const AFSFid *dir)
{
	AFSFid fids[3] = {*dir, *dir, {volume, 77, 1}};
	const AFSCBFids bulk = {3, fids};
	AFSBulkStats sts = {0};
	AFSCBs cbs = {0};
	AFSVolSync sync;

	ck_assert_int_eq(RXAFS_InlineBulkStatus(connection, &bulk, &sts, &cbs, &sync), 0);
	xdrfree_AFSBulkStats(&sts);
	xdrfree_AFSCBs(&cbs);
}

/* All of a directory. */
static void expect_fetch(rxw_connection *connection, const AFSFid *dir)
{
	uint8_t length[8], room[4096];
	AFSFetchStatus status;
	AFSCallBack cb;
	AFSVolSync sync;
	rxw_call *call;
	size_t n;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(call, dir, 0, sizeof(room)), 0);
	ck_assert_int_eq(rxw_call_read(call, length, 8), 8);
	n = (size_t)rxw_xdr_load64(length);
	ck_assert_uint_le(n, sizeof(room));
	ck_assert_int_eq(rxw_call_read(call, room, n), (ssize_t)n);
	ck_assert_int_eq(EndRXAFS_FetchData64(call, &status, &cb, &sync), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}

/* Of calls that read, the log has each object, with the result. */
START_TEST(reads_in_the_audit_log)
{
	rxw_connection *boss, *nobody;
	AFSFetchStatus st;
	AFSCallBack cb;
	AFSVolSync sync;
	uint32_t now, us;
	AFSFid dir;

	make_store(NULL);
	make_users();
	audit_reads = true;
	ck_assert_msg(start("127.0.0.1", false) == 0, "%s", message);
	audit_reads = false;
	open_client();
	boss = as("boss@TEST.EXAMPLE");
	nobody = as(NULL);
	dir = (AFSFid){volume, 1, 1};
	ck_assert_int_eq(set_acl(boss, &dir, "1\n0\nsystem:authuser\t9\n"), 0);
	ck_assert_int_eq(RXAFS_FetchStatus(boss, &dir, &st, &cb, &sync), 0);
	ck_assert_int_eq(RXAFS_FetchStatus(nobody, &dir, &st, &cb, &sync), 0);
	expect_bulk(boss, &dir);
	expect_fetch(boss, &dir);
	ck_assert_int_eq(RXAFS_GetTime(boss, &now, &us), 0);
	close_client();
	ck_assert_int_eq(fsd_server_stop(server), 0);
	ck_assert_uint_eq(audited("\"FetchStatus\"", "\"boss@", "\"code\":0"), 1);
	ck_assert_uint_eq(audited("\"FetchStatus\"", "\"536870912.1.1\"", "\"code\":0"), 2);
	ck_assert_uint_eq(audited("\"InlineBulkStatus\"", "\"536870912.1.1\"", "\"code\":0"), 2);
	ck_assert_uint_eq(audited("\"InlineBulkStatus\"", "\"536870912.77.1\"", "\"code\":102"), 1);
	ck_assert_uint_eq(audited("\"InlineBulkStatus\"", "", ""), 3);
	ck_assert_uint_eq(audited("\"FetchData64\"", "\"536870912.1.1\"", "\"code\":0"), 1);
	ck_assert(!audited("GetTime", "", ""));
	clean();
}
END_TEST

/* The identity of the server, its volumes and files survive a restart. */
START_TEST(restart)
{
	struct store_acl acl = {.positive = 1, .entry = {{STORE_ANYUSER, STORE_ALL}}};
	AFSFetchStatus st;
	char path[4400], uuid[2][64] = {"", ""};

	make_store(&acl);
	snprintf(path, sizeof(path), "%s/server/uuid", store_path);
	for (int i = 0; i < 2; i++) {
		FILE *file;

		ck_assert_msg(start("127.0.0.1", false) == 0, "%s", message);
		ck_assert_uint_eq(fsd_server_volume_id(server), volume);
		open_client();
		ck_assert_int_eq(create(as(NULL), "x", &st), i ? EEXIST : 0);
		close_client();
		ck_assert_int_eq(fsd_server_stop(server), 0);
		file = fopen(path, "r");
		ck_assert_ptr_nonnull(file);
		ck_assert_ptr_nonnull(fgets(uuid[i], sizeof(uuid[i]), file));
		fclose(file);
	}
	ck_assert_str_eq(uuid[0], uuid[1]);
	clean();
}
END_TEST

START_TEST(anonymous_writes_beyond_loopback)
{
	struct store_acl acl = {.positive = 1, .entry = {{STORE_ANYUSER, STORE_ALL}}};
	const AFSFid root = {0};
	AFSFid dir;

	make_store(&acl);
	make_users();
	ck_assert_int_ne(start("0.0.0.0", false), 0);
	ck_assert_ptr_nonnull(strstr(message, "data"));
	ck_assert_ptr_nonnull(strstr(message, "--allow-anonymous-writes"));
	ck_assert_msg(start("0.0.0.0", true) == 0, "%s", message);
	open_client();
	dir = (AFSFid){volume, 1, 1};
	(void)root;
	ck_assert_int_eq(set_acl(as(NULL), &dir, "1\n0\nsystem:anyuser\t127\n"), 0);
	ck_assert_int_eq(set_acl(as(NULL), &dir, "1\n0\nsystem:anyuser\t9\n"), 0);
	close_client();
	ck_assert_int_eq(fsd_server_stop(server), 0);
	ck_assert_msg(start("0.0.0.0", false) == 0, "%s", message);
	open_client();
	ck_assert_int_eq(set_acl(as("boss@TEST.EXAMPLE"), &dir, "1\n0\nsystem:anyuser\t127\n"),
			 EACCES);
	ck_assert_int_eq(set_acl(as("boss@TEST.EXAMPLE"), &dir, "1\n0\nsystem:authuser\t127\n"), 0);
	close_client();
	ck_assert_int_eq(fsd_server_stop(server), 0);
	clean();
}
END_TEST

/* Another endpoint, at an address of its own. */
static rxw_endpoint *open_at(uint32_t address)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};
	rxw_endpoint *made;

	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &made), 0);
	return made;
}

static rxw_connection *as_from(rxw_endpoint *from, const char *name)
{
	rxw_endpoint *usual = endpoint;
	rxw_connection *connection;

	endpoint = from;
	connection = as(name);
	endpoint = usual;
	return connection;
}

static uint32_t rights_of(rxw_connection *connection, uint32_t *anonymous)
{
	AFSFid root = {volume, 1, 1};
	AFSFetchStatus st;
	AFSCallBack cb;
	AFSVolSync sync;

	ck_assert_int_eq(RXAFS_FetchStatus(connection, &root, &st, &cb, &sync), 0);
	*anonymous = st.AnonymousAccess;
	return st.CallerAccess;
}

/* Groups of machines: the address that calls decides, a change counts, and no ACL names a machine. */
START_TEST(machines)
{
	struct prot_options options = {0};
	char why[PROT_MESSAGE_MAX];
	rxw_connection *near, *far, *alice_near, *boss;
	uint32_t anonymous;
	rxw_endpoint *second;
	int32_t one, net, lab;
	struct prot *prot;
	AFSFetchStatus st;
	AFSFid dir;

	make_store(NULL);
	make_users();
	options.path = folder;
	ck_assert_msg(prot_open(&options, &prot, why) == 0, "%s", why);
	ck_assert_int_eq(prot_add_user(prot, "127.0.0.2", 0, &one, why), 0);
	ck_assert_int_eq(prot_add_user(prot, "127.0.0.0", 0, &net, why), 0);
	ck_assert_int_eq(prot_add_group(prot, "lab", 0, 0, &lab, why), 0);
	ck_assert_msg(start("0.0.0.0", false) == 0, "%s", message);
	open_client();
	second = open_at(INADDR_LOOPBACK + 1);
	dir = (AFSFid){volume, 1, 1};
	far = as(NULL);
	near = as_from(second, NULL);
	alice_near = as_from(second, "alice@TEST.EXAMPLE");
	boss = as("boss@TEST.EXAMPLE");
	/* rxfsd takes such an ACL: a group is not everyone. A machine in it has no effect. */
	ck_assert_int_eq(set_acl(boss, &dir, "2\n1\nlab\t7\n127.0.0.2\t127\nalice\t4\n"), 0);
	ck_assert_uint_eq(rights_of(near, &anonymous), 0);
	ck_assert_int_eq(create(near, "x", &st), EACCES);
	ck_assert_int_eq(prot_add_member(prot, lab, one, why), 0);
	for (unsigned i = 0; rights_of(near, &anonymous) == 0; i++) {
		ck_assert_uint_lt(i, 2000);
		usleep(10000);
	}
	ck_assert_uint_eq(rights_of(near, &anonymous), 7);
	ck_assert_uint_eq(anonymous, 7);
	ck_assert_uint_eq(rights_of(far, &anonymous), 0);
	ck_assert_uint_eq(anonymous, 0);
	ck_assert_int_eq(create(near, "near", &st), 0);
	ck_assert_int_eq((int32_t)st.Owner, PROT_ANONYMOUS);
	ck_assert_int_eq(create(far, "far", &st), EACCES);
	/* The machine's rights are not taken away by an entry against the user. */
	ck_assert_uint_eq(rights_of(alice_near, &anonymous), 7);
	ck_assert_int_eq(create(alice_near, "alice", &st), 0);
	ck_assert_int_eq((int32_t)st.Owner, alice_id);
	/* A network, in place of the machine. */
	ck_assert_int_eq(prot_add_member(prot, lab, net, why), 0);
	ck_assert_int_eq(prot_remove_member(prot, lab, one, why), 0);
	for (unsigned i = 0; rights_of(far, &anonymous) == 0; i++) {
		ck_assert_uint_lt(i, 2000);
		usleep(10000);
	}
	ck_assert_int_eq(create(far, "far", &st), 0);
	ck_assert_uint_eq(rights_of(near, &anonymous), 7);
	ck_assert_int_eq(prot_remove(prot, lab, why), 0);
	for (unsigned i = 0; rights_of(far, &anonymous) != 0; i++) {
		ck_assert_uint_lt(i, 2000);
		usleep(10000);
	}
	ck_assert_int_eq(create(near, "y", &st), EACCES);
	while (open_count)
		rxw_connection_release(open_connections[--open_count]);
	ck_assert_int_eq(rxw_endpoint_destroy(second), 0);
	close_client();
	ck_assert_int_eq(fsd_server_stop(server), 0);
	prot_close(prot);
	clean();
}
END_TEST

/* Give somebody with this number a right in the root directory. */
static void give_right(int32_t id)
{
	static const int32_t ids[] = {STORE_ADMINISTRATORS};
	const struct store_caller caller = {.ids = ids, .id_count = 1, .administrator = true};
	const struct store_options options = {.path = store_path};
	const struct store_acl acl = {
		.positive = 2,
		.entry = {{STORE_ADMINISTRATORS, STORE_ALL}, {id, STORE_LOOKUP}},
	};
	const struct store_fid root = {volume, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
	struct store_changes changes = {0};
	struct store_status status;
	char why[STORE_MESSAGE_MAX];
	struct store *store;

	ck_assert_msg(store_open(&options, &store, why) == 0, "%s", why);
	ck_assert_int_eq(store->ops->set_acl(store, &caller, &root, &acl, &status, &changes), 0);
	store->ops->close(store);
}

/* The database of users is lost, with all files beside it: the ids that ACLs and owners may have are not given out again. */
START_TEST(lost_users)
{
	struct prot_options options = {.create = true};
	char why[PROT_MESSAGE_MAX], *command;
	int32_t user = 0, group = 0;
	struct prot *prot;

	make_store(NULL);
	make_users();
	ck_assert_msg(start("127.0.0.1", false) == 0, "%s", message);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	options.path = folder;
	ck_assert_int_gt(asprintf(&command, "rm '%s'/protection.db*", folder), 0);
	for (int lost = 0; lost < 2; lost++) {
		ck_assert_int_eq(system(command), 0);
		ck_assert_msg(start("127.0.0.1", false) == 0, "%s", message);
		ck_assert_msg(prot_open(&options, &prot, why) == 0, "%s", why);
		ck_assert_msg(prot_add_user(prot, "mallory", 0, &user, why) == 0, "%s", why);
		ck_assert_int_eq(prot_add_group(prot, "friends", 0, 0, &group, why), 0);
		prot_close(prot);
		/* The owner of the volume has the highest one. */
		ck_assert_int_eq(user, 901 + lost);
		ck_assert_int_eq(group, -207 - lost);
		/* It is told when the server stops. */
		ck_assert_int_eq(fsd_server_stop(server), 0);
	}
	/* A user who may change the list of one volume cannot use up the ids of all. */
	give_right(20000);
	ck_assert_msg(start("127.0.0.1", false) == 0, "%s", message);
	ck_assert_msg(prot_open(&options, &prot, why) == 0, "%s", why);
	ck_assert_msg(prot_add_user(prot, "trudy", 0, &user, why) == 0, "%s", why);
	prot_close(prot);
	ck_assert_int_eq(user, 903);
	ck_assert_int_eq(fsd_server_stop(server), 0);
	free(command);
	clean();
}
END_TEST

START_TEST(wrong_settings)
{
	struct fsd_settings settings = {.listen = "127.0.0.1", .store = "/nonexistent/store"};
	const char *rule = "anonymous *";

	ck_assert_int_eq(fsd_server_check(&settings, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "rxvol"));
	settings.state = "/tmp";
	ck_assert_int_eq(fsd_server_check(&settings, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "--state"));
	settings.state = NULL;
	settings.store = "/";
	settings.durability = "perhaps";
	ck_assert_int_eq(fsd_server_check(&settings, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "strict or lazy"));
	settings.durability = NULL;
	settings.audit = "maybe";
	ck_assert_int_eq(fsd_server_check(&settings, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "--audit"));
	settings.audit = NULL;
	settings.audit_reads = true;
	ck_assert_int_eq(fsd_server_check(&settings, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "--audit-log FILE"));
	settings.audit_reads = false;
	settings.guard.allow = &rule;
	settings.guard.allow_count = 1;
	ck_assert_int_eq(fsd_server_check(&settings, message), FSD_WRONG_SETTINGS);
	ck_assert_ptr_nonnull(strstr(message, "ACLs"));
}
END_TEST

TEST_MAIN_WITHIN(60, "store server", users_and_administrators, reads_in_the_audit_log, restart,
		 anonymous_writes_beyond_loopback, machines, lost_users, wrong_settings)
