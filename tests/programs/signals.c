/*
 * Signals: handlers with siginfo on an alternate stack, faults that a handler mends, SIGALRM that
 * interrupts a sleep, masks, waits that no handler ends, and a jump out of a handler.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms, users, mended;
static char *page;
static sigjmp_buf out;
static int on_stack;
static char *stack;

static void mend(int signal, siginfo_t *info, void *context)
{
	char here;

	on_stack = &here > stack && &here < stack + SIGSTKSZ;
	if (info->si_addr == page) {
		mended++;
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
	} else {
		siglongjmp(out, 1);
	}
}

static void count_alarm(int signal)
{
	alarms++;
}

static void count_user(int signal)
{
	users++;
}

static int interrupted_sleep(void)
{
	const struct timespec long_time = {.tv_sec = 2000};
	const struct itimerval soon = {.it_value = {.tv_usec = 50000}};
	struct timespec left;

	setitimer(ITIMER_REAL, &soon, NULL);
	return nanosleep(&long_time, &left) == -1 && errno == EINTR && left.tv_sec >= 1000;
}

static int masked(void)
{
	sigset_t set, pending;
	int early;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	early = users;
	sigpending(&pending);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return early == 0 && users == 1 && sigismember(&pending, SIGUSR1);
}

/*
 * SIGCHLD is ignored, but the first thread blocks it, so it is sent to the second one: neither its
 * sleep nor its pause() ends by it.
 */
static volatile sig_atomic_t slept_whole, paused;

static void *wait_twice(void *arg)
{
	const struct timespec whole = {.tv_nsec = 60000000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	slept_whole = nanosleep(&whole, NULL) == 0 ? 1 : 2;
	pause();
	paused = 1;
	return NULL;
}

static int undisturbed(void)
{
	const struct timespec moment = {.tv_nsec = 5000000};
	int sent_after = 0, early;
	pthread_t thread;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_create(&thread, NULL, wait_twice, NULL);
	for (; sent_after < 10; sent_after += slept_whole != 0) {
		kill(getpid(), SIGCHLD);
		nanosleep(&moment, NULL);
	}
	early = paused;
	for (; !paused; nanosleep(&moment, NULL))
		pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	return slept_whole == 1 && !early;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t alternate;
	int jumped, slept, was_masked, was_undisturbed;

	stack = malloc(SIGSTKSZ);
	alternate = (stack_t){.ss_sp = stack, .ss_size = SIGSTKSZ};
	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGFPE, &action, NULL);
	signal(SIGALRM, count_alarm);
	signal(SIGUSR1, count_user);
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile char *)page = 7;
	jumped = sigsetjmp(out, 1);
	if (!jumped)
		*(volatile int *)16 = 1;
	slept = interrupted_sleep();
	was_masked = masked();
	was_undisturbed = undisturbed();
	printf("mended %d, on its stack %d, jumped %d, alarms %d, slept %d, masked %d, "
	       "undisturbed %d\n",
	       (int)mended, on_stack, jumped, (int)alarms, slept, was_masked, was_undisturbed);
	return !(mended == 1 && on_stack && jumped && alarms == 1 && slept && was_masked &&
		 was_undisturbed && page[0] == 7);
}
