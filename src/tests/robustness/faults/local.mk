# SPDX-License-Identifier: BSD-2-Clause
# Faults of the system: memory, threads and system calls that fail in turn, clocks that jump.
# RXW_FAULTS_STEP=1 tries each occurrence; without it a sample is tried.

check_LIBRARIES += src/tests/robustness/faults/libfaults.a
src_tests_robustness_faults_libfaults_a_SOURCES = \
	src/tests/robustness/faults/scenario.c src/tests/robustness/faults/scenario.h src/tests/robustness/faults/scenario_calls.c \
	src/tests/robustness/faults/shim.c src/tests/robustness/faults/shim.h src/tests/robustness/faults/shim_file.c \
	src/tests/robustness/faults/shim_private.h $(support_internals)

# The linker puts the shim between the library, linked as objects, and the system. Both files of the shim are linked
# even if only later objects refer to them.
faults_ldflags = $(AM_LDFLAGS) -Wl,--undefined=__wrap_mkdir,--undefined=__wrap_malloc \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=free \
	-Wl,--wrap=aligned_alloc,--wrap=posix_memalign,--wrap=strdup,--wrap=strndup \
	-Wl,--wrap=asprintf,--wrap=pthread_create,--wrap=pthread_cond_timedwait,--wrap=getrandom \
	-Wl,--wrap=clock_gettime,--wrap=time,--wrap=socket,--wrap=eventfd,--wrap=close \
	-Wl,--wrap=bind,--wrap=getsockname,--wrap=setsockopt,--wrap=getsockopt,--wrap=sendmsg \
	-Wl,--wrap=sendmmsg,--wrap=recvmsg,--wrap=recvmmsg,--wrap=poll,--wrap=ppoll,--wrap=read \
	-Wl,--wrap=write,--wrap=open,--wrap=openat,--wrap=syscall,--wrap=fopen,--wrap=mkdir \
	-Wl,--wrap=rename,--wrap=pipe2,--wrap=fdopendir,--wrap=opendir,--wrap=closedir \
	-Wl,--wrap=fstat,--wrap=fstatat,--wrap=fstatvfs,--wrap=readlinkat,--wrap=preadv \
	-Wl,--wrap=preadv2,--wrap=fsync,--wrap=inotify_init1,--wrap=inotify_add_watch \
	-Wl,--wrap=open64,--wrap=openat64,--wrap=fopen64,--wrap=fstat64,--wrap=fstatat64 \
	-Wl,--wrap=fstatvfs64,--wrap=preadv64,--wrap=preadv64v2,--wrap=fcntl,--wrap=fcntl64 \
	-Wl,--wrap=__open_2,--wrap=__openat_2,--wrap=__open64_2,--wrap=__openat64_2 \
	-Wl,--wrap=__asprintf_chk
faults_libs = src/tests/robustness/faults/libfaults.a $(LDADD)
check_tests += src/tests/robustness/faults/test_faults_memory
src_tests_robustness_faults_test_faults_memory_LDADD = $(faults_libs)
src_tests_robustness_faults_test_faults_memory_LDFLAGS = $(faults_ldflags)
check_tests += src/tests/robustness/faults/test_faults_system
src_tests_robustness_faults_test_faults_system_LDADD = $(faults_libs)
src_tests_robustness_faults_test_faults_system_LDFLAGS = $(faults_ldflags)
check_tests += src/tests/robustness/faults/test_faults_threads
src_tests_robustness_faults_test_faults_threads_LDADD = $(faults_libs)
src_tests_robustness_faults_test_faults_threads_LDFLAGS = $(faults_ldflags)

check_tests += src/tests/robustness/faults/test_faults_writes
src_tests_robustness_faults_test_faults_writes_LDADD = $(faults_libs)
src_tests_robustness_faults_test_faults_writes_LDFLAGS = $(faults_ldflags)

# Stubs of the types compiled by src/tests/xg.
check_tests += src/tests/robustness/faults/test_faults_stubs
src_tests_robustness_faults_test_faults_stubs_SOURCES = \
	src/tests/robustness/faults/test_faults_stubs.c src/tests/robustness/faults/scenario_stubs.c
src_tests_robustness_faults_test_faults_stubs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src/tests/xg
src_tests_robustness_faults_test_faults_stubs_LDADD = src/tests/xg/libshort.a $(faults_libs)
src_tests_robustness_faults_test_faults_stubs_LDFLAGS = $(faults_ldflags)
$(src_tests_robustness_faults_test_faults_stubs_OBJECTS): $(xg_short)

# The file server, too, is linked as objects, not with the shared library.
check_tests += src/tests/robustness/faults/test_faults_files
src_tests_robustness_faults_test_faults_files_SOURCES = \
	src/tests/robustness/faults/test_faults_files.c src/tests/robustness/faults/scenario_files.c \
	$(fileserver_test_fixture)
src_tests_robustness_faults_test_faults_files_LDADD = src/fileserver/.libs/libfileserver.a $(faults_libs) \
	$(JANSSON_LIBS) $(INIH_LIBS) $(SQLITE_LIBS)
src_tests_robustness_faults_test_faults_files_LDFLAGS = $(faults_ldflags)
src_tests_robustness_faults_test_faults_files_DEPENDENCIES = src/fileserver/libfileserver.la \
	src/tests/robustness/faults/libfaults.a src/rx/librxwire_core.la
$(src_tests_robustness_faults_test_faults_files_OBJECTS): $(afs_headers)
