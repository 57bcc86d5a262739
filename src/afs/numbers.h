/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of AFS that its interface files do not define: services, types, rights, codes. */
#ifndef AFS_NUMBERS_H
#define AFS_NUMBERS_H

enum afs_service_id {
	AFS_SERVICE_FS = 1,
	AFS_SERVICE_CB = 1,
	AFS_SERVICE_BOS = 1,
	AFS_SERVICE_VOL = 4,
	AFS_SERVICE_VL = 52,
	AFS_SERVICE_PT = 73
};
enum afs_port {
	AFS_PORT_FS = 7000,
	AFS_PORT_CB = 7001,
	AFS_PORT_PT = 7002,
	AFS_PORT_VL = 7003
};

/* FileType of an AFSFetchStatus. Odd vnodes are directories, even ones files and links. */
enum afs_file_type {
	AFS_TYPE_FILE = 1,
	AFS_TYPE_DIR = 2,
	AFS_TYPE_SYMLINK = 3
};
#define AFS_ROOT_VNODE	1
#define AFS_ROOT_UNIQUE 1

/* Rights of CallerAccess and AnonymousAccess. */
enum afs_right {
	AFS_RIGHT_READ = 1,
	AFS_RIGHT_WRITE = 2,
	AFS_RIGHT_INSERT = 4,
	AFS_RIGHT_LOOKUP = 8,
	AFS_RIGHT_DELETE = 16,
	AFS_RIGHT_LOCK = 32,
	AFS_RIGHT_ADMINISTER = 64
};

/* Index into the volume ids of a location entry. */
enum afs_vl_type {
	AFS_VL_RW = 0,
	AFS_VL_RO = 1,
	AFS_VL_BACKUP = 2
};
/* Mask of a ListAddrByAttributes: exactly one bit. */
enum afs_vl_by {
	AFS_VL_BY_ADDRESS = 1,
	AFS_VL_BY_INDEX = 2,
	AFS_VL_BY_UUID = 4
};

/* Volume codes, which are never translated. */
enum afs_volume_code {
	AFS_VSALVAGE = 101,
	AFS_VNOVNODE = 102,
	AFS_VNOVOL = 103,
	AFS_VNOSERVICE = 105,
	AFS_VOFFLINE = 106,
	AFS_VBUSY = 110,
	AFS_VMOVED = 111,
	AFS_VIO = 112,
	AFS_VSALVAGING = 113,
};

/* Location service codes. */
enum afs_vl_code {
	AFS_VL_IDEXIST = 363520,
	AFS_VL_IO = 363521,
	AFS_VL_NAMEEXIST = 363522,
	AFS_VL_NOENT = 363524,
	AFS_VL_BADNAME = 363527,
	AFS_VL_BADVOLTYPE = 363529,
	AFS_VL_BADSERVER = 363530,
	AFS_VL_BADPARTITION = 363531,
	AFS_VL_REPSFULL = 363532,
	AFS_VL_NOREPSERVER = 363533,
	AFS_VL_DUPREPSERVER = 363534,
	AFS_VL_SIZEEXCEEDED = 363537,
	AFS_VL_BADENTRY = 363538,
	AFS_VL_BADVOLIDBUMP = 363539,
	AFS_VL_ENTRYLOCKED = 363541,
	AFS_VL_BADVOLOPER = 363542,
	AFS_VL_BADRELLOCKTYPE = 363543,
	AFS_VL_BADSERVERFLAG = 363545,
	AFS_VL_PERM = 363546,
	AFS_VL_NOMEM = 363547,
	AFS_VL_INDEXERANGE = 363549,
	AFS_VL_MULTIPADDR = 363550,
	AFS_VL_BADMASK = 363551,
};

/* Codes of the protection service: 267264 + n (afs-location 4). */
enum afs_pt_code {
	AFS_PT_EXIST = 267264,
	AFS_PT_IDEXIST = 267265,
	AFS_PT_NOIDS = 267266,
	AFS_PT_DBFAIL = 267267,
	AFS_PT_NOENT = 267268,
	AFS_PT_PERM = 267269,
	AFS_PT_NOTGROUP = 267270,
	AFS_PT_NOTUSER = 267271,
	AFS_PT_BADNAM = 267272,
	AFS_PT_BADARG = 267273,
	AFS_PT_NOMORE = 267274,
	AFS_PT_DBBAD = 267275,
	AFS_PT_INCONSISTENT = 267277,
	AFS_PT_TOOMANY = 267279,
	AFS_PT_NOMEM = 267280,
};

/* Codes of the overseer: 39424 + n (afs-location 5.4). */
enum afs_bos_code {
	AFS_BOS_NOENT = 39425,
	AFS_BOS_DOMAIN = 39429, /* beyond the last one */
	AFS_BOS_ACCESS = 39430,
};

/* The volume root.afs.readonly that a server of ours makes itself. */
#define AFS_RXFSD_ROOTAFS 0x1fffffffu

/* Codes of the volume service: 1492325120 + n (afs-location 5.3). */
enum afs_vol_code {
	AFS_VOL_NO_OP = 1492325121,
	AFS_VOL_READ_DUMPERROR = 1492325122,
	AFS_VOL_DUMPERROR = 1492325123,
	AFS_VOL_ILLEGAL_PARTITION = 1492325125,
	AFS_VOL_DETACH_ERROR = 1492325126,
	AFS_VOL_BAD_ACCESS = 1492325127,
	AFS_VOL_BADNAME = 1492325129,
	AFS_VOL_BADOP = 1492325131,
	AFS_VOL_VOLBUSY = 1492325133,
	AFS_VOL_NO_MEMORY = 1492325134,
	AFS_VOL_NOVOL = 1492325135,
};

#endif
