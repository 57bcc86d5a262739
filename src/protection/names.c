/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules for names of users and groups. */
#include <string.h>

#include "protection/private.h"

/*
 * The code point at *text, which moves behind it; 0 if the bytes are not UTF-8. Overlong forms,
 * surrogates and what is beyond Unicode are not.
 */
static uint32_t next_point(const uint8_t **text)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	const uint8_t *p = *text;
	int more = *p < 0x80 ? 0 : *p >> 5 == 6 ? 1 : *p >> 4 == 14 ? 2 : *p >> 3 == 30 ? 3 : -1;
	uint32_t point;

	if (more < 0)
		return 0;
	point = more ? *p & (0x3f >> more) : *p;
	for (int i = 1; i <= more; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		point = point << 6 | (p[i] & 0x3f);
	}
	*text = p + 1 + more;
	if (point < least[more] || point > 0x10ffff || point >> 11 == 0x1b)
		return 0;
	return point;
}

/* No blanks or control characters, which would break lists, ACLs and terminals. */
static bool is_printable_name(const char *name)
{
	const uint8_t *at = (const uint8_t *)name;

	while (*at) {
		uint32_t point = next_point(&at);

		if (point <= 0x20 || (point >= 0x7f && point <= 0xa0) ||
		    (point >= 0x2000 && point <= 0x200f) || (point >= 0x2028 && point <= 0x202f) ||
		    (point >= 0x2060 && point <= 0x206f) || point == 0x3000 || point == 0xfeff)
			return false;
	}
	return true;
}

/* Whether `separator` occurs at most once, with text on both sides. */
static bool has_one_separator(const char *name, char separator)
{
	const char *at = strchr(name, separator);

	return !at || (at > name && at[1] && !strchr(at + 1, separator));
}

bool prot_name_valid(const char *name, bool group, const char **why)
{
	size_t length = strlen(name);

	if (length == 0 || length > PROT_NAME_MAX)
		*why = "a name has 1 to 63 bytes";
	else if (!is_printable_name(name))
		*why = "a name is UTF-8 without blanks and control characters";
	else if (strspn(name, "0123456789") == length)
		*why = "a name must not look like an id";
	else if (name[0] == '-')
		*why = "a name must not begin with '-'";
	else if (!group && strchr(name, ':'))
		*why = "the name of a user has no ':'";
	else if (!has_one_separator(name, '@'))
		*why = "a name has at most one '@', with the cell of foreign users behind it";
	else if (!has_one_separator(name, ':'))
		*why = "a name has at most one ':', with text on both sides";
	else
		return true;
	return false;
}
