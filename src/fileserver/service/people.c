/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and groups, from the protection database. */
#include <stdio.h>
#include <string.h>
#include <rxwire/rxkad.h>
#include <rxwire/security.h>

#include "fileserver/service/private.h"

static int32_t user_of(struct prot *prot, const struct prot_view *view, const rxw_call *rx)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	if (rxw_call_identity(rx, &identity) < 0)
		return PROT_ANONYMOUS;
	if (identity.index == RXW_RXKAD_INDEX && identity.rxkad_primary)
		return prot_user_of_parts(prot, view, identity.rxkad_primary,
					  identity.rxkad_instance, identity.rxkad_cell);
	return identity.name ? prot_user_of_principal(prot, view, identity.name) : PROT_ANONYMOUS;
}

size_t fsd_people_identify(struct prot *prot, const rxw_call *rx, int32_t *id, int32_t *ids,
			   size_t room)
{
	const struct prot_view *view = prot_view_get(prot);
	size_t n = 0;

	*id = user_of(prot, view, rx);
	if (*id != PROT_ANONYMOUS)
		n = prot_cps(view, *id, ids, room);
	prot_view_put(view);
	return n;
}

static bool id_of(void *arg, const char *name, int32_t *id)
{
	const struct prot_view *view = prot_view_get(arg);
	const struct prot_entry *entry = prot_by_name(view, name);

	if (entry)
		*id = entry->id;
	prot_view_put(view);
	return entry != NULL;
}

static bool name_of(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1])
{
	const struct prot_view *view = prot_view_get(arg);
	const struct prot_entry *entry = prot_by_id(view, id);

	if (entry)
		snprintf(name, FSD_PERSON_MAX + 1, "%s", entry->name);
	prot_view_put(view);
	return entry != NULL;
}

struct fsd_names fsd_people_names(struct prot *prot)
{
	if (!prot)
		return (struct fsd_names){0};
	return (struct fsd_names){.id_of = id_of, .name_of = name_of, .arg = prot};
}
