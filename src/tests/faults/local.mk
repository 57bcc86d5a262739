# SPDX-License-Identifier: BSD-2-Clause
# Faults of the system: memory, threads and system calls that fail in turn, a clock that jumps.
# RXW_FAULTS_STEP=1 tries each occurrence; without it a sample is tried.

check_LTLIBRARIES += src/tests/faults/libfaults.la
src_tests_faults_libfaults_la_SOURCES = src/tests/faults/shim.c src/tests/faults/shim.h \
	src/tests/faults/scenario.c src/tests/faults/scenario.h
src_tests_faults_libfaults_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

# The linker puts the shim between the library, linked as objects, and the system.
faults_ldflags = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free \
	-Wl,--wrap=aligned_alloc,--wrap=posix_memalign,--wrap=pthread_create,--wrap=getrandom \
	-Wl,--wrap=socket,--wrap=eventfd,--wrap=close,--wrap=bind,--wrap=getsockname \
	-Wl,--wrap=setsockopt,--wrap=getsockopt,--wrap=sendmsg,--wrap=sendmmsg,--wrap=recvmsg \
	-Wl,--wrap=recvmmsg,--wrap=poll,--wrap=ppoll,--wrap=read,--wrap=write \
	-Wl,--wrap=clock_gettime,--wrap=pthread_cond_timedwait
faults_libs = src/tests/faults/libfaults.la $(LDADD)
check_tests += src/tests/faults/test_faults_memory
src_tests_faults_test_faults_memory_LDADD = $(faults_libs)
src_tests_faults_test_faults_memory_LDFLAGS = $(faults_ldflags)
check_tests += src/tests/faults/test_faults_system
src_tests_faults_test_faults_system_LDADD = $(faults_libs)
src_tests_faults_test_faults_system_LDFLAGS = $(faults_ldflags)
check_tests += src/tests/faults/test_faults_threads
src_tests_faults_test_faults_threads_LDADD = $(faults_libs)
src_tests_faults_test_faults_threads_LDFLAGS = $(faults_ldflags)

# Hostile peers instead of a hostile system.
include src/tests/attack/local.mk
