# The hosted machine: kernel/, mm/, the pure parsers and every TEST() as an ordinary process, in several builds of the same
# sources. Included by the top Makefile; uses BUILD.

HOST_CC ?= gcc
# What walks firmware's memory or talks to devices instead of parsing.
HOST_LEFT_OUT := arch/x86_64/acpi/acpi_find.c
# The C library's memory and string functions are the ones the sanitizers know.
HOST_LEFT_OUT += kernel/lib/string.c
HOST_SOURCES := $(filter-out $(HOST_LEFT_OUT),$(sort $(filter %.c,$(call sources_in,$(call with_rooms,kernel mm) \
	tests/kernel tests/bench tests/host)) boot/boot_info.c boot/multiboot2.c boot/pvh.c $(wildcard arch/x86_64/acpi/*.c) arch/x86_64/cpu/topology.c arch/x86_64/cpu/mtrr.c arch/x86_64/cpu/pci.c arch/x86_64/traps/mce_decode.c arch/x86_64/traps/apic_setup.c arch/x86_64/traps/registers.c arch/x86_64/time/clock_choice.c $(wildcard arch/x86_64/clear/*.c)))
# The real instructions; sanitizers, which see into no assembly, get stand-ins (tests/host/clear.c).
HOST_ASSEMBLY := arch/x86_64/clear/clear_insns.S

HOST_CFLAGS := -std=gnu11 -g1 -Wall -Wextra -Wshadow -Wno-unused-parameter -Werror -fno-omit-frame-pointer -fno-common -pthread -DASHLAR_HOSTED -DASHLAR_VERSION=$(VERSION) \
	-Itests/host/include -Iarch/x86_64/include -I. -Wa,-I$(dir $(VDSO))
HOST_CFLAGS_asan := -O1 -DASHLAR_DEBUG -DHOST_SANITIZED -fsanitize=address,undefined -fno-sanitize-recover=all
HOST_CFLAGS_tsan := -O1 -DASHLAR_DEBUG -DHOST_SANITIZED -fsanitize=thread
HOST_CFLAGS_fast := -O2 -DHOST_FAST -ftls-model=local-exec
HOST_CFLAGS_native := -O2 -DHOST_BACK_HUGE
# Data and zeroed data in one segment, although some of the latter are aligned to 64 KiB: valgrind reads the symbols of no other program.
HOST_LDFLAGS_native := -Wl,-z,max-page-size=0x10000
# clang has the fuzzer; it does not say that it sanitizes in the way that gcc does.
HOST_CC_fuzz := clang
HOST_CFLAGS_fuzz := -O1 -DASHLAR_DEBUG -DHOST_SANITIZED -D__SANITIZE_ADDRESS__=1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# Comparisons are not traced: those of the checkers, frame by frame, would take four fifths of the time.
HOST_CFLAGS_fuzz += -fno-sanitize-coverage=trace-cmp
# Reading what nobody wrote. gcc has no such sanitizer.
HOST_CC_msan := clang
HOST_CFLAGS_msan := -O1 -DASHLAR_DEBUG -DHOST_SANITIZED -D__SANITIZE_MEMORY__=1 -fsanitize=memory -fno-sanitize-recover=all
# One CPU at a time, in an order that is input (tests/host/explore). What the machine runs is instrumented as for the thread sanitizer,
# whose run-time is not linked; the machine itself is not. Places are named by frames, so it has no sibling calls.
HOST_CFLAGS_explore := -O1 -DASHLAR_DEBUG -DHOST_SANITIZED -DHOST_EXPLORE
HOST_INSTRUMENTED := -fsanitize=thread --param tsan-instrument-func-entry-exit=0 -include tests/host/explore/names.h
HOST_LDFLAGS_explore := -Wl,--wrap=test_before_case,--wrap=test_after_case
HOST_MACHINE := $(filter-out %_test.c tests/host/clear.c,$(wildcard tests/host/*.c tests/host/explore/*.c))
HOST_SOURCES_explore := $(filter-out tests/host/main.c tests/host/thread.c tests/host/sanitizer_test.c,$(HOST_SOURCES)) $(wildcard tests/host/explore/*.c) arch/x86_64/time/timer.c
# Notes each block of code that is entered, and who was inlined around it (tests/mutants/reach.py). Places are named from the root of the
# tree: a compiler cache (ccache) gives objects to several trees.
HOST_CFLAGS_reach := -O1 -g -ffile-prefix-map=$(CURDIR)=. -DASHLAR_DEBUG -DHOST_REACH -fsanitize-coverage=trace-pc
HOST_CFLAGS_cov := -O1 -DASHLAR_DEBUG -DHOST_COVERAGE --coverage -fprofile-update=atomic

host_sources = $(or $(HOST_SOURCES_$(1)),$(HOST_SOURCES))

define host_variant
$$(BUILD)/host/$(1)/flags: FORCE
	@mkdir -p $$(@D)
	@{ $$(or $$(HOST_CC_$(1)),$$(HOST_CC)) --version | head -n 1; echo '$$(BUILD): $$(HOST_CFLAGS) $$(HOST_CFLAGS_$(1)) $(call host_sources,$(1))'; } > $$@.new
	@$$(call keep_flags,$$(@D),$$(patsubst %.c,$$(BUILD)/host/$(1)/%.o,$(call host_sources,$(1))))

$$(BUILD)/host/$(1)/%.o: %.c $$(BUILD)/host/$(1)/flags
	@mkdir -p $$(@D)
	@$$(call compiling,HOSTCC,$$(BUILD)/host/$(1),$(1) $$<)
	@$$(or $$(HOST_CC_$(1)),$$(HOST_CC)) $$(HOST_CFLAGS) $$(HOST_CFLAGS_$(1)) $(if $(filter explore,$(1)),$$(if $$(filter $$(HOST_MACHINE),$$<),-O2 -fno-optimize-sibling-calls,$$(HOST_INSTRUMENTED))) -MMD -MP -c $$< -o $$@

$$(BUILD)/host/$(1)/kernel/program/vdso.o: $$(VDSO)

$$(BUILD)/host/$(1)/%.o: %.S $$(BUILD)/host/$(1)/flags
	@mkdir -p $$(@D)
	@$$(or $$(HOST_CC_$(1)),$$(HOST_CC)) -c $$< -o $$@

$$(BUILD)/host/$(1)/ashlar-host: $$(patsubst %.c,$$(BUILD)/host/$(1)/%.o,$(call host_sources,$(1))) \
		$(if $(findstring HOST_SANITIZED,$(HOST_CFLAGS_$(1))),,$$(HOST_ASSEMBLY:%.S=$$(BUILD)/host/$(1)/%.o))
	@$$(call making,HOSTLD,$$@)
	@$$(or $$(HOST_CC_$(1)),$$(HOST_CC)) $$(HOST_CFLAGS_$(1)) $$(HOST_LDFLAGS_$(1)) -pthread $$^ -o $$@

-include $$(patsubst %.c,$$(BUILD)/host/$(1)/%.d,$(call host_sources,$(1)))
endef

$(foreach variant,asan tsan msan fast native fuzz cov reach explore,$(eval $(call host_variant,$(variant))))

# Harnesses that need the whole machine, driven by libFuzzer, or by saved inputs: sequences of operations, all options,
# and a virtio device.
HOST_FUZZERS := ops options balloon
HOST_FUZZED := $(filter-out tests/host/main.c tests/bench/payload.c,$(HOST_SOURCES))
-include $(foreach variant,asan fuzz,$(HOST_FUZZERS:%=$(BUILD)/host/$(variant)/tests/fuzz/%_fuzz.d))
$(HOST_FUZZERS:%=$(BUILD)/fuzz/%_fuzz): $(BUILD)/fuzz/%: $(HOST_FUZZED:%.c=$(BUILD)/host/fuzz/%.o) $(BUILD)/host/fuzz/tests/fuzz/%.o
	@mkdir -p $(@D)
	@echo '  HOSTLD  $@'
	@clang $(HOST_CFLAGS_fuzz) -pthread $^ $$(clang -print-file-name=libclang_rt.fuzzer_no_main-x86_64.a) -lstdc++ -lm -o $@

HOST_REPLAYS := $(HOST_FUZZERS:%=$(BUILD)/host/asan/%_replay)
$(HOST_REPLAYS): $(BUILD)/host/asan/%_replay: $(HOST_FUZZED:%.c=$(BUILD)/host/asan/%.o) $(BUILD)/host/asan/tests/fuzz/%_fuzz.o \
		$(BUILD)/host/asan/tests/fuzz/replay.o
	@echo '  HOSTLD  $@'
	@$(HOST_CC) $(HOST_CFLAGS_asan) -pthread $^ -o $@

# Cases count into one set of files, one after the other: each machine is a process of its own, which adds to them when it ends.
test/coverage: $(BUILD)/host/cov/ashlar-host ## lines and branches of mm/ and kernel/ that the cases reach, hosted, by file, BUILD/coverage.html; mm/ must have 95% of its lines
	@find $(BUILD)/host/cov -name '*.gcda' -exec rm {} +
	@$(BUILD)/host/cov/ashlar-host -c 4 -m 3G > $(BUILD)/coverage.console 2>&1 || { echo 'Not every case passed: $(BUILD)/coverage.console'; exit 1; }
	@gcovr --root . --filter '(mm|kernel)/' --html-details $(BUILD)/coverage.html --txt $(BUILD)/coverage.txt $(BUILD)/host/cov
	@gcovr --root . --filter '(mm|kernel)/' --branches --txt $(BUILD)/coverage.branches.txt $(BUILD)/host/cov
	@cat $(BUILD)/coverage.txt
	@awk '/^(mm|kernel)\// { split($$1, path, "/"); kind = path[1] "/: " (FILENAME ~ /branches/ ? "branches" : "lines"); all[kind] += $$2; \
		hit[kind] += $$3 } END { for (kind in all) printf "%s: %.1f%% (%d of %d)\n", kind, 100 * hit[kind] / all[kind], hit[kind], all[kind]; \
		if (hit["mm/: lines"] < 0.95 * all["mm/: lines"]) { print "Fewer than 95% of the lines of mm/ are reached."; exit 1 } }' \
		$(BUILD)/coverage.txt $(BUILD)/coverage.branches.txt

explore_cpus = $(if $(filter command environment,$(firstword $(origin CPUS))),$(CPUS),3)
explore_mem = $(if $(filter command environment,$(firstword $(origin MEM))),$(MEM),128M)
.PHONY: host-explore explore
host-explore: $(BUILD)/host/explore/ashlar-host
explore: host-explore ## run the cases of T, one CPU at a time, under N schedules [1000] each, drawn from SEED; or replay the schedule SEED
	@case '$(SEED)' in ''|*[!0-9]*) set -- -R '$(SEED)' ;; *) set -- -s '$(SEED)' -S '$(or $(N),1000)' -p '$(or $(WHAT),all)' ;; esac; \
		$(BUILD)/host/explore/ashlar-host -c $(explore_cpus) -m $(explore_mem) $(if $(CMDLINE),-k '$(CMDLINE)') "$$@" '$(or $(T),mm.provoke.*)'

.PHONY: host host-asan host-tsan host-msan host-fast host-native host-replay
# Real mappings under address and undefined-behaviour, thread, and memory sanitizers (clang's: reads of what nobody wrote); the same at
# native speed; no mappings, for benchmarks; and harnesses for saved inputs (tests/fuzz/corpus), which are their arguments.
host-asan host-tsan host-msan host-native host-fast: host-%: $(BUILD)/host/%/ashlar-host
host-replay: $(HOST_REPLAYS)
host: host-asan host-tsan host-fast host-native ## the hosted builds under sanitizers and at native speed; host-asan, -tsan, -msan, -fast, -native, -replay: one
