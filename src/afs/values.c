/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of the interfaces: AFSFetchStatus, UUIDs of servers and clients, names of volumes, rights. */
#include <stdio.h>
#include <string.h>

#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "afs/rights.h"
#include "afs/uuid.h"
#include "afs/volname.h"

bool afs_status_usable(const AFSFetchStatus *s)
{
	return s->errorCode == 0 && s->InterfaceVersion == 1 && s->FileType >= AFS_TYPE_FILE &&
	       s->FileType <= AFS_TYPE_SYMLINK;
}

void afs_status_refuse(AFSFetchStatus *s, int32_t code)
{
	*s = (AFSFetchStatus){.InterfaceVersion = 1, .errorCode = (uint32_t)code};
}

bool afs_uuid_same(const struct rxw_uuid *a, const struct rxw_uuid *b)
{
	return a->time_low == b->time_low && a->time_mid == b->time_mid &&
	       a->time_hi_and_version == b->time_hi_and_version &&
	       a->clock_seq_hi_and_reserved == b->clock_seq_hi_and_reserved &&
	       a->clock_seq_low == b->clock_seq_low &&
	       memcmp(a->node, b->node, sizeof(a->node)) == 0;
}

void afs_uuid_from_octets(struct rxw_uuid *uuid, const uint8_t octets[16])
{
	uuid->time_low = (uint32_t)octets[0] << 24 | (uint32_t)octets[1] << 16 |
			 (uint32_t)octets[2] << 8 | octets[3];
	uuid->time_mid = (uint16_t)(octets[4] << 8 | octets[5]);
	uuid->time_hi_and_version = (uint16_t)(octets[6] << 8 | octets[7]);
	uuid->clock_seq_hi_and_reserved = (int8_t)octets[8];
	uuid->clock_seq_low = (int8_t)octets[9];
	memcpy(uuid->node, octets + 10, sizeof(uuid->node));
}

void afs_uuid_to_text(const struct rxw_uuid *uuid, char text[AFS_UUID_TEXT])
{
	uint8_t n[6];

	memcpy(n, uuid->node, sizeof(n)); /* unsigned: printf would extend the sign */
	snprintf(text, AFS_UUID_TEXT, "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 (unsigned)uuid->time_low, uuid->time_mid, uuid->time_hi_and_version,
		 (uint8_t)uuid->clock_seq_hi_and_reserved, (uint8_t)uuid->clock_seq_low, n[0], n[1],
		 n[2], n[3], n[4], n[5]);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool afs_uuid_from_text(struct rxw_uuid *uuid, const char *text)
{
	uint8_t octets[16];
	size_t n = 0;

	if (strlen(text) != AFS_UUID_TEXT - 1)
		return false;
	for (size_t i = 0; i < AFS_UUID_TEXT - 1;) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i++] != '-')
				return false;
			continue;
		}
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		octets[n++] = (uint8_t)(high << 4 | low);
		i += 2;
	}
	afs_uuid_from_octets(uuid, octets);
	return true;
}

static bool has_suffix(const char *name, size_t length, const char *suffix)
{
	size_t n = strlen(suffix);

	return length >= n && strcmp(name + length - n, suffix) == 0;
}

bool afs_volume_name_valid(const char *name)
{
	static const char digits[] = "0123456789";
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t length = strlen(name);

	return length >= 1 && length < VL_MAXNAMELEN && strspn(name, allowed) == length &&
	       strspn(name, digits) != length && !has_suffix(name, length, ".readonly") &&
	       !has_suffix(name, length, ".backup");
}

bool afs_volume_name_has_room(const char *name)
{
	return afs_volume_name_valid(name) && strlen(name) <= AFS_VOLUME_NAME_LONGEST;
}

/* -- rights -- */

#define FIRST_OF_SITE 0x01000000u /* the right "A" */
#define LETTERS_MAX   15

static const struct {
	char letter;
	uint32_t bit;
} rights_by_letter[LETTERS_MAX] = {
	{'r', AFS_RIGHT_READ},	     {'l', AFS_RIGHT_LOOKUP},	{'i', AFS_RIGHT_INSERT},
	{'d', AFS_RIGHT_DELETE},     {'w', AFS_RIGHT_WRITE},	{'k', AFS_RIGHT_LOCK},
	{'a', AFS_RIGHT_ADMINISTER}, {'A', FIRST_OF_SITE},	{'B', FIRST_OF_SITE << 1},
	{'C', FIRST_OF_SITE << 2},   {'D', FIRST_OF_SITE << 3}, {'E', FIRST_OF_SITE << 4},
	{'F', FIRST_OF_SITE << 5},   {'G', FIRST_OF_SITE << 6}, {'H', FIRST_OF_SITE << 7},
};

int afs_rights_parse(const char *text, uint32_t *rights)
{
	static const struct {
		const char *word, *letters;
	} words[] = {{"none", ""}, {"read", "rl"}, {"write", "rlidwk"}, {"all", "rlidwka"}};
	uint32_t sum = 0;

	if (*text == 0)
		return -1;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i].word) == 0) {
			text = words[i].letters;
			break;
		}
	for (; *text; text++) {
		int i = 0;

		while (i < LETTERS_MAX && rights_by_letter[i].letter != *text)
			i++;
		if (i == LETTERS_MAX)
			return -1;
		sum |= rights_by_letter[i].bit;
	}
	*rights = sum;
	return 0;
}

const char *afs_rights_text(uint32_t rights, char text[AFS_ACL_RIGHTS])
{
	size_t n = 0;

	for (int i = 0; i < LETTERS_MAX; i++)
		if (rights & rights_by_letter[i].bit)
			text[n++] = rights_by_letter[i].letter;
	text[n] = 0;
	if (n == 0)
		strcpy(text, "none");
	return text;
}
