/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a folder of OpenAFS's servers. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/failure.h"
#include "fileserver/member/membership.h"

#define LINE_BYTES 510 /* of a line */

static void free_folder(struct member_folder *folder)
{
	for (size_t i = 0; i < folder->realms; i++)
		free(folder->realm[i]);
	for (size_t i = 0; i < folder->superusers; i++)
		free(folder->superuser[i]);
	free(folder);
}

struct member_folder *member_folder_ref(struct member_folder *folder)
{
	atomic_fetch_add(&folder->refs, 1);
	return folder;
}

void member_folder_unref(struct member_folder *folder)
{
	if (folder && atomic_fetch_sub(&folder->refs, 1) == 1)
		free_folder(folder);
}

/* -- lines -- */

/* The next line, without blanks at its end; what follows a part of one is none. 1; 0: there are no more; -1: it is too long. */
static int read_line(FILE *f, char line[LINE_BYTES + 2])
{
	size_t n;

	if (!fgets(line, LINE_BYTES + 2, f))
		return 0;
	n = strlen(line);
	if (!n || (line[n - 1] != '\n' && !feof(f)))
		return -1;
	while (n && strchr(" \t\r\n", line[n - 1]))
		line[--n] = 0;
	return 1;
}

/* Gives each line of a file, without blanks at its end. A file that is missing has none. False: it cannot be read. */
static bool read_lines(const char *path, bool (*each)(struct member_folder *folder, char *line),
		       struct member_folder *folder, char *message)
{
	char line[LINE_BYTES + 2];
	FILE *f = fopen(path, "re");
	bool good = true;
	int got = 1;

	if (!f && errno == ENOENT)
		return true;
	if (!f) {
		snprintf(message, FSD_MESSAGE_MAX, "--cell-config: %.300s: %s", path,
			 strerror(errno));
		return false;
	}
	while (good && (got = read_line(f, line)) > 0) {
		if (*line && line[0] != '#' && !each(folder, line)) {
			snprintf(message, FSD_MESSAGE_MAX,
				 "--cell-config: %.300s: \"%.80s\" cannot be used", path, line);
			good = false;
		}
	}
	if (got < 0) {
		snprintf(
			message, FSD_MESSAGE_MAX,
			"--cell-config: %.300s: a line has more than %d bytes, or no text: shorten it",
			path, LINE_BYTES);
		good = false;
	}
	if (good && ferror(f)) {
		snprintf(message, FSD_MESSAGE_MAX, "--cell-config: %.300s cannot be read", path);
		good = false;
	}
	fclose(f);
	return good;
}

/* "A.B.C.D", after "f " for one that the machine need not have. */
static bool read_filter(char *line, struct member_filter *filter)
{
	struct in_addr address;
	char *at = line + strspn(line, " \t");

	filter->fake = (*at == 'f' || *at == 'F') && strchr(" \t", at[1]);
	if (filter->fake)
		at += 1 + strspn(at + 1, " \t");
	at[strcspn(at, " \t#")] = 0;
	if (inet_pton(AF_INET, at, &address) != 1)
		return false;
	filter->address = ntohl(address.s_addr);
	return true;
}

static bool add_info(struct member_folder *folder, char *line)
{
	return folder->infos < MEMBER_FILTERS && read_filter(line, &folder->info[folder->infos++]);
}

static bool add_restriction(struct member_folder *folder, char *line)
{
	return folder->restricts < MEMBER_FILTERS &&
	       read_filter(line, &folder->restrict_[folder->restricts++]);
}

/* The first line of krb.conf has the realms; others are about servers of Kerberos 4. */
static bool add_realms(struct member_folder *folder, char *line)
{
	char *rest = NULL, *word = folder->realms ? NULL : strtok_r(line, " \t", &rest);

	for (; word && folder->realms < MEMBER_REALMS; word = strtok_r(NULL, " \t", &rest)) {
		folder->realm[folder->realms] = strdup(word);
		if (!folder->realm[folder->realms])
			return false;
		folder->realms++;
	}
	return true;
}

static bool is_local_domain(const struct member_folder *folder, const char *domain)
{
	if (strcasecmp(domain, folder->cell) == 0)
		return true;
	for (size_t i = 0; i < folder->realms; i++)
		if (strcmp(domain, folder->realm[i]) == 0)
			return true;
	return false;
}

/* A line that begins with a blank has a name in another form, which only bos(8) writes for identities without a name here. */
static bool add_superuser(struct member_folder *folder, char *line)
{
	char *at = strchr(line, '@'), *name;

	if (*line == ' ' || *line == '\t')
		return true;
	if (folder->superusers == MEMBER_NAMES || strpbrk(line, " \t"))
		return false;
	if (at && is_local_domain(folder, at + 1))
		*at = 0;
	for (; at && *at; at++)
		*at = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
	name = strdup(line);
	if (!name)
		return false;
	for (char *slash = strchr(name, '/'); slash; slash = NULL)
		*slash = '.';
	folder->superuser[folder->superusers++] = name;
	return true;
}

/* -- the cell and its servers -- */

static bool find_keys(struct member_folder *folder, const char *path, char *message)
{
	static const char *const names[] = {"KeyFileExt", "rxkad.keytab", "KeyFile"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(folder->keys, sizeof(folder->keys), "%s/%s", path, names[i]);
		if (access(folder->keys, F_OK) == 0)
			return true;
	}
	return fail_with(
		false, message, FSD_MESSAGE_MAX,
		"--cell-config %.200s: it has no KeyFileExt, rxkad.keytab or KeyFile, with "
		"which the servers of a cell know each other",
		path);
}

/* The first line of ThisCell. */
static bool set_cell(struct member_folder *folder, char *line)
{
	if (*folder->cell)
		return true;
	line += strspn(line, " \t");
	line[strcspn(line, " \t#")] = 0;
	return strlen(line) < sizeof(folder->cell) && strcpy(folder->cell, line);
}

static void log_cell_fault(void *arg, const char *text)
{
	(void)arg;
	fsd_log(RXW_LOG_WARNING, "--cell-config: %s", text);
}

static bool read_cell_servers(struct member_folder *folder, const char *path, char *message)
{
	/* OpenAFS's database servers have IPv4 addresses alone. */
	const struct cl_cells_options options = {.home = folder->cell,
						 .folders = &path,
						 .folder_count = 1,
						 .no_dns = true,
						 .ipv4_only = true,
						 .warn = log_cell_fault};
	struct cl_cells *cells;
	struct cl_cell *home;
	char why[256] = "", name[PATH_MAX];
	int n = 0;

	snprintf(name, sizeof(name), "%s/ThisCell", path);
	if (access(name, R_OK))
		return fail_with(false, message, FSD_MESSAGE_MAX, "--cell-config: %.300s: %s", name,
				 strerror(errno));
	if (!read_lines(name, set_cell, folder, message))
		return false;
	if (!*folder->cell)
		return fail_with(false, message, FSD_MESSAGE_MAX,
				 "--cell-config %.200s: ThisCell does not name the cell", path);
	if (cl_cells_create(&options, &cells, why, sizeof(why)))
		return fail_with(false, message, FSD_MESSAGE_MAX, "--cell-config %.200s: %.200s",
				 path, why);
	home = cl_cells_home(cells);
	if (home) {
		snprintf(folder->cell, sizeof(folder->cell), "%s", cl_cell_name(home));
		n = cl_cell_servers(home, 0, folder->server);
	}
	folder->servers = n > 0 ? (unsigned)n : 0;
	cl_cells_free(cells);
	if (!folder->servers)
		return fail_with(false, message, FSD_MESSAGE_MAX,
				 "--cell-config %.200s: CellServDB has no servers of %.100s", path,
				 folder->cell);
	return true;
}

static bool read_files(struct member_folder *folder, const char *path, char *message)
{
	const struct {
		const char *name;
		bool (*each)(struct member_folder *folder, char *line);
	} files[] = {
		{"krb.conf", add_realms},
		{"UserList", add_superuser},
		{"NetInfo", add_info},
		{"NetRestrict", add_restriction},
	};
	char name[PATH_MAX];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", path, files[i].name);
		if (!read_lines(name, files[i].each, folder, message))
			return false;
	}
	return true;
}

int member_folder_read(const struct fsd_member_options *options, struct member_folder **out,
		       char *message)
{
	struct member_folder *folder = calloc(1, sizeof(*folder));

	if (!folder)
		return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
	folder->refs = 1;
	if (!read_cell_servers(folder, options->folder, message) ||
	    !find_keys(folder, options->folder, message) ||
	    !read_files(folder, options->folder, message)) {
		free_folder(folder);
		return -1;
	}
	if (options->realm && folder->realms < MEMBER_REALMS)
		folder->realm[folder->realms++] = strdup(options->realm);
	*out = folder;
	return 0;
}

/* -- what it says -- */

bool member_name_of(const struct fsd_member_options *options, const struct member_folder *folder,
		    const struct rxw_identity *identity, char user[PROT_NAME_MAX + 1])
{
	const struct prot_options names = {.cell = folder->cell,
					   .realms = (const char *const *)folder->realm,
					   .realm_count = folder->realms,
					   .dots = options->dots};

	if (identity->local)
		return false;
	if (identity->index == RXW_RXKAD_INDEX && identity->rxkad_primary)
		return prot_name_of_parts(&names, identity->rxkad_primary, identity->rxkad_instance,
					  identity->rxkad_cell, user);
	return identity->name && prot_name_of_principal(&names, identity->name, user);
}

bool member_may_be_superuser(const struct member_folder *folder,
			     const struct rxw_identity *identity)
{
	const char *name = identity->rxkad_primary ? identity->rxkad_primary : identity->name;
	size_t length = name ? strcspn(name, "/@") : 0;

	for (size_t i = 0; i < folder->superusers; i++)
		if (length && strncmp(folder->superuser[i], name, length) == 0)
			return true;
	return false;
}

/* An octet of 255 stands for all. */
static bool is_restricted(const struct member_folder *folder, uint32_t address)
{
	for (size_t i = 0; i < folder->restricts; i++) {
		uint32_t pattern = folder->restrict_[i].address, all = 0;

		for (unsigned shift = 0; shift < 32; shift += 8)
			if ((pattern >> shift & 0xff) == 0xff)
				all |= 0xffu << shift;
		if (((address ^ pattern) & ~all) == 0)
			return true;
	}
	return false;
}

static bool is_among_infos(const struct member_folder *folder, uint32_t address)
{
	for (size_t i = 0; i < folder->infos; i++)
		if (folder->info[i].address == address)
			return true;
	return folder->infos == 0;
}

static void take_address(uint32_t address[MEMBER_ADDRESSES], unsigned *n, uint32_t one)
{
	for (unsigned i = 0; i < *n; i++)
		if (address[i] == one)
			return;
	if (*n < MEMBER_ADDRESSES)
		address[(*n)++] = one;
}

unsigned member_filter_addresses(const struct member_folder *folder, const uint32_t *have,
				 unsigned count, uint32_t address[MEMBER_ADDRESSES])
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		if (is_among_infos(folder, have[i]) && !is_restricted(folder, have[i]))
			take_address(address, &n, have[i]);
	for (size_t i = 0; i < folder->infos; i++)
		if (folder->info[i].fake)
			take_address(address, &n, folder->info[i].address);
	return n;
}
