/* SPDX-License-Identifier: BSD-2-Clause */
/* Users, groups and machines of the database of --protection, which is in memory. */
#include "fileserver/guard/people.h"

#include <errno.h>
#include <stdio.h>

static struct prot *prot_of(struct fsd_people *people)
{
	return ((struct fsd_database_people *)(void *)people)->prot;
}

static int32_t find_database_user(struct prot *prot, const struct prot_view *view,
				  const struct rxw_identity *identity)
{
	if (identity->index == RXW_RXKAD_INDEX && identity->rxkad_primary)
		return prot_user_of_parts(prot, view, identity->rxkad_primary,
					  identity->rxkad_instance, identity->rxkad_cell);
	return identity->name ? prot_user_of_principal(prot, view, identity->name) : PROT_ANONYMOUS;
}

static int user_in_database(struct fsd_people *people, const struct rxw_identity *identity,
			    struct fsd_asker *asker, struct fsd_ids *ids)
{
	struct prot *prot = prot_of(people);
	const struct prot_view *view = prot_view_get(prot);

	(void)asker;
	ids->id = find_database_user(prot, view, identity);
	ids->count = ids->id == PROT_ANONYMOUS ? 0 : prot_cps(view, ids->id, ids->ids, ids->room);
	prot_view_put(view);
	return ids->count ? 0 : -ENOENT;
}

static int machine_in_database(struct fsd_people *people, uint32_t address, struct fsd_asker *asker,
			       struct fsd_ids *ids)
{
	struct prot *prot = prot_of(people);
	const struct prot_view *view;

	(void)asker;
	ids->count = 0;
	if (!prot_has_machines(prot))
		return 0;
	view = prot_view_get(prot);
	ids->count = prot_host_cps(view, address, ids->ids, ids->room);
	prot_view_put(view);
	return 0;
}

static int id_in_database(struct fsd_people *people, const char *name, struct fsd_asker *asker,
			  int32_t *id)
{
	const struct prot_view *view = prot_view_get(prot_of(people));
	const struct prot_entry *entry = prot_by_name(view, name);

	(void)asker;
	if (entry)
		*id = entry->id;
	prot_view_put(view);
	return entry ? 0 : -ENOENT;
}

static int name_in_database(struct fsd_people *people, int32_t id, struct fsd_asker *asker,
			    char name[FSD_PERSON_MAX + 1])
{
	const struct prot_view *view = prot_view_get(prot_of(people));
	const struct prot_entry *entry = prot_by_id(view, id);

	(void)asker;
	if (entry)
		snprintf(name, FSD_PERSON_MAX + 1, "%s", entry->name);
	prot_view_put(view);
	return entry ? 0 : -ENOENT;
}

/* Memberships are looked up at each call, so there is nothing to forget. */
static void forget_nothing(struct fsd_people *people)
{
	(void)people;
}

void fsd_people_of_database(struct fsd_database_people *people, struct prot *prot)
{
	static const struct fsd_people_ops ops = {
		.user = user_in_database,
		.machine = machine_in_database,
		.id_of = id_in_database,
		.name_of = name_in_database,
		.forget = forget_nothing,
	};

	*people = (struct fsd_database_people){.people.ops = &ops, .prot = prot};
}
