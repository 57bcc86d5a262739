/* SPDX-License-Identifier: BSD-2-Clause */
/* Security objects and tickets of classic Rx: both sides in one process, without a KDC. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <rx/rx.h>
#include <rx/rxkad.h>

#include "port.h"
#include "tests/main.h"

#define SERVICE	  5001
#define ENCRYPTED 5002 /* a service for encrypted connections only */
#define KVNO	  3
#define AES256	  18
#define END	  0x7fffffff

static unsigned char service_key[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static struct ktc_encryptionKey session = {
	{0x13, 0x34, 0x57, 0x79, (char)0x9b, (char)0xbc, (char)0xdf, (char)0xf1}};

/* What get_key_enctype() was asked. */
static struct {
	atomic_uint times;
	_Atomic(int) kvno, enctype;
	_Atomic(size_t) room;
	_Atomic(int) answer;
} asked;

static int get_key(void *rock, int kvno, struct ktc_encryptionKey *key)
{
	(void)rock;
	(void)kvno;
	(void)key;
	ck_abort_msg("a key of single DES was asked for");
	return 0;
}

static int get_key_enctype(void *rock, int kvno, int enctype, void *key, size_t *length)
{
	ck_assert_ptr_eq(rock, &asked);
	asked.kvno = kvno;
	asked.enctype = enctype;
	asked.room = *length;
	asked.times++;
	memcpy(key, service_key, sizeof(service_key));
	*length = sizeof(service_key);
	return asked.answer;
}

/* The client of the latest call. */
static struct {
	afs_int32 code;
	rxkad_level level;
	afs_uint32 expires;
	char name[MAXKTCNAMELEN], instance[MAXKTCNAMELEN], cell[MAXKTCREALMLEN];
	afs_int32 kvno;
} client;

static afs_int32 procedure(struct rx_call *call)
{
	struct rx_connection *c = rx_ConnectionOf(call);
	char byte = 'x';

	memset(&client, 0x7e, sizeof(client));
	client.code = rxkad_GetServerInfo(c, &client.level, &client.expires, client.name,
					  client.instance, client.cell, &client.kvno);
	ck_assert_int_eq(rxkad_GetServerInfo(c, NULL, NULL, NULL, NULL, NULL, NULL), client.code);
	return rx_Write(call, &byte, 1) == 1 ? 0 : EIO;
}

static struct {
	struct rx_securityClass
		*classes[4]; /* as OpenAFS's servers: null, unused, rxkad, encrypted */
	struct rx_securityClass *encrypted[3];
	struct rx_service *service;
	u_short port;
} bed;

static void open_bed(void)
{
	memset(&asked, 0, sizeof(asked));
	bed.port = port_start();
	bed.classes[0] = rxnull_NewServerSecurityObject();
	bed.classes[2] = rxkad_NewKrb5ServerSecurityObject(rxkad_clear, &asked, get_key,
							   get_key_enctype, NULL);
	bed.classes[3] = rxkad_NewKrb5ServerSecurityObject(rxkad_crypt, &asked, get_key,
							   get_key_enctype, NULL);
	ck_assert(bed.classes[0] && bed.classes[2] && bed.classes[3]);
	bed.encrypted[2] = rxs_Ref(bed.classes[3]);
	bed.service = rx_NewService(0, SERVICE, "test", bed.classes, 4, procedure);
	ck_assert_ptr_nonnull(bed.service);
	ck_assert_ptr_nonnull(
		rx_NewService(0, ENCRYPTED, "encrypted", bed.encrypted, 3, procedure));
	rx_StartServer(0);
}

static void close_bed(void)
{
	rx_Finalize();
	ck_assert_int_eq(rxs_Release(bed.classes[0]), 0);
	ck_assert_int_eq(rxs_Release(bed.classes[2]), 0);
	ck_assert_int_eq(rxs_Release(bed.classes[3]), 0);
	ck_assert_int_eq(rxs_Release(bed.encrypted[2]), 0);
}

/* A client's object with a ticket for this name. */
static struct rx_securityClass *client_as(rxkad_level level, char *name, char *instance, char *cell,
					  afs_uint32 start, afs_uint32 end)
{
	char ticket[MAXKTCTICKETLEN];
	int length = sizeof(ticket), kvno = KVNO;
	struct rx_securityClass *object;

	ck_assert_int_eq(tkt_MakeTicket5(ticket, &length, AES256, &kvno, service_key,
					 sizeof(service_key), name, instance, cell, start, end,
					 &session, "afs", ""),
			 0);
	ck_assert_int_eq(kvno, RXKAD_TKT_TYPE_KERBEROS_V5_ENCPART_ONLY);
	ck_assert_int_gt(length, MINKTCTICKETLEN);
	ck_assert_int_lt(length, 1000);
	object = rxkad_NewClientSecurityObject(level, &session, kvno, length, ticket);
	ck_assert_ptr_nonnull(object);
	return object;
}

/* The code of a call with an object, whose reference goes at once, as programs do it. */
static afs_int32 call(u_short service, struct rx_securityClass *object, int index)
{
	struct rx_connection *c =
		rx_NewConnection(htonl(INADDR_LOOPBACK), bed.port, service, object, index);
	struct rx_call *one = rx_NewCall(c);
	afs_int32 code;
	char byte = 0;

	rxs_Release(object);
	client.code = -99;
	rx_Read(one, &byte, 1);
	code = rx_EndCall(one, 0);
	ck_assert_int_eq(byte, code ? 0 : 'x');
	/* what only a server knows */
	ck_assert_int_eq(rxkad_GetServerInfo(c, NULL, NULL, NULL, NULL, NULL, NULL), RXKADNOAUTH);
	rx_DestroyConnection(c);
	return code;
}

static afs_int32 call_as(rxkad_level level, char *name, char *instance, char *cell)
{
	return call(SERVICE, client_as(level, name, instance, cell, 0, END), RX_SECIDX_KAD);
}

/* -- Clients and servers -------------------------------------------------------------------------- */

START_TEST(clients)
{
	afs_uint32 now = (afs_uint32)time(NULL);

	open_bed();
	/* the service itself */
	for (rxkad_level level = rxkad_clear; level <= rxkad_crypt; level++) {
		ck_assert_int_eq(call_as(level, "afs", "", ""), 0);
		ck_assert_int_eq(client.code, 0);
		ck_assert_int_eq(client.level, level);
		ck_assert_str_eq(client.name, "afs");
		ck_assert_str_eq(client.instance, "");
		ck_assert_str_eq(client.cell, "");
		ck_assert_int_eq(client.kvno, RXKAD_TKT_TYPE_KERBEROS_V5_ENCPART_ONLY);
		ck_assert_uint_eq(client.expires, END);
	}
	/* a user, for an hour */
	ck_assert_int_eq(
		call(SERVICE,
		     client_as(rxkad_crypt, "carol", "admin", "CELL.EXAMPLE", now, now + 3600),
		     RX_SECIDX_KAD),
		0);
	ck_assert_str_eq(client.name, "carol");
	ck_assert_str_eq(client.instance, "admin");
	ck_assert_str_eq(client.cell, "CELL.EXAMPLE");
	ck_assert_uint_eq(client.expires, now + 3600);
	/* the keys were asked for at each of them */
	ck_assert_uint_eq(asked.times, 4);
	ck_assert_int_eq(asked.kvno, KVNO);
	ck_assert_int_eq(asked.enctype, AES256);
	ck_assert_uint_ge(asked.room, sizeof(service_key));
	close_bed();
}
END_TEST

START_TEST(anonymous_clients)
{
	open_bed();
	ck_assert_int_eq(call(SERVICE, rxnull_NewClientSecurityObject(), RX_SECIDX_NULL), 0);
	ck_assert_int_eq(client.code, RXKADNOAUTH);
	ck_assert_uint_eq(asked.times, 0);
	close_bed();
}
END_TEST

/* Programs that do not release it leak nothing, and too many releases do no harm. */
START_TEST(one_null_class)
{
	struct rx_securityClass *object = rxnull_NewClientSecurityObject();

	ck_assert_ptr_eq(rxnull_NewClientSecurityObject(), object);
	ck_assert_ptr_eq(rxnull_NewServerSecurityObject(), object);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(rxs_Release(object), 0);
	open_bed();
	ck_assert_int_eq(call(SERVICE, object, RX_SECIDX_NULL), 0);
	close_bed();
}
END_TEST

START_TEST(refused_clients)
{
	afs_uint32 now = (afs_uint32)time(NULL);

	open_bed();
	ck_assert_int_eq(
		call(ENCRYPTED, client_as(rxkad_auth, "afs", "", "", 0, END), RX_SECIDX_KAD),
		RXKADLEVELFAIL);
	ck_assert_int_eq(
		call(ENCRYPTED, client_as(rxkad_crypt, "afs", "", "", 0, END), RX_SECIDX_KAD), 0);
	ck_assert_int_eq(call(SERVICE,
			      client_as(rxkad_crypt, "afs", "", "", now - 20000, now - 10000),
			      RX_SECIDX_KAD),
			 RXKADEXPIRED);
	asked.answer = 1;
	ck_assert_int_eq(call_as(rxkad_crypt, "afs", "", ""), RXKADUNKNOWNKEY);
	ck_assert_int_eq(client.code, -99);
	close_bed();
}
END_TEST

/* "a.b" could be the instance b of a, unless the program says that it takes care. */
START_TEST(names_with_dots)
{
	open_bed();
	ck_assert_int_ne(call_as(rxkad_crypt, "a.b", "", "CELL"), 0);
	ck_assert_int_eq(rx_SetSecurityConfiguration(bed.service, RXS_CONFIG_FLAGS,
						     (void *)RXS_CONFIG_FLAGS_DISABLE_DOTCHECK),
			 0);
	ck_assert_int_eq(call_as(rxkad_crypt, "a.b", "", "CELL"), 0);
	ck_assert_str_eq(client.name, "a.b");
	ck_assert_str_eq(client.instance, "");
	ck_assert_int_eq(rx_SetSecurityConfiguration(bed.service, RXS_CONFIG_FLAGS, NULL), 0);
	ck_assert_int_ne(call_as(rxkad_crypt, "a.b", "", "CELL"), 0);
	close_bed();
}
END_TEST

static int user_ok(char *name, char *instance, char *cell, afs_int32 kvno)
{
	(void)name;
	(void)instance;
	(void)cell;
	(void)kvno;
	return 0;
}

START_TEST(objects_that_cannot_be)
{
	char ticket[MAXKTCTICKETLEN + 1] = "";

	ck_assert_ptr_null(rxkad_NewClientSecurityObject(rxkad_crypt, &session, 213,
							 MAXKTCTICKETLEN + 1, ticket));
	ck_assert_ptr_null(rxkad_NewClientSecurityObject(rxkad_crypt, &session, 213, -1, ticket));
	ck_assert_ptr_null(rxkad_NewClientSecurityObject(3, &session, 213, 100, ticket));
	ck_assert_ptr_null(rxkad_NewKrb5ServerSecurityObject(3, NULL, get_key, NULL, NULL));
	ck_assert_ptr_null(rxkad_NewKrb5ServerSecurityObject(-1, NULL, get_key, NULL, NULL));
	ck_assert_ptr_null(rxkad_NewKrb5ServerSecurityObject(0, NULL, NULL, NULL, NULL));
	ck_assert_ptr_null(rxkad_NewKrb5ServerSecurityObject(0, NULL, get_key, NULL, user_ok));
	ck_assert_ptr_null(rxkad_NewServerSecurityObject(0, NULL, NULL, NULL));
	ck_assert_int_eq(rxs_Release(rxkad_NewServerSecurityObject(0, NULL, get_key, NULL)), 0);
	ck_assert_int_eq(rxs_Release(NULL), 0);
}
END_TEST

/*
 * How objects that were compiled with OpenAFS's own headers see a security object: they count its
 * references and close it through its table.
 */
struct foreign_class {
	struct {
		int (*close)(struct rx_securityClass *object);
		void (*others[14])(void);
	} * ops;
	void *private_data;
	int count;
};

static void check_table(struct rx_securityClass *object)
{
	struct foreign_class *seen = (struct foreign_class *)object;

	ck_assert_ptr_nonnull(object);
	for (int i = 0; i < 14; i++)
		ck_assert_ptr_null(seen->ops->others[i]);
}

/* The null class is never freed, so its count is not kept. */
static void check_null(struct rx_securityClass *object)
{
	check_table(object);
	ck_assert_int_eq(((struct foreign_class *)object)->ops->close(object), 0);
	ck_assert_ptr_eq(rxnull_NewClientSecurityObject(), object);
}

static void check_foreign(struct rx_securityClass *object)
{
	struct foreign_class *seen = (struct foreign_class *)object;

	check_table(object);
	ck_assert_int_eq(seen->count, 1);
	seen->count++;
	ck_assert_int_eq(seen->ops->close(object), 0);
	ck_assert_int_eq(seen->count, 1);
	ck_assert_ptr_eq(rxs_Ref(object), object);
	ck_assert_int_eq(seen->count, 2);
	ck_assert_int_eq(rxs_Release(object), 0);
	ck_assert_int_eq(seen->ops->close(object), 0);
}

START_TEST(foreign_objects)
{
	check_null(rxnull_NewClientSecurityObject());
	check_null(rxnull_NewServerSecurityObject());
	check_foreign(client_as(rxkad_crypt, "afs", "", "", 0, END));
	check_foreign(rxkad_NewKrb5ServerSecurityObject(rxkad_clear, &asked, get_key,
							get_key_enctype, NULL));
}
END_TEST

START_TEST(levels)
{
	ck_assert_int_eq(rxkad_StringToLevel("clear"), rxkad_clear);
	ck_assert_int_eq(rxkad_StringToLevel("auth"), rxkad_auth);
	ck_assert_int_eq(rxkad_StringToLevel("crypt"), rxkad_crypt);
	ck_assert_int_eq(rxkad_StringToLevel("cryptic"), -1);
	ck_assert_str_eq(rxkad_LevelToString(rxkad_auth), "auth");
	ck_assert_str_eq(rxkad_LevelToString(rxkad_crypt), "crypt");
	ck_assert_str_eq(rxkad_LevelToString(3), "unknown");
	ck_assert_str_eq(rxkad_LevelToString(-1), "unknown");
}
END_TEST

/* -- Tickets -------------------------------------------------------------------------------------- */

static int make(int room, int enctype, size_t key_length, char *name, char *instance, char *cell,
		afs_uint32 start, afs_uint32 end)
{
	char ticket[MAXKTCTICKETLEN];
	int kvno = KVNO;

	return tkt_MakeTicket5(ticket, &room, enctype, &kvno, service_key, key_length, name,
			       instance, cell, start, end, &session, "afs", "");
}

START_TEST(tickets_that_cannot_be)
{
	char longest[MAXKTCNAMELEN + 1] =
		"0123456789012345678901234567890123456789012345678901234567890123";
	char ticket[1000];
	int length = sizeof(ticket);

	ck_assert_int_eq(make(1000, AES256, 32, "u", "", "C", 0, END), 0);
	ck_assert_int_eq(make(100, AES256, 32, "u", "", "C", 0, END), RXKADTICKETLEN);
	ck_assert_int_eq(make(-1, AES256, 32, "u", "", "C", 0, END), RXKADTICKETLEN);
	ck_assert_int_eq(make(1000, 4711, 32, "u", "", "C", 0, END), RXKADBADKEY);
	ck_assert_int_eq(make(1000, AES256, 32, "u", "", "C", 5, 5), RXKADBADTICKET);
	ck_assert_int_eq(make(1000, AES256, 32, "", "", "C", 0, END), RXKADBADTICKET);
	ck_assert_int_eq(make(1000, AES256, 32, "a/b", "", "C", 0, END), RXKADBADTICKET);
	ck_assert_int_eq(make(1000, AES256, 32, "a@b", "", "C", 0, END), RXKADBADTICKET);
	ck_assert_int_eq(make(1000, AES256, 32, longest, "", "C", 0, END), RXKADBADTICKET);
	ck_assert_int_eq(make(1000, AES256, 32, "u", longest, "C", 0, END), RXKADBADTICKET);
	ck_assert_int_eq(make(1000, AES256, 32, "u", "", longest, 0, END), RXKADBADTICKET);
	longest[MAXKTCNAMELEN - 1] = '\0';
	ck_assert_int_eq(make(1000, AES256, 32, longest, longest, longest, 0, END), 0);
	ck_assert_int_eq(tkt_MakeTicket(ticket, &length, &session, "u", "", "C", 0, END, &session,
					0, "afs", ""),
			 RXKADBADKEY);
	ck_assert_int_eq(length, 0);
}
END_TEST

START_TEST(session_keys)
{
	struct ktc_encryptionKey out = {{0}};

	ck_assert_int_eq(tkt_DeriveDesKey(1, &session, 8, &out), 0);
	ck_assert_mem_eq(&out, &session, 8);
	ck_assert_int_eq(tkt_DeriveDesKey(AES256, service_key, 32, &out), 0);
	ck_assert_mem_ne(&out, &session, 8);
	ck_assert_int_ne(tkt_DeriveDesKey(1, service_key, 7, &out), 0);
}
END_TEST

START_TEST(times)
{
	const afs_uint32 now = 1700000000, hour = 3600, day = 24 * 3600;

	ck_assert_int_eq(tkt_CheckTimes(now - 10, now + hour, now), 2);
	ck_assert_int_eq(tkt_CheckTimes(now - 10, NEVERDATE, now), 1);
	ck_assert_int_eq(tkt_CheckTimes(0, now + 300 * day, now), 1);
	ck_assert_int_eq(tkt_CheckTimes(now + 600, now + hour, now), 2);
	ck_assert_int_eq(tkt_CheckTimes(now + 1000, now + hour, now), 0);
	ck_assert_int_eq(tkt_CheckTimes(now - hour, now - 600, now), 2);
	ck_assert_int_eq(tkt_CheckTimes(now - hour, now - 1000, now), -1);
	ck_assert_int_eq(tkt_CheckTimes(0, now - 1000, now), -1);
	ck_assert_int_eq(tkt_CheckTimes(now - 40 * day, now - 39 * day, now), -2);
	ck_assert_int_eq(tkt_CheckTimes(now, now, now), -2);
	ck_assert_int_eq(tkt_CheckTimes(now, now + 31 * day, now), -2);
	ck_assert_int_eq(tkt_CheckTimes(now + 31 * day, now + 32 * day, now), -2);
}
END_TEST

START_TEST(lifetimes)
{
	ck_assert_uint_eq(life_to_time(1000, 0), 1000);
	ck_assert_uint_eq(life_to_time(1000, 127), 1000 + 127 * 300);
	ck_assert_uint_eq(life_to_time(0, 128), 38400);
	ck_assert_uint_eq(life_to_time(0, 129), 41055);
	ck_assert_uint_eq(life_to_time(0, 150), 167161);
	ck_assert_uint_eq(life_to_time(0, 190), 2424367);
	ck_assert_uint_eq(life_to_time(0, 191), 2592000);
	ck_assert_uint_eq(life_to_time(0, 200), 2592000);
	ck_assert_uint_eq(life_to_time(5, 255), NEVERDATE);
	ck_assert_uint_eq(time_to_life(5, NEVERDATE), 255);
	ck_assert_uint_eq(time_to_life(5, 5), 0);
	ck_assert_uint_eq(time_to_life(0, 2592001), 0);
	ck_assert_uint_eq(time_to_life(0, 1), 1);
	ck_assert_uint_eq(time_to_life(0, 301), 2);
	/* the least code that is enough */
	for (unsigned life = 1; life <= 191; life++) {
		afs_uint32 end = life_to_time(7, (unsigned char)life);

		ck_assert_uint_eq(time_to_life(7, end), life);
		if (life < 191)
			ck_assert_uint_eq(time_to_life(7, end + 1), life + 1);
	}
}
END_TEST

/* -- Messages ------------------------------------------------------------------------------------- */

struct et_list {
	struct et_list *next;
	const struct {
		const char *const *msgs;
		int base;
		int n_msgs;
	} * table;
};

static struct et_list *added;
static unsigned additions;

/* OpenAFS's com_err, as far as this library sees it. */
void afs_add_to_error_table(struct et_list *list);

void afs_add_to_error_table(struct et_list *list)
{
	added = list;
	additions++;
}

START_TEST(messages)
{
	initialize_RXK_error_table();
	initialize_RXK_error_table();
	ck_assert_uint_eq(additions, 1);
	ck_assert_int_eq(added->table->base, ERROR_TABLE_BASE_RXK);
	ck_assert_int_eq(added->table->n_msgs, RXKADILLEGALLEVEL - ERROR_TABLE_BASE_RXK + 1);
	ck_assert_ptr_nonnull(
		strstr(added->table->msgs[RXKADEXPIRED - ERROR_TABLE_BASE_RXK], "expired"));
	ck_assert_ptr_null(added->table->msgs[added->table->n_msgs]);
}
END_TEST

TEST_MAIN("classic/security", clients, anonymous_clients, one_null_class, refused_clients,
	  names_with_dots, objects_that_cannot_be, foreign_objects, levels, tickets_that_cannot_be,
	  session_keys, times, lifetimes, messages)
