/* SPDX-License-Identifier: BSD-2-Clause */
/* Security objects, each of which wraps a class of the library: the null class and rxkad; tickets, and messages of codes. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rx/rx.h>
#include <rx/rxkad.h>

#include "../classic.h"

/*
 * Objects that were compiled with OpenAFS's own headers close a security object through a table:
 * its first function. They skip the others where they are NULL.
 */
struct classic_security_ops {
	int (*close)(struct rx_securityClass *klass);
	int (*others[14])(void);
};

/*
 * A security object. Programs see a pointer only. The first three members lie where OpenAFS's own
 * headers have them, for objects that were compiled with those. Only `refs` changes.
 */
struct rx_securityClass {
	const struct classic_security_ops *ops;
	void *private_data; /* NULL */
	atomic_int refs;
	/* with a reference, which goes with the last of `refs`; NULL: the null class, which stays */
	rxw_security *security;
	void (*dots)(struct rx_securityClass *klass, bool allow); /* NULL: the class has no names */
};

static const struct classic_security_ops ops = {.close = rxs_Release};

/*
 * There is one null class, which stays: programs often do not release theirs, because classic Rx
 * does not need it.
 */
static struct rx_securityClass null_class = {.ops = &ops};

/*
 * Make an object with one reference for a class of the library, whose reference it takes over.
 * NULL without memory; the reference is dropped.
 */
static struct rx_securityClass *wrap_class(rxw_security *security)
{
	struct rx_securityClass *klass = calloc(1, sizeof(*klass));

	if (!klass) {
		rxw_security_unref(security);
		return NULL;
	}
	klass->ops = &ops;
	klass->security = security;
	atomic_init(&klass->refs, 1);
	return klass;
}

rxw_security *classic_security(struct rx_securityClass *klass)
{
	return klass && klass->security ? klass->security : rxw_security_null();
}

void classic_security_dots(struct rx_securityClass *klass, bool allow)
{
	if (klass->dots)
		klass->dots(klass, allow);
}

struct rx_securityClass *rxs_Ref(struct rx_securityClass *klass)
{
	if (klass != &null_class)
		atomic_fetch_add(&klass->refs, 1);
	return klass;
}

int rxs_Release(struct rx_securityClass *klass)
{
	if (!klass || klass == &null_class || atomic_fetch_sub(&klass->refs, 1) != 1)
		return 0;
	rxw_security_unref(klass->security);
	free(klass);
	return 0;
}

struct rx_securityClass *rxnull_NewServerSecurityObject(void)
{
	return &null_class;
}

struct rx_securityClass *rxnull_NewClientSecurityObject(void)
{
	return &null_class;
}

/* -- rxkad ------------------------------------------------------------------------------------------ */

/* Finds keys for a server's object. It lives as long as the class of the library. */
struct finder {
	void *rock;
	rxkad_get_key_enctype_func get_key_enctype;
};

static int find_service_key(void *context, int32_t kvno, int32_t enctype, void *key, size_t room,
			    size_t *length)
{
	const struct finder *finder = context;

	*length = room;
	if (!finder->get_key_enctype ||
	    finder->get_key_enctype(finder->rock, kvno, enctype, key, length))
		return -RXW_ENOKEY;
	return 0;
}

static void set_dots(struct rx_securityClass *klass, bool allow)
{
	(void)rxw_rxkad_allow_dotted(klass->security, allow);
}

struct rx_securityClass *
rxkad_NewKrb5ServerSecurityObject(rxkad_level level, void *rock,
				  int (*get_key)(void *, int, struct ktc_encryptionKey *),
				  rxkad_get_key_enctype_func get_key_enctype,
				  int (*user_ok)(char *, char *, char *, afs_int32))
{
	struct rxw_rxkad_server_options options = {
		.size = sizeof(options),
		.level_min = (uint8_t)level,
		.find_key = find_service_key,
		.find_destroy = free,
	};
	struct rx_securityClass *klass;
	struct finder *finder = NULL;
	rxw_security *security;
	int result = -RXW_EINVAL;

	if (user_ok) {
		classic_log("rxkad server: user_ok is not supported; pass NULL");
		return NULL;
	}
	if (get_key || get_key_enctype)
		finder = calloc(1, sizeof(*finder));
	if (finder) {
		*finder = (struct finder){rock, get_key_enctype};
		options.find_context = finder;
		result = rxw_rxkad_server(&options, &security);
	}
	if (result) {
		classic_log("rxkad server: %s", rxw_strerror(result));
		free(finder);
		return NULL;
	}
	klass = wrap_class(security);
	if (klass)
		klass->dots = set_dots;
	return klass;
}

struct rx_securityClass *
rxkad_NewServerSecurityObject(rxkad_level level, void *rock,
			      int (*get_key)(void *, int, struct ktc_encryptionKey *),
			      int (*user_ok)(char *, char *, char *, afs_int32))
{
	if (!get_key)
		return NULL;
	classic_ignored("rxkad_NewServerSecurityObject",
			"its keys are of single DES, which is not accepted");
	return rxkad_NewKrb5ServerSecurityObject(level, rock, get_key, NULL, user_ok);
}

struct rx_securityClass *rxkad_NewClientSecurityObject(rxkad_level level,
						       struct ktc_encryptionKey *key,
						       afs_int32 kvno, int length, char *ticket)
{
	struct rxw_rxkad_token token = {
		.size = sizeof(token),
		.kvno = kvno,
		.ticket = ticket,
		.ticket_length = (size_t)length,
		.expires = INT64_MAX,
	};
	rxw_security *security;
	int result;

	if (length < 0)
		return NULL;
	memcpy(token.session_key, key, sizeof(token.session_key));
	result = rxw_rxkad_client(&token, (uint8_t)level, &security);
	explicit_bzero(token.session_key, sizeof(token.session_key));
	return result ? NULL : wrap_class(security);
}

/* -- Levels --------------------------------------------------------------------------------------- */

static char level_names[][6] = {"clear", "auth", "crypt"};
#define LEVELS (rxkad_level)(sizeof(level_names) / sizeof(level_names[0]))

rxkad_level rxkad_StringToLevel(char *name)
{
	for (rxkad_level i = 0; i < LEVELS; i++)
		if (!strcmp(name, level_names[i]))
			return i;
	return -1;
}

char *rxkad_LevelToString(rxkad_level level)
{
	static char unknown[] = "unknown";

	return level >= 0 && level < LEVELS ? level_names[level] : unknown;
}

/* -- Tickets, and their times ----------------------------------------------------------------------- */

static int ticket_code_of(int result)
{
	switch (result) {
	case 0:
		return 0;
	case -RXW_ENOTSUP:
		return RXKADBADKEY;
	case -RXW_ENOMEM:
		return ENOMEM;
	default:
		return RXKADBADTICKET;
	}
}

/*
 * "name/instance@cell" in `to`, or NULL for the service itself. Returns 0, or RXKADBADTICKET: a
 * part is too long or would be taken for two.
 */
static int join_principal(const char *name, const char *instance, const char *cell,
			  char to[MAXKTCNAMELEN * 2 + MAXKTCREALMLEN], const char **joined)
{
	*joined = to;
	if (strlen(name) >= MAXKTCNAMELEN || strlen(instance) >= MAXKTCNAMELEN ||
	    strlen(cell) >= MAXKTCREALMLEN || strpbrk(name, "/@") || strpbrk(instance, "/@") ||
	    strchr(cell, '@'))
		return RXKADBADTICKET;
	if (!strcmp(name, "afs") && !*instance && !*cell)
		*joined = NULL;
	sprintf(to, "%s%s%s%s%s", name, *instance ? "/" : "", instance, *cell ? "@" : "", cell);
	return 0;
}

int tkt_MakeTicket5(char *ticket, int *length, int enctype, int *kvno, void *key, size_t key_length,
		    char *name, char *instance, char *cell, afs_uint32 start, afs_uint32 end,
		    struct ktc_encryptionKey *session, char *server, char *server_instance)
{
	char joined[MAXKTCNAMELEN * 2 + MAXKTCREALMLEN];
	struct rxw_rxkad_print_options options = {
		.size = sizeof(options),
		.key = key,
		.key_length = key_length,
		.kvno = *kvno,
		.enctype = enctype,
		.session_key = session->data,
		.begins = start,
		.expires = end,
	};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	int code = join_principal(name, instance, cell, joined, &options.name);

	(void)server;
	(void)server_instance;
	if (code)
		return code;
	code = ticket_code_of(rxw_rxkad_print_token(NULL, &options, &token));
	if (code)
		goto out;
	if (*length < 0 || token.ticket_length > (size_t)*length) {
		code = RXKADTICKETLEN;
		goto out;
	}
	memcpy(ticket, token.ticket, token.ticket_length);
	*length = (int)token.ticket_length;
	*kvno = token.kvno;
out:
	rxw_rxkad_token_free(&token);
	return code;
}

int tkt_MakeTicket(char *ticket, int *length, struct ktc_encryptionKey *key, char *name,
		   char *instance, char *cell, afs_uint32 start, afs_uint32 end,
		   struct ktc_encryptionKey *session, afs_uint32 host, char *server,
		   char *server_instance)
{
	(void)ticket;
	(void)key;
	(void)name;
	(void)instance;
	(void)cell;
	(void)start;
	(void)end;
	(void)session;
	(void)host;
	(void)server;
	(void)server_instance;
	*length = 0;
	classic_ignored("tkt_MakeTicket", "tickets of single DES are not made");
	return RXKADBADKEY;
}

int tkt_DeriveDesKey(int enctype, void *key, size_t length, struct ktc_encryptionKey *session)
{
	return rxw_rxkad_session_key(enctype, key, length, (uint8_t *)session->data) != 0;
}

int tkt_CheckTimes(afs_uint32 start, afs_uint32 end, afs_uint32 now)
{
	afs_int64 age = (afs_int64)now - start;
	bool ends = end != NEVERDATE;

	if (start >= end || age < -(KTC_TIME_UNCERTAINTY + MAXKTCTICKETLIFETIME) ||
	    (start && ends && end - start > MAXKTCTICKETLIFETIME))
		return -2;
	if (ends && (afs_int64)end + KTC_TIME_UNCERTAINTY < now)
		return start && age > MAXKTCTICKETLIFETIME + 24 * 3600 ? -2 : -1;
	if (start && age < -KTC_TIME_UNCERTAINTY)
		return 0;
	return start && ends ? 2 : 1;
}

/* -- Lifetimes of Kerberos 4 ---------------------------------------------------------------------- */

/*
 * Codes below 128 count 5 minutes. From 128 to 191 they grow by the same ratio each, from 38,400 s
 * to 30 days. 255 is without an end.
 */
#define UNIT	     300
#define FIRST_GROWN  128
#define LAST_GROWN   191
#define LIFE_FOREVER 255
#define GROWN_FROM   38400.0
#define GROWTH	     1.069144897992863 /* 67.5 to the power of 1/63 */

static afs_uint32 seconds_of_life(unsigned life)
{
	double seconds = GROWN_FROM;

	if (life < FIRST_GROWN)
		return life * UNIT;
	if (life >= LAST_GROWN)
		return MAXKTCTICKETLIFETIME;
	for (unsigned i = FIRST_GROWN; i < life; i++)
		seconds *= GROWTH;
	return (afs_uint32)(seconds + 0.5);
}

afs_uint32 life_to_time(afs_uint32 start, unsigned char life)
{
	return life == LIFE_FOREVER ? NEVERDATE : start + seconds_of_life(life);
}

unsigned char time_to_life(afs_uint32 start, afs_uint32 end)
{
	unsigned life = 1;

	if (end == NEVERDATE)
		return LIFE_FOREVER;
	if (end <= start || end - start > MAXKTCTICKETLIFETIME)
		return 0;
	while (seconds_of_life(life) < end - start)
		life++;
	return (unsigned char)life;
}

/* -- Messages of rxkad's codes, for the com_err of OpenAFS ------------------------------------------ */

/* As com_err declares them. */
struct error_table {
	const char *const *msgs;
	int base;
	int n_msgs;
};
struct et_list {
	struct et_list *next;
	const struct error_table *table;
};

/* Programs without com_err do not have this function. */
extern void afs_add_to_error_table(struct et_list *list) __attribute__((weak));

#define MESSAGES 13

static const char *const messages[MESSAGES + 1] = {
	"rxkad: internal state is inconsistent",
	"rxkad: an authentication packet is too short",
	"rxkad: the server requires a higher security level",
	"rxkad: the ticket is too long or too short",
	"rxkad: a packet is out of sequence",
	"rxkad: the client is not authenticated",
	"rxkad: the key is invalid",
	"rxkad: the ticket is invalid",
	"rxkad: the server does not have the key that the ticket names",
	"rxkad: the ticket has expired",
	"rxkad: a packet was changed, or the keys differ",
	"rxkad: a packet's data is too long",
	"rxkad: encrypted connections are not allowed",
};

static const struct error_table table = {messages, ERROR_TABLE_BASE_RXK, MESSAGES};

static void register_messages(void)
{
	static struct et_list link = {NULL, &table};

	if (afs_add_to_error_table)
		afs_add_to_error_table(&link);
}

void initialize_RXK_error_table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_messages);
}
