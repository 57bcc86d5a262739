/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of ACLs as clients send and get it. Pure: no state, any thread. */
#ifndef FILESERVER_ACL_H
#define FILESERVER_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume/interface.h"

#define FSD_ACL_TEXT_MAX 1024 /* bytes of a text, its NUL included */
#define FSD_PERSON_MAX	 63   /* bytes of the name of a user or group */

/* Names of users and groups. Both functions may be NULL: then only the predefined ones are known. */
struct fsd_names {
	bool (*id_of)(void *arg, const char *name, int32_t *id);
	bool (*name_of)(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1]);
	void *arg;
};

/*
 * Parse "P\nN\n" and P + N lines "NAME TAB RIGHTS\n", the last byte of `length` being a NUL. A name
 * may also be an id. Text behind the last counted line is ignored. Entries with one id are joined.
 * 0 or -EINVAL: syntax, more than STORE_ACL_MAX lines, a name that is unknown or "anonymous".
 */
int fsd_acl_parse(const char *text, size_t length, const struct fsd_names *names,
		  struct store_acl *acl);

/*
 * The text of an ACL. Ids without a name are printed as numbers. Returns its bytes with the NUL, or
 * -E2BIG.
 */
int fsd_acl_print(const struct store_acl *acl, const struct fsd_names *names,
		  char text[FSD_ACL_TEXT_MAX]);

/* Whether these rights allow to change something. */
bool fsd_acl_is_writing(uint32_t rights);
/* Whether it lets callers without an identity change something, wherever they are. */
bool fsd_acl_lets_anyone_write(const struct store_acl *acl);

#endif
