/* SPDX-License-Identifier: BSD-2-Clause */
/* Access flags as letters, as pts(1) shows them. */
#include <string.h>

#include "rxpt/pt.h"

/* One letter for each: for anyone, for members. 0: there is no such flag. */
static const struct {
	char any, members;
	uint32_t any_bit, members_bit;
} places[] = {
	{'S', 's', PROT_STATUS_ANY, PROT_STATUS_MEM},
	{'O', 0, PROT_OWNED_ANY, 0},
	{'M', 'm', PROT_MEMBER_ANY, PROT_MEMBER_MEM},
	{'A', 'a', PROT_ADD_ANY, PROT_ADD_MEM},
	{0, 'r', 0, PROT_REMOVE_MEM},
};

char *pt_access_text(uint32_t access, char text[PT_ACCESS_TEXT])
{
	for (size_t i = 0; i < PT_ACCESS_TEXT - 1; i++)
		text[i] = access & places[i].any_bit	   ? places[i].any
			  : access & places[i].members_bit ? places[i].members
							   : '-';
	text[PT_ACCESS_TEXT - 1] = 0;
	return text;
}

bool pt_parse_access(const char *text, uint32_t *access)
{
	*access = 0;
	if (strlen(text) != PT_ACCESS_TEXT - 1)
		return false;
	for (size_t i = 0; i < PT_ACCESS_TEXT - 1; i++) {
		if (places[i].any && text[i] == places[i].any)
			*access |= places[i].any_bit;
		else if (places[i].members && text[i] == places[i].members)
			*access |= places[i].members_bit;
		else if (text[i] != '-')
			return false;
	}
	return true;
}
