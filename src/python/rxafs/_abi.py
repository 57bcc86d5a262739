# SPDX-License-Identifier: BSD-2-Clause
"""The C interface of librxafs for ctypes. Made by make-rxafs-abi from the headers: do not edit.

src/tests/python/rxafs.sh compares all of it with the headers.
"""
import ctypes as C
import os
import platform

SONAME = "librxafs.so.0"

# The environment variable LIBRXAFS names a copy other than the installed one.
lib = C.CDLL(os.environ.get("LIBRXAFS") or SONAME)

handle = C.c_void_p


class stat(C.Structure):
    """struct stat of this kind of machine."""

    if platform.machine() == "x86_64":
        _fields_ = [("st_dev", C.c_uint64), ("st_ino", C.c_uint64), ("st_nlink", C.c_uint64), ("st_mode", C.c_uint32),
                    ("st_uid", C.c_uint32), ("st_gid", C.c_uint32), ("pad", C.c_uint32), ("st_rdev", C.c_uint64),
                    ("st_size", C.c_int64), ("st_blksize", C.c_int64), ("st_blocks", C.c_int64),
                    ("st_atim", C.c_int64 * 2), ("st_mtim", C.c_int64 * 2), ("st_ctim", C.c_int64 * 2),
                    ("reserved", C.c_int64 * 3)]
    elif platform.machine() in ("aarch64", "riscv64", "loongarch64"):
        _fields_ = [("st_dev", C.c_uint64), ("st_ino", C.c_uint64), ("st_mode", C.c_uint32), ("st_nlink", C.c_uint32),
                    ("st_uid", C.c_uint32), ("st_gid", C.c_uint32), ("st_rdev", C.c_uint64), ("pad", C.c_uint64),
                    ("st_size", C.c_int64), ("st_blksize", C.c_int32), ("pad2", C.c_int32), ("st_blocks", C.c_int64),
                    ("st_atim", C.c_int64 * 2), ("st_mtim", C.c_int64 * 2), ("st_ctim", C.c_int64 * 2),
                    ("reserved", C.c_int32 * 2)]
    else:
        raise ImportError(f"rxafs does not know struct stat of {platform.machine()}")


class sockaddr_storage(C.Structure):
    _fields_ = [("ss_family", C.c_uint16), ("data", C.c_byte * 118), ("align", C.c_uint64)]


RXAFS_FILE = 1
RXAFS_DIRECTORY = 2
RXAFS_SYMLINK = 3
RXAFS_READ = 1
RXAFS_WRITE = 2
RXAFS_INSERT = 4
RXAFS_LIST = 8
RXAFS_DELETE = 16
RXAFS_LOCK = 32
RXAFS_ADMINISTER = 64
RXAFS_LOCALLY = 0
RXAFS_FROM_SERVER = 1
RXAFS_FROM_NETWORK = 2
RXAFS_FROM_LOCATION = 3
RXAFS_SET_MODE = 1
RXAFS_SET_OWNER = 2
RXAFS_SET_GROUP = 4
RXAFS_SET_SIZE = 8
RXAFS_SET_TIME = 16
RXAFS_SERVER_UP = 0
RXAFS_SERVER_DOUBT = 1
RXAFS_SERVER_DOWN = 2
RXAFS_PATH_OUT = 0
RXAFS_PATH_LIVE = 1
RXAFS_PATH_SUSPECT = 2
RXAFS_PATH_PARKED = 3
RXAFS_PATH_UNTRIED = 4
RXAFS_OP_RUN = 1
RXAFS_OP_LOOKUP = 2
RXAFS_OP_WALK = 3
RXAFS_OP_GETATTR = 4
RXAFS_OP_SETATTR = 5
RXAFS_OP_ACCESS = 6
RXAFS_OP_READLINK = 7
RXAFS_OP_MKDIR = 8
RXAFS_OP_SYMLINK = 9
RXAFS_OP_LINK = 10
RXAFS_OP_UNLINK = 11
RXAFS_OP_RMDIR = 12
RXAFS_OP_RENAME = 13
RXAFS_OP_GETXATTR = 14
RXAFS_OP_SETXATTR = 15
RXAFS_OP_STATFS = 16
RXAFS_OP_OPEN = 17
RXAFS_OP_CREATE = 18
RXAFS_OP_READ = 19
RXAFS_OP_WRITE = 20
RXAFS_OP_FLUSH = 21
RXAFS_OP_TRUNCATE = 22
RXAFS_OP_SET_LOCK = 23
RXAFS_OP_TEST_LOCK = 24
RXAFS_OP_OPEN_LISTING = 25
RXAFS_OP_READ_LISTING = 26
RXAFS_EVENT_OPERATION = 1
RXAFS_EVENT_POST = 2
RXAFS_EVENT_ADDED = 3
RXAFS_EVENT_REMOVED = 4
RXAFS_EVENT_CHANGED = 5
RXAFS_EVENT_GONE = 6
RXAFS_EVENT_FAILED = 7
RXAFS_EVENT_RECOVERED = 8
RXAFS_WOULD_WAIT = -115
RXAFS_SPANS = 64
RXAFS_PATHS = 8
RXAFS_SMALL_MOST = 32
RXAFS_STORE_UNIT = 65536
RXAFS_BATCH = 50


class rxafs_fid(C.Structure):
    _fields_ = [
        ("cell", C.c_uint32),
        ("volume", C.c_uint32),
        ("vnode", C.c_uint32),
        ("unique", C.c_uint32),
    ]


class rxafs_failure(C.Structure):
    _fields_ = [
        ("number", C.c_int),
        ("origin", C.c_int),
        ("code", C.c_int32),
        ("volume", C.c_uint32),
        ("maybe_done", C.c_bool),
        ("server", C.c_char * 64),
        ("text", C.c_char * 200),
    ]


class rxafs_awaited(C.Structure):
    _fields_ = [
        ("known", C.c_bool),
        ("cell", C.c_uint32),
        ("server", C.c_uint32),
    ]


class rxafs_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("cell", C.c_char_p),
        ("cells", C.c_void_p),
        ("cell_count", C.c_size_t),
        ("config_dir", C.c_char_p),
        ("cache_dir", C.c_char_p),
        ("cache_bytes", C.c_uint64),
        ("memory_bytes", C.c_uint64),
        ("objects", C.c_uint64),
        ("root_volume", C.c_char_p),
        ("sysnames", C.c_void_p),
        ("sysname_count", C.c_size_t),
        ("limit_ms", C.c_uint64),
        ("ignore_owner", C.c_bool),
        ("strict_locks", C.c_bool),
        ("read_write", C.c_bool),
        ("transport", handle),
        ("one_round", C.c_bool),
        ("log", handle),
        ("log_arg", handle),
        ("hooks", handle),
        ("paths", C.c_void_p),
        ("path_count", C.c_size_t),
    ]


class rxafs_request(C.Structure):
    _fields_ = [
        ("user", handle),
        ("deadline", C.c_uint64),
        ("cancel", handle),
        ("quick", C.c_bool),
        ("moves", C.c_bool),
        ("awaited", rxafs_awaited),
        ("failure", rxafs_failure),
        ("reserved", C.c_uint64 * 4),
    ]


class rxafs_attributes(C.Structure):
    _fields_ = [
        ("stat", stat),
        ("fid", rxafs_fid),
        ("kind", C.c_int),
        ("mount_point", C.c_bool),
        ("volatile_name", C.c_bool),
        ("for_all", C.c_bool),
        ("version", C.c_uint64),
        ("author", C.c_uint32),
        ("stamp", C.c_uint64),
        ("valid_ns", C.c_uint64),
        ("name_valid_ns", C.c_uint64),
        ("locks", C.c_int64),
        ("reserved", C.c_uint64 * 3),
    ]


class rxafs_changes(C.Structure):
    _fields_ = [
        ("set", C.c_uint),
        ("mode", C.c_uint32),
        ("owner", C.c_uint32),
        ("group", C.c_uint32),
        ("size", C.c_uint64),
        ("time", C.c_int64),
    ]


class rxafs_space(C.Structure):
    _fields_ = [
        ("total", C.c_uint64),
        ("free", C.c_uint64),
    ]


class rxafs_volume(C.Structure):
    _fields_ = [
        ("fid", rxafs_fid),
        ("cell", C.c_char * 256),
        ("name", C.c_char * 68),
        ("id", C.c_uint32),
        ("read_write", C.c_uint32),
        ("read_only", C.c_uint32),
        ("backup", C.c_uint32),
        ("writable", C.c_bool),
        ("online", C.c_bool),
        ("quota", C.c_uint64),
        ("used", C.c_uint64),
        ("free", C.c_uint64),
        ("total", C.c_uint64),
        ("message", C.c_char * 256),
        ("reserved", C.c_uint64 * 4),
    ]


class rxafs_server(C.Structure):
    _fields_ = [
        ("number", C.c_uint32),
        ("cell", C.c_char * 256),
        ("address", sockaddr_storage),
        ("address_len", C.c_uint32),
        ("state", C.c_int),
        ("rtt_us", C.c_uint32),
        ("reserved", C.c_uint64 * 4),
    ]


class rxafs_counts(C.Structure):
    _fields_ = [
        ("hits", C.c_uint64),
        ("misses", C.c_uint64),
        ("breaks", C.c_uint64),
        ("conflicts", C.c_uint64),
        ("evicted", C.c_uint64),
        ("objects", C.c_uint64),
        ("name_bytes", C.c_uint64),
        ("answered", C.c_uint64),
        ("unanswered", C.c_uint64),
        ("reserved", C.c_uint64 * 8),
    ]


class rxafs_lock(C.Structure):
    _fields_ = [
        ("owner", C.c_uint64),
        ("start", C.c_uint64),
        ("end", C.c_uint64),
        ("type", C.c_int),
        ("pid", C.c_int),
        ("whole", C.c_bool),
    ]


class rxafs_entry(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("fid", rxafs_fid),
        ("inode", C.c_uint64),
        ("type", C.c_uint),
        ("error", C.c_int),
        ("next", C.c_uint64),
    ]


class rxafs_name(C.Structure):
    _fields_ = [
        ("text", C.c_char_p),
        ("fid", rxafs_fid),
    ]


class rxafs_names(C.Structure):
    _fields_ = [
        ("list", C.POINTER(rxafs_name)),
        ("count", C.c_size_t),
        ("storage", handle),
    ]


class rxafs_span(C.Structure):
    _fields_ = [
        ("offset", C.c_uint64),
        ("end", C.c_uint64),
    ]


class rxafs_path_use(C.Structure):
    _fields_ = [
        ("server", sockaddr_storage),
        ("local", sockaddr_storage),
        ("device", C.c_char * 16),
        ("bytes", C.c_uint64),
        ("repeated", C.c_uint64),
        ("rtt_ns", C.c_uint64),
        ("rate", C.c_uint64),
        ("losses", C.c_uint),
        ("state", C.c_int),
    ]


class rxafs_scatter(C.Structure):
    _fields_ = [
        ("version", C.c_uint64),
        ("take", handle),
        ("arg", handle),
        ("paths", C.c_uint),
        ("see", handle),
        ("missing", rxafs_span * RXAFS_SPANS),
        ("missing_count", C.c_uint),
        ("uses", rxafs_path_use * RXAFS_PATHS),
        ("use_count", C.c_uint),
    ]


class rxafs_small(C.Structure):
    _fields_ = [
        ("name", C.POINTER(rxafs_name)),
        ("length", C.c_size_t),
        ("bytes", handle),
        ("take", handle),
        ("arg", handle),
        ("result", C.c_int),
        ("fetched", C.c_size_t),
        ("attributes", rxafs_attributes),
    ]


class rxafs_store(C.Structure):
    _fields_ = [
        ("offset", C.c_uint64),
        ("length", C.c_uint64),
        ("size", C.c_uint64),
        ("set", rxafs_changes),
        ("durable", C.c_bool),
        ("use", C.POINTER(rxafs_path_use)),
    ]


class rxafs_scattered_store(C.Structure):
    _fields_ = [
        ("size", C.c_uint64),
        ("set", rxafs_changes),
        ("durable", C.c_bool),
        ("give", handle),
        ("arg", handle),
        ("paths", C.c_uint),
        ("see", handle),
        ("spans", rxafs_span * RXAFS_SPANS),
        ("span_count", C.c_uint),
        ("session", C.c_uint64 * 2),
        ("unanswered", C.c_bool),
        ("uses", rxafs_path_use * RXAFS_PATHS),
        ("use_count", C.c_uint),
    ]


class rxafs_new_file(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("bytes", handle),
        ("length", C.c_size_t),
        ("set", rxafs_changes),
        ("result", C.c_int),
        ("made", C.c_bool),
        ("attributes", rxafs_attributes),
    ]


class rxafs_operation(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("code", C.c_int),
        ("flags", C.c_int),
        ("arg", handle),
        ("request", rxafs_request),
        ("object", handle),
        ("new_directory", handle),
        ("file", handle),
        ("listing", handle),
        ("name", C.c_char_p),
        ("new_name", C.c_char_p),
        ("buffer", handle),
        ("length", C.c_size_t),
        ("offset", C.c_uint64),
        ("mode", C.c_uint32),
        ("changes", C.POINTER(rxafs_changes)),
        ("lock", C.POINTER(rxafs_lock)),
        ("run", handle),
        ("result", C.c_int64),
        ("found", handle),
        ("opened", handle),
        ("text", C.c_void_p),
        ("entry", rxafs_entry),
        ("space", rxafs_space),
        ("attributes", rxafs_attributes),
        ("inside", handle),
    ]


class rxafs_event(C.Structure):
    _fields_ = [
        ("kind", C.c_int),
        ("error", C.c_int),
        ("arg", handle),
        ("operation", C.POINTER(rxafs_operation)),
        ("watch", handle),
        ("fid", rxafs_fid),
        ("name", C.c_char * 256),
    ]


class rxafs_watch_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("user", handle),
        ("attributes", C.c_bool),
        ("arg", handle),
    ]


STRUCTURES = (
    rxafs_fid,
    rxafs_failure,
    rxafs_awaited,
    rxafs_options,
    rxafs_request,
    rxafs_attributes,
    rxafs_changes,
    rxafs_space,
    rxafs_volume,
    rxafs_server,
    rxafs_counts,
    rxafs_lock,
    rxafs_entry,
    rxafs_name,
    rxafs_names,
    rxafs_span,
    rxafs_path_use,
    rxafs_scatter,
    rxafs_small,
    rxafs_store,
    rxafs_scattered_store,
    rxafs_new_file,
    rxafs_operation,
    rxafs_event,
    rxafs_watch_options,
)

FUNCTIONS = {
    "rxafs_open_client": (C.c_int, (C.POINTER(rxafs_options), C.c_void_p, C.POINTER(rxafs_failure))),
    "rxafs_close_client": (C.c_int, (handle, C.c_uint64)),
    "rxafs_abandon": (None, (handle,)),
    "rxafs_create_cancel": (handle, ()),
    "rxafs_raise_cancel": (None, (handle,)),
    "rxafs_free_cancel": (None, (handle,)),
    "rxafs_error_text": (C.c_char_p, (C.POINTER(rxafs_request), C.c_int64)),
    "rxafs_get_user": (C.c_int, (handle, C.c_uint32, C.c_void_p)),
    "rxafs_create_user": (C.c_int, (handle, C.c_void_p)),
    "rxafs_hold_user": (handle, (handle,)),
    "rxafs_put_user": (None, (handle,)),
    "rxafs_set_token": (C.c_int, (handle, C.c_char_p, handle, C.c_int64)),
    "rxafs_renew_token": (C.c_int, (handle, C.c_char_p, handle, C.c_int64)),
    "rxafs_log_in": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p)),
    "rxafs_token_expires": (C.c_int64, (handle, C.c_char_p)),
    "rxafs_root": (handle, (handle,)),
    "rxafs_hold": (handle, (handle,)),
    "rxafs_release": (None, (handle,)),
    "rxafs_now": (C.c_uint64, ()),
    "rxafs_lookup": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_void_p, C.POINTER(rxafs_attributes))),
    "rxafs_walk": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_bool, C.c_void_p)),
    "rxafs_parent": (handle, (handle,)),
    "rxafs_getattr": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_attributes))),
    "rxafs_get_rights": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(C.c_uint32), C.POINTER(C.c_uint32))),
    "rxafs_access": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_int)),
    "rxafs_readlink": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_void_p)),
    "rxafs_setattr": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_changes), C.POINTER(rxafs_attributes))),
    "rxafs_mkdir": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_uint32, C.c_void_p, C.POINTER(rxafs_attributes))),
    "rxafs_symlink": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_char_p, C.c_void_p, C.POINTER(rxafs_attributes))),
    "rxafs_link": (C.c_int, (handle, C.POINTER(rxafs_request), handle, C.c_char_p, C.POINTER(rxafs_attributes))),
    "rxafs_unlink": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p)),
    "rxafs_rmdir": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p)),
    "rxafs_rename": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, handle, C.c_char_p, C.c_bool)),
    "rxafs_getxattr": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_void_p, C.POINTER(C.c_size_t))),
    "rxafs_setxattr": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_char_p, C.c_size_t)),
    "rxafs_statfs": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_space))),
    "rxafs_examine": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_volume))),
    "rxafs_set_quota": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_uint64)),
    "rxafs_where": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_server), C.c_uint)),
    "rxafs_server_at": (C.c_bool, (handle, C.c_uint32, C.POINTER(rxafs_server))),
    "rxafs_probe_servers": (None, (handle, C.POINTER(rxafs_request))),
    "rxafs_cell_name": (C.c_char_p, (handle, C.c_uint32)),
    "rxafs_home_cell": (C.c_char_p, (handle,)),
    "rxafs_cell_address": (C.c_int, (handle, C.c_char_p, handle, C.POINTER(C.c_uint32))),
    "rxafs_count": (None, (handle, C.POINTER(rxafs_counts))),
    "rxafs_forget": (C.c_int, (handle, C.POINTER(rxafs_request))),
    "rxafs_find_name": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_void_p)),
    "rxafs_mount_text": (C.c_int, (handle, C.c_void_p)),
    "rxafs_make_mount": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_char_p)),
    "rxafs_open": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_int, C.c_void_p)),
    "rxafs_create": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_uint32, C.c_int, C.c_void_p, C.POINTER(rxafs_attributes), C.c_void_p)),
    "rxafs_read": (C.c_int64, (handle, C.POINTER(rxafs_request), handle, C.c_size_t, C.c_uint64)),
    "rxafs_write": (C.c_int64, (handle, C.POINTER(rxafs_request), handle, C.c_size_t, C.c_uint64)),
    "rxafs_flush": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_bool)),
    "rxafs_close": (None, (handle,)),
    "rxafs_file_object": (handle, (handle,)),
    "rxafs_truncate": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_uint64)),
    "rxafs_set_lock": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_lock), C.c_bool)),
    "rxafs_check_locks": (C.c_int, (handle,)),
    "rxafs_test_lock": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_lock))),
    "rxafs_drop_locks": (None, (handle, C.c_uint64, C.c_bool)),
    "rxafs_open_listing": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_void_p)),
    "rxafs_read_listing": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_entry), C.c_void_p, C.POINTER(rxafs_attributes))),
    "rxafs_next_entry": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_uint64, C.POINTER(rxafs_entry))),
    "rxafs_entry_object": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_entry), C.c_void_p, C.POINTER(rxafs_attributes))),
    "rxafs_close_listing": (None, (handle,)),
    "rxafs_open_volume": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_char_p, C.c_void_p)),
    "rxafs_find_path": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_bool, C.c_void_p)),
    "rxafs_find_parent": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_void_p, C.c_char_p)),
    "rxafs_fetch_stream": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_uint64, C.c_uint64, handle, handle, C.POINTER(C.c_uint64), C.POINTER(rxafs_attributes))),
    "rxafs_fetch_version": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_uint64, C.c_uint64, C.c_uint64, handle, handle, C.POINTER(rxafs_attributes))),
    "rxafs_paths_at": (C.c_uint, (handle, C.c_uint32, C.POINTER(rxafs_path_use))),
    "rxafs_fetch_scattered": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_scatter), C.POINTER(rxafs_attributes))),
    "rxafs_fetch_small": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_small), C.c_uint, handle, handle)),
    "rxafs_store_stream": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_store), handle, handle, C.POINTER(rxafs_attributes))),
    "rxafs_store_scattered": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_scattered_store), C.POINTER(rxafs_attributes))),
    "rxafs_make_file": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.POINTER(rxafs_changes), C.c_void_p, C.POINTER(rxafs_attributes))),
    "rxafs_make_link": (C.c_int, (handle, C.POINTER(rxafs_request), C.c_char_p, C.c_char_p, C.POINTER(rxafs_changes), C.c_void_p, C.POINTER(rxafs_attributes))),
    "rxafs_store_small": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_new_file), C.c_uint)),
    "rxafs_list_names": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_names))),
    "rxafs_free_names": (None, (C.POINTER(rxafs_names),)),
    "rxafs_fetch_attributes": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_name), C.c_uint, C.POINTER(rxafs_attributes), C.POINTER(C.c_int))),
    "rxafs_take_object": (C.c_int, (handle, C.POINTER(rxafs_request), C.POINTER(rxafs_name), C.POINTER(rxafs_attributes), C.c_void_p)),
    "rxafs_get_fid": (None, (handle, C.POINTER(rxafs_fid))),
    "rxafs_create_queue": (C.c_int, (handle, C.c_void_p)),
    "rxafs_free_queue": (None, (handle,)),
    "rxafs_queue_fd": (C.c_int, (handle,)),
    "rxafs_submit": (C.c_int, (handle, C.POINTER(rxafs_operation))),
    "rxafs_cancel_operation": (None, (C.POINTER(rxafs_operation),)),
    "rxafs_next_events": (C.c_int, (handle, C.POINTER(rxafs_event), C.c_uint, C.c_int)),
    "rxafs_post_event": (C.c_int, (handle, handle)),
    "rxafs_create_watch": (C.c_int, (handle, handle, C.POINTER(rxafs_request), C.POINTER(rxafs_watch_options), C.c_void_p)),
    "rxafs_free_watch": (None, (handle,)),
}

for _name, (_result, _arguments) in FUNCTIONS.items():
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments
