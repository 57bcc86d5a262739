/* SPDX-License-Identifier: BSD-2-Clause */
/* UUIDs of servers and clients: as 16 octets, as text. */
#ifndef AFS_UUID_H
#define AFS_UUID_H

#include <stdbool.h>
#include <stdint.h>
#include <rxwire/coder.h>
#include <rxwire/xdr.h>

#define AFS_UUID_TEXT 37 /* 8-4-4-4-12 hexadecimal digits, with NUL */

bool afs_uuid_same(const struct rxw_uuid *a, const struct rxw_uuid *b);
/* Reads the usual 16 octets, with the octets of each number in network order. */
void afs_uuid_from_octets(struct rxw_uuid *uuid, const uint8_t octets[16]);
void afs_uuid_to_text(const struct rxw_uuid *uuid, char text[AFS_UUID_TEXT]);
/* False for anything but 8-4-4-4-12 hexadecimal digits; *uuid is then unchanged. */
bool afs_uuid_from_text(struct rxw_uuid *uuid, const char *text);

#endif
