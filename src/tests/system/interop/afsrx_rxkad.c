/* SPDX-License-Identifier: BSD-2-Clause */
/* rxkad in the programs on OpenAFS's library: tickets under a key given to both sides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "afsrx.h"

#include <rx/rxkad.h>

#define ENCTYPE 18
#define KVNO	1
#define KEY	32

static unsigned char service_key[KEY];

/* "KEY:LEVEL", 64 hex digits and 0, 1 or 2. */
static rxkad_level parse(const char *text)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon - text != 2 * KEY || colon[1] < '0' || colon[1] > '2' || colon[2])
		afsrx_usage_die("--rxkad: \"%s\" is not KEY:LEVEL", text);
	for (int i = 0; i < KEY; i++) {
		unsigned v;

		if (sscanf(text + 2 * i, "%2x", &v) != 1)
			afsrx_usage_die("--rxkad: the key is not in hex");
		service_key[i] = (unsigned char)v;
	}
	return (rxkad_level)(colon[1] - '0');
}

struct rx_securityClass *afsrx_rxkad_client(const char *text)
{
	static struct ktc_encryptionKey session = {
		{(char)0xa4, 0x4c, (char)0xcb, 0x19, 0x25, 0x31, (char)0xba, 0x1c}};
	static char ticket[MAXKTCTICKETLEN];
	rxkad_level level = parse(text);
	int length = sizeof(ticket), kvno = KVNO;
	afs_uint32 now = (afs_uint32)time(NULL);

	if (tkt_MakeTicket5(ticket, &length, ENCTYPE, &kvno, service_key, KEY, (char *)"tester",
			    (char *)"", (char *)"INTEROP.TEST", now - 10, now + 3600, &session,
			    (char *)"afs", (char *)""))
		afsrx_die("cannot make a ticket");
	return rxkad_NewClientSecurityObject(
		level, &session, RXKAD_TKT_TYPE_KERBEROS_V5_ENCPART_ONLY, length, ticket);
}

static int no_des(void *rock, int kvno, struct ktc_encryptionKey *key)
{
	(void)rock, (void)kvno, (void)key;
	return 1;
}

static int find_key(void *rock, int kvno, int enctype, void *key, size_t *length)
{
	(void)rock;
	if (kvno != KVNO || enctype != ENCTYPE || *length < KEY)
		return RXKADUNKNOWNKEY;
	memcpy(key, service_key, KEY);
	*length = KEY;
	return 0;
}

struct rx_securityClass *afsrx_rxkad_server(const char *text)
{
	rxkad_level level = parse(text);

	return rxkad_NewKrb5ServerSecurityObject(level, NULL, no_des, find_key, NULL);
}
