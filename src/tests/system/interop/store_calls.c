/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the file service, for the group `store`, on OpenAFS's library: it makes the calls of
 * a script (store_calls.txt) and prints each line with its results. Servers that do the same have
 * the same output: FIDs appear by the labels that the script gives them, times as "now" or "given",
 * data versions as steps.
 *
 *   store_calls ADDRESS KEY KVNO REALM plain|uae VOLUME=ID... < SCRIPT
 *
 * KEY (hex) is the aes256 key of the cell, with which it makes tickets for the users of the script.
 * With "uae" the client's capabilities ask for codes of OpenAFS's own, with "plain" they do not. A
 * second process, another client, holds promises and reports what was broken.
 */
#include "rxafs.h" /* also with the package RXAFSCB_ */

#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rx/rxkad.h>

#define LABELS	   256
#define WORDS	   64
#define CALLERS	   8
#define BROKEN_MAX 256
#define ENCTYPE	   18
#define KEY_MAX	   32
#define WAIT_MS	   10000 /* until a promise is given */

/* The static library calls a helper of its own build tree that its package lacks. */
int rk_socket(int domain, int type, int protocol);
__attribute__((weak)) int rk_socket(int domain, int type, int protocol)
{
	return socket(domain, type, protocol);
}

int hc_RAND_bytes(void *buf, size_t len);
__attribute__((weak)) int hc_RAND_bytes(void *buf, size_t len)
{
	return getentropy(buf, len) == 0;
}

/* -- the callback service -- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static AFSFid broken[BROKEN_MAX]; /* under lock, as the next */
static unsigned broken_count;
static afsUUID self;
static afs_uint32 capability;

static void fill_interface(interfaceAddr *address)
{
	memset(address, 0, sizeof(*address));
	address->numberOfInterfaces = 0;
	address->uuid = self;
}

afs_int32 SRXAFSCB_Probe(struct rx_call *call)
{
	(void)call;
	return 0;
}

afs_int32 SRXAFSCB_InitCallBackState(struct rx_call *call)
{
	(void)call;
	return 0;
}

afs_int32 SRXAFSCB_InitCallBackState3(struct rx_call *call, afsUUID *server)
{
	(void)call, (void)server;
	return 0;
}

afs_int32 SRXAFSCB_ProbeUuid(struct rx_call *call, afsUUID *uuid)
{
	(void)call;
	return memcmp(uuid, &self, sizeof(self)) ? 1 : 0;
}

afs_int32 SRXAFSCB_WhoAreYou(struct rx_call *call, interfaceAddr *address)
{
	(void)call;
	fill_interface(address);
	return 0;
}

afs_int32 SRXAFSCB_TellMeAboutYourself(struct rx_call *call, interfaceAddr *address,
				       Capabilities *capabilities)
{
	(void)call;
	fill_interface(address);
	capabilities->Capabilities_val = malloc(sizeof(afs_uint32));
	if (!capabilities->Capabilities_val)
		return 1;
	capabilities->Capabilities_len = 1;
	capabilities->Capabilities_val[0] = capability;
	return 0;
}

afs_int32 SRXAFSCB_CallBack(struct rx_call *call, AFSCBFids *fids, AFSCBs *callbacks)
{
	(void)call, (void)callbacks;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < fids->AFSCBFids_len && broken_count < BROKEN_MAX; i++)
		broken[broken_count++] = fids->AFSCBFids_val[i];
	pthread_mutex_unlock(&lock);
	return 0;
}

/* -- connections -- */

static const char *server, *realm;
static unsigned char key[KEY_MAX];
static int key_version;

static struct {
	char name[16];
	struct rx_connection *connection;
} callers[CALLERS];

static void start_rx(unsigned char number, afs_uint32 wanted)
{
	static struct rx_securityClass *classes[1]; /* the library keeps the pointer */

	capability = wanted;
	memset(&self, 0, sizeof(self));
	self.time_low = (afs_uint32)getpid();
	self.time_mid = (afs_uint16)time(NULL);
	self.node[0] = (char)number;
	if (rx_Init(0))
		errx(1, "no port");
	classes[0] = rxnull_NewServerSecurityObject();
	if (!rx_NewService(0, 1, (char *)"callbacks", classes, 1, RXAFSCB_ExecuteRequest))
		errx(1, "no service");
	rx_StartServer(0);
}

static struct rx_connection *connect_null(void)
{
	return rx_NewConnection(inet_addr(server), htons(7000), 1,
				rxnull_NewClientSecurityObject(), 0);
}

static struct rx_connection *connect_user(const char *name)
{
	static struct ktc_encryptionKey session = {
		{(char)0xa4, 0x4c, (char)0xcb, 0x19, 0x25, 0x31, (char)0xba, 0x1c}};
	static char ticket[MAXKTCTICKETLEN];
	int length = sizeof(ticket), version = key_version; /* it is changed */
	afs_uint32 now = (afs_uint32)time(NULL);

	if (tkt_MakeTicket5(ticket, &length, ENCTYPE, &version, key, KEY_MAX, (char *)name,
			    (char *)"", (char *)realm, now - 10, now + 3600, &session,
			    (char *)"afs", (char *)""))
		errx(1, "cannot make a ticket");
	return rx_NewConnection(inet_addr(server), htons(7000), 1,
				rxkad_NewClientSecurityObject(rxkad_crypt, &session,
							      RXKAD_TKT_TYPE_KERBEROS_V5_ENCPART_ONLY,
							      length, ticket),
				2);
}

static struct rx_connection *caller(const char *name)
{
	int i;

	for (i = 0; i < CALLERS && callers[i].connection; i++)
		if (!strcmp(callers[i].name, name))
			return callers[i].connection;
	if (i == CALLERS || strlen(name) >= sizeof(callers[i].name))
		errx(1, "%s: too many callers", name);
	strcpy(callers[i].name, name);
	callers[i].connection = !strcmp(name, "anyone") ? connect_null() : connect_user(name);
	return callers[i].connection;
}

/* Fetches the status of an object until the server promises to tell of changes. */
static afs_int32 want_promise(struct rx_connection *connection, AFSFid *fid)
{
	AFSFetchStatus status;
	AFSCallBack callback;
	AFSVolSync sync;

	for (int i = 0; i < WAIT_MS / 20; i++) {
		afs_int32 code = RXAFS_FetchStatus(connection, fid, &status, &callback, &sync);

		if (code || callback.ExpirationTime)
			return code;
		usleep(20000);
	}
	return -1;
}

/* -- labels -- */

static struct label {
	char name[32];
	AFSFid fid;
	bool seen; /* version is known */
	afs_uint32 version;
} labels[LABELS];
static unsigned label_count;

static struct {
	afs_uint32 volume, sync;
} syncs[16];

static struct label *find_label(const char *name, size_t length)
{
	for (unsigned i = label_count; i-- > 0;)
		if (strlen(labels[i].name) == length && !memcmp(labels[i].name, name, length))
			return &labels[i];
	return NULL;
}

static struct label *label_of(const AFSFid *fid)
{
	for (unsigned i = label_count; i-- > 0;)
		if (!memcmp(&labels[i].fid, fid, sizeof(*fid)))
			return &labels[i];
	return NULL;
}

static void set_label(const char *name, AFSFid fid)
{
	if (label_count == LABELS || strlen(name) >= sizeof(labels[0].name))
		errx(1, "%s: too many labels", name);
	strcpy(labels[label_count].name, name);
	labels[label_count++].fid = fid;
}

static void print_fid(const AFSFid *fid)
{
	struct label *label = label_of(fid);
	AFSFid root = {fid->Volume, 1, 1};

	if (label)
		printf("%s", label->name);
	else if (!fid->Vnode && !fid->Unique && (label = label_of(&root)))
		printf("%s:all", label->name);
	else
		printf("?");
}

/*
 * LABEL, LABEL! (another unique number), LABEL/VNODE.UNIQUE (in its volume), VOLUME=LABEL (the same
 * object in another volume); the volumes 0, 998 and 999 do not exist.
 */
static AFSFid fid_of(const char *text)
{
	const char *end = text + strcspn(text, "!/="), *from = *end == '=' ? end + 1 : NULL;
	struct label *label = find_label(text, (size_t)(end - text)), *other;
	AFSFid fid = {0, 1, 1};

	if (label)
		fid = label->fid;
	else if (isdigit((unsigned char)*text))
		fid.Volume = (afs_uint32)atoi(text);
	else
		fid.Volume = 998; /* the call that was to make it has failed */
	if (*end == '!')
		fid.Unique += 77777;
	if (*end == '/' && sscanf(end, "/%u.%u", &fid.Vnode, &fid.Unique) != 2)
		errx(1, "%s: not a FID", text);
	if (from) {
		other = find_label(from, strlen(from));
		fid.Vnode = other ? other->fid.Vnode : 998;
		fid.Unique = other ? other->fid.Unique : 998;
	}
	return fid;
}

/* -- words of a line -- */

static char *words[WORDS];
static int word_count;
static int next;

static const char *word(void)
{
	if (next == word_count)
		errx(1, "%s: words are missing", words[1]);
	return words[next++];
}

/* "" is empty, x*257 is 257 bytes. */
static char *name_of(const char *text)
{
	static char names[2][4096];
	static unsigned turn;
	char *name = names[turn++ % 2];
	const char *star = strchr(text, '*');
	size_t length = star ? (size_t)atoi(star + 1) : 0;

	if (!strcmp(text, "\"\"")) {
		*name = 0;
	} else if (star && length && length < sizeof(names[0])) {
		memset(name, *text, length);
		name[length] = 0;
	} else {
		snprintf(name, sizeof(names[0]), "%s", text);
	}
	return name;
}

/* VALUE of NAME=VALUE among the rest of the words, or NULL. */
static const char *option(const char *name)
{
	size_t length = strlen(name);

	for (int i = next; i < word_count; i++)
		if (!strncmp(words[i], name, length) && words[i][length] == '=')
			return words[i] + length + 1;
	return NULL;
}

static afs_int64 number_option(const char *name, afs_int64 otherwise)
{
	const char *value = option(name);

	return value ? strtoll(value, NULL, 0) : otherwise;
}

static afs_uint32 given_time;

static AFSStoreStatus store_status(void)
{
	AFSStoreStatus status = {.Mask = (afs_uint32)number_option("mask", 0)};

	if (option("mtime"))
		status.Mask |= AFS_SETMODTIME;
	if (option("owner"))
		status.Mask |= AFS_SETOWNER;
	if (option("group"))
		status.Mask |= AFS_SETGROUP;
	if (option("mode"))
		status.Mask |= AFS_SETMODE;
	status.ClientModTime = given_time = (afs_uint32)number_option("mtime", 0);
	status.Owner = (afs_uint32)number_option("owner", 0);
	status.Group = (afs_uint32)number_option("group", 0);
	status.UnixModeBits = (afs_uint32)number_option("mode", 0);
	return status;
}

/* -- results -- */

static const char *time_text(afs_uint32 t)
{
	static char texts[2][16];
	static unsigned turn;
	char *text = texts[turn++ % 2];
	afs_uint32 now = (afs_uint32)time(NULL);

	if (t <= now + 2 && t + 60 >= now)
		return "now";
	if (t == 0)
		return "0";
	snprintf(text, sizeof(texts[0]), "%u", t);
	return text;
}

static void print_version(struct label *label, afs_uint32 version)
{
	if (!label)
		printf(" dv=?");
	else if (label->seen)
		printf(" dv%+d", (int)(version - label->version));
	else if (label->fid.Vnode == 1)
		printf(" dv=root");
	else
		printf(" dv=%u", version);
	if (label) {
		label->seen = true;
		label->version = version;
	}
}

static void print_status(const AFSFid *fid, const AFSFetchStatus *s)
{
	static const char *const types[] = {"none", "file", "directory", "link"};
	AFSFid parent = {fid->Volume, s->ParentVnode, s->ParentUnique};

	if (s->errorCode) {
		printf("  error %d version %u rest %u%u%u%u%u\n", (int)s->errorCode, s->InterfaceVersion,
		       s->FileType, s->LinkCount, s->Owner, s->ParentVnode, s->ServerModTime);
		return;
	}
	printf("  ");
	print_fid(fid);
	printf(": %s links=%u length=%u", s->FileType < 4 ? types[s->FileType] : "?", s->LinkCount,
	       s->Length);
	print_version(label_of(fid), s->DataVersion);
	printf(" author=%u owner=%u group=%u mode=%o rights=%x any=%x parent=", s->Author, s->Owner,
	       s->Group, s->UnixModeBits, s->CallerAccess, s->AnonymousAccess);
	print_fid(&parent);
	printf(" mtime=%s server=%s lock=%d", time_text(s->ClientModTime), time_text(s->ServerModTime),
	       (int)s->lockCount);
	if (s->InterfaceVersion != 1 || s->ResidencyMask != 1 || s->SyncCounter ||
	    s->dataVersionHigh || s->Length_hi)
		printf(" others=%u,%u,%u,%u,%u", s->InterfaceVersion, s->ResidencyMask,
		       s->SyncCounter, s->dataVersionHigh, s->Length_hi);
	printf("\n");
}

/* Whether it is the one that this volume had. */
static void print_sync(afs_uint32 volume, const AFSVolSync *sync)
{
	unsigned i = 0;

	while (i < 15 && syncs[i].volume && syncs[i].volume != volume)
		i++;
	if (!syncs[i].volume) {
		syncs[i].volume = volume;
		syncs[i].sync = sync->spare1;
	}
	if (syncs[i].sync != sync->spare1 || !sync->spare1)
		printf("  sync changed\n");
	if (sync->spare2 || sync->spare3 || sync->spare4 || sync->spare5 || sync->spare6)
		printf("  sync with other words\n");
}

static void print_promise(const AFSCallBack *callback)
{
	if (callback->CallBackVersion == 1 && callback->CallBackType == 2 &&
	    callback->ExpirationTime >= 60)
		printf("  promise\n");
	else
		printf("  callback %u,%u,%s\n", callback->CallBackVersion, callback->CallBackType,
		       callback->ExpirationTime ? "later" : "0");
}

/* Ends the line of a call; true: it has results. */
static bool well(afs_int32 code)
{
	printf(" -> %d\n", (int)code);
	return code == 0;
}

/* -- the calls -- */

static AFSFetchStatus status, other;
static AFSCallBack callback;
static AFSVolSync volume_sync;

static void do_status(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());

	if (well(RXAFS_FetchStatus(c, &fid, &status, &callback, &volume_sync))) {
		print_status(&fid, &status);
		print_promise(&callback);
		print_sync(fid.Volume, &volume_sync);
	}
}

static void do_create(struct rx_connection *c, bool directory)
{
	AFSFid parent = fid_of(word()), fid;
	char *name = name_of(word());
	const char *label = word();
	AFSStoreStatus change = store_status();
	afs_int32 code = directory ? RXAFS_MakeDir(c, &parent, name, &change, &fid, &status, &other,
						   &callback, &volume_sync)
				   : RXAFS_CreateFile(c, &parent, name, &change, &fid, &status,
						      &other, &callback, &volume_sync);

	if (!well(code))
		return;
	set_label(label, fid);
	if (fid.Volume != parent.Volume || fid.Vnode % 2 != directory)
		printf("  fid in volume %u, vnode %u\n", fid.Volume, fid.Vnode);
	print_status(&fid, &status);
	print_status(&parent, &other);
	print_promise(&callback);
	print_sync(fid.Volume, &volume_sync);
}

static void do_mkfile(struct rx_connection *c)
{
	do_create(c, false);
}

static void do_mkdir(struct rx_connection *c)
{
	do_create(c, true);
}

static void do_symlink(struct rx_connection *c)
{
	AFSFid parent = fid_of(word()), fid;
	char *name = name_of(word()), *text = name_of(word());
	const char *label = word();
	AFSStoreStatus change = store_status();

	if (!well(RXAFS_Symlink(c, &parent, name, text, &change, &fid, &status, &other, &volume_sync)))
		return;
	set_label(label, fid);
	print_status(&fid, &status);
	print_status(&parent, &other);
	print_sync(fid.Volume, &volume_sync);
}

static void do_link(struct rx_connection *c)
{
	AFSFid parent = fid_of(word()), fid;
	char *name = name_of(word());

	fid = fid_of(word());
	if (!well(RXAFS_Link(c, &parent, name, &fid, &status, &other, &volume_sync)))
		return;
	print_status(&fid, &status);
	print_status(&parent, &other);
	print_sync(fid.Volume, &volume_sync);
}

static void do_rename(struct rx_connection *c)
{
	AFSFid from = fid_of(word()), to;
	char *name = name_of(word()), *new_name;

	to = fid_of(word());
	new_name = name_of(word());
	if (!well(RXAFS_Rename(c, &from, name, &to, new_name, &status, &other, &volume_sync)))
		return;
	print_status(&from, &status);
	print_status(&to, &other);
	print_sync(from.Volume, &volume_sync);
}

static void do_removal(struct rx_connection *c, bool directory)
{
	AFSFid parent = fid_of(word());
	char *name = name_of(word());

	if (!well(directory ? RXAFS_RemoveDir(c, &parent, name, &status, &volume_sync)
			    : RXAFS_RemoveFile(c, &parent, name, &status, &volume_sync)))
		return;
	print_status(&parent, &status);
	print_sync(parent.Volume, &volume_sync);
}

static void do_remove(struct rx_connection *c)
{
	do_removal(c, false);
}

static void do_rmdir(struct rx_connection *c)
{
	do_removal(c, true);
}

static void do_setstatus(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());
	AFSStoreStatus change = store_status();

	if (well(RXAFS_StoreStatus(c, &fid, &change, &status, &volume_sync))) {
		print_status(&fid, &status);
		print_sync(fid.Volume, &volume_sync);
	}
}

/*
 * `send` bytes of the letter of with=. A server that refuses may end the call before all are sent.
 */
static void send_data(struct rx_call *call, afs_int64 send)
{
	static char data[65536];
	const char *with = option("with");

	memset(data, with ? *with : 'x', sizeof(data));
	while (send > 0) {
		int part = send < (afs_int64)sizeof(data) ? (int)send : (int)sizeof(data);

		if (rx_Write(call, data, part) != part)
			return;
		send -= part;
	}
}

/* store FID POSITION LENGTH FILE_LENGTH [send=BYTES]; bytes=32 takes the older call. */
static void do_store(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());
	afs_uint64 at = strtoull(word(), NULL, 0), length = strtoull(word(), NULL, 0),
		   total = strtoull(word(), NULL, 0);
	AFSStoreStatus change = store_status();
	bool old = option("bits") != NULL;
	struct rx_call *call = rx_NewCall(c);
	afs_int32 code = old ? StartRXAFS_StoreData(call, &fid, &change, (afs_uint32)at,
						    (afs_uint32)length, (afs_uint32)total)
			     : StartRXAFS_StoreData64(call, &fid, &change, at, length, total);

	if (!code) {
		send_data(call, number_option("send", (afs_int64)length));
		code = old ? EndRXAFS_StoreData(call, &status, &volume_sync)
			   : EndRXAFS_StoreData64(call, &status, &volume_sync);
	}
	if (well(rx_EndCall(call, code))) {
		print_status(&fid, &status);
		print_sync(fid.Volume, &volume_sync);
	}
}

/* The runs of equal bytes: "a*3 b*2". Directories: nothing, since free slots may differ. */
static void print_data(const AFSFid *fid, const unsigned char *data, size_t length)
{
	printf("  data");
	for (size_t i = 0, n; i < length && fid->Vnode % 2 == 0; i += n) {
		for (n = 1; i + n < length && data[i + n] == data[i]; n++)
			;
		printf(isgraph(data[i]) ? " %c" : " %02x", data[i]);
		if (n > 1)
			printf("*%zu", n);
	}
	printf("\n");
}

/* fetch FID POSITION LENGTH; bits=32 takes the older call. */
static void do_fetch(struct rx_connection *c)
{
	static unsigned char data[1 << 21];
	AFSFid fid = fid_of(word());
	afs_int64 at = strtoll(word(), NULL, 0), length = strtoll(word(), NULL, 0), announced = 0;
	bool old = option("bits") != NULL;
	struct rx_call *call = rx_NewCall(c);
	afs_uint32 head[2] = {0, 0};
	int size = old ? 4 : 8;
	afs_int32 code = old ? StartRXAFS_FetchData(call, &fid, (afs_int32)at, (afs_int32)length)
			     : StartRXAFS_FetchData64(call, &fid, at, length);

	if (!code && rx_Read(call, (char *)head, size) == size) {
		announced = old ? (afs_int64)ntohl(head[0])
				: ((afs_int64)ntohl(head[0]) << 32) + ntohl(head[1]);
		if (announced > (afs_int64)sizeof(data) ||
		    rx_Read(call, (char *)data, (int)announced) != (int)announced)
			announced = -1;
	}
	if (!code && announced >= 0)
		code = old ? EndRXAFS_FetchData(call, &status, &callback, &volume_sync)
			   : EndRXAFS_FetchData64(call, &status, &callback, &volume_sync);
	if (well(rx_EndCall(call, code))) {
		printf("  length %lld\n", (long long)announced);
		if (announced >= 0)
			print_data(&fid, data, (size_t)announced);
		print_status(&fid, &status);
		print_promise(&callback);
		print_sync(fid.Volume, &volume_sync);
	}
}

static void do_acl(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());
	AFSOpaque acl = {0, NULL};

	if (!well(RXAFS_FetchACL(c, &fid, &acl, &status, &volume_sync)))
		return;
	printf("  acl ");
	for (unsigned i = 0; i < acl.AFSOpaque_len; i++) {
		char b = acl.AFSOpaque_val[i];

		if (b)
			putchar(b == '\n' ? '|' : b == '\t' ? '/' : b);
		else
			printf("<0>");
	}
	printf("\n");
	print_status(&fid, &status);
	print_sync(fid.Volume, &volume_sync);
}

/*
 * setacl FID TEXT: "|" is the end of a line, "/" a tab, "$" the NUL at the end. many=N appends N
 * entries for numbered users to the text. new=1 takes the newer call. The reply of OpenAFS has the
 * rights from before the change.
 */
static void do_setacl(struct rx_connection *c)
{
	static char text[8192];
	AFSFid fid = fid_of(word());
	const char *from = word();
	size_t length = 0, many = (size_t)number_option("many", 0);
	AFSOpaque acl = {0, text};

	for (; *from; from++)
		text[length++] = *from == '|' ? '\n' : *from == '/' ? '\t' : *from == '$' ? '\0' : *from;
	for (size_t i = 0; i < many; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "user%02zu\t1\n", i);
	if (many)
		text[length++] = '\0';
	acl.AFSOpaque_len = (unsigned)length;
	if (well(option("new") ? RXAFS_StoreACL(c, &fid, &acl, &status, &volume_sync)
			       : RXAFS_OldStoreACL(c, &fid, &acl, &status, &volume_sync))) {
		status.CallerAccess = status.AnonymousAccess = 0;
		print_status(&fid, &status);
		print_sync(fid.Volume, &volume_sync);
	}
}

/* OpenAFS leaves it empty for volumes that are only read. */
static void print_lock_sync(const AFSFid *fid)
{
	AFSFid root = {fid->Volume, 1, 1};
	const struct label *volume = label_of(&root);

	if (!volume || !strchr(volume->name, '.'))
		print_sync(fid->Volume, &volume_sync);
}

static void do_lock(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());

	if (well(RXAFS_SetLock(c, &fid, atoi(word()), &volume_sync)))
		print_lock_sync(&fid);
}

static void do_extend(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());

	if (well(RXAFS_ExtendLock(c, &fid, &volume_sync)))
		print_lock_sync(&fid);
}

static void do_release(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());

	if (well(RXAFS_ReleaseLock(c, &fid, &volume_sync)))
		print_lock_sync(&fid);
}

static void do_volume(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());
	AFSFetchVolumeStatus v;
	char *name = NULL, *offline = NULL, *motd = NULL;

	if (!well(RXAFS_GetVolumeStatus(c, (afs_int32)fid.Volume, &v, &name, &offline, &motd)))
		return;
	printf("  %s: same %d parent ", name, v.Vid == (afs_int32)fid.Volume);
	fid.Volume = (afs_uint32)v.ParentId;
	fid.Vnode = fid.Unique = 1;
	print_fid(&fid);
	printf(" online %d service %d blessed %d salvage %d type %d quota %d..%d blocks %d",
	       v.Online, v.InService, v.Blessed, v.NeedsSalvage, v.Type, v.MinQuota, v.MaxQuota,
	       v.BlocksInUse);
	printf(" offline \"%s\" motd \"%s\"\n", offline, motd);
}

/* setvolume VOLUME [minimum=N] [maximum=N] [message=TEXT] */
static void do_setvolume(struct rx_connection *c)
{
	AFSFid fid = fid_of(word());
	const char *message = option("message"), *name = option("name");
	AFSStoreVolumeStatus v = {.Mask = (option("minimum") ? 1 : 0) | (option("maximum") ? 2 : 0),
				  .MinQuota = (afs_int32)number_option("minimum", 0),
				  .MaxQuota = (afs_int32)number_option("maximum", 0)};

	well(RXAFS_SetVolumeStatus(c, (afs_int32)fid.Volume, &v, (char *)(name ? name : ""),
				   (char *)(message ? message : ""), (char *)""));
}

static AFSFid fids[AFSCBMAX + 16];

/* FIDs until a word with "=" that is an option; times=N repeats them. */
static AFSCBFids list_fids(void)
{
	AFSCBFids list = {0, fids};
	int times = (int)number_option("times", 1);

	for (int t = 0; t < times; t++)
		for (int i = next; i < word_count; i++)
			if (strncmp(words[i], "times=", 6) && strncmp(words[i], "callbacks=", 10) &&
			    list.AFSCBFids_len < AFSCBMAX + 16)
				fids[list.AFSCBFids_len++] = fid_of(words[i]);
	return list;
}

static void print_bulk(const AFSBulkStats *stats, const AFSCBs *callbacks)
{
	printf("  statuses %u callbacks %u\n", stats->AFSBulkStats_len, callbacks->AFSCBs_len);
	for (unsigned i = 0; i < stats->AFSBulkStats_len; i++)
		print_status(&fids[i], &stats->AFSBulkStats_val[i]);
	for (unsigned i = 0; i < callbacks->AFSCBs_len; i++)
		print_promise(&callbacks->AFSCBs_val[i]);
}

static void do_bulk(struct rx_connection *c)
{
	AFSCBFids list = list_fids();
	AFSBulkStats stats = {0, NULL};
	AFSCBs callbacks = {0, NULL};

	if (well(RXAFS_BulkStatus(c, &list, &stats, &callbacks, &volume_sync)))
		print_bulk(&stats, &callbacks);
}

static void do_inline(struct rx_connection *c)
{
	AFSCBFids list = list_fids();
	AFSBulkStats stats = {0, NULL};
	AFSCBs callbacks = {0, NULL};

	if (well(RXAFS_InlineBulkStatus(c, &list, &stats, &callbacks, &volume_sync)))
		print_bulk(&stats, &callbacks);
}

static void do_giveup(struct rx_connection *c)
{
	static AFSCallBack given[AFSCBMAX + 16];
	AFSCBFids list = list_fids();
	AFSCBs callbacks = {(unsigned)number_option("callbacks", 0), given};

	well(RXAFS_GiveUpCallBacks(c, &list, &callbacks));
}

static void do_giveupall(struct rx_connection *c)
{
	well(RXAFS_GiveUpAllCallBacks(c));
}

/* raw WORD...: numbers, FIDs after "@", 'text as a string whose bytes "^" are NUL. */
static void do_raw(struct rx_connection *c)
{
	struct rx_call *call = rx_NewCall(c);

	for (; next < word_count; next++) {
		const char *w = words[next];
		afs_uint32 buffer[1200] = {0};
		size_t length = 1;

		if (*w == '@') {
			AFSFid fid = fid_of(w + 1);

			buffer[0] = htonl(fid.Volume);
			buffer[1] = htonl(fid.Vnode);
			buffer[2] = htonl(fid.Unique);
			length = 3;
		} else if (*w == '\'') {
			char *name = name_of(w + 1);
			size_t n = strlen(name);

			for (size_t i = 0; i < n; i++)
				name[i] = name[i] == '^' ? 0 : name[i];
			buffer[0] = htonl((afs_uint32)n);
			memcpy(buffer + 1, name, n);
			length = 1 + (n + 3) / 4;
		} else {
			buffer[0] = htonl((afs_uint32)strtoul(w, NULL, 0));
		}
		rx_Write(call, (char *)buffer, (int)(4 * length));
	}
	rx_FlushWrite(call);
	/* The end of the arguments is the first byte that is read. */
	char byte;
	rx_Read(call, &byte, 1);
	well(rx_EndCall(call, 0));
}

/* The breaks that the caller itself was sent since the last time. */
static void do_told(struct rx_connection *c)
{
	(void)c;
	printf("\n  told");
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < broken_count; i++) {
		printf(" ");
		print_fid(&broken[i]);
	}
	broken_count = 0;
	pthread_mutex_unlock(&lock);
	printf("\n");
}

/* -- the other client -- */

static FILE *to_watcher, *from_watcher;

/* Reads "w VOLUME VNODE UNIQUE", writes the code; reads "b", writes the FIDs that were broken. */
static void watch(FILE *in, FILE *out)
{
	struct rx_connection *connection;
	char line[80];
	bool known = false; /* by the server, which may have told it to forget all */
	AFSFid fid;

	start_rx(2, 1);
	connection = connect_null();
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, "w %u %u %u", &fid.Volume, &fid.Vnode, &fid.Unique) == 3) {
			fprintf(out, "%d\n", (int)want_promise(connection, &fid));
			if (!known)
				broken_count = 0;
			known = true;
		} else {
			pthread_mutex_lock(&lock);
			for (unsigned i = 0; i < broken_count; i++)
				fprintf(out, "%u %u %u\n", broken[i].Volume, broken[i].Vnode,
					broken[i].Unique);
			broken_count = 0;
			pthread_mutex_unlock(&lock);
			fprintf(out, "end\n");
		}
		fflush(out);
	}
	RXAFS_GiveUpAllCallBacks(connection);
	rx_Finalize();
	_exit(0);
}

static pid_t start_watcher(void)
{
	int down[2], up[2];
	pid_t pid;

	if (pipe(down) || pipe(up))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		close(down[1]);
		close(up[0]);
		watch(fdopen(down[0], "r"), fdopen(up[1], "w"));
	}
	close(down[0]);
	close(up[1]);
	to_watcher = fdopen(down[1], "w");
	from_watcher = fdopen(up[0], "r");
	return pid;
}

static void do_watch(struct rx_connection *c)
{
	char line[80];

	(void)c;
	printf(" ->");
	for (; next < word_count; next++) {
		AFSFid fid = fid_of(words[next]);

		fprintf(to_watcher, "w %u %u %u\n", fid.Volume, fid.Vnode, fid.Unique);
		fflush(to_watcher);
		if (!fgets(line, sizeof(line), from_watcher))
			errx(1, "the other client has ended");
		printf(" %d", atoi(line));
	}
	printf("\n");
}

static int by_fid(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(AFSFid));
}

static size_t read_broken(AFSFid *list)
{
	char line[80];
	size_t n = 0;

	fprintf(to_watcher, "b\n");
	fflush(to_watcher);
	while (n < BROKEN_MAX && fgets(line, sizeof(line), from_watcher) &&
	       sscanf(line, "%u %u %u", &list[n].Volume, &list[n].Vnode, &list[n].Unique) == 3)
		n++;
	return n;
}

/* broken [LEAST]: what the other client was told since the last time; waits for LEAST. */
static void do_broken(struct rx_connection *c)
{
	AFSFid list[BROKEN_MAX];
	size_t n, least = next < word_count ? (size_t)atoi(word()) : 0;

	(void)c;
	for (int i = 0; (n = read_broken(list)) < least && i < WAIT_MS / 20; i++)
		usleep(20000);
	qsort(list, n, sizeof(list[0]), by_fid);
	printf("\n  broken");
	for (size_t i = 0; i < n; i++) {
		printf(" ");
		print_fid(&list[i]);
	}
	printf("\n");
}

/* -- the script -- */

static const struct {
	const char *name;
	void (*run)(struct rx_connection *);
} verbs[] = {
	{"status", do_status},	     {"create", do_mkfile},   {"mkdir", do_mkdir},
	{"symlink", do_symlink},     {"link", do_link},	      {"rename", do_rename},
	{"remove", do_remove},	     {"rmdir", do_rmdir},     {"setstatus", do_setstatus},
	{"store", do_store},	     {"fetch", do_fetch},     {"acl", do_acl},
	{"setacl", do_setacl},	     {"lock", do_lock},	      {"extend", do_extend},
	{"release", do_release},     {"volume", do_volume},   {"setvolume", do_setvolume},
	{"bulk", do_bulk},	     {"inline", do_inline},   {"giveup", do_giveup},
	{"giveupall", do_giveupall}, {"raw", do_raw},	      {"told", do_told},
	{"watch", do_watch},	     {"broken", do_broken},
};

static void run_line(char *line)
{
	char shown[4096], *rest = line;

	line[strcspn(line, "\n")] = 0;
	snprintf(shown, sizeof(shown), "%s", line);
	for (word_count = 0; word_count < WORDS && (words[word_count] = strtok(rest, " ")); rest = NULL)
		word_count++;
	if (word_count < 2 || *words[0] == '#')
		return;
	next = *words[0] == '~' ? 3 : 2;
	printf("%s", shown);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(words[next - 1], verbs[i].name)) {
			verbs[i].run(caller(words[next - 2]));
			fflush(stdout);
			return;
		}
	errx(1, "%s: no such call", words[next - 1]);
}

static void read_key(const char *text)
{
	for (int i = 0; i < KEY_MAX; i++) {
		unsigned v;

		if (sscanf(text + 2 * i, "%2x", &v) != 1)
			errx(1, "the key is not in hex");
		key[i] = (unsigned char)v;
	}
}

int main(int argc, char **argv)
{
	afs_int32 code;
	char line[4096];
	pid_t watcher;

	if (argc < 7 || strlen(argv[2]) != 2 * KEY_MAX)
		errx(2, "usage: store_calls ADDRESS KEY KVNO REALM plain|uae VOLUME=ID... < SCRIPT");
	server = argv[1];
	read_key(argv[2]);
	key_version = atoi(argv[3]);
	realm = argv[4];
	watcher = start_watcher();
	start_rx(1, !strcmp(argv[5], "uae"));
	for (int i = 6; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			errx(2, "%s: not VOLUME=ID", argv[i]);
		*equals = 0;
		set_label(argv[i], (AFSFid){(afs_uint32)atoll(equals + 1), 1, 1});
	}
	/* Until the server knows what this client can do, and has made it forget what it had. */
	code = want_promise(caller("anyone"), &labels[0].fid);
	if (code)
		errx(1, "the server makes no promise: code %d", (int)code);
	broken_count = 0;
	while (fgets(line, sizeof(line), stdin))
		run_line(line);
	RXAFS_GiveUpAllCallBacks(caller("anyone"));
	fclose(to_watcher);
	waitpid(watcher, NULL, 0);
	return fflush(stdout) || ferror(stdout);
}
