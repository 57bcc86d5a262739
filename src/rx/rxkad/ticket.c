/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening tickets of all forms (rx-protocol 7.3.5 to 7.3.7): their DER, by libcrypto's ASN.1, and the translation of
 * principals to AFS names. BER that is not DER is refused even where libcrypto accepts it. libcrypto's error queue, which
 * is shared with the application's code on each thread, is left unchanged.
 */
#include <krb5.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <string.h>
#include <time.h>

#include "base/wire.h"
#include "keys/keys.h"
#include "rxkad/derive.h"
#include "rxkad/ticket.h"

#define DIGITS 15 /* bytes of "YYYYMMDDhhmmssZ" */

static int tag_number(uint8_t tag)
{
	return tag & V_ASN1_PRIMITIVE_TAG;
}

/* Whether the next element has this tag. */
static bool rxw_der_is(const struct rxw_der *d, uint8_t tag)
{
	return d->left > 0 && d->p[0] == tag;
}

bool rxw_der_get(struct rxw_der *d, uint8_t tag, struct rxw_der *content)
{
	const uint8_t *p = d->p;
	int number, class, flags;
	size_t head;
	long length;

	if (!rxw_der_is(d, tag) || d->left > RXW_DER_MAX)
		return false;
	ERR_set_mark();
	flags = ASN1_get_object(&p, &length, &number, &class, (long)d->left);
	ERR_pop_to_mark();
	if (flags & 0x80 || flags & 1) /* an error, or an indefinite length */
		return false;
	head = (size_t)(p - d->p);
	if (ASN1_object_size(0, (int)length, number) != (int)head + (int)length)
		return false; /* the length is not in its shortest form */
	content->p = p;
	content->left = (size_t)length;
	d->p = p + length;
	d->left -= head + (size_t)length;
	return true;
}

/* [n] with exactly one element, of that tag. */
static bool rxw_der_get_in(struct rxw_der *d, unsigned n, uint8_t tag, struct rxw_der *content)
{
	struct rxw_der rest = *d, outer;

	if (!rxw_der_get(&rest, (uint8_t)RXW_DER_CONTEXT(n), &outer) ||
	    !rxw_der_get(&outer, tag, content) || outer.left != 0)
		return false;
	*d = rest;
	return true;
}

bool rxw_der_get_integer(struct rxw_der *d, unsigned n, int64_t least, int64_t most, int64_t *value)
{
	struct rxw_der rest = *d, bytes;
	ASN1_INTEGER *number;
	const uint8_t *p;
	bool good;

	if (!rxw_der_get_in(&rest, n, RXW_DER_INTEGER, &bytes) || bytes.left > 8)
		return false;
	p = bytes.p - 2; /* its header */
	ERR_set_mark();
	number = d2i_ASN1_INTEGER(NULL, &p, (long)bytes.left + 2);
	good = number && ASN1_INTEGER_get_int64(value, number) && *value >= least && *value <= most;
	ASN1_INTEGER_free(number);
	ERR_pop_to_mark();
	if (good)
		*d = rest;
	return good;
}

bool rxw_der_get_time(struct rxw_der *d, unsigned n, int64_t *value)
{
	struct rxw_der rest = *d, text;
	ASN1_GENERALIZEDTIME *date;
	struct tm tm = {0};
	const uint8_t *p;
	bool good;

	if (!rxw_der_get_in(&rest, n, RXW_DER_TIME, &text) || text.left != DIGITS ||
	    text.p[DIGITS - 1] != 'Z')
		return false;
	p = text.p - 2; /* its header */
	ERR_set_mark();
	date = d2i_ASN1_GENERALIZEDTIME(NULL, &p, DIGITS + 2);
	good = date && ASN1_TIME_to_tm(date, &tm);
	ASN1_GENERALIZEDTIME_free(date);
	ERR_pop_to_mark();
	if (good) {
		*value = (int64_t)timegm(&tm);
		*d = rest;
	}
	return good;
}

void rxw_der_put_bytes(struct rxw_der_out *o, const void *bytes, size_t size)
{
	if (o->full || (size_t)(o->p - o->start) < size) {
		o->full = true;
		return;
	}
	o->p -= size;
	if (size > 0)
		memcpy(o->p, bytes, size);
}

void rxw_der_put_header(struct rxw_der_out *o, uint8_t tag, const uint8_t *end_of)
{
	size_t length = (size_t)(end_of - o->p);
	uint8_t head[8], *p = head;

	if (length > RXW_DER_MAX) {
		o->full = true;
		return;
	}
	ASN1_put_object(&p, tag & V_ASN1_CONSTRUCTED, (int)length, tag_number(tag),
			tag & V_ASN1_PRIVATE);
	rxw_der_put_bytes(o, head, (size_t)(p - head));
}

void rxw_der_put_in(struct rxw_der_out *o, unsigned n, uint8_t tag, const void *bytes, size_t size)
{
	const uint8_t *end_of = o->p;

	rxw_der_put_bytes(o, bytes, size);
	rxw_der_put_header(o, tag, end_of);
	rxw_der_put_header(o, (uint8_t)RXW_DER_CONTEXT(n), end_of);
}

void rxw_der_put_integer(struct rxw_der_out *o, unsigned n, uint32_t value)
{
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	const uint8_t *end_of = o->p;
	uint8_t bytes[8], *p = bytes;
	int size = -1;

	if (number && ASN1_INTEGER_set_uint64(number, value))
		size = i2d_ASN1_INTEGER(number, &p);
	ASN1_INTEGER_free(number);
	if (size < 0) {
		o->full = true;
		return;
	}
	rxw_der_put_bytes(o, bytes, (size_t)size);
	rxw_der_put_header(o, (uint8_t)RXW_DER_CONTEXT(n), end_of);
}

bool rxw_der_put_time(struct rxw_der_out *o, unsigned n, int64_t seconds)
{
	ASN1_GENERALIZEDTIME *date = ASN1_GENERALIZEDTIME_set(NULL, (time_t)seconds);
	bool good = date && ASN1_STRING_length(date) == DIGITS;

	if (good)
		rxw_der_put_in(o, n, RXW_DER_TIME, ASN1_STRING_get0_data(date), DIGITS);
	ASN1_GENERALIZEDTIME_free(date);
	return good;
}

/* First components with another name in Kerberos 4, or whose instance ends at its first dot. */
static const struct {
	const char *name, *old; /* NULL: the same */
	bool cut;
} services[] = {
	{"host", "rcmd", true},	   {"discuss", NULL, true},   {"rvdsrv", NULL, true},
	{"sample", NULL, true},	   {"olc", NULL, true},	      {"pop", NULL, true},
	{"sis", NULL, true},	   {"rfs", NULL, true},	      {"imap", NULL, true},
	{"ftp", NULL, true},	   {"ecat", NULL, true},      {"daemon", NULL, true},
	{"gnats", NULL, true},	   {"moira", NULL, true},     {"prms", NULL, true},
	{"mandarin", NULL, true},  {"register", NULL, true},  {"changepw", NULL, true},
	{"sms", NULL, true},	   {"afpserver", NULL, true}, {"gdss", NULL, true},
	{"news", NULL, true},	   {"abs", NULL, true},	      {"nfs", NULL, true},
	{"tftp", NULL, true},	   {"http", NULL, true},      {"khttp", NULL, true},
	{"pgpsigner", NULL, true}, {"irc", NULL, true},	      {"mandarin-agent", NULL, true},
	{"write", NULL, true},	   {"palladium", NULL, true}, {"smtp", NULL, true},
	{"lmtp", NULL, true},	   {"ldap", NULL, true},      {"acap", NULL, true},
	{"argus", NULL, true},	   {"mupdate", NULL, true},   {"kadmin", NULL, false},
	{"zephyr", NULL, false},
};

static bool component_is(struct rxw_rxkad_component c, const char *text)
{
	return c.size == strlen(text) && memcmp(c.p, text, c.size) == 0;
}

/* Copy a name for AFS: without NUL, and not too long. */
static bool copy_afs_name(char out[RXW_RXKAD_NAME], struct rxw_rxkad_component c)
{
	if (c.size >= RXW_RXKAD_NAME || memchr(c.p, 0, c.size) != NULL)
		return false;
	memcpy(out, c.p, c.size);
	out[c.size] = 0;
	return true;
}

/* Append to a principal, quoting special characters. */
static bool append_quoted(char *out, size_t *at, struct rxw_rxkad_component c)
{
	for (size_t i = 0; i < c.size; i++) {
		char b = (char)c.p[i];

		if (*at + 3 > RXW_RXKAD_PRINCIPAL || b == 0)
			return false;
		if (b == '/' || b == '@' || b == '\\') {
			out[(*at)++] = '\\';
		} else if (b == '\n' || b == '\t' || b == '\b') {
			out[(*at)++] = '\\';
			b = b == '\n' ? 'n' : b == '\t' ? 't' : 'b';
		}
		out[(*at)++] = b;
	}
	out[*at] = 0;
	return true;
}

static bool set_principal(const struct rxw_rxkad_component *components, size_t count,
			  struct rxw_rxkad_component realm, char *out)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			out[at++] = '/';
		if (!append_quoted(out, &at, components[i]))
			return false;
	}
	if (realm.size == 0)
		return true;
	if (at + 2 > RXW_RXKAD_PRINCIPAL)
		return false;
	out[at++] = '@';
	return append_quoted(out, &at, realm);
}

__attribute__((cold)) static int32_t
set_all_names(const struct rxw_rxkad_opener *opener, const struct rxw_rxkad_component *components,
	      size_t count, struct rxw_rxkad_component name, struct rxw_rxkad_component instance,
	      struct rxw_rxkad_component realm, struct rxw_rxkad_ticket *out)
{
	if (!copy_afs_name(out->name, name) || !copy_afs_name(out->instance, instance) ||
	    !copy_afs_name(out->cell, realm) ||
	    !set_principal(components, count, realm, out->principal))
		return RXW_RXKAD_BADTICKET;
	out->local = strcmp(out->name, "afs") == 0 && out->instance[0] == 0 &&
		     (out->cell[0] == 0 ||
		      (opener->local_realm != NULL && strcmp(out->cell, opener->local_realm) == 0));
	return 0;
}

/* The same for name and instance (may be empty) of Kerberos 4, without translation. */
static int32_t rxw_rxkad_set_names_v4(const struct rxw_rxkad_opener *opener,
				      const struct rxw_rxkad_component names[2],
				      struct rxw_rxkad_component realm,
				      struct rxw_rxkad_ticket *out)
{
	return set_all_names(opener, names, names[1].size > 0 ? 2 : 1, names[0], names[1], realm,
			     out);
}

__attribute__((cold)) int32_t rxw_rxkad_set_names(const struct rxw_rxkad_opener *opener,
						  const struct rxw_rxkad_component *components,
						  size_t count, struct rxw_rxkad_component realm,
						  struct rxw_rxkad_ticket *out)
{
	struct rxw_rxkad_component name, instance = {(const uint8_t *)"", 0};

	if (count < 1 || count > 2 || components[0].size < 1)
		return RXW_RXKAD_BADTICKET;
	name = components[0];
	if (!opener->allow_dotted && memchr(name.p, '.', name.size) != NULL)
		return RXW_RXKAD_BADTICKET;
	if (count == 2) {
		instance = components[1];
		for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++) {
			const uint8_t *dot;

			if (!component_is(name, services[i].name))
				continue;
			if (services[i].old != NULL)
				name = (struct rxw_rxkad_component){
					(const uint8_t *)services[i].old, strlen(services[i].old)};
			if (!services[i].cut)
				break;
			dot = memchr(instance.p, '.', instance.size);
			if (dot == NULL)
				return RXW_RXKAD_BADTICKET;
			instance.size = (size_t)(dot - instance.p);
			break;
		}
	}
	return set_all_names(opener, components, count, name, instance, realm, out);
}

#define SKEW	 900
#define LONGEST	 (30 * 86400)
#define USAGE	 2 /* RFC 4120 7.5.1: a ticket under the service's key */
#define KVNO_MAX 0xffffffffll

int32_t rxw_rxkad_check_times(int64_t start, int64_t end, int64_t now)
{
	if (start >= end || start > now + SKEW + LONGEST)
		return RXW_RXKAD_BADTICKET;
	if (start != 0 && end != INT64_MAX && end - start > LONGEST)
		return RXW_RXKAD_BADTICKET;
	if (end < now - SKEW)
		return start != 0 && now - start > LONGEST + 86400 ? RXW_RXKAD_BADTICKET
								   : RXW_RXKAD_EXPIRED;
	if (start > now + SKEW)
		return RXW_RXKAD_NOAUTH;
	return 0;
}

int64_t rxw_rxkad_lifetime(uint8_t code)
{
	static const int32_t table[64] = {
		38400,	 41055,	  43894,   46929,   50174,   53643,   57352,   61318,
		65558,	 70091,	  74937,   80119,   85658,   91581,   97914,   104684,
		111922,	 119661,  127935,  136781,  146239,  156350,  167161,  178720,
		191077,	 204289,  218415,  233517,  249664,  266926,  285383,  305116,
		326213,	 348769,  372885,  398668,  426234,  455705,  487215,  520904,
		556921,	 595430,  636601,  680618,  727680,  777995,  831789,  889303,
		950794,	 1016537, 1086825, 1161973, 1242318, 1328218, 1420057, 1518247,
		1623226, 1735464, 1855462, 1983758, 2120925, 2267576, 2424367, 2592000,
	};

	if (code < 128)
		return 300 * (int64_t)code;
	if (code < 192)
		return table[code - 128];
	return code < 255 ? LONGEST : INT64_MAX;
}

/* A NUL-terminated name of 0 to 63 bytes. */
static bool take_name(const uint8_t **p, const uint8_t *end, struct rxw_rxkad_component *c)
{
	size_t room = (size_t)(end - *p);
	const uint8_t *nul = memchr(*p, 0, room < RXW_RXKAD_NAME ? room : RXW_RXKAD_NAME);

	if (nul == NULL)
		return false;
	c->p = *p;
	c->size = (size_t)(nul - *p);
	*p = nul + 1;
	return true;
}

__attribute__((cold)) int32_t rxw_rxkad_ticket_v4(const struct rxw_rxkad_opener *opener,
						  const uint8_t *clear, size_t size,
						  struct rxw_rxkad_ticket *out)
{
	const uint8_t *p = clear + 1, *end = clear + size;
	struct rxw_rxkad_component names[2], realm, service, service_instance;
	int64_t life;
	size_t used;
	int32_t code;

	if (size < 1 || !take_name(&p, end, &names[0]) || !take_name(&p, end, &names[1]) ||
	    !take_name(&p, end, &realm) || end - p < 4 + 8 + 1 + 4 || names[0].size < 1)
		return RXW_RXKAD_BADTICKET;
	p += 4; /* the client's address, which is useless with NAT */
	memcpy(out->session_key, p, 8);
	life = rxw_rxkad_lifetime(p[8]);
	out->start = clear[0] & 1 ? (int64_t)((uint32_t)p[9] | (uint32_t)p[10] << 8 |
					      (uint32_t)p[11] << 16 | (uint32_t)p[12] << 24)
				  : (int64_t)rxw_get32(p + 9);
	p += 13;
	if (!take_name(&p, end, &service) || !take_name(&p, end, &service_instance) ||
	    service.size < 1)
		return RXW_RXKAD_BADTICKET;
	used = (size_t)(p - clear);
	if (size != (used + 7) / 8 * 8 && size != 56)
		return RXW_RXKAD_BADTICKET;
	out->end = life == INT64_MAX ? INT64_MAX : out->start + life;
	code = rxw_rxkad_set_names_v4(opener, names, realm, out);
	return code ? code : rxw_rxkad_check_times(out->start, out->end, opener->now);
}

/* SEQUENCE { [0] Int32, [1] string } of the tag. */
static bool get_pair(struct rxw_der *d, unsigned n, uint8_t tag, int64_t *number,
		     struct rxw_der *bytes)
{
	struct rxw_der body;

	return rxw_der_get_in(d, n, RXW_DER_SEQUENCE, &body) &&
	       rxw_der_get_integer(&body, 0, INT32_MIN, INT32_MAX, number) &&
	       rxw_der_get_in(&body, 1, tag, bytes) && body.left == 0;
}

/* More than two components are refused later. */
static bool get_names(struct rxw_der *d, struct rxw_rxkad_component names[3], size_t *count)
{
	struct rxw_der list, text;
	int64_t type;

	*count = 0;
	if (!get_pair(d, 3, RXW_DER_SEQUENCE, &type, &list))
		return false;
	while (list.left > 0) {
		if (*count == 3 || !rxw_der_get(&list, RXW_DER_GENERAL_STRING, &text))
			return *count == 3;
		names[*count].p = text.p;
		names[(*count)++].size = text.left;
	}
	return true;
}

int32_t rxw_rxkad_ticket_v5(const struct rxw_rxkad_opener *opener, const uint8_t *clear,
			    size_t size, struct rxw_rxkad_ticket *out)
{
	struct rxw_der all = {clear, size}, outer, part, flags, key, realm, ignored;
	struct rxw_rxkad_component names[3];
	int64_t enctype, transited, authtime, start, end, renew;
	size_t count;
	int32_t code;

	if (!rxw_der_get(&all, RXW_DER_APPLICATION(3), &outer) ||
	    !rxw_der_get(&outer, RXW_DER_SEQUENCE, &part) || outer.left != 0 ||
	    !rxw_der_get_in(&part, 0, RXW_DER_BIT_STRING, &flags) || flags.left < 2 ||
	    !get_pair(&part, 1, RXW_DER_OCTET_STRING, &enctype, &key) ||
	    !rxw_der_get_in(&part, 2, RXW_DER_GENERAL_STRING, &realm) ||
	    !get_names(&part, names, &count) ||
	    !get_pair(&part, 4, RXW_DER_OCTET_STRING, &transited, &ignored) ||
	    !rxw_der_get_time(&part, 5, &authtime))
		return RXW_RXKAD_BADTICKET;
	start = authtime;
	if ((rxw_der_is(&part, RXW_DER_CONTEXT(6)) && !rxw_der_get_time(&part, 6, &start)) ||
	    !rxw_der_get_time(&part, 7, &end) ||
	    (rxw_der_is(&part, RXW_DER_CONTEXT(8)) && !rxw_der_get_time(&part, 8, &renew)) ||
	    (rxw_der_is(&part, RXW_DER_CONTEXT(9)) &&
	     !rxw_der_get(&part, RXW_DER_CONTEXT(9), &ignored)) ||
	    (rxw_der_is(&part, RXW_DER_CONTEXT(10)) &&
	     !rxw_der_get(&part, RXW_DER_CONTEXT(10), &ignored)) ||
	    part.left != 0)
		return RXW_RXKAD_BADTICKET;
	if (flags.p[1] & 0x01) /* "invalid" is bit 7 */
		return RXW_RXKAD_NOAUTH;
	if (rxw_rxkad_session_key((int32_t)enctype, key.p, key.left, out->session_key))
		return RXW_RXKAD_BADTICKET;
	code = rxw_rxkad_set_names(opener, names, count,
				   (struct rxw_rxkad_component){realm.p, realm.left}, out);
	if (code)
		return code;
	out->start = start;
	out->end = end;
	if (opener->now > end)
		return RXW_RXKAD_EXPIRED;
	return rxw_rxkad_check_times(start, end, opener->now);
}

/*
 * The key that a ticket names, in memory of `room` bytes; enctype 0: single DES. UNKNOWNKEY if there
 * is none.
 */
static int32_t find_ticket_key(const struct rxw_rxkad_opener *opener, int32_t kvno, int32_t enctype,
			       uint8_t *key, size_t room, size_t *size)
{
	enum rxw_key_type type = enctype ? RXW_KEY_KRB5 : RXW_KEY_DES;

	if (opener->keys && !rxw_keys_find(opener->keys, type, kvno, enctype, key, room, size))
		return 0;
	*size = 0;
	if (opener->find_key &&
	    opener->find_key(opener->find_context, kvno, enctype, key, room, size) == 0 &&
	    *size > 0 && *size <= room)
		return 0;
	return RXW_RXKAD_UNKNOWNKEY;
}

/* Decrypt `cipher`; *start and *length are the position of the message in `clear`. */
static int32_t decrypt_ticket(const struct rxw_rxkad_opener *opener, int64_t kvno, int32_t enctype,
			      struct rxw_der cipher, uint8_t *clear, size_t *start, size_t *length)
{
	bool des = enctype >= 1 && enctype <= 3;
	uint8_t *key;
	size_t key_size, right_size;
	int32_t code;

	if (kvno > INT32_MAX || enctype == 0 || (des && !opener->allow_single_des))
		return RXW_RXKAD_UNKNOWNKEY;
	key = rxw_secret_alloc(RXW_KEY_MAX);
	if (key == NULL)
		return RXW_RXKAD_INCONSISTENCY;
	code = find_ticket_key(opener, (int32_t)kvno, des ? 0 : enctype, key, RXW_KEY_MAX,
			       &key_size);
	if (code) {
		rxw_secret_free(key);
		return code;
	}
	code = RXW_RXKAD_BADTICKET;
	if (des) {
		if (key_size == 8 &&
		    rxw_des_krb5_decrypt(enctype, key, cipher.p, cipher.left, clear, start, length))
			code = 0;
	} else if (krb5_c_keylengths(NULL, enctype, NULL, &right_size) == 0 &&
		   right_size == key_size) {
		krb5_keyblock block = {.magic = KV5M_KEYBLOCK,
				       .enctype = enctype,
				       .length = (unsigned)key_size,
				       .contents = key};
		krb5_enc_data in = {.magic = KV5M_ENC_DATA, .enctype = enctype};
		krb5_data out = {.magic = KV5M_DATA, .length = (unsigned)cipher.left};

		/* libkrb5 only reads it, but its structure lacks const. */
		in.ciphertext.data = (char *)(uintptr_t)cipher.p;
		in.ciphertext.length = (unsigned)cipher.left;
		out.data = (char *)clear;
		if (krb5_c_decrypt(NULL, &block, USAGE, NULL, &in, &out) == 0 &&
		    out.length <= cipher.left) {
			*start = 0;
			*length = out.length;
			code = 0;
		}
	}
	rxw_secret_free(key);
	return code;
}

/* Open an EncryptedData, which is all of `d`. */
__attribute__((cold)) static int32_t open_v5(const struct rxw_rxkad_opener *opener,
					     struct rxw_der d, struct rxw_rxkad_ticket *out)
{
	struct rxw_der part, cipher;
	int64_t enctype, kvno = 0;
	uint8_t *clear;
	size_t start = 0, length = 0;
	int32_t code;

	if (!rxw_der_get(&d, RXW_DER_SEQUENCE, &part) || d.left != 0 ||
	    !rxw_der_get_integer(&part, 0, INT32_MIN, INT32_MAX, &enctype) ||
	    (rxw_der_is(&part, RXW_DER_CONTEXT(1)) &&
	     !rxw_der_get_integer(&part, 1, 0, KVNO_MAX, &kvno)) ||
	    !rxw_der_get_in(&part, 2, RXW_DER_OCTET_STRING, &cipher) || part.left != 0 ||
	    cipher.left < 1)
		return RXW_RXKAD_BADTICKET;
	clear = rxw_secret_alloc(cipher.left);
	if (clear == NULL)
		return RXW_RXKAD_INCONSISTENCY;
	code = decrypt_ticket(opener, kvno, (int32_t)enctype, cipher, clear, &start, &length);
	if (code == 0)
		code = rxw_rxkad_ticket_v5(opener, clear + start, length, out);
	rxw_secret_free(clear);
	return code;
}

/* Open a complete Ticket. Everything outside its EncryptedData is unauthenticated. */
static int32_t open_whole(const struct rxw_rxkad_opener *opener, struct rxw_der d,
			  struct rxw_rxkad_ticket *out)
{
	struct rxw_der outer, part, realm, sname, sealed;
	int64_t version;

	if (!rxw_der_get(&d, RXW_DER_APPLICATION(1), &outer) || d.left != 0 ||
	    !rxw_der_get(&outer, RXW_DER_SEQUENCE, &part) || outer.left != 0 ||
	    !rxw_der_get_integer(&part, 0, 5, 5, &version) ||
	    !rxw_der_get_in(&part, 1, RXW_DER_GENERAL_STRING, &realm) ||
	    !rxw_der_get_in(&part, 2, RXW_DER_SEQUENCE, &sname) ||
	    !rxw_der_get(&part, RXW_DER_CONTEXT(3), &sealed) || part.left != 0)
		return RXW_RXKAD_BADTICKET;
	return open_v5(opener, sealed, out);
}

static int32_t open_v4(const struct rxw_rxkad_opener *opener, uint32_t kvno, const uint8_t *ticket,
		       size_t size, struct rxw_rxkad_ticket *out)
{
	uint8_t *memory;
	size_t key_size;
	int32_t code = RXW_RXKAD_BADTICKET;

	if (!opener->allow_single_des || kvno > 255)
		return RXW_RXKAD_UNKNOWNKEY;
	if (size % 8 != 0)
		return RXW_RXKAD_BADTICKET;
	memory = rxw_secret_alloc(8 + size);
	if (memory == NULL)
		return RXW_RXKAD_INCONSISTENCY;
	if (find_ticket_key(opener, (int32_t)kvno, 0, memory, 8, &key_size) || key_size != 8)
		code = RXW_RXKAD_UNKNOWNKEY;
	else if (rxw_des_pcbc_decrypt(memory, ticket, memory + 8, size))
		code = rxw_rxkad_ticket_v4(opener, memory + 8, size, out);
	rxw_secret_free(memory);
	return code;
}

int32_t rxw_rxkad_ticket_open(const struct rxw_rxkad_opener *opener, uint32_t kvno,
			      const uint8_t *ticket, size_t size, struct rxw_rxkad_ticket *out)
{
	struct rxw_der d = {ticket, size};
	int32_t code;

	if (size < RXW_RXKAD_TICKET_MIN || size > RXW_RXKAD_TICKET_MAX)
		return RXW_RXKAD_TICKETLEN;
	if (kvno == RXW_RXKAD_KVNO_ENCPART)
		code = open_v5(opener, d, out);
	else if (kvno == RXW_RXKAD_KVNO_TICKET)
		code = open_whole(opener, d, out);
	else
		code = open_v4(opener, kvno, ticket, size, out);
	if (code == 0 && !rxw_des_key_usable(out->session_key))
		code = RXW_RXKAD_BADKEY;
	return code;
}
