/* SPDX-License-Identifier: BSD-2-Clause */
/* The authenticated client of a connection at a server. */
#include <time.h>

#include <rx/rxkad.h>

#include "core.h"

/* The authenticated client of a server's connection, now. */
static bool get_client(struct rx_connection *connection, struct rxw_identity *identity)
{
	return connection->server && !rxw_connection_identity(connection->connection, identity) &&
	       identity->index == RX_SECIDX_KAD && identity->rxkad_primary &&
	       identity->expires > time(NULL);
}

/* The library's parts have at most 63 bytes. */
static void copy_part(char *to, const char *part)
{
	if (to)
		memcpy(to, part, strlen(part) + 1);
}

afs_int32 rxkad_GetServerInfo(struct rx_connection *connection, rxkad_level *level,
			      afs_uint32 *expires, char *name, char *instance, char *cell,
			      afs_int32 *kvno)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	if (!get_client(connection, &identity))
		return RXKADNOAUTH;
	if (level)
		*level = (rxkad_level)identity.level;
	if (expires)
		*expires = identity.expires < NEVERDATE ? (afs_uint32)identity.expires : NEVERDATE;
	copy_part(name, identity.rxkad_primary);
	copy_part(instance, identity.rxkad_instance);
	copy_part(cell, identity.rxkad_cell);
	if (kvno)
		*kvno = identity.rxkad_kvno;
	return 0;
}
