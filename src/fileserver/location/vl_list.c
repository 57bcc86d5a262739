/* SPDX-License-Identifier: BSD-2-Clause */
/* The location service: lists of entries, all or those of a selection. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/error.h>

#include "afs/numbers.h"
#include "fileserver/location/entries.h"

#define PAGE_MAX   512	/* entries of a reply that can be continued */
#define LOOKED_MAX 4096 /* volumes looked at for it */
#define LIST_MAX   8192 /* of one that cannot */

/* Mask of a VldbListByAttributes. */
enum {
	BY_SERVER = 1,
	BY_PARTITION = 2,
	BY_ID = 8,
	BY_FLAG = 0x10,
};

/* -- expressions: those that OpenAFS documents for its backup system -- */

/*
 * An expression is a row of atoms: characters, ".", or sets in brackets, each perhaps with a "*" behind it. A name is matched as a whole.
 * The time is at most the product of both lengths, whatever the expression is.
 */
#define ATOMS_MAX VL_MAXNAMELEN
struct expression {
	unsigned count;
	struct atom {
		bool many; /* any number of them */
		uint8_t set[32];
	} atom[ATOMS_MAX];
};

static void set_character(struct atom *atom, uint8_t c)
{
	atom->set[c / 8] |= (uint8_t)(1u << c % 8);
}

/* The set whose '[' is before *at, which moves behind its ']'. False: there is no such end, or it has a class. */
static bool parse_set(const char **at, struct atom *atom)
{
	const char *p = *at;
	bool negative = *p == '^', first = true;

	p += negative;
	for (; *p && (*p != ']' || first); first = false) {
		uint8_t from = (uint8_t)*p++, to = from;

		if (from == '[' && *p && strchr(":.=", *p))
			return false;
		if (p[0] == '-' && p[1] && p[1] != ']') {
			to = (uint8_t)p[1];
			p += 2;
		}
		for (unsigned c = from; c <= to; c++)
			set_character(atom, (uint8_t)c);
	}
	for (size_t i = 0; negative && i < sizeof(atom->set); i++)
		atom->set[i] = (uint8_t)~atom->set[i];
	*at = p + 1;
	return *p == ']';
}

/* Groups, repeats with a count and references are unknown. */
static bool parse_atom(const char **at, struct atom *atom)
{
	char c = *(*at)++;

	if (c == '[')
		return parse_set(at, atom);
	if (c == '.') {
		memset(atom->set, 0xff, sizeof(atom->set));
		return true;
	}
	if (c == '\\') {
		c = *(*at)++;
		if (!c || isalnum((unsigned char)c) || strchr("(){}<>+?|", c))
			return false;
	}
	set_character(atom, (uint8_t)c);
	return true;
}

static bool parse_expression(const char *text, size_t length, struct expression *expression)
{
	char copy[ATOMS_MAX + 1];
	const char *at = copy;

	*expression = (struct expression){0};
	if (length > ATOMS_MAX || memchr(text, 0, length))
		return false;
	memcpy(copy, text, length);
	copy[length] = 0;
	while (*at) {
		struct atom *atom = &expression->atom[expression->count++];

		assert(expression->count <= ATOMS_MAX);
		if (!parse_atom(&at, atom))
			return false;
		atom->many = *at == '*' && at > copy;
		at += atom->many;
	}
	return true;
}

/* The places that may be reached without a character of the name. */
static void skip_atoms(const struct expression *expression, bool reached[ATOMS_MAX + 1])
{
	for (unsigned i = 0; i < expression->count; i++)
		if (reached[i] && expression->atom[i].many)
			reached[i + 1] = true;
}

static bool matches_expression(const struct expression *expression, const char *name)
{
	bool reached[ATOMS_MAX + 1] = {true}, next[ATOMS_MAX + 1];

	skip_atoms(expression, reached);
	for (; *name; name++) {
		uint8_t c = (uint8_t)*name;

		memset(next, 0, sizeof(next));
		for (unsigned i = 0; i < expression->count; i++)
			if (reached[i] && expression->atom[i].set[c / 8] >> c % 8 & 1)
				next[expression->atom[i].many ? i : i + 1] = true;
		memcpy(reached, next, sizeof(next));
		skip_atoms(expression, reached);
	}
	return reached[expression->count];
}

/* -- selections -- */

/* The selection that a client wants listed. */
struct wanted {
	const struct fsd_service *service;
	rxw_call *rx;
	const VldbListByAttributes *attr;
	const struct expression *names; /* of volumes, with suffixes; NULL: any */
	char name[VL_MAXNAMELEN]; /* the same as a name without wildcards; "": there are some */
	bool indexed;		  /* what fits in an entry is told */
	uint32_t server;	  /* that was named, as fsd_vl_server_of() has it */
};

static bool fits_name(const struct wanted *wanted, const char *name, const char *suffix)
{
	char full[2 * VL_MAXNAMELEN];

	if (!wanted->names)
		return true;
	snprintf(full, sizeof(full), "%.*s%s", VL_MAXNAMELEN - 1, name, suffix);
	return matches_expression(wanted->names, full);
}

/* Whether a site is on the server and partition that were named. */
static bool is_wanted_site(const struct wanted *wanted, const nvldbentry *e, int i)
{
	const VldbListByAttributes *attr = wanted->attr;

	return (!(attr->Mask & BY_SERVER) ||
		fsd_vl_server_of(wanted->service, wanted->rx, (uint32_t)e->serverNumber[i]) ==
			wanted->server) &&
	       (!(attr->Mask & BY_PARTITION) || attr->partition == e->serverPartition[i]);
}

/* The kind of volume (VLSF_…) by which a site fits; 0: by none. */
static int32_t find_fitting_kind(const struct wanted *wanted, const nvldbentry *e, int i)
{
	int32_t flags = e->serverFlags[i];

	if (flags & VLSF_RWVOL) {
		if (e->flags & VLF_RWEXISTS && fits_name(wanted, e->name, ""))
			return VLSF_RWVOL;
		if (e->flags & VLF_BACKEXISTS && fits_name(wanted, e->name, ".backup"))
			return VLSF_BACKVOL;
	}
	return flags & VLSF_ROVOL && fits_name(wanted, e->name, ".readonly") ? VLSF_ROVOL : 0;
}

/* Whether an entry has a volume that fits, at a site that does; its index tells the first one. */
static bool find_fitting_site(const struct wanted *wanted, nvldbentry *e)
{
	bool there = !(wanted->attr->Mask & (BY_SERVER | BY_PARTITION));

	for (int i = 0; i < e->nServers; i++) {
		int32_t kind;

		if (!is_wanted_site(wanted, e, i))
			continue;
		there = true;
		kind = wanted->indexed ? find_fitting_kind(wanted, e, i) : 0;
		if (kind) {
			e->matchindex = kind << 16 | i;
			return true;
		}
	}
	return there && (!wanted->names || !strcmp(e->name, wanted->name));
}

static bool fits_selection(const struct wanted *wanted, const struct fsd_vl_set *set, nvldbentry *e)
{
	const VldbListByAttributes *attr = wanted->attr;
	uint32_t id = attr->volumeid;

	if (attr->Mask & BY_ID)
		return id && (id == set->id[0] || id == set->id[1] || id == set->id[2]);
	return (!(attr->Mask & BY_FLAG) || attr->flag & e->flags) && find_fitting_site(wanted, e);
}

/* A dot may be meant as such. */
static bool has_no_wildcards(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return false;
	return length < VL_MAXNAMELEN;
}

/* "", ".*" or a name. Other expressions are only for administrators. */
static int32_t take_expression(struct wanted *wanted, const char *text,
			       struct expression *expression)
{
	size_t n = strlen(text);
	bool plain;

	if (n == 0 || strcmp(text, ".*") == 0)
		return 0;
	if (*text == '^')
		text++, n--;
	if (n && text[n - 1] == '$' && (n == 1 || text[n - 2] != '\\'))
		n--;
	plain = has_no_wildcards(text, n);
	if (!plain && !fsd_is_superuser(wanted->service, FSD_VL, wanted->rx))
		return AFS_VL_PERM;
	if (!parse_expression(text, n, expression))
		return AFS_VL_BADNAME;
	if (plain)
		memcpy(wanted->name, text, n);
	wanted->names = expression;
	return 0;
}

/* Entries, in memory that the caller frees. */
struct found {
	nvldbentry *entries;
	size_t count, room;
};

static bool append_found_entry(struct found *found, const nvldbentry *e)
{
	if (found->count == found->room) {
		size_t room = found->room ? found->room * 2 : 8;
		nvldbentry *more = realloc(found->entries, room * sizeof(*more));

		if (!more)
			return false;
		found->entries = more;
		found->room = room;
	}
	found->entries[found->count++] = *e;
	return true;
}

/* 0 or a code, which leaves nothing. */
static int32_t add_if_fits(const struct wanted *wanted, const struct fsd_vl_set *set,
			   struct found *found)
{
	nvldbentry e;

	fsd_vl_fill_entry(wanted->service, wanted->rx, set, &e);
	if (!fits_selection(wanted, set, &e) || append_found_entry(found, &e))
		return 0;
	free(found->entries);
	found->entries = NULL;
	return RXW_RPC_SS_MARSHAL;
}

/* The only volume that can fit, if an id or a name is wanted. False: all have to be looked at. */
static bool find_one(const struct wanted *wanted, struct fsd_vl_set *set, bool *there)
{
	static const char *const suffixes[] = {".readonly", ".backup"};
	char name[VL_MAXNAMELEN];

	if (wanted->attr->Mask & BY_ID) {
		*there = fsd_vl_find_id(wanted->service, wanted->attr->volumeid, set);
		return true;
	}
	/* An exported directory has more names than one. */
	if (!wanted->name[0] || wanted->service->exported)
		return false;
	memcpy(name, wanted->name, sizeof(name));
	for (int i = 0; i < 2; i++) {
		size_t length = strlen(name), suffix = strlen(suffixes[i]);

		if (length > suffix && !strcmp(name + length - suffix, suffixes[i])) {
			name[length - suffix] = '\0';
			break;
		}
	}
	*there = fsd_vl_find_name(wanted->service, name, set);
	return true;
}

/*
 * Find entries that fit, beginning with volume number `start` of all. At most `max`, and of at most `looked_max` volumes:
 * then *next is the number of the first one that was not looked at, else -1. 0 or a code.
 */
static int32_t find_entries(struct wanted *wanted, uint32_t start, size_t max, uint32_t looked_max,
			    struct found *found, int32_t *next)
{
	struct fsd_vl_walk walk = {.service = wanted->service, .at = start};
	struct fsd_vl_set set;
	int32_t code = 0;
	bool there;

	*next = -1;
	if (wanted->attr->Mask & BY_SERVER) {
		wanted->server = fsd_vl_server_of(wanted->service, wanted->rx,
						  (uint32_t)wanted->attr->server);
		if (wanted->server != FSD_HERE && !wanted->service->cell)
			return 0;
	}
	if (find_one(wanted, &set, &there)) {
		if (!there && wanted->attr->Mask & BY_ID)
			return AFS_VL_NOENT;
		return there && !start ? add_if_fits(wanted, &set, found) : 0;
	}
	for (uint32_t at = start; !code && fsd_vl_next(&walk, &set); at = walk.at) {
		if (found->count == max || at - start >= looked_max) {
			*next = (int32_t)at;
			break;
		}
		code = add_if_fits(wanted, &set, found);
	}
	return code;
}

/* All of them, for replies that cannot be continued. */
static int32_t find_all_entries(struct fsd_service *service, rxw_call *rx,
				const VldbListByAttributes *attr, struct found *found, int32_t *n)
{
	struct wanted wanted = {.service = service, .rx = rx, .attr = attr};
	int32_t next, code;

	if (!(attr->Mask & BY_ID) && !fsd_may_list(service, rx))
		return AFS_VBUSY;
	code = find_entries(&wanted, 0, LIST_MAX, UINT32_MAX, found, &next);
	if (!code && next >= 0) {
		free(found->entries);
		found->entries = NULL;
		code = AFS_VL_SIZEEXCEEDED;
	}
	*n = (int32_t)found->count;
	return code;
}

int32_t fsd_vl_list_attributes_n2(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				  const char *pattern, int32_t start, int32_t *n, nbulkentries *es,
				  int32_t *next)
{
	struct wanted wanted = {.service = context, .rx = rx, .attr = attr, .indexed = true};
	struct expression expression;
	int32_t code = take_expression(&wanted, pattern, &expression);
	struct found found = {0};

	*next = -1;
	if (!code && start >= 0)
		code = find_entries(&wanted, (uint32_t)start, PAGE_MAX, LOOKED_MAX, &found, next);
	*n = (int32_t)found.count;
	es->val = found.entries;
	es->len = (uint32_t)found.count;
	return code;
}

int32_t fsd_vl_list_attributes_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
				 int32_t *n, nbulkentries *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	if (!code) {
		es->val = found.entries;
		es->len = (uint32_t)found.count;
	}
	return code;
}

int32_t fsd_vl_list_attributes(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			       int32_t *n, bulkentries *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	if (!code && found.count) {
		es->val = calloc(found.count, sizeof(*es->val));
		es->len = es->val ? (uint32_t)found.count : 0;
		code = es->val ? 0 : RXW_RPC_SS_MARSHAL;
	}
	for (uint32_t i = 0; i < es->len; i++)
		fsd_vl_old_form(&found.entries[i], &es->val[i]);
	free(found.entries);
	return code;
}

int32_t fsd_vl_linked_list_n(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			     int32_t *n, nvldb_list *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	for (int i = *n; !code && i-- > 0;) {
		nvldblist node = calloc(1, sizeof(*node));

		if (!node) {
			code = RXW_RPC_SS_MARSHAL;
			break;
		}
		node->VldbEntry = found.entries[i];
		node->next_vldb = es->node;
		es->node = node;
	}
	free(found.entries);
	return code;
}

int32_t fsd_vl_linked_list(void *context, rxw_call *rx, const VldbListByAttributes *attr,
			   int32_t *n, vldb_list *es)
{
	struct found found = {0};
	int32_t code = find_all_entries(context, rx, attr, &found, n);

	for (int i = *n; !code && i-- > 0;) {
		vldblist node = calloc(1, sizeof(*node));

		if (!node) {
			code = RXW_RPC_SS_MARSHAL;
			break;
		}
		fsd_vl_old_form(&found.entries[i], &node->VldbEntry);
		node->next_vldb = es->node;
		es->node = node;
	}
	free(found.entries);
	return code;
}

/*
 * The cursor is the number of volumes that precede, clones included; after the last entry an empty one is returned.
 */
int32_t fsd_vl_list_entry_n(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			    int32_t *next, nvldbentry *e)
{
	struct fsd_vl_walk walk = {.service = context, .at = (uint32_t)previous};
	struct fsd_vl_set set, more;

	*count = *next = 0;
	if (previous < 0 || !fsd_vl_next(&walk, &set))
		return 0;
	*next = (int32_t)walk.at;
	*count = fsd_vl_next(&walk, &more);
	fsd_vl_fill_entry(context, rx, &set, e);
	return 0;
}

int32_t fsd_vl_list_entry(void *context, rxw_call *rx, int32_t previous, int32_t *count,
			  int32_t *next, vldbentry *e)
{
	nvldbentry ours = {0};

	fsd_vl_list_entry_n(context, rx, previous, count, next, &ours);
	fsd_vl_old_form(&ours, e);
	return 0;
}
