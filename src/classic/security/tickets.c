/* SPDX-License-Identifier: BSD-2-Clause */
/* Making tickets, and their times. */
#include "security.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rx/rxkad.h>

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
