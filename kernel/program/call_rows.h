/*
 * The calls of Linux x86-64 that programs in ring 3 can make, one row each. calls.h makes the
 * prototypes of it, calls.c the array by number, and tests/host/fuzz_calls.c its random calls. The
 * comment over a group says what there is (+) and what there is not (-), with the error that is
 * returned. Any other call is ENOSYS, and the log has its name of call_names.h.
 *
 *	CALL(number, name, "arguments", tested)                 call_NAME() serves it
 *	SAME(number, name, "arguments", other, "how", tested)   as the call `other`, whose arguments
 *	                                                        are these: 0 to 5 is one of this
 *	                                                        call, z, and all that follow, 0;
 *	                                                        h, l, p, r and t: calls.c
 *	ANSWER(number, name, "arguments", value, tested)        always the same result
 *
 * `arguments` has a letter for each:
 *
 *	p path   f descriptor (first: or EBADF)   d directory   b buffer   s size
 *	v four vectors   t time
 *	o flags of open()   m mode   n small number   0 zero   8 eight   . anything
 *
 * `tested`: the cases of tests/kernel/program_NAME_test.c make the call, or the programs of the
 * group of that name do (tests/programs), or only the random calls do (fuzz).
 *
 * Source: Linux man-pages, section 2; numbers and names, syscalls(2).
 */
/* clang-format off */

/*
 * + private and shared, of files and anonymous; FIXED, FIXED_NOREPLACE, 32BIT, NORESERVE,
 *   POPULATE, HUGETLB with 2 and 1 GiB pages; overcommit, RLIMIT_AS and RLIMIT_DATA;
 *   reservations of terabytes
 * - mappings that grow downwards; mremap of pool pages, and of size 0 without a file (EINVAL)
 */
CALL(9,     mmap,                   "......",                         file)
CALL(11,    munmap,                 "..",                             race)
CALL(10,    mprotect,               "...",                            huge)
CALL(25,    mremap,                 ".....",                          huge)
CALL(12,    brk,                    ".",                              brim)

/*
 * + DONTNEED, FREE (at once), REMOVE, HUGEPAGE, NOHUGEPAGE, COLLAPSE of private anonymous memory,
 *   POPULATE_READ, POPULATE_WRITE, GUARD_INSTALL and GUARD_REMOVE of private memory; other advice
 *   is ignored
 * - guards in shared memory (EINVAL)
 */
CALL(28,    madvise,                "...",                            guard)

/* + pages never leave, so locking is bringing them */
CALL(27,    mincore,                "bsb",                            area)
CALL(26,    msync,                  "...",                            area)
SAME(149,   mlock,                  "..",     mlock2, "01",           area)
CALL(325,   mlock2,                 "...",                            fuzz)
CALL(151,   mlockall,               ".",                              posix)
CALL(150,   munlock,                "..",                             posix)
ANSWER(152, munlockall,             "",       0,                      posix)

/*
 * + default, preferred, bind, interleave; get_mempolicy names the node of a page
 * - moving a page that is there
 */
CALL(237,   mbind,                  "bsn00.",                         area)
CALL(238,   set_mempolicy,          "...",                            fuzz)
CALL(239,   get_mempolicy,          ".....",                          fuzz)

/*
 * + threads
 * - processes: ENOSYS; clone3, without which C libraries do
 */
CALL(56,    clone,                  ".....",                          own)
ANSWER(435, clone3,                 "..",     -ENOSYS,                own)
CALL(218,   set_tid_address,        ".",                              own)
CALL(60,    exit,                   ".",                              own)
CALL(231,   exit_group,             ".",                              own)
CALL(186,   gettid,                 "",                               own)

/*
 * + WAIT, WAKE, REQUEUE, WAIT_BITSET, WAKE_BITSET, with time limits
 * - CMP_REQUEUE, WAKE_OP, priority inheritance: ENOSYS; words of a file that is mapped twice are
 *   two words
 */
CALL(202,   futex,                  "......",                         futex)

CALL(273,   set_robust_list,        "bs",                             own)

/* there are no children */
ANSWER(61,  wait4,                  "....",   -ECHILD,                call)
ANSWER(247, waitid,                 ".....",  -ECHILD,                fuzz)

/*
 * + SIGINFO, NODEFER, RESETHAND, ONSTACK, RESTART
 * - a handler without SA_RESTORER
 */
CALL(13,    rt_sigaction,           "....",                           signal)

/*
 * + all, with AUTODISARM; vector registers are saved
 * - changed segment selectors
 */
CALL(14,    rt_sigprocmask,         "....",                           signal)
CALL(127,   rt_sigpending,          "b8",                             own)
CALL(130,   rt_sigsuspend,          "..",                             signal)
CALL(128,   rt_sigtimedwait,        "....",                           signal)
CALL(34,    pause,                  "",                               signal)
CALL(15,    rt_sigreturn,           "",                               signal)
CALL(131,   sigaltstack,            "0b",                             signal)

/*
 * + the program and its threads; 32 to 64 queue, 256 in all
 * - other processes (ESRCH); stopping
 */
CALL(62,    kill,                   "..",                             posix)
SAME(200,   tkill,                  "..",     tgkill, "p01",          own)
CALL(234,   tgkill,                 "...",                            signal)
CALL(129,   rt_sigqueueinfo,        "...",                            signal)

/*
 * + ITIMER_REAL
 * - VIRTUAL and PROF: EINVAL
 */
CALL(37,    alarm,                  ".",                              posix)
CALL(38,    setitimer,              "...",                            own)

/*
 * + REALTIME, MONOTONIC, BOOTTIME; SIGEV_SIGNAL, NONE, THREAD_ID; 127 timers
 * - clocks of CPU time: ENOTSUP
 */
CALL(222,   timer_create,           "...",                            time)
CALL(223,   timer_settime,          "....",                           time)
CALL(224,   timer_gettime,          "..",                             time)
CALL(225,   timer_getoverrun,       ".",                              time)
CALL(226,   timer_delete,           ".",                              time)

/*
 * + all clocks, CPU time of threads; the first, third and fourth in the vDSO
 * - CPU time split into user and system
 */
CALL(228,   clock_gettime,          "nb",                             time)
CALL(229,   clock_getres,           "nb",                             posix)
CALL(96,    gettimeofday,           "b0",                             fuzz)
CALL(201,   time,                   "b",                              fuzz)

/*
 * + intervals and times
 * - clocks of CPU time
 */
SAME(35,    nanosleep,              "..",     clock_nanosleep, "zz01",time)
CALL(230,   clock_nanosleep,        "....",                           own)

/* nobody sets the clock */
ANSWER(227, clock_settime,          "..",     -EPERM,                 posix)
ANSWER(164, settimeofday,           "..",     -EPERM,                 fuzz)

/*
 * + one process; parent 0
 * - setpgid, setsid: EPERM
 */
ANSWER(39,  getpid,                 "",       THREAD_FIRST_ID,        call)
ANSWER(110, getppid,                "",       0,                      busybox)
ANSWER(111, getpgrp,                "",       THREAD_FIRST_ID,        fuzz)
ANSWER(121, getpgid,                ".",      THREAD_FIRST_ID,        fuzz)
ANSWER(124, getsid,                 ".",      THREAD_FIRST_ID,        fuzz)
ANSWER(109, setpgid,                "..",     -EPERM,                 fuzz)
ANSWER(112, setsid,                 "",       -EPERM,                 fuzz)

/*
 * + always root; addresses that do not change (ADDR_NO_RANDOMIZE)
 * - changes
 */
ANSWER(102, getuid,                 "",       0,                      call)
ANSWER(107, geteuid,                "",       0,                      sqlite)
ANSWER(104, getgid,                 "",       0,                      fuzz)
ANSWER(108, getegid,                "",       0,                      fuzz)
ANSWER(115, getgroups,              "..",     0,                      fuzz)
ANSWER(105, setuid,                 ".",      0,                      posix)
ANSWER(106, setgid,                 ".",      0,                      fuzz)
ANSWER(113, setreuid,               "..",     0,                      fuzz)
ANSWER(114, setregid,               "..",     0,                      fuzz)
ANSWER(117, setresuid,              "...",    0,                      posix)
ANSWER(119, setresgid,              "...",    0,                      fuzz)
ANSWER(116, setgroups,              "..",     0,                      fuzz)
ANSWER(122, setfsuid,               ".",      0,                      fuzz)
ANSWER(123, setfsgid,               ".",      0,                      fuzz)
ANSWER(135, personality,            ".",      0x40000,                call)
ANSWER(126, capset,                 "..",     -EPERM,                 fuzz)

/*
 * + Linux 6.12.0-ashlar; memory, time, threads, most resident; RDRAND
 * - loads
 */
CALL(63,    uname,                  ".",                              busybox)
CALL(99,    sysinfo,                "b",                              busybox)
CALL(98,    getrusage,              "nb",                             mimalloc)
CALL(318,   getrandom,              "bsn",                            end)

/*
 * + limits are kept; AS and DATA are obeyed
 * - the others are not
 */
SAME(97,    getrlimit,              "nb",     prlimit64, "z0z1",      call)
CALL(160,   setrlimit,              "..",                             fuzz)
CALL(302,   prlimit64,              "0n0b",                           own)

/*
 * + a mask without the thread's CPU is accepted, and said once
 * - moving a thread
 */
CALL(24,    sched_yield,            "",                               go)
CALL(309,   getcpu,                 "bb0",                            fuzz)
CALL(204,   sched_getaffinity,      "0sb",                            futex)
CALL(203,   sched_setaffinity,      "...",                            futex)

/*
 * + OTHER, BATCH, IDLE
 * - FIFO, RR: EPERM
 */
CALL(145,   sched_getscheduler,     ".",                              posix)
CALL(144,   sched_setscheduler,     "...",                            posix)
CALL(143,   sched_getparam,         "0b",                             posix)
SAME(142,   sched_setparam,         "..",     sched_setscheduler, "0z1",fuzz)
CALL(146,   sched_get_priority_max, ".",                              posix)
CALL(147,   sched_get_priority_min, ".",                              posix)
ANSWER(140, getpriority,            "0.",     20,                     call)
ANSWER(141, setpriority,            "...",    0,                      fuzz)

/*
 * + SET_NAME, GET_NAME, SET_VMA; FS and GS
 * - the rest: EINVAL
 */
CALL(157,   prctl,                  "nb...",                          busybox)
CALL(158,   arch_prctl,             "..",                             own)

/* refused; C libraries do without rseq */
ANSWER(334, rseq,                   "....",   -ENOSYS,                call)
ANSWER(101, ptrace,                 "....",   -EPERM,                 call)
ANSWER(103, syslog,                 "...",    -EPERM,                 fuzz)
ANSWER(172, iopl,                   ".",      -EPERM,                 fuzz)
ANSWER(173, ioperm,                 "...",    -EPERM,                 fuzz)
ANSWER(317, seccomp,                "...",    -EINVAL,                fuzz)

/*
 * + all kinds of files
 * - holes
 */
CALL(0,     read,                   "fbs",                            race)
CALL(1,     write,                  "fbs",                            race)
CALL(19,    readv,                  "fvn",                            file)
CALL(20,    writev,                 "fvn",                            file)
CALL(17,    pread64,                "fbss",                           file)
CALL(18,    pwrite64,               "fbss",                           file)
CALL(295,   preadv,                 "fvns.",                          file)
CALL(296,   pwritev,                "fvns.",                          fuzz)
CALL(40,    sendfile,               "ff..",                           file)
CALL(8,     lseek,                  "fsn",                            file)

/*
 * + 1,024 descriptors; EXCL, TRUNC, APPEND, NONBLOCK, DIRECTORY, NOFOLLOW, PATH; locks are
 *   always granted
 * - TMPFILE (EISDIR), permissions, close-on-exec, leases, sizes of pipes
 */
SAME(2,     open,                   "pom",    openat, "h012",         file)
CALL(257,   openat,                 "dpom",                           file)
SAME(85,    creat,                  "pm",     openat, "h0t1",         fuzz)
CALL(3,     close,                  "f",                              race)
CALL(32,    dup,                    "f",                              fuzz)
CALL(33,    dup2,                   "ff",                             race)
CALL(292,   dup3,                   "ff0",                            fuzz)
CALL(72,    fcntl,                  "fns",                            file)

/*
 * + TCGETS, TCSETS, TIOCGWINSZ (80x25), FIONREAD, FIONBIO
 * - the rest: ENOTTY
 */
CALL(16,    ioctl,                  "f..",                            file)

/*
 * + one time for all three
 * - owners, birth time
 */
SAME(4,     stat,                   "pb",     newfstatat, "h01",      file)
SAME(5,     fstat,                  "fb",     newfstatat, "zz1",      fuzz)
SAME(6,     lstat,                  "pb",     newfstatat, "h01l",     fuzz)
CALL(262,   newfstatat,             "dpb0",                           fuzz)
CALL(332,   statx,                  "dp00b",                          fuzz)
SAME(21,    access,                 "pn",     faccessat2, "h01",      file)
SAME(269,   faccessat,              "dpn",    faccessat2, "012",      file)
CALL(439,   faccessat2,             "dpn0",                           file)
CALL(137,   statfs,                 "pb",                             fuzz)
SAME(138,   fstatfs,                "fb",     statfs, "01",           fuzz)

/*
 * + at most 8 links are followed
 * - flags of linkat and renameat2 (EINVAL)
 */
CALL(217,   getdents64,             "fbs",                            file)
CALL(79,    getcwd,                 "bs",                             file)
CALL(80,    chdir,                  "p",                              file)
SAME(81,    fchdir,                 "f",      chdir, "0",             file)
CALL(95,    umask,                  ".",                              fuzz)
SAME(83,    mkdir,                  "pm",     mkdirat, "h01",         file)
CALL(258,   mkdirat,                "dpm",                            fuzz)
SAME(84,    rmdir,                  "p",      unlinkat, "h0r",        file)
SAME(87,    unlink,                 "p",      unlinkat, "h0",         file)
CALL(263,   unlinkat,               "dp0",                            fuzz)
SAME(86,    link,                   "pp",     linkat, "h0h1",         fuzz)
CALL(265,   linkat,                 "dpdp0",                          fuzz)
SAME(88,    symlink,                "pp",     symlinkat, "0h1",       file)
CALL(266,   symlinkat,              "pdp",                            fuzz)
SAME(89,    readlink,               "pbs",    readlinkat, "h012",     file)
CALL(267,   readlinkat,             "dpbs",                           fuzz)
SAME(82,    rename,                 "pp",     renameat2, "h0h1",      file)
SAME(264,   renameat,               "dpdp",   renameat2, "0123",      fuzz)
CALL(316,   renameat2,              "dpdpn",                          fuzz)

/*
 * + up to 128 TiB, sparse; holes; seals; memfds of 2 MiB and 1 GiB pages, which are not written
 *   (EINVAL) and whose private mappings copy a page at the first touch
 */
CALL(76,    truncate,               "ps",                             file)
CALL(77,    ftruncate,              "fs",                             file)
CALL(285,   fallocate,              "f0ss",                           file)
CALL(319,   memfd_create,           "pn",                             file)

/*
 * + the mode is kept
 * - owners, times
 */
SAME(90,    chmod,                  "pm",     fchmodat, "h01",        fuzz)
SAME(91,    fchmod,                 "fm",     fchmodat, "zz1",        fuzz)
CALL(268,   fchmodat,               "dpm",                            fuzz)
SAME(92,    chown,                  "...",    fchownat, "h012",       fuzz)
SAME(93,    fchown,                 "f..",    fchownat, "z",          fuzz)
SAME(94,    lchown,                 "...",    fchownat, "h0zzl",      fuzz)
CALL(260,   fchownat,               ".....",                          fuzz)
CALL(280,   utimensat,              "....",                           fuzz)

/* + there is nothing to do */
ANSWER(74,  fsync,                  "f",      0,                      fuzz)
ANSWER(75,  fdatasync,              "f",      0,                      fuzz)
ANSWER(162, sync,                   "",       0,                      fuzz)
ANSWER(221, fadvise64,              "f...",   0,                      fuzz)
ANSWER(73,  flock,                  "f.",     0,                      fuzz)

/* + 64 KiB; NONBLOCK, SEMAPHORE; SIGPIPE */
SAME(22,    pipe,                   "b",      pipe2, "0",             race)
CALL(293,   pipe2,                  "b0",                             file)
SAME(284,   eventfd,                ".",      eventfd2, "0",          race)
CALL(290,   eventfd2,               "n",                              file)
CALL(7,     poll,                   "bnn",                            file)
CALL(271,   ppoll,                  "bnt00",                          file)
CALL(23,    select,                 "s000t",                          file)
CALL(270,   pselect6,               "s000t0",                         file)

/*
 * + pairs of AF_UNIX and SOCK_STREAM, as two pipes; DONTWAIT, NOSIGNAL; options are ignored
 * - other sockets (ENOSYS, EAFNOSUPPORT); messages (ENOSYS); other flags (EOPNOTSUPP)
 */
CALL(53,    socketpair,             "nn0b",                           file)
CALL(48,    shutdown,               "fn",                             file)
CALL(44,    sendto,                 "fbs000",                         file)
CALL(45,    recvfrom,               "fbs000",                         file)
CALL(51,    getsockname,            "fbb",                            file)
SAME(52,    getpeername,            "fbb",    getsockname, "012",     fuzz)
ANSWER(54,  setsockopt,             "fnnbs",  0,                      fuzz)

/*
 * + level, EPOLLET, ONESHOT
 * - an epoll file in another (ELOOP)
 */
CALL(213,   epoll_create,           "s",                              race)
CALL(291,   epoll_create1,          "n",                              epoll)
CALL(233,   epoll_ctl,              "fnfb",                           race)
SAME(232,   epoll_wait,             "fbn0",   epoll_pwait, "0123",    race)
CALL(281,   epoll_pwait,            "fbn00.",                         fuzz)

#undef CALL
#undef SAME
#undef ANSWER
