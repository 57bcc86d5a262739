/* SPDX-License-Identifier: BSD-2-Clause */
/* Security objects of rxkad. */
#include "security.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rx/rxkad.h>

/* Finds keys for a server's object. It lives as long as the class of the library. */
struct finder {
	void *rock;
	rxkad_get_key_enctype_func get_key_enctype;
};

static int find_service_key(void *context, int32_t kvno, int32_t enctype, void *key, size_t room,
			    size_t *length)
{
	const struct finder *finder = context;

	*length = room;
	if (!finder->get_key_enctype ||
	    finder->get_key_enctype(finder->rock, kvno, enctype, key, length))
		return -RXW_ENOKEY;
	return 0;
}

static void set_dots(struct rx_securityClass *klass, bool allow)
{
	(void)rxw_rxkad_allow_dotted(klass->security, allow);
}

struct rx_securityClass *
rxkad_NewKrb5ServerSecurityObject(rxkad_level level, void *rock,
				  int (*get_key)(void *, int, struct ktc_encryptionKey *),
				  rxkad_get_key_enctype_func get_key_enctype,
				  int (*user_ok)(char *, char *, char *, afs_int32))
{
	struct rxw_rxkad_server_options options = {
		.size = sizeof(options),
		.level_min = (uint8_t)level,
		.find_key = find_service_key,
		.find_destroy = free,
	};
	struct rx_securityClass *klass;
	struct finder *finder = NULL;
	rxw_security *security;
	int result = -RXW_EINVAL;

	if (user_ok) {
		classic_log("rxkad server: user_ok is not supported; pass NULL");
		return NULL;
	}
	if (get_key || get_key_enctype)
		finder = calloc(1, sizeof(*finder));
	if (finder) {
		*finder = (struct finder){rock, get_key_enctype};
		options.find_context = finder;
		result = rxw_rxkad_server(&options, &security);
	}
	if (result) {
		classic_log("rxkad server: %s", rxw_strerror(result));
		free(finder);
		return NULL;
	}
	klass = classic_security_create(security);
	if (klass)
		klass->dots = set_dots;
	return klass;
}

struct rx_securityClass *
rxkad_NewServerSecurityObject(rxkad_level level, void *rock,
			      int (*get_key)(void *, int, struct ktc_encryptionKey *),
			      int (*user_ok)(char *, char *, char *, afs_int32))
{
	if (!get_key)
		return NULL;
	classic_ignored("rxkad_NewServerSecurityObject",
			"its keys are of single DES, which is not accepted");
	return rxkad_NewKrb5ServerSecurityObject(level, rock, get_key, NULL, user_ok);
}

struct rx_securityClass *rxkad_NewClientSecurityObject(rxkad_level level,
						       struct ktc_encryptionKey *key,
						       afs_int32 kvno, int length, char *ticket)
{
	struct rxw_rxkad_token token = {
		.size = sizeof(token),
		.kvno = kvno,
		.ticket = ticket,
		.ticket_length = (size_t)length,
		.expires = INT64_MAX,
	};
	rxw_security *security;
	int result;

	if (length < 0)
		return NULL;
	memcpy(token.session_key, key, sizeof(token.session_key));
	result = rxw_rxkad_client(&token, (uint8_t)level, &security);
	explicit_bzero(token.session_key, sizeof(token.session_key));
	return result ? NULL : classic_security_create(security);
}

/* -- Levels --------------------------------------------------------------------------------------- */

static char level_names[][6] = {"clear", "auth", "crypt"};
#define LEVELS (rxkad_level)(sizeof(level_names) / sizeof(level_names[0]))

rxkad_level rxkad_StringToLevel(char *name)
{
	for (rxkad_level i = 0; i < LEVELS; i++)
		if (!strcmp(name, level_names[i]))
			return i;
	return -1;
}

char *rxkad_LevelToString(rxkad_level level)
{
	static char unknown[] = "unknown";

	return level >= 0 && level < LEVELS ? level_names[level] : unknown;
}
