/* SPDX-License-Identifier: BSD-2-Clause */
/* Access control: the protection that calls need, the caller's identity, and what it may see. */
#include "fileserver/guard/guard.h"

#include <rxwire/afs.h>

#include <assert.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "common/failure.h"
#include "fileserver/base/base.h"
#include "program/address.h"

#define SEEN	     1024 /* slots of the table of identities that were logged */
#define REFUSED_NS   (60 * (uint64_t)NS_PER_S) /* between lines about tickets without a key */
#define KEYS_TEXT    600
#define NAME_LONGEST 255 /* of a file */

/* One --allow. */
struct rule {
	char *who;	 /* identity and patterns, each terminated by NUL; owns the text */
	char **patterns; /* into who */
	size_t count;
};

/* Minimal protection of calls; from CLEAR on, a level of enum rxw_level plus one. */
enum demand {
	DEMAND_UNSET = -1,
	DEMAND_NONE,
	DEMAND_CLEAR,
	DEMAND_AUTH,
	DEMAND_CRYPT
};

struct fsd_guard {
	struct fsd_guard_options options;
	struct tools_keys keys; /* empty without --keytab */
	struct offer {
		rxw_security *classes[3];
		size_t count;
	} offers[FSD_SERVICES];
	int require[FSD_SERVICES]; /* enum demand */
	struct rule *rules;
	size_t rule_count;
	uint64_t secret[2]; /* of the hash of `seen` */
	_Atomic uint64_t seen[SEEN];
	struct fsd_log_limit seen_limit; /* a user may have more ports than there are slots */
	_Atomic uint64_t tickets_refused;
	_Atomic uint64_t next_refused; /* monotonic_ns() of the next line about them */
};

static const char *const service_names[] = {"fs", "vl", "vol"};
static const char *const level_names[] = {"none", "clear", "auth",
					  "crypt"}; /* from DEMAND_NONE on */

/* ---- options ---- */

static int level_of(const char *text)
{
	for (int i = 0; i < 4; i++)
		if (strcmp(text, level_names[i]) == 0)
			return i;
	return DEMAND_UNSET;
}

static int parse_require(struct fsd_guard *guard, const char *text, char *message)
{
	const char *colon = strchr(text, ':');
	int level = level_of(colon ? colon + 1 : text);
	bool known = false;

	for (int i = 0; i < FSD_SERVICES && level >= 0; i++) {
		if (colon && (strlen(service_names[i]) != (size_t)(colon - text) ||
			      memcmp(service_names[i], text, (size_t)(colon - text)) != 0))
			continue;
		guard->require[i] = level;
		known = true;
	}
	if (known)
		return 0;
	return fail_with(
		-1, message, FSD_MESSAGE_MAX,
		"--require %.100s: give none, clear, auth or crypt, for all services or with "
		"fs:, vl: or vol: before it for one",
		text);
}

/* "WHO PATTERN...", separated by blanks. */
static int parse_rule(struct rule *rule, const char *text, char *message)
{
	char *word, *rest;

	rule->who = strdup(text);
	/* Each pattern takes two bytes at least. */
	rule->patterns = calloc(strlen(text) / 2 + 1, sizeof(*rule->patterns));
	if (!rule->who || !rule->patterns)
		return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
	word = strtok_r(rule->who, " \t", &rest);
	if (word && word != rule->who)
		memmove(rule->who, word, strlen(word) + 1);
	while ((word = strtok_r(NULL, " \t", &rest)))
		rule->patterns[rule->count++] = word + strspn(word, "/");
	if (rule->count == 0 || (!strchr(rule->who, '@') && strcmp(rule->who, "anonymous") != 0 &&
				 strcmp(rule->who, "any-authenticated") != 0)) {
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"--allow '%.100s': give user@REALM, anonymous or any-authenticated, "
			"then patterns of paths",
			text);
	}
	return 0;
}

/* An administrator's name needs a realm: no client has a name without one. */
static int check_administrators(const struct fsd_guard_options *options, char *message)
{
	for (size_t i = 0; i < options->administrator_count; i++) {
		if (strchr(options->administrators[i], '@'))
			continue;
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--administrator %.200s: give user@REALM",
				 options->administrators[i]);
	}
	return 0;
}

static bool is_loopback(const char *listen)
{
	struct tools_address address;
	char reason[256];

	if (tools_resolve(listen, 0, 1, &address, reason, sizeof(reason)) < 0)
		return true; /* creating the endpoint will report the error */
	if (address.sa.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&address.sa)->sin6_addr);
	return ntohl(((struct sockaddr_in *)&address.sa)->sin_addr.s_addr) >> 24 == 127;
}

/*
 * Defaults. Locations and volumes may be read by anyone, as in any cell, because clients look up a
 * volume before their user has a token. 0, or -1 after a message.
 */
static int fill_require(struct fsd_guard *guard, char *message)
{
	bool near = is_loopback(guard->options.listen), everybody = false;

	for (size_t i = 0; i < guard->rule_count; i++)
		everybody = everybody || strcmp(guard->rules[i].who, "anonymous") == 0;
	for (int i = 0; i < FSD_SERVICES; i++) {
		if (guard->require[i] == DEMAND_UNSET && (near || everybody || i != FSD_FS))
			guard->require[i] = DEMAND_NONE;
		else if (guard->require[i] == DEMAND_UNSET && guard->options.keytab)
			guard->require[i] = DEMAND_AUTH;
		if (guard->require[i] == DEMAND_UNSET)
			return fail_with(
				-1, message, FSD_MESSAGE_MAX,
				"--listen %.100s lets other machines call: give --keytab, or "
				"--require none to serve anonymous clients",
				guard->options.listen);
		if (guard->require[i] > DEMAND_NONE && !guard->options.keytab)
			return fail_with(-1, message, FSD_MESSAGE_MAX,
					 "--require needs keys to know clients by: --keytab FILE");
	}
	return 0;
}

/* The minimal level of connections to the service; calls are checked in addition. */
static int connection_level(const struct fsd_guard *guard, int service)
{
	/*
	 * OpenAFS's -localauth, which acts as the service itself, uses level clear with these two.
	 */
	if (service != FSD_FS || guard->require[service] <= DEMAND_CLEAR)
		return RXW_LEVEL_CLEAR;
	return guard->require[service] - 1;
}

/* Load the keys. Tokens of rxgk get the lowest of the levels, which are known by now. */
static int load_keys(struct fsd_guard *guard, char *message)
{
	struct tools_auth auth = {.class = -1,
				  .level = RXW_LEVEL_CRYPT,
				  .key_file = guard->options.keytab,
				  .cell = guard->options.cell};
	char why[TOOLS_AUTH_MESSAGE];

	for (int i = 0; i < FSD_SERVICES; i++)
		if (guard->require[i] - 1 < auth.level)
			auth.level = guard->require[i] > DEMAND_CLEAR ? guard->require[i] - 1
								      : RXW_LEVEL_CLEAR;
	if (auth.key_file && tools_keys_open(&guard->keys, &auth, why, sizeof(why)) < 0)
		return fail_with(-1, message, FSD_MESSAGE_MAX, "--keytab: %.490s", why);
	if (auth.key_file) {
		if (why[0])
			fsd_log(RXW_LOG_WARNING, "%s", why);
		return 0;
	}
	if (rxw_keys_create(&guard->keys.keys) == 0)
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
}

static const char *enctype_name(int32_t enctype, char text[24])
{
	static const struct {
		int32_t number;
		const char *name;
	} names[] = {
		{0, "single DES"},
		{16, "des3-cbc-sha1"},
		{17, "aes128-cts-hmac-sha1-96"},
		{18, "aes256-cts-hmac-sha1-96"},
		{19, "aes128-cts-hmac-sha256-128"},
		{20, "aes256-cts-hmac-sha384-192"},
		{23, "arcfour-hmac"},
		{25, "camellia128-cts-cmac"},
		{26, "camellia256-cts-cmac"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == enctype)
			return names[i].name;
	snprintf(text, 24, "enctype %d", (int)enctype);
	return text;
}

/*
 * The callers' tickets name a key that is not loaded, mostly a newer one. Their users see no more than a refusal, so
 * the log has it, once a minute: strangers can send as many as they like.
 */
static int refuse_ticket(void *context, int32_t kvno, int32_t enctype, void *key, size_t room,
			 size_t *length)
{
	struct fsd_guard *guard = context;
	uint64_t now = monotonic_ns(), next = atomic_load(&guard->next_refused), refused;
	char text[24];

	(void)key, (void)room, (void)length;
	refused = 1 + atomic_fetch_add_explicit(&guard->tickets_refused, 1, memory_order_relaxed);
	if (guard->options.keytab && now >= next &&
	    atomic_compare_exchange_strong(&guard->next_refused, &next, now + REFUSED_NS))
		fsd_log(RXW_LOG_WARNING,
			"a ticket was refused: the key of kvno %d and %s of afs%s%.80s is not in "
			"%.200s; add it there and reload, or have the user get a new ticket (%llu "
			"refused so far)",
			(int)kvno, enctype_name(enctype, text), guard->options.cell ? "/" : "",
			guard->options.cell ? guard->options.cell : "", guard->options.keytab,
			(unsigned long long)refused);
	return -1;
}

uint64_t fsd_guard_tickets_refused(const struct fsd_guard *guard)
{
	return guard ? atomic_load_explicit(&guard->tickets_refused, memory_order_relaxed) : 0;
}

void fsd_guard_log_keys(const struct fsd_guard *guard)
{
	struct rxw_key_info info = {.size = sizeof(info)};
	char text[KEYS_TEXT] = "", name[24];
	size_t n = 0;

	if (!guard->options.keytab)
		return;
	for (size_t i = 0; n < sizeof(text) && !rxw_keys_info(guard->keys.keys, i, &info); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s kvno %d %s", n ? "," : "",
				      info.type == RXW_KEY_RXGK ? "rxgk" : "rxkad", (int)info.kvno,
				      enctype_name(info.enctype, name));
	fsd_log(RXW_LOG_INFO, "keys from %.200s:%s%s%s", guard->options.keytab, text,
		n >= sizeof(text) ? " ..." : "",
		guard->keys.negotiation ? "; tokens of rxgk for tickets of afs-rxgk" : "");
}

static bool has_service_keys(const struct fsd_guard *guard)
{
	struct rxw_key_info info = {.size = sizeof(info)};

	return rxw_keys_info(guard->keys.keys, 0, &info) == 0;
}

/*
 * Every service offers all classes, as OpenAFS does; fsd_guard_enter() decides which calls are
 * served. A connection of a class that is not offered would be refused with code -2, and Linux up
 * to 6.12 panics if it gets that for a lookup. A class without keys reports that to its clients.
 */
static int open_service(struct fsd_guard *guard, enum fsd_service_kind kind, char *message)
{
	const struct rxw_rxkad_server_options kad = {
		.size = sizeof(kad),
		.keys = guard->keys.keys,
		.find_key = refuse_ticket,
		.find_context = guard,
		/* The protection database decides which user such a principal is, as with rxgk. */
		.allow_dotted = true,
		.level_min = (uint8_t)connection_level(guard, kind),
		.allow_single_des = guard->options.single_des,
		.local_realm = guard->options.realm,
	};
	const struct rxw_rxgk_server_options gk = {
		.size = sizeof(gk),
		.keys = guard->keys.keys,
		.level_min = (uint8_t)connection_level(guard, kind),
	};
	struct offer *offer = &guard->offers[kind];
	int rc;

	assert(!offer->count && guard->require[kind] != DEMAND_UNSET);
	offer->classes[offer->count++] = rxw_security_null();
	rc = rxw_rxkad_server(&kad, &offer->classes[offer->count]);
	offer->count += rc == 0;
	if (rc == 0) {
		rc = rxw_rxgk_server(&gk, &offer->classes[offer->count]);
		offer->count += rc == 0;
	}
	if (rc < 0)
		snprintf(message, FSD_MESSAGE_MAX, "security classes of service %s: %s",
			 service_names[kind], rxw_strerror(rc));
	return rc;
}

static int open_services(struct fsd_guard *guard, char *message)
{
	if (guard->options.keytab && !has_service_keys(guard))
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--keytab %.200s has no key for rxkad or rxgk",
				 guard->options.keytab);
	for (int i = 0; i < FSD_SERVICES; i++)
		if (open_service(guard, (enum fsd_service_kind)i, message) < 0)
			return -1;
	return 0;
}

int fsd_guard_open(const struct fsd_guard_options *options, struct fsd_guard **out, char *message)
{
	struct fsd_guard *guard = calloc(1, sizeof(*guard));
	size_t rules = options->allow_count;

	*out = NULL;
	if (guard)
		guard->rules = calloc(rules ? rules : 1, sizeof(*guard->rules));
	if (!guard || !guard->rules || rxw_random(guard->secret, sizeof(guard->secret))) {
		if (guard)
			free(guard->rules);
		free(guard);
		return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
	}
	guard->options = *options;
	for (int i = 0; i < FSD_SERVICES; i++)
		guard->require[i] = DEMAND_UNSET;
	for (size_t i = 0; i < options->require_count; i++)
		if (parse_require(guard, options->require[i], message) < 0)
			goto fail;
	for (size_t i = 0; i < rules; i++) {
		guard->rule_count++;
		if (parse_rule(&guard->rules[i], options->allow[i], message) < 0)
			goto fail;
	}
	if (check_administrators(options, message) < 0 || fill_require(guard, message) < 0 ||
	    load_keys(guard, message) < 0 || open_services(guard, message) < 0)
		goto fail;
	*out = guard;
	return 0;
fail:
	fsd_guard_close(guard);
	return -1;
}

void fsd_guard_close(struct fsd_guard *guard)
{
	if (!guard)
		return;
	for (int i = 0; i < FSD_SERVICES; i++)
		while (guard->offers[i].count)
			rxw_security_unref(guard->offers[i].classes[--guard->offers[i].count]);
	for (size_t i = 0; i < guard->rule_count; i++) {
		free(guard->rules[i].who);
		free(guard->rules[i].patterns);
	}
	free(guard->rules);
	tools_keys_close(&guard->keys);
	free(guard);
}

rxw_security *const *fsd_guard_classes(const struct fsd_guard *guard, enum fsd_service_kind service,
				       size_t *count)
{
	*count = guard->offers[service].count;
	return guard->offers[service].classes;
}

int fsd_guard_offer(const struct fsd_guard *guard, rxw_endpoint *endpoint)
{
	return tools_keys_offer(&guard->keys, endpoint);
}

rxw_security *fsd_guard_as_service(const struct fsd_guard *guard, uint8_t level)
{
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_security *security = NULL;

	if (!guard || !guard->keys.keys || rxw_rxkad_print_token(guard->keys.keys, NULL, &token))
		return NULL;
	if (rxw_rxkad_client(&token, level, &security))
		security = NULL;
	rxw_rxkad_token_free(&token);
	return security;
}

bool fsd_guard_asks(const struct fsd_guard *guard)
{
	return guard && (guard->options.keytab || guard->rule_count);
}

int fsd_guard_reload(struct fsd_guard *guard)
{
	char message[TOOLS_AUTH_MESSAGE] = "";
	int rc = guard->keys.keys ? rxw_keys_reload(guard->keys.keys, message, sizeof(message)) : 0;

	if (rc < 0)
		fsd_log(RXW_LOG_WARNING, "%s; the old keys stay in use", message);
	else
		fsd_log(RXW_LOG_INFO, "keys of the service: %s", rc ? "changed" : "unchanged");
	if (rc > 0)
		fsd_guard_log_keys(guard);
	if (rc >= 0 && message[0])
		fsd_log(RXW_LOG_WARNING, "%s", message);
	return rc < 0 ? -1 : 0;
}

const char *fsd_guard_level(const struct fsd_guard *guard, enum fsd_service_kind service)
{
	return level_names[guard->require[service]];
}

/* ---- the caller ---- */

static bool is_administrator(const struct fsd_guard *guard, const struct rxw_identity *identity)
{
	const struct fsd_guard_options *options = &guard->options;
	const char *name = identity->name;

	if (identity->local ||
	    (options->superuser && options->superuser(options->superuser_arg, identity)))
		return true;
	for (size_t i = 0; name && i < options->administrator_count; i++)
		if (strcmp(options->administrators[i], name) == 0)
			return true;
	return false;
}

/* Log each client and identity once, as long as its slot of the table is not reused. */
static void log_identity(struct fsd_guard *guard, const rxw_call *call,
			 const struct rxw_identity *identity, bool administrator)
{
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);
	char from[TOOLS_ADDRESS_TEXT], text[TOOLS_IDENTITY], more[64] = "";
	unsigned left_out;
	uint64_t hash;

	rxw_call_peer(call, &peer, &length);
	tools_address_text(&peer, from, sizeof(from));
	tools_identity_text(identity, text, sizeof(text));
	hash = rxw_siphash(from, strlen(from), guard->secret);
	hash = (hash ^ rxw_siphash(text, strlen(text), guard->secret)) | 1;
	if (atomic_exchange_explicit(&guard->seen[hash % SEEN], hash, memory_order_relaxed) ==
		    hash ||
	    !fsd_log_permits(&guard->seen_limit, monotonic_ns(), SEEN, &left_out))
		return;
	if (left_out)
		snprintf(more, sizeof(more), " (%u other clients were not logged)", left_out);
	fsd_log(RXW_LOG_INFO, "client %s is %s%s%s", from, text,
		administrator ? ", an administrator" : "", more);
}

void fsd_guard_enter(struct fsd_guard *guard, enum fsd_service_kind kind, const rxw_call *call,
		     struct fsd_who *who)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	int demand = guard->require[kind];

	*who = (struct fsd_who){.refused = demand > DEMAND_NONE};
	if (rxw_call_identity(call, &identity) < 0 || (!identity.name && !identity.local))
		return;
	who->name = identity.name;
	who->authenticated = true;
	who->administrator = is_administrator(guard, &identity);
	who->below = identity.level + 1 < demand;
	if (who->administrator && kind != FSD_FS)
		demand = DEMAND_CLEAR;
	who->refused = identity.level + 1 < demand;
	who->weak = !who->refused			? 0
		    : identity.index == RXW_RXKAD_INDEX ? RXW_RXKAD_LEVELFAIL
							: RXW_RXGK_BADLEVEL;
	log_identity(guard, call, &identity, who->administrator);
}

bool fsd_guard_near(const struct fsd_guard *guard)
{
	return is_loopback(guard->options.listen);
}

bool fsd_guard_protects(const struct fsd_guard *guard, enum fsd_service_kind kind)
{
	return guard && guard->require[kind] > DEMAND_NONE;
}

/* ---- access to paths ---- */

/* Take the next name off *path. Returns 1, 0: none is left, -1: it is too long. */
static int next_name(const char **path, char name[NAME_LONGEST + 1])
{
	const char *p = *path + strspn(*path, "/");
	size_t length = strcspn(p, "/");

	*path = p + length;
	if (length == 0)
		return 0;
	if (length > NAME_LONGEST)
		return -1;
	memcpy(name, p, length);
	name[length] = '\0';
	return 1;
}

/* All names that both have must match. The rest of the longer one decides. */
static enum fsd_sight match_pattern_path(const char *pattern, const char *path)
{
	char wanted[NAME_LONGEST + 1], name[NAME_LONGEST + 1];

	for (;;) {
		int more = next_name(&pattern, wanted), there = next_name(&path, name);

		if (more < 0 || there < 0)
			return FSD_SIGHT_NONE;
		if (more == 0)
			return FSD_SIGHT_ALL;
		if (there == 0)
			return FSD_SIGHT_WAY;
		if (fnmatch(wanted, name, 0) != 0)
			return FSD_SIGHT_NONE;
	}
}

static bool is_for(const struct rule *rule, const struct fsd_who *who)
{
	if (strcmp(rule->who, "anonymous") == 0)
		return true; /* what anonymous callers may see, every caller may */
	if (strcmp(rule->who, "any-authenticated") == 0)
		return who->authenticated;
	return who->name && strcmp(rule->who, who->name) == 0;
}

enum fsd_sight fsd_guard_may(const struct fsd_guard *guard, const struct fsd_who *who,
			     const char *path)
{
	enum fsd_sight sight = FSD_SIGHT_NONE;

	if (!guard)
		return FSD_SIGHT_ALL;
	if (who->refused)
		return FSD_SIGHT_NONE;
	if (guard->rule_count == 0 || who->administrator)
		return FSD_SIGHT_ALL;
	for (size_t i = 0; i < guard->rule_count; i++) {
		if (!is_for(&guard->rules[i], who))
			continue;
		for (size_t k = 0; k < guard->rules[i].count; k++) {
			enum fsd_sight one = match_pattern_path(guard->rules[i].patterns[k], path);

			sight = one > sight ? one : sight;
		}
	}
	return sight;
}
