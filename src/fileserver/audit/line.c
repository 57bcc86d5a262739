/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the audit log as lines of JSON. */
#include "fileserver/audit/line.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/utf8.h"

static void copy_field(char *to, size_t size, const char *from)
{
	size_t n = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", n);
	to[n] = '\0';
}

void audit_entry_fill(struct audit_entry *entry, const struct fsd_audit_record *record)
{
	const struct sockaddr_in6 *in6 = (const void *)record->peer;
	const struct sockaddr_in *in = (const void *)record->peer;

	entry->time_ns = record->time_ns;
	entry->family = 0;
	if (record->peer && record->peer->ss_family == AF_INET) {
		entry->family = 4;
		entry->port = ntohs(in->sin_port);
		memcpy(entry->address, &in->sin_addr, 4);
	} else if (record->peer && record->peer->ss_family == AF_INET6) {
		entry->family = 6;
		entry->port = ntohs(in6->sin6_port);
		memcpy(entry->address, &in6->sin6_addr, 16);
	}
	entry->anonymous = !record->who;
	entry->has_name = record->name;
	entry->has_to_name = record->to_name;
	entry->id = record->id;
	entry->code = record->code;
	entry->operation = record->operation;
	memcpy(entry->fid, (uint32_t[]){record->volume, record->vnode, record->unique},
	       sizeof(entry->fid));
	memcpy(entry->to, (uint32_t[]){record->to_volume, record->to_vnode, record->to_unique},
	       sizeof(entry->to));
	copy_field(entry->who, sizeof(entry->who), record->who);
	copy_field(entry->name, sizeof(entry->name), record->name);
	copy_field(entry->to_name, sizeof(entry->to_name), record->to_name);
}

/* -- the line -- */

/*
 * A string of JSON. A byte that is not UTF-8 becomes the character of the same number, so that every
 * name has a text.
 */
static char *put_string(char *at, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	*at++ = '"';
	while (*s) {
		size_t n = utf8_character_bytes(s);

		if (*s == '"' || *s == '\\') {
			*at++ = '\\';
			*at++ = (char)*s++;
		} else if (*s < 0x20 || *s == 0x7f || n == 0) {
			at += sprintf(at, "\\u%04x", *s++);
		} else if (*s == 0xc2 && s[1] < 0xa0) { /* C1: terminals take orders from them */
			at += sprintf(at, "\\u%04x", s[1]);
			s += 2;
		} else {
			while (n--)
				*at++ = (char)*s++;
		}
	}
	*at++ = '"';
	return at;
}

static char *put_fid(char *at, const char *key, const uint32_t fid[3])
{
	return at + sprintf(at, ",\"%s\":\"%u.%u.%u\"", key, fid[0], fid[1], fid[2]);
}

static char *put_text(char *at, const char *key, const char *text)
{
	return put_string(at + sprintf(at, ",\"%s\":", key), text);
}

static char *put_record_time(char *at, int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return at + sprintf(at, "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ\"",
			    (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
			    tm.tm_min, tm.tm_sec, (int)(time_ns % 1000000000 / 1000));
}

static char *put_peer_address(char *at, const struct audit_entry *entry)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (entry->family)
		inet_ntop(entry->family == 4 ? AF_INET : AF_INET6, entry->address, text,
			  sizeof(text));
	return at + sprintf(at, ",\"address\":\"%s\",\"port\":%u", text, entry->port);
}

size_t audit_line(const struct audit_entry *entry, char *line)
{
	char *at = put_peer_address(put_record_time(line, entry->time_ns), entry);

	if (!entry->anonymous)
		at = put_text(at, "who", entry->who);
	at += sprintf(at, ",\"id\":%d,\"operation\":\"%s\"", (int)entry->id, entry->operation);
	if (entry->fid[0])
		at = put_fid(at, "fid", entry->fid);
	if (entry->has_name)
		at = put_text(at, "name", entry->name);
	if (entry->to[0])
		at = put_fid(at, "to_fid", entry->to);
	if (entry->has_to_name)
		at = put_text(at, "to_name", entry->to_name);
	at += sprintf(at, ",\"code\":%d}\n", (int)entry->code);
	return (size_t)(at - line);
}
