/* SPDX-License-Identifier: BSD-2-Clause */
/* Translating the principal of a ticket to AFS names (rx-protocol 7.3.5). */
#include <string.h>

#include "rxkad/ticket.h"

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

static int32_t set_all_names(const struct rxw_rxkad_opener *opener,
			     const struct rxw_rxkad_component *components, size_t count,
			     struct rxw_rxkad_component name, struct rxw_rxkad_component instance,
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

int32_t rxw_rxkad_set_names_v4(const struct rxw_rxkad_opener *opener,
			       const struct rxw_rxkad_component names[2],
			       struct rxw_rxkad_component realm, struct rxw_rxkad_ticket *out)
{
	return set_all_names(opener, names, names[1].size > 0 ? 2 : 1, names[0], names[1], realm,
			     out);
}

int32_t rxw_rxkad_set_names(const struct rxw_rxkad_opener *opener,
			    const struct rxw_rxkad_component *components, size_t count,
			    struct rxw_rxkad_component realm, struct rxw_rxkad_ticket *out)
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
